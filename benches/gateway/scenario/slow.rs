//! Clients that read slowly what an engine sends fast: what stands between the two.
//!
//! Of what the engine has written and the client has not read, a part is in the proxy (its memory and
//! its two sockets), the rest in the engine's and in the client's own sockets.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::{Outcome, Scenario};
use crate::client::{self, Ask};
use crate::error::Error;
use crate::figure::Rounds;
use crate::fleet::Fleet;
use crate::judge::Wrong;
use crate::load::{self, Load};
use crate::options::Options;
use crate::sample;
use crate::target::Target;

const READERS: u32 = 50;
/// 512 events of 64 KiB: 32 MiB.
const ENGINE: [&str; 8] =
    ["--tokens", "512", "--inter-token", "0ms", "--event-bytes", "64KiB", "--first-event", "0ms"];
/// 1 KB/s.
const READ_EVERY: Duration = Duration::from_millis(100);
const READ_BYTES: usize = 100;
const SPACING: Duration = Duration::from_millis(1);
/// After the clients have left.
const AT_REST_WITHIN: Duration = Duration::from_secs(10);

#[derive(Default)]
struct Measured {
    user_space: Rounds,
    sockets: Rounds,
    proxy: Rounds,
    end_to_end: Rounds,
}

pub(super) async fn run(options: &Options) -> Result<Outcome, Error> {
    let fleet = Fleet::start(options, Scenario::Slow, &ENGINE).await?;
    let time = Duration::from_secs(if options.quick { 5 } else { 15 });
    let mut measured = Measured::default();
    for target in fleet.targets() {
        let done = measured.target(&fleet, target, time).await;
        fleet.bear(target, done).await?;
    }
    let figure = |rounds: &Rounds, name| rounds.figure("slow", name, "KiB");
    let figures = vec![
        figure(&measured.user_space, "proxy memory per stalled stream"),
        figure(&measured.sockets, "in the proxy's sockets per stalled stream"),
        figure(&measured.proxy, "held by the proxy, both together"),
        figure(&measured.end_to_end, "written by the engine and not read by the client"),
    ];
    Ok(fleet.outcome("slow", figures))
}

impl Measured {
    async fn target(&mut self, fleet: &Fleet, target: Target, time: Duration) -> Result<(), Error> {
        let (addr, pid, control) = (fleet.addr(target), fleet.pid(target), fleet.control());
        let memory_before = pid.map(sample::rss_kib).transpose()?;
        control.reset().await?;
        let read = Arc::new(AtomicU64::new(0));
        let readers = fleet.part(target, READERS);
        let mut load = Load::start(target, readers, SPACING, |number| {
            reader(addr, load::ask_stream(number, ""), Arc::clone(&read))
        });
        tokio::time::sleep(time).await;
        load.goes_on()?;
        let written = control.count("bytes_written").await?;
        let held = written.saturating_sub(read.load(Relaxed));
        let per_stream_kib = |bytes: u64| bytes as f64 / 1_024.0 / f64::from(readers);
        self.end_to_end.push(target, per_stream_kib(held));
        if let (Some(pid), Some(before)) = (pid, memory_before) {
            let user_space = (sample::rss_kib(pid)? - before) / f64::from(readers);
            let sockets = sample::socket_bytes(addr.port(), fleet.engine_addr.port())?;
            let sockets = per_stream_kib(sockets);
            self.user_space.push(target, user_space);
            self.sockets.push(target, sockets);
            self.proxy.push(target, user_space + sockets);
        }
        drop(load);
        control.idle(target, AT_REST_WITHIN).await.map(drop)
    }
}

/// Reads slowly for as long as it lives, and counts what it read.
async fn reader(addr: SocketAddr, ask: Ask, count: Arc<AtomicU64>) -> Result<(), Wrong> {
    let socket = client::connect(addr).await?;
    client::send(&socket, &ask.bytes()).await?;
    let (mut buffer, mut begun) = ([0; READ_BYTES], false);
    loop {
        tokio::time::sleep(READ_EVERY).await;
        socket.readable().await?;
        let length = match socket.try_read(&mut buffer) {
            Ok(0) => return Err(Wrong::CutOff),
            Ok(length) => length,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error.into()),
        };
        if !begun && !buffer.starts_with(b"HTTP/1.1 200") {
            return Err(Wrong::Framing);
        }
        begun = true;
        count.fetch_add(length as u64, Relaxed);
    }
}
