//! Connections that have served one request and now wait for the next.
//!
//! nginx takes the better part of its memory for connections when it starts (`worker_connections`),
//! so that its figure is what comes on top.

use std::io::ErrorKind;
use std::time::Duration;

use tokio::net::TcpStream;

use super::{Outcome, Scenario};
use crate::client::{self, Ask};
use crate::error::Error;
use crate::figure::Rounds;
use crate::fleet::Fleet;
use crate::load::Load;
use crate::options::Options;
use crate::sample;
use crate::target::Target;

const CONNECTIONS: u32 = 5_000;
/// With `--large`.
const MANY_CONNECTIONS: u32 = 9_500;
const ENGINE: [&str; 8] =
    ["--tokens", "4", "--inter-token", "0ms", "--first-event", "0ms", "--event-bytes", "0"];
/// Slow enough that a few upstream connections serve all of them.
const SPACING: Duration = Duration::from_micros(400);
/// They are held for so long after the last one has come.
const HELD: Duration = Duration::from_secs(5);

#[derive(Default)]
struct Measured {
    memory: Rounds,
    lost: Rounds,
}

pub(super) async fn run(options: &Options) -> Result<Outcome, Error> {
    let fleet = Fleet::start(options, Scenario::Idle, &ENGINE).await?;
    let counts = if options.large { &[CONNECTIONS, MANY_CONNECTIONS][..] } else { &[CONNECTIONS] };
    let mut figures = Vec::new();
    for count in counts {
        let mut measured = Measured::default();
        for target in fleet.proxies() {
            let done = measured.target(&fleet, target, *count).await;
            fleet.bear(target, done).await?;
        }
        let name = format!("memory per idle connection of {count}");
        figures.push(measured.memory.figure("idle", &name, "KiB"));
        figures.push(measured.lost.figure("idle", &format!("idle connections closed of {count}"), ""));
    }
    Ok(fleet.outcome("idle", figures))
}

impl Measured {
    async fn target(&mut self, fleet: &Fleet, target: Target, count: u32) -> Result<(), Error> {
        let Some(pid) = fleet.pid(target) else { return Ok(()) };
        drop(connect(fleet, target, 1).await?);
        let before = sample::rss_kib(pid)?;
        let idle = connect(fleet, target, count).await?;
        tokio::time::sleep(HELD).await;
        self.memory.push(target, (sample::rss_kib(pid)? - before) / f64::from(count));
        self.lost.push(target, idle.iter().filter(|socket| is_closed(socket)).count() as f64);
        Ok(())
    }
}

/// Nothing may come on an idle connection: whatever a read finds is its end.
fn is_closed(socket: &TcpStream) -> bool {
    !matches!(socket.try_read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock)
}

async fn connect(fleet: &Fleet, target: Target, count: u32) -> Result<Vec<TcpStream>, Error> {
    let addr = fleet.addr(target);
    let load = Load::start(target, count, SPACING, |number| async move {
        let socket = client::connect(addr).await?;
        let ask = Ask { id: format!("bench-{number}"), stream: false, wishes: "" };
        client::exchange(&socket, &ask.bytes(), &mut Vec::new()).await?;
        Ok(socket)
    });
    fleet.accept(load.finish().await)
}
