//! The admin listener: what it tells, what it does, and whom it answers.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::wire::{ANSWER, Request, event, json_answer};
use crate::support::{
    Client, Gateway, Settings, Upstream, as_is, checks, one_engine, streaming, two_engines,
};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

async fn served_by(gateway: &Gateway, engine: &mut Upstream) {
    let mut client = gateway.send(&Request::unary()).await;
    engine.call().await.answer(json_answer(ANSWER)).await;
    assert_eq!(client.answer().await.status(), 200);
}

/// An operator drains a backend: nothing new, running streams in peace, through a reload, until undrained.
#[tokio::test]
async fn an_operator_drains_a_backend_and_takes_it_back() {
    let (gateway, mut one, mut two) = two_engines(as_is).await;
    served_by(&gateway, &mut one).await;
    let (client, call) = streaming(&gateway, &mut two, &["1"]).await;
    let answer = gateway.admin_post("/drain/c/u2").await;
    assert_eq!((answer.status(), &answer.json()["state"]), (200, &"draining".into()));
    assert_eq!(answer.json()["in_flight"], 1);
    gateway.wait_log("c/u2 gets no new work: an operator said so").await;
    let settings = Settings::new(&[one.addr, two.addr]).set("clusters.c.keepalive", "3s");
    assert_eq!(gateway.reload(settings.clone()).await, 2);
    let asked = two.connections();
    for _ in 0..3 {
        served_by(&gateway, &mut one).await;
    }
    assert_eq!(two.connections(), asked, "a drained engine was asked");
    assert_eq!(gateway.status().await["clusters"][0]["backends"][1]["state"], "draining");
    checks::ends_same(client, call, event("1").as_bytes()).await;
    gateway.wait_metric("in_flight", &[], 0.0).await;
    assert_eq!(gateway.status().await["clusters"][0]["backends"][1]["state"], "drained");

    let both = gateway.admin_post("/drain/c/u1").await;
    assert_eq!(both.status(), 200);
    checks::rejected(&gateway.ask(&Request::unary()).await, 503, "no_backend");
    assert_eq!(gateway.admin_post("/undrain/c/u2").await.json()["state"], "serving");
    served_by(&gateway, &mut two).await;
    assert_eq!(gateway.admin_post("/undrain/c/u1").await.status(), 200);

    // What the file drains, an operator cannot take back.
    gateway.reload(settings.set("clusters.c.backends.0.drain", true)).await;
    let answer = gateway.admin_post("/undrain/c/u1").await;
    assert_eq!((answer.status(), answer.text().contains("drain: true")), (409, true));
    served_by(&gateway, &mut two).await;
}

#[tokio::test]
async fn what_there_is_not_is_told() {
    let (gateway, _engine) = one_engine(as_is).await;
    let unknown = gateway.admin_post("/drain/c/u9").await;
    assert_eq!((unknown.status(), unknown.text().contains("there is u1")), (404, true), "{}", unknown.text());
    let unknown = gateway.admin_post("/drain/x/u1").await;
    assert_eq!((unknown.status(), unknown.text().contains("there is c")), (404, true), "{}", unknown.text());
    assert!(gateway.admin_get("/nowhere").await.text().contains("/drain/CLUSTER/BACKEND"));
    for (method, path, allow) in [
        ("GET", "/reload", "POST"),
        ("GET", "/drain/c/u1", "POST"),
        ("POST", "/status", "GET, HEAD"),
        ("DELETE", "/config", "GET, HEAD"),
        ("POST", "/metrics", "GET, HEAD"),
    ] {
        let request = Request::bare(method, path).without("host").header("Host: localhost");
        let answer = gateway.admin_ask(&request).await;
        assert_eq!((answer.status(), answer.head.get("allow")), (405, Some(allow)), "{method} {path}");
    }
}

