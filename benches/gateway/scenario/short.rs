//! Short answers that are no streams, from clients that keep their connections.

use std::net::SocketAddr;
use std::time::Duration;

use memchr::memmem;

use super::turns;
use crate::client::{Ask, Wrong};
use crate::error::Error;
use crate::figure::{Figure, Rounds};
use crate::fleet::{Fleet, Target};
use crate::load::Load;
use crate::options::Options;
use crate::sample;
use crate::way::{Road, Way};

const CONNECTIONS: u32 = 32;
const ENGINE: [&str; 8] =
    ["--tokens", "4", "--inter-token", "0ms", "--first-event", "0ms", "--event-bytes", "0"];
const CONTENT: &[u8] = b"\"tok0 tok1 tok2 tok3 \"";

pub(super) async fn run(options: &Options, way: Way) -> Result<Vec<Figure>, Error> {
    let fleet = Fleet::start(&options.binary, &ENGINE).await?;
    let (rounds, requests) = if options.quick { (1, 5_000) } else { (5, 20_000) };
    let mut cpu = Rounds::default();
    for round in 0..rounds {
        for target in turns(way.targets(), round) {
            let Some(pid) = fleet.pid(target) else { continue };
            let addr = fleet.door(way, target);
            ask_all(way, target, addr, 1).await?;
            let before = sample::cpu_us(pid)?;
            let each = requests / CONNECTIONS;
            ask_all(way, target, addr, each).await?;
            cpu.push(target, (sample::cpu_us(pid)? - before) / f64::from(each * CONNECTIONS));
        }
    }
    Ok(vec![cpu.figure(way.name("short"), "CPU per request", "us")])
}

/// Asks `each` times on each connection.
async fn ask_all(way: Way, target: Target, addr: SocketAddr, each: u32) -> Result<(), Error> {
    let load = Load::start(target, CONNECTIONS, Duration::ZERO, |number| async move {
        let mut road = Road::open(way, addr).await?;
        let mut body = Vec::new();
        let ask = Ask { id: format!("bench-{number}"), stream: false, headers: "" };
        for _ in 0..each {
            road.exchange(&ask, &mut body).await?;
            memmem::find(&body, CONTENT).ok_or(Wrong::Content)?;
        }
        Ok(())
    });
    load.finish().await.map(drop)
}
