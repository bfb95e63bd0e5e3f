//! G14: everybody else wants the processor, too. Alone in its file, since it takes that from its neighbours.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use support::fleet::{checks, with};
use support::wait::{SOON, wait_until};
use support::{Row, Told};

/// Threads that do nothing else, for each core.
const SPINNING: usize = 6;

/// Spins on all cores until it is dropped.
struct Starved {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Starved {
    fn begin() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let count = SPINNING * thread::available_parallelism().expect("cores").get();
        let spin = |over: Arc<AtomicBool>| move || while !over.load(Ordering::Relaxed) {};
        let threads = (0..count).map(|_| thread::spawn(spin(Arc::clone(&over)))).collect();
        Self { over, threads }
    }
}

impl Drop for Starved {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It only spins.
            drop(thread.join());
        }
    }
}

/// Streams are whole and in order, checks go on, and no backend is taken for ill because the gateway is slow.
#[tokio::test]
async fn g14_without_a_processor_of_its_own_order_is_kept_and_nobody_ejected() {
    const STREAMS: usize = 40;
    let row = Row::start(3, with(checks())).await;
    row.gateway.checked().await;
    let starved = Starved::begin();
    let before = row.gateway.cpu_ticks();
    for _ in 0..3 {
        assert_eq!(row.streams(STREAMS).await, vec![Told::whole(); STREAMS]);
    }
    row.gateway.wait_checks("u1", 3).await;
    row.gateway.nobody_ejected().await;
    for backend in ["u1", "u2", "u3"] {
        assert!(row.gateway.is_up(backend).await, "{backend}");
    }
    // They were there all the time.
    assert!(row.gateway.cpu_ticks() > before && starved.threads.iter().all(|thread| !thread.is_finished()));
    row.struck(starved.threads.len(), "a thread that spins");
    drop(starved);
    // And when it is over, all is as before.
    wait_until("the lines are written", SOON, || row.gateway.access_lines().len() == 3 * STREAMS).await;
    row.settled(3 * STREAMS).await;
}