/// What an operator asks of the process: where it listens, what holds, and what it takes.
#[tokio::test]
async fn the_process_is_told() {
    let engine = Upstream::start().await;
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").expect("bind");
    let store = format!("redis://{}", nobody.local_addr().expect("an address"));
    drop(nobody);
    let settings = Settings::new(&[engine.addr])
        .set("server.listen", json!([{ "address": "127.0.0.1:0", "h2c": true }, { "address": "127.0.0.1:0", "redirect_https": 443 }]))
        .set("server.connections", json!({ "max": 1000, "per_ip": 10 }))
        .set("limits", json!({ "store": store }))
        .keys(&[("a", "k1"), ("b", "k2")]);
    let gateway = Gateway::start(settings.clone()).await;
    let _open = Client::connect(gateway.listener(0)).await;
    gateway.wait_metric("connections_active", &[], 1.0).await;
    let status = gateway.status().await;
    let listener = |number: usize, protocols: &[&str], redirect_https: Option<u16>| {
        json!({ "address": gateway.listener(number).to_string(), "protocols": protocols, "tls": false,
                "proxy_protocol": false, "redirect_https": redirect_https })
    };
    let listeners = [listener(0, &["http/1.1", "h2"], None), listener(1, &["http/1.1"], Some(443))];
    assert_eq!(status["listeners"], json!(listeners));
    assert_eq!(status["connections"], json!({ "open": 1, "max": 1000, "per_ip": 10 }));
    assert_eq!(status["keys"], 2);
    assert_eq!(status["limits_store"], json!({ "redis": store.trim_start_matches("redis://"), "up": false }));
    let memory = &status["memory"];
    assert!(memory["resident_bytes"].as_u64().is_some_and(|bytes| bytes > 1 << 20), "{memory}");
    assert!(memory["held_body_bytes_max"].as_u64().is_some_and(|bytes| bytes > 1 << 20), "{memory}");
    assert_eq!((&memory["held_body_bytes"], &memory["held_stream_bytes"]), (&json!(0), &json!(0)));
    assert_eq!(memory["is_read"], true, "{memory}");

    gateway.reload(settings.keys(&[("a", "k1")])).await;
    assert_eq!(gateway.status().await["keys"], 1);
    // Where descriptors are short, the bound that holds is told, not the one that the file asks for.
    let gateway = Gateway::start_limited("-n 256", Settings::new(&[engine.addr])).await;
    let status = gateway.status().await;
    assert_eq!(status["connections"], json!({ "open": 0, "max": 56, "per_ip": null }));
    assert_eq!((&status["keys"], &status["limits_store"]), (&json!(0), &json!(null)));
}

/// The running configuration is shown as it is written, and no secret with it.
#[tokio::test]
async fn the_running_configuration_is_shown_without_secrets() {
    let engine = Upstream::start().await;
    let settings = Settings::new(&[engine.addr])
        .set("clusters.c.auth", serde_json::json!({ "bearer_env": "TOKEN" }))
        .set("clusters.c.headers", serde_json::json!({ "set": { "x-extra": "canary-header" } }));
    let gateway = Gateway::start_in(settings, &[("TOKEN", "canary-token")]).await;
    let shown = gateway.admin_get("/config").await;
    assert_eq!(shown.json()["clusters"]["c"]["auth"]["bearer_env"], "TOKEN");
    assert_eq!(shown.json()["clusters"]["c"]["headers"]["set"]["x-extra"], "(hidden)");
    assert_eq!(shown.json()["timeouts"]["idle"], "4s");
    let all = shown.text() + &gateway.status().await.to_string() + &gateway.log();
    assert!(!all.contains("canary"), "{all}");
}

#[tokio::test]
async fn the_status_tells_the_state_of_everything() {
    let (gateway, mut one, _two) = two_engines(as_is).await;
    let (client, call) = streaming(&gateway, &mut one, &["1"]).await;
    let status = gateway.status().await;
    assert_eq!((&status["generation"], &status["exchanges"]), (&1.into(), &1.into()), "{status}");
    assert_eq!(status["file"], gateway.file().to_str().expect("UTF-8"));
    assert_eq!(status["last_reload"]["cause"], "start");
    let backends = &status["clusters"][0]["backends"];
    assert_eq!((&backends[0]["in_flight"], &backends[1]["in_flight"]), (&1.into(), &0.into()), "{status}");
    assert_eq!(backends[0]["address"], one.addr.to_string());
    assert_eq!(backends[0]["state"], "serving");
    checks::ends_same(client, call, event("1").as_bytes()).await;
}

