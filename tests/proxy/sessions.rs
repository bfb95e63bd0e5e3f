//! Session ids: read from the first place that has one, put where there is none, never shown in a log.

use crate::support;
use crate::support::checks::has_body;
use crate::support::wire::{ANSWER, CHAT_PATH, MIB, Request, answer, chat_of, json_answer};
use crate::support::{Settings, checks, mapped, relayed, two_engines};
use serde_json::{Value, json};

/// The body of H18: odd but legal, with `field` in front of its first member.
fn odd_body(field: &str) -> String {
    format!(
        "{{{field} \"seed\": 9007199254740993,\n  \"temperature\": 0.10, \"n\": 1e2, \"x\": {{\"b\":1,\"a\":2}},\r\n\
         \t\"messages\":[{{\"role\":\"user\",\"content\":\"é \\u2028 \\ud83d\\ude00 \\/ \\ud83d\"}}],\n\
         \"mod\\u0065l\" : \"m\" , \"stream\": false, \"dup\":1, \"dup\":2 }}\n"
    )
}

fn post(body: impl AsRef<[u8]>, headers: &[&str]) -> Request {
    Request::post(CHAT_PATH, body).lines(headers)
}

/// H18: header to body. Only the mapped field differs, in an odd body, by length and in chunks.
#[tokio::test]
async fn a_header_goes_into_the_body() {
    let (gateway, mut upstream) = mapped(&["header:X-Session-Id"], &["body:/session_id"]).await;
    let with = odd_body("\"session_id\":\"s-1\",");
    let request = post(odd_body(""), &["x-session-ID: s-1"]);
    for request in [request.clone(), request.chunked(7)] {
        let asked = relayed(&gateway, &mut upstream, &request).await;
        has_body(&asked, &with);
        assert_eq!(asked.head.get("x-session-id"), Some("s-1"), "what the client sent stays");
    }
    has_body(&relayed(&gateway, &mut upstream, &post(odd_body(""), &[])).await, odd_body(""));
    let quoted = relayed(&gateway, &mut upstream, &post("{}", &["X-Session-Id: a\"b\\c/d"])).await;
    has_body(&quoted, r#"{"session_id":"a\"b\\c/d"}"#);
}

/// H18: body to header. The body passes as it came, and the id is what its JSON string means.
#[tokio::test]
async fn a_field_goes_into_a_header() {
    let (gateway, mut upstream) = mapped(&["body:/session_id"], &["header:X-Session-Id"]).await;
    for (json, id) in [("\"s-1\"", "s-1"), ("\"\\u0073-1\\/\\\"\"", "s-1/\"")] {
        let body = odd_body(&format!(" \"session\\u005fid\" :  {json} ,"));
        let asked = relayed(&gateway, &mut upstream, &post(&body, &[])).await;
        has_body(&asked, &body);
        assert_eq!(asked.head.all("x-session-id"), [id]);
    }
}

/// Cookie to body, header to header, body to body, header to cookie.
#[tokio::test]
async fn every_other_direction() {
    let from = ["cookie:sid", "header:Session", "body:/metadata/session~1id"];
    let to = ["body:/session_params/id", "header:X-Session-Id", "cookie:sid"];
    let (gateway, mut upstream) = mapped(&from, &to).await;
    let with = |id: &str| odd_body(&format!("\"session_params\":{{\"id\":\"{id}\"}},"));

    let asked = relayed(&gateway, &mut upstream, &post(odd_body(""), &["Cookie: a=1; sid=c-1"])).await;
    has_body(&asked, with("c-1"));
    assert_eq!(
        (asked.head.get("x-session-id"), asked.head.all("cookie")),
        (Some("c-1"), vec!["a=1; sid=c-1"])
    );

    let asked = relayed(&gateway, &mut upstream, &post(odd_body(""), &["Session: h-1", "Cookie: a=1"])).await;
    has_body(&asked, with("h-1"));
    assert_eq!(
        (asked.head.get("x-session-id"), asked.head.all("cookie")),
        (Some("h-1"), vec!["a=1; sid=h-1"])
    );

    let body = "{\n  \"model\": \"m\",\n  \"session_params\": { \"x\": 1.0 },\n  \"metadata\": {\"session/id\": \"b-1\"}\n}";
    let asked = relayed(&gateway, &mut upstream, &post(body, &[])).await;
    has_body(&asked, body.replace("{ \"x\"", "{\"id\":\"b-1\", \"x\""));
    assert_eq!((asked.head.get("x-session-id"), asked.head.all("cookie")), (Some("b-1"), vec!["sid=b-1"]));

    let asked = relayed(&gateway, &mut upstream, &post("{}", &["Session: a;admin=1"])).await;
    assert_eq!(asked.head.get("cookie"), None, "an id never becomes a second cookie");
    gateway.wait_log("the session id cannot stand at cookie:sid").await;
}

/// H18: both present and different. Both arrive as sent, and the first of `from` wins.
#[tokio::test]
async fn what_the_client_sent_is_never_overwritten() {
    let places = ["header:X-Session-Id", "cookie:session_id", "body:/session_id"];
    let (gateway, mut upstream) = mapped(&places, &places).await;
    let body = odd_body("\"session_id\":\"b\",");
    let asked =
        relayed(&gateway, &mut upstream, &post(&body, &["X-Session-Id: h", "x-request-id: r1"])).await;
    has_body(&asked, &body);
    assert_eq!((asked.head.all("x-session-id"), asked.head.all("cookie")), (vec!["h"], vec!["session_id=h"]));
    let line = gateway.wait_access("r1", |line| line["request_id"] == "r1").await;
    assert_eq!(line["session"], "header:X-Session-Id", "{line}");

    let lines = ["Cookie: session_id=c", "X-Session-Id: two words", "x-request-id: r2"];
    let asked = relayed(&gateway, &mut upstream, &post(&body, &lines)).await;
    has_body(&asked, &body);
    assert_eq!(asked.head.all("x-session-id"), ["two words"], "odd, but the client's");
    let line = gateway.wait_access("r2", |line| line["request_id"] == "r2").await;
    assert_eq!(line["session"], "cookie:session_id", "{line}");
}

/// What is no id counts as missing, and passes as it came.
#[tokio::test]
async fn odd_values_are_no_ids_and_pass() {
    let (gateway, mut upstream) = mapped(&["body:/s"], &["header:X-S", "body:/t/s"]).await;
    let long = format!("\"{}\"", "a".repeat(257));
    for json in ["7", "\"\"", "\"a b\"", "\"é\"", "[\"a\"]", "{}", "true", "\"\\ud800\"", &long] {
        let body = format!("{{\"s\": {json} }}");
        let asked = relayed(&gateway, &mut upstream, &post(&body, &[])).await;
        has_body(&asked, &body);
        assert_eq!(asked.head.get("x-s"), None, "{json}");
    }
    let longest = "a".repeat(256);
    let body = format!("{{\"s\":\"{longest}\",\"t\":null}}");
    let asked = relayed(&gateway, &mut upstream, &post(&body, &[])).await;
    has_body(&asked, body.replace("null", &format!("{{\"s\":\"{longest}\"}}")));
    assert_eq!(asked.head.get("x-s"), Some(longest.as_str()));
    let lines = gateway.all_access(10).await;
    assert_eq!(lines.iter().filter(|line| line["session"].is_null()).count(), 9, "{lines:?}");
}

/// Where no object could hold the field, the request passes as it came, and the log tells the place.
#[tokio::test]
async fn a_parent_that_is_no_object_is_left_alone() {
    let (gateway, mut upstream) = mapped(&["header:X-Session-Id"], &["body:/params/id", "header:X-Id"]).await;
    for (n, parent) in ["[]", "\"p\"", "7"].into_iter().enumerate() {
        let body = format!("{{\"params\": {parent}}}");
        let id = format!("x-request-id: r{n}");
        let asked = relayed(&gateway, &mut upstream, &post(&body, &["X-Session-Id: s3cret", &id])).await;
        has_body(&asked, &body);
        assert_eq!(asked.head.get("x-id"), Some("s3cret"));
        gateway
            .wait_log(&format!(
                "request r{n} {CHAT_PATH} on -: the session id cannot stand at body:/params/id"
            ))
            .await;
    }
    assert!(!gateway.log().contains("s3cret"));
}

/// 20 MB: found at the end, added at the front, the rest identical.
#[tokio::test]
async fn large_bodies_are_mapped_whole() {
    let (gateway, mut upstream) = mapped(&["body:/meta/s"], &["header:X-S", "body:/session_id"]).await;
    let mut body = chat_of(20 * MIB);
    body.truncate(body.len() - 1);
    body.extend_from_slice(b" , \"meta\" : {\"s\" : \"end\"} }");
    let mapped = [b"{\"session_id\":\"end\",", &body[1..]].concat();
    for request in [post(&body, &[]), post(&body, &[]).chunked(100_000)] {
        let asked = relayed(&gateway, &mut upstream, &request).await;
        has_body(&asked, &mapped);
        assert_eq!(asked.head.get("x-s"), Some("end"));
    }
    checks::at_rest(&gateway).await;
}

/// Alias, usage and session are put into one body, and the second node gets the same.
#[tokio::test]
async fn all_changes_go_into_one_body_on_every_attempt() {
    let settings = |settings: Settings| {
        settings
            .session(&["header:X-Session-Id"], &["body:/session_id", "header:X-S"])
            .set("routes.0.aliases", json!({ "m": "backend-model" }))
            .set("routes.0.include_usage", true)
    };
    let (gateway, mut one, mut two) = two_engines(settings).await;
    let body = "{ \"model\" : \"m\", \"stream\":true }";
    let mut client = gateway.send(&post(body, &["X-Session-Id: s"])).await;
    let want = "{\"session_id\":\"s\",\"stream_options\":{\"include_usage\":true}, \"model\" : \"backend-model\", \"stream\":true }";
    let (call, other) = support::upstream::either(&mut one, &mut two).await;
    has_body(&call.request, want);
    call.answer(answer("503 Service Unavailable", &[], "")).await;
    let call = other.call().await;
    has_body(&call.request, want);
    assert_eq!(call.request.head.get("x-s"), Some("s"));
    call.stream("x").await;
    checks::streamed(&mut client, "x").await;
}

/// Bodies that are not JSON, and none at all: only the head is mapped.
#[tokio::test]
async fn other_bodies_pass_as_they_are() {
    let from = ["body:/session_id", "header:X-Session-Id"];
    let (gateway, mut upstream) = mapped(&from, &["body:/s", "header:X-S"]).await;
    let form = b"--b\r\n\r\n\x00\xff{\"session_id\":\"no\"}\r\n--b--";
    let request = Request::bare("POST", CHAT_PATH)
        .header("Content-Type: multipart/form-data; boundary=b")
        .header("X-Session-Id: h")
        .body(form);
    let asked = relayed(&gateway, &mut upstream, &request).await;
    has_body(&asked, form);
    assert_eq!(asked.head.get("x-s"), Some("h"));
    let asked =
        relayed(&gateway, &mut upstream, &Request::bare("GET", CHAT_PATH).header("X-Session-Id: g")).await;
    assert_eq!(
        (asked.head.get("x-s"), asked.head.get("content-length"), asked.body.len()),
        (Some("g"), None, 0)
    );
}

/// With `from: []` nothing is read, so nothing about it is refused either.
#[tokio::test]
async fn no_places_no_rules() {
    let (gateway, mut upstream) = mapped(&[], &[]).await;
    let body = r#"{"session_id":1,"session_id":2}"#;
    has_body(&relayed(&gateway, &mut upstream, &post(body, &["X-Session-Id: s"])).await, body);
    assert_eq!(gateway.only_access().await["session"], Value::Null);
}

/// Requests with different ids follow each other on one connection, on both sides.
#[tokio::test]
async fn a_mapped_connection_is_kept() {
    let (gateway, mut upstream) = mapped(&["header:X-Session-Id"], &["body:/session_id"]).await;
    let mut client = gateway.client().await;
    for n in 0..20 {
        let line = format!("X-Session-Id: s{n}");
        client.send(post(odd_body(""), &[&line]).bytes()).await;
        let call = upstream.call().await;
        has_body(&call.request, odd_body(&format!("\"session_id\":\"s{n}\",")));
        call.answer(json_answer(ANSWER)).await;
        assert_eq!(client.answer().await.status(), 200);
    }
    assert_eq!(upstream.connections(), 1);
}
