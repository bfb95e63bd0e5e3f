//! Credentials: whose go to the engine, and that nobody's are ever written down.

use std::time::Duration;

use crate::support::certificates::Authority;
use crate::support::gateway::{config_file, output};
use crate::support::sockets::Refusing;
use crate::support::wire::{self, Request};
use crate::support::{Client, Gateway, Recorded, Settings, Upstream, relayed};
use serde_json::{Value, json};

const OURS: &str = "canary-of-the-gateway";
const VARIABLES: [(&str, &str); 1] = [("GATEWAY_TOKEN", OURS)];

/// A request with credentials of every kind.
fn request(path: &str, body: &str) -> Request {
    Request::bare("POST", path)
        .header("Content-Type: application/json")
        .header("Authorization: Bearer canary-of-the-client")
        .header("X-Api-Key: canary-key-of-the-client")
        .body(body)
}

/// What the engine is asked where the cluster says this of credentials.
async fn asked(auth: Value) -> Recorded {
    let mut upstream = Upstream::start().await;
    let settings = Settings::new(&[upstream.addr]).set("clusters.c.auth", auth);
    let gateway = Gateway::start_in(settings, &VARIABLES).await;
    relayed(&gateway, &mut upstream, &request(wire::CHAT_PATH, wire::CHAT_UNARY)).await
}

fn sent(recorded: &Recorded) -> [Option<&str>; 3] {
    ["authorization", "x-api-key", "x-team-key"].map(|name| recorded.head.get(name))
}

#[tokio::test]
async fn the_clients_credentials_pass_or_stay() {
    let client = [Some("Bearer canary-of-the-client"), Some("canary-key-of-the-client"), None];
    assert_eq!(sent(&asked(Value::Null).await), client);
    assert_eq!(sent(&asked(json!("pass")).await), client);
    assert_eq!(sent(&asked(json!("none")).await), [None; 3]);
}

#[tokio::test]
async fn the_gateways_own_credential_takes_the_place_of_the_clients() {
    let bearer = format!("Bearer {OURS}");
    assert_eq!(sent(&asked(json!({ "bearer_env": "GATEWAY_TOKEN" })).await), [Some(&*bearer), None, None]);
    let header = |name: &str| json!({ "header": name, "env": "GATEWAY_TOKEN" });
    assert_eq!(sent(&asked(header("X-Api-Key")).await), [None, Some(OURS), None]);
    assert_eq!(sent(&asked(header("x-team-key")).await), [None, None, Some(OURS)]);

    let dir = tempfile::tempdir().expect("temporary directory");
    let file = dir.path().join("token");
    std::fs::write(&file, "from-a-file\n").expect("write");
    assert_eq!(sent(&asked(json!({ "bearer_file": file })).await), [Some("Bearer from-a-file"), None, None]);
    assert_eq!(
        sent(&asked(json!({ "header": "x-team-key", "file": file })).await),
        [None, None, Some("from-a-file")]
    );
}

#[tokio::test]
async fn a_client_cannot_nominate_the_gateways_credential_away() {
    let mut upstream = Upstream::start().await;
    let auth = json!({ "header": "x-team-key", "env": "GATEWAY_TOKEN" });
    let settings = Settings::new(&[upstream.addr]).set("clusters.c.auth", auth);
    let gateway = Gateway::start_in(settings, &VARIABLES).await;
    let nosy = Request::unary().header("Connection: x-team-key, authorization").header("X-Team-Key: mine");
    assert_eq!(sent(&relayed(&gateway, &mut upstream, &nosy).await), [None, None, Some(OURS)]);
}

/// Clusters for every way in which an exchange can go, each with the gateway's credential.
fn every_kind(engine: &Upstream, tls: &Upstream, refusing: &Refusing, authority: &Authority) -> Settings {
    let auth = || json!({ "bearer_env": "GATEWAY_TOKEN" });
    let cluster = |url: String| json!({ "backends": [{ "name": "b", "url": url }], "auth": auth() });
    let header = json!({
        "backends": [{ "name": "b", "url": format!("https://{}", tls.addr) }],
        "auth": { "header": "x-api-key", "env": "GATEWAY_TOKEN" }, "tls": { "ca": authority.file() },
    });
    let route =
        |name: &str| json!({ "name": name, "match": { "path": format!("/{name}") }, "cluster": name });
    Settings::new(&[engine.addr])
        .set("log.level", "trace")
        .set("timeouts.first_event", "2s")
        .set("clusters.c.auth", auth())
        .set("clusters.refused", cluster(format!("http://{}", refusing.addr())))
        .set("clusters.tls", header)
        .set("clusters.no-tls", cluster(format!("https://{}", engine.addr)))
        .route(route("refused"))
        .route(route("tls"))
        .route(route("no-tls"))
}

