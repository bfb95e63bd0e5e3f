//! A stretch of network that mistreats packets: some are overtaken, some come twice, some are damaged.
//!
//! The hard idea: both its ends are this machine. What is sent to [`THERE`] leaves the kernel through a TUN device. We
//! take it there, swap its two addresses and give it back, so that it arrives at [`HERE`] as if `THERE` had sent it; what
//! is answered goes the same way. The checksum of TCP is a sum that both addresses are part of, so it holds when they
//! change places, and the kernel verifies it as with every packet from outside.
//!
//! It needs a network of the test's own ([`super::netns`]).

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio_tun::Tun;

/// Where everybody listens, and connects from.
pub(crate) const HERE: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
/// `HERE`, by way of the device.
pub(crate) const THERE: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);

const NETMASK: Ipv4Addr = Ipv4Addr::new(255, 255, 255, 0);
/// More than a packet of the device can have.
const PACKET_BYTES: usize = 2048;
/// A packet that none overtakes goes on after this.
const HELD_MAX: Duration = Duration::from_millis(20);
/// Begins the draws: what happens to the packet with this number does not change from run to run.
const SEED: u64 = 8;

/// Packets by what has been done to them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Struck {
    /// Overtaken by the next one of their connection.
    pub(crate) late: u64,
    /// Sent twice.
    pub(crate) twice: u64,
    /// A bit of what they carry was turned over.
    pub(crate) damaged: u64,
}

/// The stretch. It lasts as long as the test's runtime.
#[derive(Debug)]
pub(crate) struct Tunnel(Arc<Mutex<Struck>>);

impl Tunnel {
    /// Makes the device and carries what comes.
    ///
    /// # Errors
    /// Why there is no device, in words: the system has none, or does not let us.
    pub(crate) fn start() -> Result<Self, String> {
        let made = Tun::builder().address(HERE).netmask(NETMASK).up().build();
        let device = made.map_err(|error| error.to_string())?.pop().ok_or("no device was made")?;
        let struck = Arc::default();
        tokio::spawn(carry(device, Arc::clone(&struck)));
        Ok(Self(struck))
    }

    /// What has been done so far.
    pub(crate) fn struck(&self) -> Struck {
        *self.0.lock().expect("who holds it does not panic")
    }
}

async fn carry(device: Tun, struck: Arc<Mutex<Struck>>) {
    let (mut buffer, mut rough) = ([0; PACKET_BYTES], Rough::new());
    loop {
        let read = tokio::time::timeout(HELD_MAX, device.recv(&mut buffer)).await;
        let now = Instant::now();
        let mut out = rough.overdue(now);
        if let Ok(length) = read {
            let length = length.expect("the device is there");
            out.extend(turned(&buffer[..length]).into_iter().flat_map(|packet| rough.pass(packet, now)));
        }
        for packet in out {
            device.send_all(&packet).await.expect("the device is there");
        }
        *struck.lock().expect("who holds it does not panic") = rough.struck;
    }
}

/// A packet of TCP with its two addresses in each other's place; nothing else is of interest here.
fn turned(packet: &[u8]) -> Option<Vec<u8>> {
    let is_tcp = packet.len() >= 40 && packet[0] >> 4 == 4 && packet[9] == 6;
    is_tcp.then(|| {
        let mut packet = packet.to_vec();
        packet[12..20].rotate_left(4);
        packet
    })
}

/// The packets of one way of a connection: both its ports.
type Way = [u8; 4];

/// What is done to packets. Knows no device and no clock.
struct Rough {
    draws: fastrand::Rng,
    /// A packet of a way that waits for the next one.
    held: HashMap<Way, (Instant, Vec<u8>)>,
    struck: Struck,
}

impl Rough {
    fn new() -> Self {
        Self { draws: fastrand::Rng::with_seed(SEED), held: HashMap::new(), struck: Struck::default() }
    }

    /// Takes a packet, and gives those that go on now.
    fn pass(&mut self, mut packet: Vec<u8>, now: Instant) -> Vec<Vec<u8>> {
        let header = usize::from(packet[0] & 15) * 4;
        let way: Way = std::array::from_fn(|n| packet[header + n]);
        let payload = header + usize::from(packet[header + 12] >> 4) * 4;
        let mut out = match self.draws.u32(..100) {
            0..10 if !self.held.contains_key(&way) => {
                self.held.insert(way, (now, packet));
                return Vec::new();
            }
            10..15 if payload < packet.len() => {
                let at = self.draws.usize(payload..packet.len());
                packet[at] ^= 1 << self.draws.u32(..8);
                self.struck.damaged += 1;
                // It overtakes nobody: it will not arrive.
                return vec![packet];
            }
            15..25 => {
                self.struck.twice += 1;
                vec![packet.clone(), packet]
            }
            _ => vec![packet],
        };
        if let Some((_, overtaken)) = self.held.remove(&way) {
            self.struck.late += 1;
            out.push(overtaken);
        }
        out
    }

    /// Those that have waited long enough.
    fn overdue(&mut self, now: Instant) -> Vec<Vec<u8>> {
        let overdue = self.held.extract_if(|_, (since, _)| now.duration_since(*since) >= HELD_MAX);
        overdue.map(|(_, (_, packet))| packet).collect()
    }
}
