//! Limits that two gateways share on a real redis-server: their sum, and what happens while it is away.

use crate::support::redis::Redis;
use crate::support::wait::{SOON, wait_until_async, within};
use crate::support::wire::{ANSWER, CHAT_PATH, CHAT_UNARY, Request, json_answer};
use crate::support::{Gateway, Settings, Upstream, checks, not_run};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// A redis, and two gateways that share one key's limits on it.
struct Pair {
    redis: Redis,
    gateways: [Gateway; 2],
}

fn settings(engine: std::net::SocketAddr, limits: serde_json::Value, store: &str) -> Settings {
    Settings::new(&[engine])
        .keys(&[("team-a", "k1"), ("team-b", "k2")])
        .set("keys.0.limits", limits)
        .set("limits.store", store)
}

impl Pair {
    async fn start(test: &str, limits: serde_json::Value) -> Option<Self> {
        let Some(redis) = Redis::start(&[]).await else {
            not_run(test, "redis-server is not installed");
            return None;
        };
        let engine = Upstream::answering(|_| json_answer(ANSWER)).await;
        let settings = settings(engine, limits, &format!("redis://{}", redis.addr));
        let gateways = [Gateway::start(settings.clone()).await, Gateway::start(settings).await];
        let pair = Self { redis, gateways };
        pair.is_shared(1.0).await;
        Some(pair)
    }

    /// Both say that the store is there, or away.
    async fn is_shared(&self, up: f64) {
        for gateway in &self.gateways {
            gateway.wait_metric("limit_store_up", &[("store", "redis")], up).await;
        }
    }

    /// Decisions that were made in the store's stead, as an answer that takes too long on a busy machine is.
    async fn local(&self) -> usize {
        let mut sum = 0.0;
        for gateway in &self.gateways {
            sum += gateway.metric("limit_store_total", &[("result", "local")]).await;
        }
        sum as usize
    }
}

async fn passes(gateway: &Gateway) -> bool {
    let answer = gateway.ask(&Request::unary()).await;
    assert!(matches!(answer.status(), 200 | 429), "{}", answer.text());
    answer.status() == 200
}

async fn passed(gateway: &Gateway, times: usize) -> usize {
    let mut count = 0;
    for _ in 0..times {
        count += usize::from(passes(gateway).await);
    }
    count
}

/// The same of requests that each find the store there: on a busy machine an answer may come too late, and the
/// gateway goes on alone for a moment.
async fn passed_by_store(gateway: &Gateway, times: usize) -> usize {
    let mut count = 0;
    for _ in 0..times {
        gateway.wait_metric("limit_store_up", &[("store", "redis")], 1.0).await;
        count += usize::from(passes(gateway).await);
    }
    count
}

/// All that passes is the limit, whichever gateway is asked; each decision that one made alone may be one more.
#[tokio::test]
async fn two_gateways_let_as_many_in_together_as_one_would() {
    let Some(pair) = Pair::start("shared limits", json!({ "requests": "40/h" })).await else { return };
    let [one, two] = &pair.gateways;
    let (from_one, from_two) = tokio::join!(passed_by_store(one, 40), passed_by_store(two, 40));
    let (sum, local) = (from_one + from_two, pair.local().await);
    assert!((40..=40 + local).contains(&sum), "{from_one} and {from_two}, {local} of them decided alone");
    assert!(from_one > 0 && from_two > 0, "{from_one} and {from_two}");
    for gateway in &pair.gateways {
        let answer = gateway.ask(&Request::unary()).await;
        checks::rejected(&answer, 429, "rate_limited");
        assert_eq!(answer.head.get("x-ratelimit-remaining-requests"), Some("0"));
        assert_eq!(answer.head.get("retry-after"), Some("60"));
        assert_eq!(gateway.ask(&Request::unary().with_key("k2")).await.status(), 200, "another key");
    }
    let shared = pair.gateways[0].metric("limit_store_total", &[("result", "shared")]).await;
    assert!(shared > 20.0, "{shared} decisions were the store's");
    pair.gateways[0].wait_log("limits are shared by the Redis at 127.0.0.1:").await;
}

