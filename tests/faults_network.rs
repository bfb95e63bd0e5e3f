//! The network between the gateway and its two sides, rows N2 to N7: it is late, nothing passes and nobody says so, little
//! passes, or it is cut. What needs packets is in `faults_packets`.

mod support;

use std::net::SocketAddr;

use futures::future::join_all;
use serde_json::json;
use support::fleet::{ejects, with};
use support::relay::Relay;
use support::wait::{SOON, ms, wait_until_async};
use support::wire::{DONE, Request, chunk, event};
use support::{Call, Client, End, Engine, Gateway, Row, Settings, Told, Upstream, checks};

/// A gateway that reaches its engine through a relay.
async fn relayed(adjust: impl FnOnce(Settings) -> Settings) -> (Gateway, Upstream, Relay) {
    let engine = Upstream::start().await;
    let relay = Relay::to(engine.addr).await;
    let gateway = Gateway::start(adjust(Settings::new(&[relay.addr]))).await;
    (gateway, engine, relay)
}

fn idle(settings: Settings) -> Settings {
    settings.set("timeouts.idle", "1500ms").set("timeouts.first_event", "1500ms")
}

/// A stream through the relay whose client has two events.
async fn begun(gateway: &Gateway, engine: &mut Upstream) -> (Client, Call, String) {
    let (client, call) = support::streaming(gateway, engine, &["a", "b"]).await;
    (client, call, event("a") + &event("b"))
}

/// N2, N3: a node that is farther away than the others, by 200 and by 500 ms, gets what little a wrong guess gives it:
/// at most a fifth, and a tenth, of what comes once its first tokens have been seen. It is not ill.
#[tokio::test]
async fn n2_n3_a_far_node_gets_little_and_is_not_ejected() {
    for (engines, late, share) in [(1, ms(200), 5), (2, ms(500), 10)] {
        let far = Engine::start().await;
        let relay = Relay::to(far.addr).await;
        relay.late(late);
        let balanced = |settings: Settings| with(ejects())(settings).set("clusters.c.balance", "least_load");
        let row = Row::behind(&[relay.addr], engines, balanced).await;
        let (clients, each) = (4, 20);
        wait_until_async("the load moves away", 3 * SOON, || async {
            let before = row.served_by("u1");
            join_all((0..clients).map(|_| row.whole_one_by_one(each))).await;
            (row.served_by("u1") - before) * share <= clients * each
        })
        .await;
        assert!(far.count("completed").await > 0, "{late:?}: it was asked, and found to be late");
        row.gateway.nobody_ejected().await;
        row.never_moved().await;
    }
}

/// N4, N5: nothing comes from the engine any more, whether or not it still hears the gateway. The client is told when
/// the idle timeout is over; when something passes again, the engine learns that nobody is there.
#[tokio::test]
async fn n4_n5_an_engine_that_is_not_heard_any_more_is_told() {
    for up_stands in [true, false] {
        let (gateway, mut engine, relay) = relayed(idle).await;
        let (mut client, mut call, sent) = begun(&gateway, &mut engine).await;
        relay.stand(up_stands, true);
        call.chunk(event("lost")).await;
        checks::broken(&mut client, &sent, "idle_timeout").await;
        checks::timed_out(&gateway, "stream").await;
        relay.stand(false, false);
        call.gone().await;
    }
}

/// N5: the engine is heard but hears nothing: a stream that runs needs no more than that, and a new request times out.
#[tokio::test]
async fn n5_an_engine_that_hears_nothing_is_told() {
    let (gateway, mut engine, relay) = relayed(idle).await;
    let (mut client, mut call, sent) = begun(&gateway, &mut engine).await;
    relay.stand(true, false);
    call.chunk(DONE).await;
    client.until_body((sent + DONE).as_bytes()).await;
    let refused = gateway.ask(&Request::chat()).await;
    checks::rejected(&refused, 504, "first_event_timeout");
    call.finish().await;
    assert_eq!(client.end().await, End::Clean);
    engine.assert_not_asked();
    checks::at_rest(&gateway).await;
}

/// N4: nothing reaches the client any more and it says nothing. It is given up after `write_stall`, and its engine
/// is left.
#[tokio::test]
async fn n4_a_client_that_takes_nothing_any_more_is_given_up() {
    let mut engine = Upstream::start().await;
    let settings = Settings::new(&[engine.addr]).set("stream.write_stall", "1500ms");
    let gateway = Gateway::start(settings).await;
    let relay = Relay::to(gateway.addr).await;
    let (_client, call) = through(relay.addr, &mut engine).await;
    relay.stand(true, true);
    let (_, flood) = call.flood(chunk(event(&"x".repeat(8 * 1024))), usize::MAX / 2);
    assert!(support::wait::within("the engine is left", SOON, flood).await.is_none());
    let line = gateway.only_access().await;
    assert_eq!(line["outcome"], "client_stalled", "{line}");
    checks::at_rest(&gateway).await;
}

