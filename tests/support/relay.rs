//! A stretch of network between two ends: nothing may pass one way or both, or little, or late, and it can cut.
//!
//! It carries bytes of connections, not packets: what it does not pass on has been acknowledged all the same. What only
//! packets show (loss, a peer that answers nothing) the tests of the network do in a namespace of their own.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::watch;

use super::wait::silence;
use super::{score, sockets};

/// A piece of what is let through slowly.
const PIECE: usize = 512;
/// Receive buffer of a relay: what is not let through is felt early.
const BUFFER_BYTES: u32 = 8 * 1024;

/// What the network is like.
#[derive(Debug, Clone, Copy, Default)]
struct Weather {
    /// Nothing passes from those who connect.
    up_stands: bool,
    /// Nothing passes to them.
    down_stands: bool,
    /// Bytes a second that pass to them.
    down_rate: Option<u32>,
    /// How much later everything comes to them.
    down_late: Duration,
    /// How often every connection has been reset.
    resets: usize,
}

/// The stretch.
#[derive(Debug)]
pub(crate) struct Relay {
    /// Where to connect.
    pub(crate) addr: SocketAddr,
    weather: Arc<watch::Sender<Weather>>,
}

impl Relay {
    /// Leads to this address.
    pub(crate) async fn to(target: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().expect("socket");
        socket.set_recv_buffer_size(BUFFER_BYTES).expect("SO_RCVBUF");
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("bind");
        let listener = socket.listen(256).expect("listen");
        let addr = listener.local_addr().expect("bound");
        let weather = Arc::new(watch::Sender::new(Weather::default()));
        let sender = Arc::clone(&weather);
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let weather = sender.subscribe();
                tokio::spawn(async move {
                    carry(near, sockets::connect_narrow(target, BUFFER_BYTES).await, weather).await;
                });
            }
        });
        Self { addr, weather }
    }

    /// Whether anything passes from those who connect, and to them, from now on; not even an end does otherwise.
    pub(crate) fn stand(&self, up: bool, down: bool) {
        if up || down {
            score::struck(1, "nothing passes through the relay");
        }
        self.weather.send_modify(|weather| (weather.up_stands, weather.down_stands) = (up, down));
    }

    /// Lets so many bytes a second through to those who connect.
    pub(crate) fn slow(&self, bytes: u32) {
        score::struck(1, "little passes through the relay");
        self.weather.send_modify(|weather| weather.down_rate = Some(bytes));
    }

    /// Has everything come so much later to those who connect: the way to the other end and back.
    pub(crate) fn late(&self, by: Duration) {
        self.weather.send_modify(|weather| weather.down_late = by);
    }

    /// Resets every connection at both ends.
    pub(crate) fn reset(&self) {
        score::struck(1, "the relay resets every connection");
        self.weather.send_modify(|weather| weather.resets += 1);
    }
}

/// Carries one connection until it ends at one side; the other learns how.
async fn carry(mut near: TcpStream, mut far: TcpStream, mut weather: watch::Receiver<Weather>) {
    let before = weather.borrow_and_update().resets;
    let ended = {
        let ((near_in, near_out), (far_in, far_out)) = (near.split(), far.split());
        let (up, down) = (weather.clone(), weather.clone());
        tokio::select! {
            ended = pump(near_in, far_out, up, |weather| weather.up_stands, |_, _| Duration::ZERO) => ended,
            ended = pump(far_in, near_out, down, |weather| weather.down_stands, held_up) => ended,
            _ = weather.wait_for(|weather| weather.resets > before) => Err(ErrorKind::ConnectionReset.into()),
        }
    };
    if ended.is_err() {
        sockets::reset(near);
        sockets::reset(far);
    }
}

/// How long so many bytes are held up on their way to those who connect.
fn held_up(weather: &Weather, count: usize) -> Duration {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    weather.down_late + weather.down_rate.map_or(Duration::ZERO, |rate| Duration::from_secs(1) * count / rate)
}

/// Carries one way, to its end.
async fn pump(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    mut weather: watch::Receiver<Weather>,
    stands: impl Fn(&Weather) -> bool,
    held_up: impl Fn(&Weather, usize) -> Duration,
) -> io::Result<()> {
    let mut piece = [0; PIECE];
    loop {
        let count = from.read(&mut piece).await?;
        // An end is not told while nothing passes.
        let held_up =
            weather.wait_for(|weather| !stands(weather)).await.map(|weather| held_up(&weather, count));
        if count == 0 {
            return Ok(());
        }
        // Without a relay nobody changes the weather any more.
        if let Ok(held_up) = held_up
            && !held_up.is_zero()
        {
            silence(held_up).await;
        }
        to.write_all(&piece[..count]).await?;
    }
}
