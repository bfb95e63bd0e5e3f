//! Streams through another proxy in front of the gateway (S7): prompt, byte for byte, ended when the client leaves,
//! and accounted to the client and the key whose they are. What the same proxies make of odd requests: desync.

mod support;

use std::time::Duration;

use serde_json::json;
use support::front::{Front, Kind};
use support::protocol::{Protocol, spoken};
use support::wait::{SOON, within};
use support::wire::{DONE, Request, event};
use support::{Call, Client, End, Gateway, Settings, Upstream, checks, not_run};
use tokio::net::TcpSocket;

const KEY: &str = "sg-of-team-a";
/// No timer of the proxy in front may be what ends a stream.
const PATIENCE: Duration = Duration::from_secs(25);

/// An engine, a gateway that believes who comes from 127.0.0.1, and a proxy there.
struct Chain {
    front: Front,
    gateway: Gateway,
    engine: Upstream,
}

impl Chain {
    /// `None`, and told, where there is no such proxy.
    async fn start(test: &str, kind: Kind) -> Option<Self> {
        let engine = Upstream::start().await;
        let settings = Settings::new(&[engine.addr])
            .set("server.listen.0.h2c", true)
            .set("server.trusted_proxies", json!(["127.0.0.1"]))
            .set("timeouts.first_event", "25s")
            .set("timeouts.idle", "25s")
            .keys(&[("team-a", KEY)]);
        let gateway = Gateway::start(settings).await;
        let Some(front) = Front::start(kind, gateway.addr, PATIENCE).await else {
            not_run(&format!("{test}, {kind:?}"), "this machine has no such proxy");
            return None;
        };
        support::score::struck(1, &format!("another proxy in front: {kind:?}"));
        Some(Self { front, gateway, engine })
    }

    /// A client that comes to the proxy in front from an address of its own.
    async fn client(&self) -> Client {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind("127.0.0.9:0".parse().expect("an address")).expect("bind");
        match spoken() {
            Protocol::Http1 => {
                let stream = within("connect", SOON, socket.connect(self.front.addr)).await;
                Client::over(stream.expect("connect"))
            }
            Protocol::H2c => {
                let stream = within("connect", SOON, socket.connect(self.front.h2)).await;
                Client::over_h2(stream.expect("connect"), 65_535).await
            }
        }
    }

    /// A request with a key that has reached the engine.
    async fn asked(&mut self) -> (Client, Call) {
        let mut client = self.client().await;
        let request = Request::chat().with_key(KEY).header("X-Forwarded-For: 192.0.2.66");
        client.send(request.bytes()).await;
        let call = self.engine.call().await;
        (client, call)
    }

    /// A stream whose client has these events.
    async fn streaming(&mut self, contents: &[&str]) -> (Client, Call, String) {
        let (mut client, mut call) = self.asked().await;
        call.open().await;
        let mut sent = String::new();
        for content in contents {
            sent.push_str(&event(content));
            call.chunk(event(content)).await;
            if sent.len() == event(content).len() {
                assert_eq!(client.head().await.status(), 200);
            }
            // Before the engine says the next one.
            client.until_body(sent.as_bytes()).await;
        }
        (client, call, sent)
    }
}

const KINDS: [Kind; 4] = [Kind::Nginx, Kind::Haproxy, Kind::HaproxyOverH2, Kind::Ours];

/// Each event comes before the next is said; the engine and the access log hear of the client, not of whom it
/// claims to be; and the key that it presents is the gateway's to judge.
#[tokio::test]
async fn s7_streams_flow_through_each_proxy() {
    for kind in KINDS {
        let Some(mut chain) = Chain::start("s7_streams_flow_through_each_proxy", kind).await else {
            continue;
        };
        let mut client = chain.client().await;
        client.send(Request::chat().with_key("sg-of-nobody").bytes()).await;
        checks::rejected(&client.answer().await, 401, "unauthorized");

        let (mut client, mut call, mut sent) = chain.streaming(&["a", "b", "c"]).await;
        let head = &call.request.head;
        assert_eq!(head.get("x-forwarded-for"), Some("127.0.0.9, 127.0.0.1"), "{kind:?}");
        assert_eq!(head.get("authorization"), None, "{kind:?}");
        let id = head.get("x-request-id").expect("an id").to_owned();
        call.chunk(DONE).await;
        sent.push_str(DONE);
        call.finish().await;
        assert_eq!(client.end().await, End::Clean, "{kind:?}");
        checks::same(client.body(), sent.as_bytes());
        let line = chain.gateway.wait_access(&id, |line| line["request_id"] == id).await;
        assert_eq!((&line["client"], &line["key"]), (&"127.0.0.9".into(), &"team-a".into()), "{line}");
        assert_eq!(line["outcome"], "completed", "{line}");
    }
}

/// A client that leaves the proxy in front has left the engine, during the prefill as in the stream.
#[tokio::test]
async fn s7_leaving_passes_through_each_proxy() {
    for kind in KINDS {
        let Some(mut chain) = Chain::start("s7_leaving_passes_through_each_proxy", kind).await else {
            continue;
        };
        let (client, mut call) = chain.asked().await;
        drop(client);
        call.gone().await;
        let (client, mut call, _) = chain.streaming(&["a", "b"]).await;
        drop(client);
        call.gone().await;
        for line in chain.gateway.all_access(2).await {
            assert_eq!(line["outcome"], "client_closed", "{kind:?}: {line}");
        }
        checks::at_rest(&chain.gateway).await;
    }
}

/// An engine that dies in a stream: what it has said, one error event, and a clean end; a second gateway in front
/// has nothing to add.
#[tokio::test]
async fn s7_a_cut_is_told_once_through_each_proxy() {
    for kind in KINDS {
        let Some(mut chain) = Chain::start("s7_a_cut_is_told_once_through_each_proxy", kind).await else {
            continue;
        };
        let (mut client, call, sent) = chain.streaming(&["a", "b"]).await;
        call.reset();
        checks::broken(&mut client, &sent, "upstream_disconnected").await;
    }
}

over_h2!(
    s7_streams_flow_through_each_proxy,
    s7_leaving_passes_through_each_proxy,
    s7_a_cut_is_told_once_through_each_proxy,
);
