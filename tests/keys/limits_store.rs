//! The way to a shared store, on a real redis-server: TLS and whom it trusts, users and passwords and where they come from,
//! and what is no store.

use std::net::SocketAddr;
use std::path::Path;

use crate::support::certificates::Authority;
use crate::support::redis::Redis;
use crate::support::wait::{SOON, wait_until_async};
use crate::support::wire::{ANSWER, CHAT_PATH, CHAT_UNARY, Request, json_answer};
use crate::support::{Gateway, Settings, Upstream, not_run};
use serde_json::json;

const PASSWORD: &str = "canary-of-redis";

/// Settings whose key is limited in requests and tokens, in this store.
async fn settings(store: &str) -> Settings {
    let engine = Upstream::answering(|_| json_answer(ANSWER)).await;
    Settings::new(&[engine])
        .keys(&[("team-a", "k1")])
        .set("keys.0.limits", json!({ "requests": "20/h", "tokens": "100000/h" }))
        .set("limits.store", store)
}

/// A gateway that uses its store.
async fn shares(settings: Settings, variables: &[(&str, &str)]) -> Gateway {
    let gateway = Gateway::start_in(settings, variables).await;
    gateway.wait_metric("limit_store_up", &[("store", "redis")], 1.0).await;
    assert_eq!(gateway.ask(&Request::unary()).await.status(), 200);
    gateway.wait_log("limits are shared by the Redis at ").await;
    tells_no_secret(&gateway).await;
    gateway
}

/// A gateway that says why it does not use its store, and goes on without.
async fn is_alone(settings: Settings, variables: &[(&str, &str)], why: &str) -> Gateway {
    let gateway = Gateway::start_in(settings, variables).await;
    gateway.wait_log(why).await;
    gateway.wait_metric("limit_store_up", &[("store", "redis")], 0.0).await;
    assert_eq!(gateway.ask(&Request::unary()).await.status(), 200);
    tells_no_secret(&gateway).await;
    gateway
}

async fn tells_no_secret(gateway: &Gateway) {
    for path in ["/config", "/status", "/metrics"] {
        let page = gateway.admin_get(path).await.text();
        assert!(!page.contains("canary") && !page.is_empty(), "{path}: {page}");
    }
    assert!(!gateway.log().contains("canary"), "{}", gateway.log());
}

fn over_tls(host: &str, addr: SocketAddr) -> String {
    format!("rediss://{host}:{}", addr.port())
}

#[tokio::test]
async fn a_store_is_reached_over_tls_and_verified() {
    let (authority, other) = (Authority::new(), Authority::new());
    let Some((redis, addr)) = Redis::with_tls(&authority.vouches_for(&["127.0.0.1"])).await else {
        return not_run("redis over TLS", "redis-server is not installed");
    };
    let by = async |authority: &Authority, store: String| {
        settings(&store).await.set("limits.store_ca", authority.file().to_str())
    };
    shares(by(&authority, over_tls("127.0.0.1", addr)).await, &[]).await;

    let unknown = "no authority that is trusted here has signed it";
    is_alone(by(&other, over_tls("127.0.0.1", addr)).await, &[], unknown).await;
    is_alone(by(&authority, over_tls("localhost", addr)).await, &[], "it is not for localhost").await;
    is_alone(by(&authority, over_tls("127.0.0.1", redis.addr)).await, &[], "is away (it does not answer)")
        .await;
    is_alone(settings(&format!("redis://{addr}")).await, &[], "is away (").await;
    // Each was sent to the port with TLS, and only the first has asked for anything.
    assert_eq!(redis.cli(&["EXISTS", "streamgate:team-a:requests"]).trim(), "1");
    assert_eq!(redis.cli(&["HGET", "streamgate:team-a:requests", "seq"]).trim(), "1");
}

/// Without a file of its own it is the system that says whom to trust.
#[tokio::test]
async fn a_store_over_tls_is_trusted_as_the_system_does() {
    let authority = Authority::new();
    let Some((_redis, addr)) = Redis::with_tls(&authority.vouches_for(&["127.0.0.1"])).await else {
        return not_run("redis over TLS by the system", "redis-server is not installed");
    };
    let file = authority.file();
    let system = [("SSL_CERT_FILE", file.to_str().expect("a path in ASCII"))];
    shares(settings(&over_tls("127.0.0.1", addr)).await, &system).await;
    let unknown = "no authority that is trusted here has signed it";
    is_alone(settings(&over_tls("127.0.0.1", addr)).await, &[], unknown).await;
}