/// One exchange of each kind. Gives everything that clients were sent.
async fn one_of_each(gateway: &Gateway, engine: &mut Upstream, tls: &mut Upstream) -> String {
    let chat = request(wire::CHAT_PATH, wire::CHAT);
    let mut told = String::new();
    let mut heard = async |mut client: Client| {
        let answer = client.answer().await;
        told += &format!("{:?} {}\n", answer.head, answer.text());
        answer.status()
    };

    let client = gateway.send(&chat).await;
    engine.call().await.stream("a").await;
    assert_eq!(heard(client).await, 200);
    let client = gateway.send(&request("/tls", wire::CHAT)).await;
    let call = tls.call().await;
    assert_eq!(call.request.head.get("x-api-key"), Some(OURS));
    call.stream("b").await;
    assert_eq!(heard(client).await, 200);

    for (answer, status) in [
        (wire::answer("401 Unauthorized", &[], "{\"error\":\"bad key\"}"), 401),
        (wire::answer("500 Internal Server Error", &[], "oh"), 500),
        (b"HTTP/1.1 200 OK\r\nBad\0Header: x\r\n\r\n".to_vec(), 502),
        (b"no HTTP at all\r\n\r\n".to_vec(), 502),
    ] {
        let client = gateway.send(&chat).await;
        engine.call().await.answer(answer).await;
        assert_eq!(heard(client).await, status);
    }
    let client = gateway.send(&chat).await;
    let call = engine.call().await;
    assert_eq!(call.request.head.get("authorization"), Some(&*format!("Bearer {OURS}")));
    call.reset();
    assert_eq!(heard(client).await, 502);
    let client = gateway.send(&chat).await;
    let silent = engine.call().await;
    assert_eq!(heard(client).await, 504);
    drop(silent);
    let client = gateway.send(&chat).await;
    let mut call = engine.call().await;
    call.open().await;
    call.chunk(wire::event("cut")).await;
    call.reset();
    assert_eq!(heard(client).await, 200);

    assert_eq!(heard(gateway.send(&request("/refused", wire::CHAT)).await).await, 502);
    assert_eq!(heard(gateway.send(&request("/no-tls", wire::CHAT)).await).await, 504);
    assert_eq!(heard(gateway.send(&request("/nowhere", wire::CHAT)).await).await, 404);
    assert_eq!(heard(gateway.send(&request(wire::CHAT_PATH, "{")).await).await, 400);
    assert_eq!(heard(gateway.send(&chat.clone().header("Host: twice")).await).await, 400);
    let client = gateway.send(&chat).await;
    let mut call = engine.call().await;
    client.close();
    call.gone().await;
    told
}

#[tokio::test]
async fn credentials_are_in_no_output_at_the_most_talkative_level() {
    let authority = Authority::new();
    let mut engine = Upstream::start().await;
    let mut tls = Upstream::with_tls(&authority.vouches_for(&["127.0.0.1"])).await;
    let refusing = Refusing::start();
    for format in ["text", "json"] {
        let settings = every_kind(&engine, &tls, &refusing, &authority).set("log.format", format);
        let mut gateway = Gateway::start_in(settings, &VARIABLES).await;
        let told = one_of_each(&gateway, &mut engine, &mut tls).await;
        let metrics = gateway.admin_get("/metrics").await.text();
        gateway.wait_metric("requests_total", &[("outcome", "client_closed")], 1.0).await;
        gateway.terminate();
        gateway.exit(Duration::from_secs(10)).await;
        let (log, stdout) = (gateway.log(), gateway.rest_of_stdout().await);
        let access = gateway.access_text();
        assert!(log.to_lowercase().contains("debug"), "the log is not talkative: {log}");
        for (output, name) in
            [(told, "told"), (metrics, "metrics"), (log, "log"), (stdout, "stdout"), (access, "access log")]
        {
            assert!(!output.contains("canary"), "the {name} holds a credential:\n{output}");
        }
    }
}

#[test]
fn a_bad_configuration_does_not_tell_what_is_in_it_from_outside() {
    let text = "
server: { listen: [{ address: \"${GATEWAY_TOKEN}\" }], threads: \"${GATEWAY_TOKEN}\" }
clusters:
  c: { backends: [{ name: b, url: \"${GATEWAY_TOKEN}\" }], auth: { bearer_env: GATEWAY_LINES } }
  d: { backends: [{ name: b, url: \"http://b\" }], auth: { bearer_env: canary-in-the-file }, profile: \"${GATEWAY_TOKEN}\" }
routes: [{ match: { path: \"${GATEWAY_TOKEN}\" }, cluster: \"${GATEWAY_TOKEN}\" }]
";
    let (_dir, file) = config_file(text);
    let file = file.to_str().expect("UTF-8");
    for command in ["check", "run"] {
        let variables = [("GATEWAY_TOKEN", OURS), ("GATEWAY_LINES", "canary-one\ncanary-two")];
        let (code, said) = output(&[command, "-c", file], &variables);
        assert_eq!(code, Some(64), "{said}");
        assert_eq!(said.lines().count(), 8, "{said}");
        assert!(!said.contains("canary"), "{said}");
    }
}

#[test]
fn check_warns_of_certificates_that_nobody_checks() {
    let text = "
server: { listen: [{ address: 127.0.0.1:0 }] }
clusters: { c: { backends: [{ name: b, url: \"https://b\" }], tls: { verify: false } } }
routes: [{ match: { path: /v1/chat/completions }, cluster: c }]
";
    let (_dir, file) = config_file(text);
    let (code, said) = output(&["check", "-c", file.to_str().expect("UTF-8")], &[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains(":3: clusters.c.tls.verify: certificates of the backends are not checked"),
        "{said}"
    );
}
