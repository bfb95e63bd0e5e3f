//! The queue for free slots, in the order that chance makes of arrivals, ends, departures, rests and reloads.
//!
//! The picture is the naive one: how many run on each backend, and who waits. What must hold after each step, once
//! everybody whose turn it is has looked: no backend above its limit, and nobody waits for a backend that is free.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use streamgate::cluster::{Ask, Backend, Cluster, InFlight, NoBackend, Place, Report};
use streamgate::config::{Config, Environment};
use streamgate::snapshot::Snapshot;

/// A cluster with so many slots on each of its backends, and at most 8 who wait.
fn snapshot(slots: &[usize], before: Option<&Snapshot>) -> Snapshot {
    let backends: Vec<String> = (0..)
        .zip(slots)
        .map(|(n, slots)| {
            format!("{{ name: u{n}, url: \"http://127.0.0.1:{}\", max_inflight: {slots} }}", 9000 + n)
        })
        .collect();
    let text = format!(
        "server: {{ listen: [{{ address: 127.0.0.1:0 }}] }}\n\
         clusters: {{ c: {{ profile: openai, backends: [{}], queue: {{ max: 8 }} }} }}\n\
         routes: [{{ match: {{ path: /x }}, cluster: c }}]\n",
        backends.join(", ")
    );
    let config =
        Config::parse(&text, &Environment::bare(1, 1 << 30)).expect("the text is a configuration").config;
    let resolve = |_: &str, port: u16| Ok::<_, ()>(([127, 0, 0, 1], port).into());
    let snapshot = Snapshot::build(config, before, resolve).expect("addresses");
    snapshot.come_into_force(Instant::now());
    snapshot
}

struct Waiting {
    place: Place,
    cluster: Arc<Cluster>,
    tried: Vec<Arc<Backend>>,
    number: usize,
}

/// Everything there is.
struct World {
    snapshot: Snapshot,
    now: Instant,
    running: Vec<InFlight>,
    waiting: VecDeque<Waiting>,
    arrivals: usize,
}

fn ask(tried: &[Arc<Backend>], now: Instant) -> Ask<'_> {
    Ask { lenient: true, sound: false, tried, now, draw: 0, cost: 1, keys: &[], chooser: None }
}

impl World {
    fn cluster(&self) -> Arc<Cluster> {
        Arc::clone(&self.snapshot.clusters[0])
    }

    /// Somebody comes; with `tried` it has been on that backend before.
    fn arrive(&mut self, tried: Option<usize>) {
        let cluster = self.cluster();
        let tried: Vec<_> =
            tried.map(|at| cluster.backends[at % cluster.backends.len()].clone()).into_iter().collect();
        self.arrivals += 1;
        match cluster.pick(&ask(&tried, self.now)) {
            Ok(in_flight) => {
                let overtaken = |one: &&Waiting| one.tried.is_empty() && Arc::ptr_eq(&one.cluster, &cluster);
                assert!(!self.waiting.iter().any(|one| overtaken(&one)), "{} overtook", self.arrivals);
                self.running.push(in_flight);
            }
            Err(NoBackend::AllFull) => {
                let Some(place) = cluster.join(0, &ask(&tried, self.now)) else {
                    assert_eq!(cluster.state.queue.depth(), 8, "refused only where the queue is full");
                    return;
                };
                self.waiting.push_back(Waiting { place, cluster, tried, number: self.arrivals });
            }
            Err(_) => {}
        }
    }

    /// Everybody whose turn it is looks, until it is nobody's turn.
    fn look(&mut self) {
        let cx = Context::from_waker(Waker::noop());
        while let Some(at) = self.waiting.iter().position(|one| one.place.poll_turn(&cx) == Poll::Ready(())) {
            let one = &self.waiting[at];
            match one.cluster.pick_in_turn(&ask(&one.tried, self.now)) {
                Err(NoBackend::AllFull) => one.place.refused(),
                found => {
                    let one = self.waiting.remove(at).expect("found above");
                    if let Ok(in_flight) = found {
                        self.served_in_order(&one);
                        one.place.took();
                        self.running.push(in_flight);
                    }
                }
            }
        }
    }

    /// Nobody who sees the same backends and has tried none came before.
    fn served_in_order(&self, served: &Waiting) {
        let before =
            |other: &&Waiting| other.number < served.number && Arc::ptr_eq(&other.cluster, &served.cluster);
        let overtaken = self.waiting.iter().filter(before).find(|other| other.tried.is_empty());
        assert!(overtaken.is_none(), "{} overtook {}", served.number, overtaken.expect("some").number);
    }