/// A stream through a relay in front of the gateway, whose client has the first event.
async fn through(relay: SocketAddr, engine: &mut Upstream) -> (Client, Call) {
    let mut client = Client::connect(relay).await;
    client.send(Request::chat().bytes()).await;
    let mut call = engine.call().await;
    call.open().await;
    call.chunk(event("a")).await;
    assert_eq!(client.head().await.status(), 200);
    client.until_body(event("a").as_bytes()).await;
    (client, call)
}

/// N6: a client behind 64 kbit/s. Its engine is slowed to that, the gateway holds no more than it may, and what comes
/// is in order; nobody is given up, since some of it is always taken.
#[tokio::test]
async fn n6_a_narrow_link_slows_the_engine_and_nothing_else() {
    const EVENTS: usize = 24;
    let mut engine = Upstream::start().await;
    let settings = Settings::new(&[engine.addr]).set("stream.write_stall", "2s").set("timeouts.idle", "1s");
    let gateway = Gateway::start(settings).await;
    let relay = Relay::to(gateway.addr).await;
    relay.slow(8_000);
    let (mut client, mut call) = through(relay.addr, &mut engine).await;
    call.narrow();
    let before = gateway.rss_kb();
    let big = event(&"x".repeat(1024));
    let sending = tokio::spawn(async move {
        for _ in 0..EVENTS {
            call.chunk(event(&"x".repeat(1024))).await;
        }
        call.chunk(DONE).await;
        call.finish().await;
    });
    assert_eq!(client.end_within(4 * SOON).await, End::Clean);
    sending.await.expect("the engine was not left");
    checks::same(client.body(), [event("a"), big.repeat(EVENTS), DONE.to_owned()].concat().as_bytes());
    let grown = gateway.rss_kb().saturating_sub(before);
    assert!(grown < 1024, "{grown} KiB more");
    let line = gateway.only_access().await;
    assert_eq!(line["outcome"], "completed", "{line}");
    checks::at_rest(&gateway).await;
}

/// N7: connections to one of three engines are reset under streams: those that had begun are told, the others go on.
#[tokio::test]
async fn n7_resets_on_the_way_to_an_engine_are_told() {
    const STREAMS: usize = 30;
    let ill = Engine::start().await;
    let relay = Relay::to(ill.addr).await;
    let row = Row::behind(&[relay.addr], 2, |settings| settings).await;
    let long = Request::chat().header("x-sim-inter-token: 60ms");
    let (answers, ()) = tokio::join!(row.ask(STREAMS, &long), async {
        row.gateway.wait_metric("streams_active", &[], STREAMS as f64).await;
        relay.reset();
    });
    let told: Vec<Told> = answers.iter().map(Told::of).collect();
    let cut = told.iter().filter(|told| told.error.is_some()).count();
    for told in told.iter().filter(|told| **told != Told::whole()) {
        assert_eq!(*told, Told::cut(told.tokens, "upstream_disconnected"));
    }
    assert_eq!(cut, STREAMS / 3, "those on that engine, and nobody else");
    row.never_moved().await;
    row.told("upstream_error", cut, json!({ "backend": "u1", "attempts": 1 })).await;
    row.settled(STREAMS).await;
}

/// N7: the client's connection is reset on its way: its engine is left, and no other's.
#[tokio::test]
async fn n7_a_reset_on_the_way_to_a_client_ends_its_request_alone() {
    let mut engine = Upstream::start().await;
    let gateway = Gateway::start(Settings::new(&[engine.addr])).await;
    let relay = Relay::to(gateway.addr).await;
    let (neighbour, neighbours) = support::streaming(&gateway, &mut engine, &["n"]).await;
    let (_client, mut call) = through(relay.addr, &mut engine).await;
    relay.reset();
    call.gone().await;
    checks::ends_same(neighbour, neighbours, event("n").as_bytes()).await;
    let line = gateway.wait_access("client_closed", |line| line["outcome"] == "client_closed").await;
    assert_eq!(line["phase"], "stream", "{line}");
    checks::at_rest(&gateway).await;
}
