//! Requests that lack a session or name two, and engines that complain of one: what is said to whom.

use crate::support::wire::{CHAT_PATH, Request, answer};
use crate::support::{as_is, checks, mapped, one_engine, relayed};
use serde_json::json;

fn post(body: &str, headers: &[&str]) -> Request {
    Request::post(CHAT_PATH, body).lines(headers)
}

/// A field that the mapping reads or sets stands once: which of two an engine takes is anybody's guess.
#[tokio::test]
async fn a_field_that_stands_twice_is_refused() {
    let (gateway, upstream) = mapped(&["body:/a/s"], &["body:/t"]).await;
    for (body, field) in [
        (r#"{"a":{"s":"1","\u0073":"2"}}"#, "/a/s"),
        (r#"{"a":{},"a":{"s":"2"}}"#, "/a"),
        (r#"{"t":1,"t":1}"#, "/t"),
    ] {
        let reply = gateway.ask(&post(body, &[])).await;
        checks::rejected(&reply, 400, "invalid_request");
        assert_eq!(reply.json()["error"]["message"], format!("the field {field} stands more than once"));
    }
    assert_eq!(upstream.connections(), 0);
}

/// `missing: reject`: the answer names the places; what needs no engine needs no session.
#[tokio::test]
async fn a_request_without_a_session_is_refused_where_the_file_says_so() {
    let robots = json!({ "match": { "path": "/robots.txt" }, "respond": { "body": "x" } });
    let (gateway, mut upstream) =
        one_engine(|settings| settings.set("session.missing", "reject").route(robots)).await;
    let odd = ["X-Session-Id: two words", "Cookie: session_id="];
    for request in [post("{}", &[]), post("{\"session_id\":7}", &odd), Request::bare("GET", CHAT_PATH)] {
        let reply = gateway.ask(&request).await;
        checks::rejected(&reply, 400, "missing_session");
        let message = reply.json()["error"]["message"].as_str().expect("a text").to_owned();
        assert!(
            message.contains("header:X-Session-Id or cookie:session_id or body:/session_id"),
            "{message}"
        );
    }
    assert_eq!(upstream.connections(), 0);
    assert_eq!(gateway.ask(&Request::bare("GET", "/robots.txt")).await.status(), 200);
    assert_eq!(gateway.ask(&Request::bare("GET", "/v1/models")).await.status(), 200);
    for request in [post("{\"session_id\":\"s\"}", &[]), post("{}", &["Cookie: session_id=s"])] {
        relayed(&gateway, &mut upstream, &request).await;
    }
}

/// An engine's 400 that names a session: told once, with names and never values; the answer passes as it is.
#[tokio::test]
async fn an_engine_that_complains_of_a_session_is_told_of() {
    let (gateway, mut upstream) = mapped(
        &["header:X-Session-Id", "body:/session_id", "body:/other"],
        &["body:/session_params/id", "body:/user"],
    )
    .await;
    let body = r#"{"session_id":"v-body","other":5,"user":"v-user"}"#;
    let headers =
        ["X-Session-Id: v-odd words", "Deepseek-SESSION: v-head", "Cookie: a=1; my_session=v-cookie"];
    let complaint = r#"{"error":{"message":"unknown field SesSion_params, session","code":400}}"#;
    for (id, cut) in [("r1", None), ("r2", Some(40))] {
        let mut client = gateway.send(&post(body, &headers).header(&format!("x-request-id: {id}"))).await;
        let mut call = upstream.call().await;
        match cut {
            None => call.answer(answer("400 Bad Request", &["Content-Type: text/plain"], complaint)).await,
            Some(at) => {
                call.send("HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n").await;
                assert_eq!(client.head().await.status(), 400);
                call.chunk(&complaint[..at]).await;
                client.until_body(&complaint.as_bytes()[..at]).await;
                call.chunk(&complaint[at..]).await;
                checks::ends_same(client, call, complaint.as_bytes()).await;
                gateway.wait_log("request r2").await;
                continue;
            }
        }
        let reply = client.answer().await;
        assert_eq!(reply.status(), 400);
        checks::same(&reply.body, complaint.as_bytes());
        gateway.wait_log("request r1").await;
    }
    let log = gateway.log();
    for id in ["r1", "r2"] {
        let told = format!(
            "request {id} {CHAT_PATH} on u1: the engine answered 400 and speaks of a session; the client sent \
             header:X-Session-Id (not usable), body:/session_id, body:/other (not usable), body:/user, \
             header:deepseek-session, cookie:my_session; added here: body:/session_params/id"
        );
        assert_eq!(log.matches(&told).count(), 1, "{log}");
    }
    assert!(
        log.lines()
            .filter(|line| line.contains("speaks of"))
            .all(|line| line.to_lowercase().contains("warn"))
    );
    for secret in ["v-body", "v-head", "v-user", "v-cookie", "v-odd"] {
        assert!(!log.contains(secret), "{secret}: {log}");
        assert!(gateway.access_lines().iter().all(|line| !line.to_string().contains(secret)));
    }
}

/// Other statuses, other words, and what stands too far down are no complaint.
#[tokio::test]
async fn other_refusals_are_not_told_of() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let far = format!("{}session", "x".repeat(16 * 1024));
    let coded = ["Content-Encoding: gzip"];
    let answers = [
        answer("404 Not Found", &[], "session"),
        answer("400 Bad Request", &[], "no such model"),
        answer("400 Bad Request", &[], &far),
        answer("400 Bad Request", &coded, "session"),
    ];
    for bytes in answers {
        let mut client = gateway.send(&Request::unary()).await;
        upstream.call().await.answer(bytes).await;
        client.answer().await;
    }
    gateway.all_access(4).await;
    // The log has one writer: what is told last comes last.
    let mut client = gateway.send(&Request::unary()).await;
    upstream.call().await.answer(answer("400 Bad Request", &[], "session")).await;
    client.answer().await;
    gateway.wait_log("speaks of a session").await;
    assert_eq!(gateway.log().matches("speaks of a session").count(), 1, "{}", gateway.log());
}
