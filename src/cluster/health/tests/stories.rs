//! Anything that can happen, in any order: how many are out stays bounded, and all come back.

use proptest::prelude::*;

use super::*;

/// Something that happens to a cluster.
#[derive(Debug, Clone)]
enum Happens {
    Passes(u64),
    Ends(usize, Option<Failure>, u16, bool),
    Check(usize, bool),
    Look(usize),
    Pick,
    Probe(usize, Probed),
}

fn failures() -> impl Strategy<Value = Option<Failure>> {
    use Failure::*;
    prop::sample::select(vec![
        None,
        Some(Connect),
        Some(ConnectTimeout),
        Some(FirstEventTimeout),
        Some(IdleTimeout),
        Some(TotalTimeout),
        Some(Disconnected),
        Some(Unfinished),
        Some(Unanswered),
        Some(Empty),
        Some(NotHttp),
        Some(Status(503)),
        Some(Status(429)),
        Some(ShuttingDown),
    ])
}

fn happens() -> impl Strategy<Value = Happens> {
    let at = 0..5_usize;
    let probed = prop::sample::select(vec![Probed::Token, Probed::Silence, Probed::Refused]);
    prop_oneof![
        (0..20_000_u64).prop_map(Happens::Passes),
        (at.clone(), failures(), 200..600_u16, any::<bool>())
            .prop_map(|(at, failure, status, whole)| Happens::Ends(at, failure, status, whole)),
        (at.clone(), any::<bool>()).prop_map(|(at, passed)| Happens::Check(at, passed)),
        at.clone().prop_map(Happens::Look),
        Just(Happens::Pick),
        (at, probed).prop_map(|(at, probed)| Happens::Probe(at, probed)),
    ]
}

/// A cluster under test: attempts that are open, and the time.
struct World {
    cluster: Arc<Cluster>,
    now: Instant,
    open: Vec<(InFlight, Watched)>,
}

impl World {
    fn happen(&mut self, happens: &Happens, draw: u64) {
        let (cluster, now) = (Arc::clone(&self.cluster), self.now);
        let backend = |at: usize| &cluster.backends[at % cluster.backends.len()];
        match *happens {
            Happens::Passes(millis) => self.now += Duration::from_millis(millis),
            Happens::Ends(at, failure, status, whole) => {
                if self.open.is_empty() {
                    return;
                }
                let (attempt, _watched) = self.open.swap_remove(at % self.open.len());
                let ended = Report { status: Some(status), whole, ..report(now, failure) };
                cluster.learn(&attempt, &ended, draw);
            }
            Happens::Check(at, passed) => {
                let active = cluster.config.health.active.as_ref().expect("checks");
                backend(at).state.health.check(passed, now, active);
            }
            Happens::Look(at) => {
                cluster.look(backend(at), now, draw);
            }
            Happens::Pick => self.pick(draw),
            Happens::Probe(at, probed) => {
                if let Some(trial) = backend(at).state.probe(now) {
                    let passive = &cluster.config.health.passive;
                    backend(at).state.health.probed(&trial, probed, now, draw, passive);
                }
            }
        }
    }

    fn pick(&mut self, draw: u64) {
        let was_in: Vec<bool> =
            self.cluster.backends.iter().map(|backend| backend.state.health.is_in()).collect();
        let Ok(picked) = self.cluster.pick(&Ask {
            lenient: true,
            sound: false,
            tried: &[],
            now: self.now,
            draw,
            cost: 1,
            keys: &[],
            chooser: None,
        }) else {
            assert!(!was_in.contains(&true), "one was there to be picked");
            return;
        };
        let at = self.cluster.place_of(picked.backend()).expect("one of them");
        // Where the checks of all fail, they keep nobody out, whatever outvotes them at some.
        let none_is_better = !was_in.contains(&true) || self.cluster.fails_static();
        let allowed = was_in[at] || picked.trial().is_some() || none_is_better;
        assert!(allowed, "only a trial goes to one that is out while others are in");
        let ejected = picked.backend().state.health.is_ejected();
        assert!(!ejected || picked.trial().is_some(), "only a trial goes to one that is ejected");
        if picked.trial().is_some() {
            let others = self.open.iter().filter(|(other, _)| {
                let same = Arc::ptr_eq(other.backend(), picked.backend());
                same && other
                    .trial()
                    .is_some_and(|number| picked.backend().state.health.state.lock().is_trial(number))
            });
            assert_eq!(others.count(), 0, "one trial at a time");
        }
        let watched = Watched::new(Arc::clone(&picked.backend().state), true, Attempt::sent(self.now));
        self.open.push((picked, watched));
    }

    fn check(&self) {
        let backends = &self.cluster.backends;
        let ejected = backends.iter().filter(|backend| backend.state.health.is_ejected()).count();
        assert!(ejected <= most(backends.len(), &self.cluster.config.health.passive), "{ejected} are out");
    }

    /// From here on everything goes well.
    fn heal(&mut self) {
        self.open.clear();
        for round in 0..200 {
            self.now += secs(1);
            for at in 0..self.cluster.backends.len() {
                self.happen(&Happens::Check(at, true), round);
                self.happen(&Happens::Probe(at, Probed::Token), round);
                self.happen(&Happens::Look(at), round);
            }
            self.happen(&Happens::Pick, round);
            self.happen(&Happens::Ends(0, None, 200, true), round);
        }
        for backend in &self.cluster.backends {
            assert_eq!(backend.state.health.condition(), Condition::Up);
            assert!(backend.state.health.share(self.now) >= 1.0);
        }
    }
}

proptest! {
    #[test]
    fn whatever_happens_no_more_are_out_than_may_be_and_all_come_back(
        backends in 1..6_usize,
        story in prop::collection::vec((happens(), any::<u64>()), 0..200),
    ) {
        let mut world = World { cluster: cluster(backends, HEALTH), now: Instant::now(), open: Vec::new() };
        for (happens, draw) in &story {
            world.happen(happens, *draw);
            world.check();
        }
        world.heal();
    }

    #[test]
    fn nothing_that_a_client_does_counts(
        story in prop::collection::vec((200..600_u16, any::<bool>(), any::<bool>()), 0..100),
    ) {
        let (cluster, now) = (cluster(2, HEALTH), Instant::now());
        for (status, whole, answered) in story {
            if (502..=504).contains(&status) {
                continue;
            }
            let attempt = InFlight::take(&cluster.backends[0], &cluster.state, 1).unwrap();
            let status = answered.then_some(status);
            let ended = Report { status, whole, ..report(now, None) };
            prop_assert_eq!(cluster.learn(&attempt, &ended, 0), None);
        }
        prop_assert_eq!(condition(&cluster, 0), Condition::Up);
    }
}
