//! Packets that are lost, rows N1 and N4, and the client that vanishes (C1); packets that are late, double or damaged
//! (N8): each in a network of its own.

mod support;

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::json;
use support::fleet::{ejects, with};
use support::netns::{alone, counted, heal, kernel, rule};
use support::tun::{HERE, Struck, THERE, Tunnel};
use support::wait::{SOON, wait_until};
use support::wire::{CHAT_PATH, Request, chat_of, chunk, event};
use support::{Engine, Row, Settings, Told, checks, not_run, one_engine, streaming};

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

/// A packet that comes late is no reason to give up, and whoever is given up for it is ejected.
fn patient(settings: Settings) -> Settings {
    let timeouts = ["connect", "first_event", "idle"].into_iter();
    let set = |settings: Settings, timeout| settings.set(&format!("timeouts.{timeout}"), "20s");
    with(ejects())(timeouts.fold(settings, set))
}

/// N1: one, five and ten packets of a hundred are lost on both sides of the gateway: streams are late and whole, and no
/// backend is taken for ill.
#[test]
fn n1_streams_get_over_lost_packets() {
    alone("n1_streams_get_over_lost_packets", || async {
        const STREAMS: usize = 40;
        for percent in [1, 5, 10] {
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

/// N8: on both sides of the gateway packets overtake each other, come twice, and are damaged. TCP hides it, its checksum
/// finds every damaged one: streams and bodies of 64 KiB are whole, and no backend is taken for ill.
#[test]
fn n8_streams_get_over_packets_that_are_late_double_or_damaged() {
    const NAME: &str = "n8_streams_get_over_packets_that_are_late_double_or_damaged";
    alone(NAME, || async {
        const STREAMS: usize = 40;
        let tunnel = match Tunnel::start() {
            Ok(tunnel) => tunnel,
            Err(why) => return not_run(NAME, &why),
        };
        let mut engines = Vec::new();
        for _ in 0..3 {
            engines.push(Engine::at(HERE).await);
        }
        let by_tunnel = |addr: SocketAddr| SocketAddr::from((THERE, addr.port()));
        let backends: Vec<_> = engines.iter().map(|engine| by_tunnel(engine.addr)).collect();
        let here = |settings| patient(settings).set("server.listen.0.address", format!("{HERE}:0"));
        let mut row = Row::with(&backends, Vec::new(), here).await;
        row.gateway.addr = by_tunnel(row.gateway.addr);
        row.engines = engines;

        let long = Request::post(CHAT_PATH, chat_of(64 * 1024));
        for request in [Request::chat(), long] {
            let told: Vec<_> = row.ask(STREAMS, &request).await.iter().map(Told::of).collect();
            assert_eq!(told, vec![Told::whole(); STREAMS]);
        }
        let found = || kernel("Tcp", "InCsumErrors");
        wait_until("each damaged packet is found", SOON, || found() == tunnel.struck().damaged).await;
        let Struck { late, twice, damaged } = tunnel.struck();
        assert!(late > 0 && twice > 0 && damaged > 0, "{:?}", tunnel.struck());
        assert!(kernel("TcpExt", "TCPOFOQueue") > 0, "some came before others that were sent earlier");
        assert!(kernel("TcpExt", "TCPDSACKOldSent") > 0, "some came that had come before");
        for (times, what) in [(late, "late"), (twice, "double"), (damaged, "damaged")] {
            row.struck(times as usize, &format!("a packet is {what}"));
        }
        row.gateway.nobody_ejected().await;
        row.told("completed", 2 * STREAMS, json!({ "status": 200, "attempts": 1 })).await;
        row.settled(2 * STREAMS).await;
    });
}