/// Who is sent by a web page is not answered: neither by a name that leads here, nor with an Origin.
#[tokio::test]
async fn web_pages_are_not_answered() {
    let (gateway, _engine) = one_engine(as_is).await;
    let by =
        |host: &str| Request::bare("POST", "/drain/c/u1").without("host").header(&format!("Host: {host}"));
    assert_eq!(gateway.admin_ask(&by("evil.test")).await.status(), 403);
    assert_eq!(gateway.admin_ask(&by("localhost").header("Origin: http://evil.test")).await.status(), 403);
    let read = Request::bare("GET", "/metrics").without("host").header("Host: evil.test");
    assert_eq!(gateway.admin_ask(&read).await.status(), 403);
    assert_eq!(gateway.status().await["clusters"][0]["backends"][0]["state"], "serving");
    assert_eq!(gateway.admin_ask(&by("localhost")).await.status(), 200);
}

/// With a token all but the probes and the metrics want it; a new one in the file is taken on reload.
#[tokio::test]
async fn the_token_is_wanted_and_can_be_renewed() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let file = folder.path().join("token");
    fs::write(&file, "canary-one\n").expect("write");
    let token = |settings: Settings| settings.set("server.admin.token_file", file.to_str().expect("UTF-8"));
    let (gateway, _engine) = one_engine(token).await;
    let ask = |method: &str, path: &str, token: &str| {
        let request = Request::bare(method, path).without("host").header("Host: localhost");
        if token.is_empty() { request } else { request.header(&format!("Authorization: Bearer {token}")) }
    };
    let status = async |method: &str, path: &str, token: &str| {
        gateway.admin_ask(&ask(method, path, token)).await.status()
    };
    for path in ["/livez", "/readyz", "/metrics"] {
        assert_eq!(status("GET", path, "").await, 200, "{path}");
    }
    for (method, path) in
        [("GET", "/status"), ("GET", "/config"), ("POST", "/reload"), ("POST", "/drain/c/u1")]
    {
        assert_eq!(status(method, path, "").await, 401, "{path}");
        assert_eq!(status(method, path, "canary-two").await, 401, "{path}");
        assert_eq!(status(method, path, "canary-one").await, 200, "{path}");
    }
    fs::write(&file, "canary-two\n").expect("write");
    let answer = gateway.admin_ask(&ask("POST", "/reload", "canary-one")).await;
    assert_eq!(answer.json()["result"], "applied", "the file of the token is read again");
    assert_eq!(status("GET", "/status", "canary-one").await, 401);
    let shown = gateway.admin_ask(&ask("GET", "/config", "canary-two")).await;
    assert_eq!(shown.status(), 200);
    assert!(!(shown.text() + &gateway.log()).contains("canary"));
}

/// A unix socket is for its owner, and is found again where one was left behind.
#[tokio::test]
async fn operators_may_come_by_a_unix_socket() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let path = folder.path().join("admin.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).expect("bind"));
    assert!(path.exists(), "a socket was left behind");
    let engine = Upstream::start().await;
    let listen = format!("unix:{}", path.display());
    let gateway =
        Gateway::start(Settings::new(&[engine.addr]).set("server.admin.listen", listen.as_str())).await;
    assert_eq!(fs::metadata(&path).expect("the socket").permissions().mode() & 0o777, 0o600);
    let mut stream = UnixStream::connect(&path).await.expect("connect");
    stream
        .write_all(b"POST /drain/c/u1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .await
        .expect("send");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("read");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("\"state\": \"drained\""), "{answer}");
    checks::rejected(&gateway.ask(&Request::unary()).await, 503, "no_backend");
    drop(Client::connect(gateway.addr).await);
}