    fn holds(&self) {
        let cluster = self.cluster();
        for backend in &cluster.backends {
            let running = self.running.iter().filter(|one| one.backend().name == backend.name).count();
            assert_eq!(backend.state.in_flight(), running);
        }
        assert_eq!(cluster.state.queue.depth(), self.waiting.len());
        for one in &self.waiting {
            let free = one.cluster.backends.iter().find(|backend| {
                !backend.is_full()
                    && backend.state.rest_ends(self.now).is_none()
                    && !one.tried.iter().any(|tried| Arc::ptr_eq(tried, backend))
            });
            assert!(free.is_none(), "{} waits, and {} is free", one.number, free.expect("some").name);
        }
    }
}

/// One event: what happens, and to whom.
fn step(world: &mut World, what: u8, whom: usize) {
    match what {
        0..=3 => world.arrive(None),
        4 => world.arrive(Some(whom)),
        5..=7 if !world.running.is_empty() => drop(world.running.swap_remove(whom % world.running.len())),
        // Two at once: the second comes before the first has looked.
        8 if world.running.len() > 1 => {
            world.running.swap_remove(whom % world.running.len());
            world.running.swap_remove(whom % world.running.len());
        }
        9 if !world.waiting.is_empty() => {
            let at = whom % world.waiting.len();
            world.waiting.remove(at);
        }
        // One ends and its successor leaves before it has looked.
        10 if !world.running.is_empty() && !world.waiting.is_empty() => {
            world.running.swap_remove(whom % world.running.len());
            world.waiting.pop_front();
        }
        // One ends, and somebody comes before its successor has looked.
        14 if !world.running.is_empty() => {
            world.running.swap_remove(whom % world.running.len());
            world.arrive(None);
        }
        11 => {
            let cluster = world.cluster();
            let retry_after = Some(Duration::from_secs(5));
            let report = Report { status: Some(503), retry_after, ..Report::of(world.now) };
            cluster.backends[whom % cluster.backends.len()].state.learn(&report);
        }
        12 => {
            world.now += Duration::from_secs(3);
            world.cluster().state.queue.nudge();
        }
        13 => {
            let slots: Vec<usize> = (0..3).map(|n| 1 + (whom + n) % 3).collect();
            world.snapshot = snapshot(&slots, Some(&world.snapshot));
            world.cluster().state.queue.nudge();
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_slot_is_lost_and_no_limit_exceeded(events in prop::collection::vec((0_u8..15, 0_usize..97), 1..120)) {
        let snapshot = snapshot(&[1, 2, 1], None);
        let mut world = World {
            snapshot, now: Instant::now(), running: Vec::new(), waiting: VecDeque::new(), arrivals: 0,
        };
        for (what, whom) in events {
            step(&mut world, what, whom);
            world.look();
            world.holds();
        }
        let cluster = world.cluster();
        world.waiting.clear();
        world.running.clear();
        prop_assert_eq!(cluster.state.queue.depth(), 0);
        prop_assert_eq!(cluster.state.live(), 0);
        prop_assert!(cluster.backends.iter().all(|backend| backend.state.in_flight() == 0));
    }
}

/// Many threads take and free the same two slots: never more than two at once, and everybody is served.
#[test]
fn threads_that_race_never_exceed_the_limit_nor_lose_a_wake() {
    const THREADS: usize = 8;
    const EACH: usize = 400;
    let cluster = Arc::clone(&snapshot(&[1, 1], None).clusters[0]);
    let (open, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..EACH {
                    let in_flight = waited_for(&cluster);
                    let now_open = open.fetch_add(1, Ordering::SeqCst) + 1;
                    most.fetch_max(now_open, Ordering::SeqCst);
                    std::thread::yield_now();
                    open.fetch_sub(1, Ordering::SeqCst);
                    drop(in_flight);
                }
            });
        }
    });
    assert_eq!(most.load(Ordering::SeqCst), 2);
    assert_eq!((cluster.state.queue.depth(), cluster.state.live()), (0, 0));
}

/// A slot, waited for as a task would: woken only by its waker.
fn waited_for(cluster: &Cluster) -> InFlight {
    let now = Instant::now();
    if let Ok(in_flight) = cluster.pick(&ask(&[], now)) {
        return in_flight;
    }
    let place = cluster.join(0, &ask(&[], now)).expect("fewer threads than places");
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let cx = Context::from_waker(&waker);
    loop {
        if place.poll_turn(&cx).is_pending() {
            std::thread::park_timeout(Duration::from_secs(20));
            assert!(now.elapsed() < Duration::from_secs(20), "a wake was lost");
            continue;
        }
        match cluster.pick_in_turn(&ask(&[], now)) {
            Ok(in_flight) => {
                place.took();
                return in_flight;
            }
            Err(_) => place.refused(),
        }
    }
}

struct Unpark(std::thread::Thread);

impl std::task::Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