#[tokio::test]
async fn a_password_comes_from_the_url_the_environment_or_a_file_and_is_never_told() {
    let Some(redis) = Redis::start(&["--requirepass", PASSWORD]).await else {
        return not_run("the password of redis", "redis-server is not installed");
    };
    let (plain, url) = (format!("redis://{}/0", redis.addr), format!("redis://:${{P}}@{}/0", redis.addr));
    let named = settings(&plain).await.set("limits.store_password_env", "P");
    let (right, wrong) = ([("P", PASSWORD)], [("P", "canary-of-another")]);
    shares(settings(&url).await, &right).await;
    shares(named.clone(), &right).await;
    is_alone(settings(&url).await, &wrong, "is away (").await;
    is_alone(named, &wrong, "is away (").await;
    is_alone(settings(&plain).await, &[], "is away (").await;
}

/// A file is read for each connection, so a password can be renewed without a restart, and a reload does not mind.
#[tokio::test]
async fn a_password_in_a_file_can_be_renewed() {
    let Some(redis) = Redis::start(&["--requirepass", PASSWORD]).await else {
        return not_run("the password of redis in a file", "redis-server is not installed");
    };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("password");
    let write = |path: &Path, text: &str| std::fs::write(path, text).expect("write");
    write(&file, "canary-of-yesterday\n");
    let settings =
        settings(&format!("redis://{}", redis.addr)).await.set("limits.store_password_file", file.to_str());
    let gateway = is_alone(settings.clone(), &[], "is away (").await;
    std::fs::remove_file(&file).expect("remove");
    write(&file, &format!("{PASSWORD}\n"));
    gateway.wait_metric("limit_store_up", &[("store", "redis")], 1.0).await;
    gateway.reload(settings.set("keys.0.limits.requests", "30/h")).await;
    assert_eq!(gateway.ask(&Request::unary()).await.status(), 200);
    tells_no_secret(&gateway).await;
}

/// The user that docs/limits.md describes may do all that is needed.
#[tokio::test]
async fn a_user_with_few_rights_is_enough() {
    let Some(redis) = Redis::start(&[]).await else {
        return not_run("a user of redis", "redis-server is not installed");
    };
    let docs = include_str!("../../docs/limits.md");
    let rights =
        docs.split_once("needs `").and_then(|(_, rest)| rest.split_once('`')).expect("they are named").0;
    let password = format!(">{PASSWORD}");
    let user = ["ACL", "SETUSER", "limits", "on", &password, "resetkeys", "~streamgate:*"];
    let words: Vec<&str> = user.into_iter().chain(rights.split(' ')).collect();
    assert_eq!(redis.cli(&words).trim(), "OK");
    let settings = settings(&format!("redis://limits@{}/0", redis.addr)).await;
    let gateway = shares(settings.set("limits.store_password_env", "P"), &[("P", PASSWORD)]).await;
    let body = CHAT_UNARY.replacen('{', "{\"max_tokens\":800,", 1);
    assert_eq!(gateway.ask(&Request::post(CHAT_PATH, &body)).await.status(), 200);
    // Two answers of 10 tokens each, and nothing of what was reserved.
    wait_until_async("what was reserved is given back", SOON, || async {
        let left: f64 =
            redis.cli(&["HGET", "streamgate:team-a:tokens", "left"]).trim().parse().unwrap_or(0.0);
        (99_980.0..99_990.0).contains(&left)
    })
    .await;
    gateway.wait_metric("limit_store_total", &[("result", "shared")], 4.0).await;
    assert_eq!(gateway.metric("limit_store_total", &[("result", "untold")]).await, 0.0);
}

/// A node of a Cluster has only some of the keys: it would answer for these and for no other.
#[tokio::test]
async fn a_cluster_is_refused_and_says_so() {
    let Some(redis) = Redis::start(&["--cluster-enabled", "yes"]).await else {
        return not_run("a cluster of redis", "redis-server is not installed");
    };
    let why = "it belongs to a Redis Cluster, which is not spoken: name a single server";
    is_alone(settings(&format!("redis://{}", redis.addr)).await, &[], why).await;
}