#[tokio::test]
async fn tokens_that_one_gateway_used_are_gone_at_the_other() {
    let Some(pair) = Pair::start("shared tokens", json!({ "tokens": "1000/h" })).await else { return };
    let body = CHAT_UNARY.replacen('{', "{\"max_tokens\":800,", 1);
    let request = Request::post(CHAT_PATH, &body);
    assert_eq!(pair.gateways[0].ask(&request).await.status(), 200);
    // The engine told 10 tokens: what was reserved beyond them is given back, behind the answer.
    let left = || async {
        let answer = pair.redis.command("HGET streamgate:team-a:tokens left").await.unwrap_or_default();
        answer.lines().nth(1).and_then(|left| left.parse::<f64>().ok())
    };
    wait_until_async("the charge is settled on redis", SOON, || async {
        left().await.is_some_and(|left| (990.0..992.0).contains(&left))
    })
    .await;
    let answer = pair.gateways[1].ask(&request).await;
    let reserved = body.len().div_ceil(4) + 800;
    let remaining: usize =
        answer.head.get("x-ratelimit-remaining-tokens").expect("a header").parse().expect("a number");
    assert!((990 - reserved..992 - reserved).contains(&remaining), "{remaining} of 990 less {reserved}");
}

/// Redis is killed and comes back with nothing in it: limits hold in between and behind it.
#[tokio::test]
async fn limits_go_on_while_redis_is_away_and_are_shared_again_when_it_is_back() {
    let Some(mut pair) = Pair::start("redis away", json!({ "requests": "20/h" })).await else { return };
    let mut sum = passed_by_store(&pair.gateways[1], 5).await + passed_by_store(&pair.gateways[0], 5).await;
    pair.redis.kill();
    pair.is_shared(0.0).await;
    pair.gateways[0].wait_log("is away").await;
    assert_eq!(sum, 10);
    sum += passed(&pair.gateways[0], 1).await;
    assert_eq!(sum, 11, "it goes on without");

    pair.redis.restart().await;
    pair.is_shared(1.0).await;
    let asked = passed_by_store(&pair.gateways[0], 30).await;
    sum += asked + passed_by_store(&pair.gateways[1], 30).await;
    let local = pair.local().await;
    assert!(local >= 1, "one was decided without redis");
    // The one that was decided alone is known to the gateway that asks first.
    assert!((20..=19 + local).contains(&sum), "{sum} passed, {local} of them decided alone");
}

/// What answers in Redis's place is none: it is not believed, and Redis is when it is back.
#[tokio::test]
async fn what_is_no_redis_is_not_believed() {
    let Some(mut pair) = Pair::start("no redis", json!({ "requests": "20/h" })).await else { return };
    pair.redis.kill();
    pair.is_shared(0.0).await;
    let other = TcpListener::bind(pair.redis.addr).await.expect("its port");
    for _ in 0..4 {
        let (mut stream, _) = within("a gateway tries again", SOON, other.accept()).await.expect("accept");
        tokio::spawn(async move {
            let mut bytes = [0; 4096];
            while stream.read(&mut bytes).await.is_ok_and(|count| count > 0) {
                // To each command of a pipeline: there are no more than so many.
                drop(stream.write_all(&b"+OK\r\n".repeat(8)).await);
            }
        });
    }
    assert!(passes(&pair.gateways[0]).await, "it goes on alone");
    drop(other);
    pair.redis.restart().await;
    pair.is_shared(1.0).await;
    assert!(passed_by_store(&pair.gateways[1], 1).await == 1);
    assert!(pair.gateways.iter().all(|gateway| !gateway.log().contains("panicked")));
}

/// Redis that hangs is not waited for, at the start as little as later.
#[tokio::test]
async fn a_redis_that_says_nothing_holds_nobody_up() {
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let engine = Upstream::answering(|_| json_answer(ANSWER)).await;
    let store = format!("redis://{}", silent.local_addr().expect("an address"));
    let gateway = Gateway::start(settings(engine, json!({ "requests": "2/h" }), &store)).await;
    let silence = tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((stream, _)) = silent.accept().await {
            held.push(stream);
        }
    });
    assert_eq!(passed(&gateway, 3).await, 2);
    gateway.wait_metric("limit_store_total", &[("result", "local")], 3.0).await;
    gateway.wait_metric("limit_store_up", &[("store", "redis")], 0.0).await;
    gateway.wait_log("is away").await;
    silence.abort();

    let Some(pair) = Pair::start("redis hangs", json!({ "requests": "20/h" })).await else { return };
    assert!(passes(&pair.gateways[0]).await);
    pair.redis.signal("STOP");
    assert_eq!(passed(&pair.gateways[0], 3).await, 3);
    pair.is_shared(0.0).await;
    pair.redis.signal("CONT");
    pair.is_shared(1.0).await;
    // It may forget its scripts while it lives, too.
    assert!(pair.redis.command("SCRIPT FLUSH").await.is_some_and(|answer| answer.starts_with("+OK")));
    assert_eq!(passed(&pair.gateways[0], 3).await, 3);
}
