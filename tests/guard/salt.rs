//! Salts for the engine's prefix cache: one for each key, whatever the client says.

use serde_json::{Value, json};

use crate::over_h2;
use crate::support::wire::{CHAT_PATH, Request};
use crate::support::{Gateway, Settings, Upstream, checks, keys, one_engine, relayed};

const BODY: &str = r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#;

fn salted(settings: Settings) -> Settings {
    settings
        .keys(&[("team-a", "sg-a"), ("team-b", "sg-b")])
        .set("clusters.c.profile", "vllm")
        .set("clusters.c.cache_salt", "key")
        .set(
            "routes.1.match.path",
            json!(["/v1/completions", "/v1/embeddings", "/v1/responses", "/v1/messages"]),
        )
}

/// The body that the engine gets, and the salt in it.
async fn asked(
    gateway: &Gateway,
    upstream: &mut Upstream,
    key: &str,
    path: &str,
    body: &str,
) -> (Value, Value) {
    let recorded = relayed(gateway, upstream, &Request::post(path, body).with_key(key)).await;
    let body: Value = serde_json::from_slice(&recorded.body).expect("JSON");
    let salt = body["cache_salt"].clone();
    (body, salt)
}

/// The same for the same key on every endpoint that knows salts, another for another key, and nothing else differs.
#[tokio::test]
async fn each_key_has_a_salt_of_its_own() {
    let (gateway, mut upstream) = one_engine(salted).await;
    let (body, a) = asked(&gateway, &mut upstream, "sg-a", CHAT_PATH, BODY).await;
    let salt = a.as_str().expect("a salt").to_owned();
    assert_eq!(salt.len(), 32);
    assert!(!keys::digest("sg-a").contains(&salt), "a salt tells nothing of the key");
    let mut plain: Value = serde_json::from_str(BODY).expect("JSON");
    plain["cache_salt"] = a.clone();
    assert_eq!(body, plain);

    let completion = r#"{"model":"m","prompt":"p","cache_salt":null}"#;
    assert_eq!(asked(&gateway, &mut upstream, "sg-a", "/v1/completions", completion).await.1, a);
    for path in ["/v1/responses", "/v1/messages"] {
        let (body, salt) = asked(&gateway, &mut upstream, "sg-a", path, BODY).await;
        assert_eq!((salt, body), (a.clone(), plain.clone()), "{path}");
    }
    let (_, b) = asked(&gateway, &mut upstream, "sg-b", CHAT_PATH, BODY).await;
    assert!(b.is_string() && a != b);
    let (other, none) =
        asked(&gateway, &mut upstream, "sg-a", "/v1/embeddings", r#"{"model":"m","input":"x"}"#).await;
    assert_eq!((none, other), (Value::Null, json!({ "model": "m", "input": "x" })));

    gateway
        .reload(salted(Settings::new(&[upstream.addr])).set("routes.0.aliases", json!({ "m": "n" })))
        .await;
    let (renamed, again) = asked(&gateway, &mut upstream, "sg-a", CHAT_PATH, BODY).await;
    assert_eq!((again, renamed["model"].as_str()), (a, Some("n")), "a reload changes no salt");
}

/// An engine may read as JSON what is not called so: with a salt of another key in it, it does not pass.
#[tokio::test]
async fn a_body_of_another_type_does_not_carry_a_salt_past() {
    let (gateway, upstream) = one_engine(salted).await;
    let stolen = r#"{"model":"m","messages":[],"cache_salt":"00000000000000000000000000000000"}"#;
    for media in ["audio/wav", "application/octet-stream", "multipart/form-data; boundary=x"] {
        let request = Request::post(CHAT_PATH, stolen).with_key("sg-a").without("content-type");
        let answer = gateway.ask(&request.header(&format!("Content-Type: {media}"))).await;
        checks::rejected(&answer, 415, "invalid_request");
    }
    assert_eq!(upstream.connections(), 0);
}

/// A salt of the client's own keeps its users apart, and never meets another key's.
#[tokio::test]
async fn a_salt_of_the_clients_own_becomes_one_of_its_key() {
    let (gateway, mut upstream) = one_engine(salted).await;
    let (_, stolen) = asked(&gateway, &mut upstream, "sg-a", CHAT_PATH, BODY).await;
    let mut seen = vec![stolen.clone()];
    for own in [&stolen, &json!("u1"), &json!("u2"), &json!("")] {
        let body = json!({ "model": "m", "cache_salt": own }).to_string();
        for key in ["sg-a", "sg-b"] {
            let (_, salt) = asked(&gateway, &mut upstream, key, CHAT_PATH, &body).await;
            assert!(salt.is_string() && !seen.contains(&salt), "{key} with {own}: {salt}");
            seen.push(salt);
        }
    }
    for odd in [
        r#"{"model":"m","cache_salt":7}"#,
        r#"{"model":"m","cache_salt":["a"]}"#,
        r#"{"model":"m","cache_salt":"a","cache_s\u0061lt":"b"}"#,
    ] {
        checks::rejected(
            &gateway.ask(&Request::post(CHAT_PATH, odd).with_key("sg-a")).await,
            400,
            "invalid_request",
        );
    }
    upstream.assert_not_asked();
}

/// Where the clusters of a route differ, each is sent what it wants.
#[tokio::test]
async fn only_the_cluster_that_salts_gets_a_salt() {
    let mut second = Upstream::start().await;
    let backend = json!([{ "name": "v", "url": format!("http://{}", second.addr) }]);
    let refusing = crate::support::sockets::Refusing::start();
    let settings = salted(Settings::new(&[refusing.addr()]))
        .set("clusters.d", json!({ "profile": "openai", "backends": backend }))
        .set("clusters.c.backends.0.drain", true)
        .set("routes.0.fallback", json!(["d"]));
    let gateway = Gateway::start(settings).await;
    let (body, salt) = asked(&gateway, &mut second, "sg-a", CHAT_PATH, BODY).await;
    assert_eq!(
        (salt, body.to_string()),
        (Value::Null, serde_json::from_str::<Value>(BODY).expect("JSON").to_string())
    );
}

over_h2! {
    each_key_has_a_salt_of_its_own,
    a_salt_of_the_clients_own_becomes_one_of_its_key,
}
