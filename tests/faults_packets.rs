//! Packets that are lost, rows N1 and N4, and the client that vanishes (C1): each in a network of its own.

mod support;

use std::time::Duration;

use support::fleet::{ejects, with};
use support::netns::{alone, counted, heal, rule};
use support::wire::{Request, chunk, event};
use support::{Row, Settings, Told, checks, one_engine, streaming};

/// Loses so many of a hundred packets from and to a port.
fn lossy(percent: usize, port: u16) {
    for way in ["sport", "dport"] {
        rule(&format!("tcp {way} {port} numgen random mod 100 < {percent} counter drop"));
    }
}

/// Loses every packet from and to a port.
fn gone(port: u16) {
    for way in ["sport", "dport"] {
        rule(&format!("tcp {way} {port} counter drop"));
    }
}

/// N1: one, five and ten packets of a hundred are lost on both sides of the gateway: streams are late and whole, and no
/// backend is taken for ill.
#[test]
fn n1_streams_get_over_lost_packets() {
    alone("n1_streams_get_over_lost_packets", || async {
        const STREAMS: usize = 40;
        for percent in [1, 5, 10] {
            let patient = |settings: Settings| {
                let settings = ["connect", "first_event", "idle"]
                    .into_iter()
                    .fold(settings, |settings, timeout| settings.set(&format!("timeouts.{timeout}"), "20s"));
                with(ejects())(settings)
            };
            let row = Row::start(3, patient).await;
            lossy(percent, row.gateway.addr.port());
            for engine in &row.engines {
                lossy(percent, engine.addr.port());
            }
            assert_eq!(row.streams(STREAMS).await, vec![Told::whole(); STREAMS], "{percent}");
            assert!(counted() > 0, "packets were lost");
            heal();
            row.gateway.nobody_ejected().await;
            row.settled(STREAMS).await;
        }
    });
}

/// N4: every packet between the gateway and an engine is lost in a stream, also the gateway's farewell. The client is
/// told after the idle timeout, and the next request after the connect timeout.
#[test]
fn n4_a_partition_from_an_engine_is_told() {
    alone("n4_a_partition_from_an_engine_is_told", || async {
        let short =
            |settings: Settings| settings.set("timeouts.idle", "1500ms").set("timeouts.connect", "1s");
        let (gateway, mut engine) = one_engine(short).await;
        let (mut client, mut call) = streaming(&gateway, &mut engine, &["a", "b"]).await;
        gone(engine.addr.port());
        call.chunk(event("lost")).await;
        checks::broken(&mut client, &(event("a") + &event("b")), "idle_timeout").await;
        let line = gateway.only_access().await;
        assert_eq!((&line["outcome"], &line["phase"]), (&"timeout".into(), &"stream".into()), "{line}");
        let refused = gateway.ask(&Request::chat()).await;
        checks::rejected(&refused, 504, "connect_timeout");
        assert!(counted() > 0, "packets were lost");
        checks::at_rest(&gateway).await;
    });
}

/// N4, C1: the client vanishes in a stream: no packet of its own, nor of ours to it. What is written to it is not
/// acknowledged, it is given up after `write_stall`, and the engine is left.
#[test]
fn n4_c1_a_client_that_vanishes_is_given_up() {
    alone("n4_c1_a_client_that_vanishes_is_given_up", || async {
        let (gateway, mut engine) = one_engine(|settings| settings.set("stream.write_stall", "1500ms")).await;
        let (_client, call) = streaming(&gateway, &mut engine, &["a"]).await;
        gone(gateway.addr.port());
        let (_, flood) = call.flood(chunk(event(&"x".repeat(4096))), usize::MAX / 2);
        let left = support::wait::within("the engine is left", Duration::from_secs(20), flood).await;
        assert!(left.is_none());
        let line = gateway.only_access().await;
        assert_eq!(line["outcome"], "client_stalled", "{line}");
        assert!(counted() > 0, "packets were lost");
        checks::at_rest(&gateway).await;
        heal();
        let mut next = gateway.send(&Request::chat()).await;
        engine.call().await.stream("next").await;
        checks::streamed(&mut next, "next").await;
    });
}
