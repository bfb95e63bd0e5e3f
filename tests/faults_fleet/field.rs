//! The clients of the soak: they stream, ask, leave and read slowly, and take nothing but a sound answer or an honest
//! error.

use std::sync::{Arc, Mutex};

use fastrand::Rng;
use tokio::sync::RwLock;
use tokio::task::JoinSet;

use crate::support::protocol::Dialer;
use crate::support::wait::{SOON, ms, silence};
use crate::support::wire::Request;
use crate::support::{Answer, Client, End, Row, Told, told};

const CLIENTS: usize = 16;

/// What became of the exchanges of one client.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Seen {
    /// Answered with all of it.
    pub(crate) whole: usize,
    /// Told in their middle that no more would come.
    pub(crate) cut: usize,
    /// Told by a status.
    pub(crate) refused: usize,
    /// Gone before the end.
    pub(crate) left: usize,
}

impl Seen {
    /// How many exchanges that is.
    pub(crate) fn all(self) -> usize {
        self.whole + self.cut + self.refused + self.left
    }

    fn and(self, other: Self) -> Self {
        Self {
            whole: self.whole + other.whole,
            cut: self.cut + other.cut,
            refused: self.refused + other.refused,
            left: self.left + other.left,
        }
    }
}

/// One exchange of a kind that chance chooses; everything but a sound answer or an honest error is a panic.
async fn exchange(dialer: Dialer, rng: &mut Rng, seen: &mut Seen) {
    let mut client = dialer.client().await;
    match rng.usize(0..8) {
        0 => {
            client.send(Request::unary().marked().bytes()).await;
            let answer = client.answer_within(3 * SOON).await;
            match (answer.status(), answer.end) {
                (200, End::Clean) => {
                    told::whole_json(&answer);
                    seen.whole += 1;
                }
                (200, _) => seen.cut += 1,
                _ => seen.refused += 1,
            }
        }
        1 => {
            client.send(Request::chat().marked().bytes()).await;
            client.head_within(3 * SOON).await;
            client.read_body().await;
            drop(client);
            seen.left += 1;
        }
        kind => {
            client.send(Request::chat().marked().bytes()).await;
            let answer = if kind == 2 { slowly(client).await } else { client.answer_within(3 * SOON).await };
            if answer.status() != 200 {
                seen.refused += 1;
            } else if Told::of(&answer) == Told::whole() {
                seen.whole += 1;
            } else {
                seen.cut += 1;
            }
        }
    }
}

/// Reads a little at a time, with pauses.
async fn slowly(client: Client) -> Answer {
    let mut client = client.reading(512);
    let head = client.head_within(3 * SOON).await;
    while client.read_body().await {
        silence(ms(10)).await;
    }
    let end = client.end().await;
    Answer { head, body: client.take_body(), end }
}

/// What clients share: the gate that each exchange holds open, and what became of all.
#[derive(Debug, Default)]
pub(crate) struct Field {
    /// Held open by each exchange, and closed by who wants rest.
    pub(crate) gate: RwLock<()>,
    seen: Mutex<Seen>,
}

impl Field {
    /// What became of all so far.
    pub(crate) fn seen(&self) -> Seen {
        *self.seen.lock().expect("nobody panics in it")
    }
}

/// Clients that go on until they are aborted.
pub(crate) fn load(row: &Row, field: &Arc<Field>, rng: &mut Rng) -> JoinSet<()> {
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let (dialer, field, mut rng) = (row.gateway.dialer(), Arc::clone(field), rng.fork());
        clients.spawn(async move {
            loop {
                let mut seen = Seen::default();
                let _open = field.gate.read().await;
                exchange(dialer, &mut rng, &mut seen).await;
                let mut all = field.seen.lock().expect("nobody panics in it");
                *all = all.and(seen);
            }
        });
    }
    clients
}
