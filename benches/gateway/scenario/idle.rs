//! Connections that have served one request and now wait for the next.
//!
//! nginx takes the better part of its memory for connections when it starts (`worker_connections`),
//! so that its figure is what comes on top.

use std::time::Duration;

use crate::client::{self, Ask};
use crate::error::Error;
use crate::figure::{Figure, Rounds};
use crate::fleet::{Fleet, Target};
use crate::load::Load;
use crate::options::Options;
use crate::sample;

const CONNECTIONS: u32 = 5_000;
const ENGINE: [&str; 8] =
    ["--tokens", "4", "--inter-token", "0ms", "--first-event", "0ms", "--event-bytes", "0"];
/// Slow enough that a few upstream connections serve all of them.
const SPACING: Duration = Duration::from_micros(400);

pub(super) async fn run(options: &Options) -> Result<Vec<Figure>, Error> {
    let fleet = Fleet::start(&options.binary, &ENGINE).await?;
    let mut memory = Rounds::default();
    for target in Target::PROXIES {
        let Some(pid) = fleet.pid(target) else { continue };
        drop(connect(&fleet, target, 1).await?);
        let before = sample::rss_kib(pid)?;
        let idle = connect(&fleet, target, CONNECTIONS).await?;
        memory.push(target, (sample::rss_kib(pid)? - before) / f64::from(CONNECTIONS));
        drop(idle);
    }
    Ok(vec![memory.figure("idle", "memory per idle connection", "KiB")])
}

async fn connect(fleet: &Fleet, target: Target, count: u32) -> Result<Vec<tokio::net::TcpStream>, Error> {
    let addr = fleet.addr(target);
    let load = Load::start(target, count, SPACING, |number| async move {
        let socket = client::connect(addr).await?;
        let ask = Ask { id: format!("bench-{number}"), stream: false, headers: "" };
        client::exchange(&socket, &ask.bytes(), &mut Vec::new()).await?;
        Ok(socket)
    });
    load.finish().await
}
