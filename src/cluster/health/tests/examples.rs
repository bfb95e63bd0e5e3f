//! One story a test.

use super::*;
use crate::cluster::NoBackend;

#[test]
fn three_failures_in_a_row_eject_and_a_success_ends_the_row() {
    let (cluster, now) = (cluster(3, HEALTH), Instant::now());
    assert_eq!((fail(&cluster, 0, now), fail(&cluster, 0, now)), (None, None));
    cluster.learn(&InFlight::take(&cluster.backends[0], &cluster.state, 1).unwrap(), &report(now, None), 0);
    assert_eq!((fail(&cluster, 0, now), fail(&cluster, 0, now)), (None, None));
    let change = fail(&cluster, 0, now).expect("it is ejected");
    assert_eq!(change, Change { from: Condition::Up, to: REFUSED, length: secs(10), times: 1 });
    assert_eq!(fail(&cluster, 0, now), None, "those that began before change nothing");
    for _ in 0..9 {
        let picked = cluster.pick(&ask(now, &[])).expect("two are well");
        assert!(!Arc::ptr_eq(picked.backend(), &cluster.backends[0]));
    }
}

#[test]
fn half_of_them_may_be_ejected_and_a_lone_one_too() {
    let (four, one, now) = (cluster(4, HEALTH), cluster(1, HEALTH), Instant::now());
    assert_eq!((0..4).filter_map(|at| fall(&four, at, now)).count(), 4);
    assert_eq!([0, 1, 2, 3].map(|at| condition(&four, at)), [REFUSED, REFUSED, KEPT, KEPT]);
    assert!(fall(&one, 0, now).is_some());
    assert_eq!(condition(&one, 0), REFUSED);
}

#[test]
fn what_may_not_be_ejected_is_asked_where_no_other_can_be_and_one_answer_brings_it_back() {
    let (cluster, now) = (cluster(3, HEALTH), Instant::now());
    assert_eq!(fall(&cluster, 0, now).map(|change| change.to), Some(REFUSED));
    assert_eq!(fall(&cluster, 1, now).map(|change| change.to), Some(KEPT));
    for _ in 0..9 {
        let picked = cluster.pick(&ask(now, &[])).expect("one is well");
        assert!(Arc::ptr_eq(picked.backend(), &cluster.backends[2]));
    }
    assert_eq!(fall(&cluster, 2, now).map(|change| change.to), Some(KEPT));
    let strict = Ask { lenient: false, ..ask(now, &[]) };
    assert!(cluster.pick(&strict).is_err(), "another cluster may have one that is well");
    let picked = cluster.pick(&ask(now, &[])).expect("nobody is well, and two may be asked");
    assert!(picked.trial().is_none() && !Arc::ptr_eq(picked.backend(), &cluster.backends[0]));
    let back = cluster.learn(&picked, &report(now, None), 0).expect("it answered");
    assert_eq!((back.from, back.to), (KEPT, Condition::Up));
}

#[test]
fn one_request_tries_a_half_open_backend_and_brings_it_back_slowly() {
    let (cluster, start) = (cluster(2, HEALTH), Instant::now());
    cluster.look(&cluster.backends[0], start, 0);
    assert!(fall(&cluster, 0, start).is_some());
    let open = start + secs(10);
    let trial = cluster.pick(&ask(open, &[])).expect("half-open");
    assert!(Arc::ptr_eq(trial.backend(), &cluster.backends[0]));
    for _ in 0..4 {
        let other = cluster.pick(&ask(open + secs(5), &[])).expect("the other is well");
        assert!(
            Arc::ptr_eq(other.backend(), &cluster.backends[1]),
            "one trial at a time, however long it takes"
        );
    }
    let change = cluster.learn(&trial, &report(open, None), 0).expect("it is back");
    assert_eq!((change.from, change.to), (REFUSED, Condition::Up));
    let health = &cluster.backends[0].state.health;
    let shares = [0, 5, 10].map(|second| health.share(open + secs(second)));
    assert_eq!(shares, [0.0, 0.5, 1.0]);
}

#[test]
fn a_failed_trial_ejects_for_longer_and_one_whose_client_left_does_not() {
    let (cluster, start) = (cluster(2, HEALTH), Instant::now());
    assert!(fall(&cluster, 0, start).is_some());
    let open = start + secs(10);
    let left = cluster.pick(&ask(open, &[])).expect("half-open");
    let nothing = Report { status: None, whole: false, ..report(open, None) };
    assert_eq!(cluster.learn(&left, &nothing, 0), None);
    drop(left);
    let other = cluster.pick(&ask(open, &[])).expect("the other");
    assert!(Arc::ptr_eq(other.backend(), &cluster.backends[1]), "not each request that comes");
    let open = open + secs(1);
    let trial = cluster.pick(&ask(open, &[])).expect("still half-open");
    assert!(Arc::ptr_eq(trial.backend(), &cluster.backends[0]));
    let change = cluster.learn(&trial, &report(open, Some(Failure::Connect)), 0).expect("again");
    assert_eq!((change.length, change.times), (secs(20), 2));
    drop(trial);
    let other = cluster.pick(&ask(open + secs(19), &[])).expect("the other");
    assert!(Arc::ptr_eq(other.backend(), &cluster.backends[1]));
}

#[test]
fn checks_take_out_and_bring_back_and_data_outvotes_them() {
    let (cluster, start) = (cluster(2, HEALTH), Instant::now());
    let active = cluster.config.health.active.clone().expect("checks");
    let health = &cluster.backends[0].state.health;
    let check = |passed, second| health.check(passed, start + secs(second), &active).map(|change| change.to);
    assert_eq!([check(true, 0), check(false, 1), check(false, 2)], [None; 3]);
    let attempt = Attempt::sent(start);
    attempt.data(start + secs(2));
    let progress: Arc<dyn Progress> = Arc::<Attempt>::clone(&attempt);
    let _watched = Watched::new(Arc::clone(&cluster.backends[0].state), true, progress);
    cluster.look(&cluster.backends[0], start + secs(3), 0);
    assert_eq!(check(false, 3), Some(Condition::Degraded));
    let look = |second| cluster.look(&cluster.backends[0], start + secs(second), 0).map(|change| change.to);
    assert_eq!((look(5), look(6)), (None, Some(Condition::Failing)), "the data is too old");
    assert!(!health.is_in());
    assert_eq!((check(true, 7), check(true, 8)), (None, Some(Condition::Up)));
}

#[test]
fn checks_alone_keep_nobody_out_where_all_fail() {
    let (cluster, start) = (cluster(2, HEALTH), Instant::now());
    let active = cluster.config.health.active.clone().expect("checks");
    cluster.backends[0].state.health.check(false, start, &active);
    for _ in 0..4 {
        let picked = cluster.pick(&ask(start, &[])).expect("the other is well");
        assert!(Arc::ptr_eq(picked.backend(), &cluster.backends[1]));
    }
    cluster.backends[1].state.health.check(false, start, &active);
    let picked: Vec<_> = (0..4).map(|_| cluster.pick(&ask(start, &[])).expect("fail static")).collect();
    let firsts = picked.iter().filter(|one| Arc::ptr_eq(one.backend(), &cluster.backends[0])).count();
    assert_eq!(firsts, 2, "both go on in turns");
}

#[test]
fn when_all_are_down_one_request_a_second_tries_each() {
    let (cluster, start) = (cluster(2, HEALTH), Instant::now());
    let active = cluster.config.health.active.clone().expect("checks");
    for backend in &cluster.backends {
        backend.state.health.check(false, start, &active);
    }
    fail(&cluster, 0, start);
    fail(&cluster, 1, start);
    let one = cluster.pick(&ask(start, &[])).expect("a last resort");
    let two = cluster.pick(&ask(start, &[])).expect("another");
    assert!(!Arc::ptr_eq(one.backend(), two.backend()));
    assert_eq!(cluster.pick(&ask(start, &[])).err(), Some(NoBackend::AllOut));
    cluster.learn(&one, &report(start, Some(Failure::Connect)), 0);
    drop(one);
    assert_eq!(cluster.pick(&ask(start + secs(1) / 2, &[])).err(), Some(NoBackend::AllOut));
    let again = cluster.pick(&ask(start + secs(1), &[])).expect("a second later");
    let change = cluster.learn(&again, &report(start + secs(1), None), 0).expect("it answered");
    assert_eq!(change.to, Condition::Degraded, "what answers is used");
}

#[test]
fn a_wedged_engine_is_ejected_whatever_its_checks_say_and_comes_back_by_a_token() {
    let (cluster, start) = (cluster(2, HEALTH), Instant::now());
    let active = cluster.config.health.active.clone().expect("checks");
    let backend = &cluster.backends[0];
    let watched: Vec<_> =
        (0..2).map(|_| Watched::new(Arc::clone(&backend.state), true, Attempt::sent(start))).collect();
    let wedged_at = (0..100).find(|second| {
        backend.state.health.check(true, start + secs(*second), &active);
        cluster.look(backend, start + secs(*second), 0).is_some()
    });
    assert_eq!(wedged_at, Some(60));
    assert_eq!(condition(&cluster, 0), Condition::Ejected(Reason::Wedged));
    drop(watched);
    let late = start + secs(100);
    assert!((0..10).all(|_| backend.state.health.check(true, late, &active).is_none()));
    for _ in 0..4 {
        let picked = cluster.pick(&ask(late, &[])).expect("the other");
        assert!(Arc::ptr_eq(picked.backend(), &cluster.backends[1]), "no client is a victim");
    }
    let passive = &cluster.config.health.passive;
    let probed = |now, probed| {
        let trial = backend.state.probe(now).expect("a probe is due");
        assert!(backend.state.probe(now).is_none(), "one at a time");
        backend.state.health.probed(&trial, probed, now, 0, passive)
    };
    let again = probed(late, Probed::Silence).expect("ejected for longer");
    assert_eq!((again.length, again.times), (secs(20), 2));
    assert!(backend.state.probe(late + secs(19)).is_none());
    let back = probed(late + secs(20), Probed::Token).expect("it is back");
    assert_eq!(back.to, Condition::Up);
}

#[test]
fn a_probe_that_is_refused_leaves_it_to_a_request_and_a_token_in_flight_is_proof_enough() {
    for refused in [true, false] {
        let (cluster, start) = (cluster(2, HEALTH), Instant::now());
        let backend = &cluster.backends[0];
        let attempt = Attempt::sent(start);
        let progress: Arc<dyn Progress> = Arc::<Attempt>::clone(&attempt);
        let _one = Watched::new(Arc::clone(&backend.state), true, progress);
        let _two = Watched::new(Arc::clone(&backend.state), true, Attempt::sent(start));
        let now = start + secs(60);
        assert!(cluster.look(backend, now, 0).is_some());
        let late = now + secs(11);
        if refused {
            let trial = backend.state.probe(late).expect("a probe is due");
            backend.state.health.probed(&trial, Probed::Refused, late, 0, &cluster.config.health.passive);
            drop(trial);
            let picked = cluster.pick(&ask(late + secs(1), &[])).expect("half-open");
            assert!(Arc::ptr_eq(picked.backend(), backend));
        } else {
            attempt.data(late);
            assert_eq!(cluster.look(backend, late, 0).map(|change| change.to), Some(Condition::Up));
        }
    }
}

#[test]
fn a_timeout_on_a_node_that_is_busy_with_others_does_not_count() {
    let (cluster, start) = (cluster(2, HEALTH), Instant::now());
    let backend = &cluster.backends[0];
    let attempt = Attempt::sent(start);
    attempt.data(start + secs(5));
    let _watched = Watched::new(Arc::clone(&backend.state), true, attempt);
    let timed_out = |quiet: u64| Report {
        quiet_since: Some(start + secs(quiet)),
        ..report(start + secs(9), Some(Failure::FirstEventTimeout))
    };
    for _ in 0..10 {
        cluster.learn(&InFlight::take(backend, &cluster.state, 1).unwrap(), &timed_out(4), 0);
    }
    assert_eq!(condition(&cluster, 0), Condition::Up);
    for _ in 0..3 {
        cluster.learn(&InFlight::take(backend, &cluster.state, 1).unwrap(), &timed_out(6), 0);
    }
    assert!(!backend.state.health.is_in());
}

#[test]
fn a_flapping_node_is_out_for_longer_each_time() {
    let (cluster, start) = (cluster(3, HEALTH), Instant::now());
    let mut out = Duration::ZERO;
    let (mut now, span) = (start, secs(600));
    // Up for a second, down for a second; asked ten times a second.
    while now < start + span {
        let up = now.duration_since(start).as_secs().is_multiple_of(2);
        if let Ok(picked) = cluster.pick(&ask(now, &[])) {
            let ill = Arc::ptr_eq(picked.backend(), &cluster.backends[0]) && !up;
            cluster.learn(
                &picked,
                &report(now, ill.then_some(Failure::Connect)),
                now.elapsed().as_nanos() as u64,
            );
        }
        if now >= start + span / 2 && !cluster.backends[0].state.health.is_in() {
            out += secs(1) / 10;
        }
        cluster.look(&cluster.backends[0], now, 0);
        now += secs(1) / 10;
    }
    assert!(out >= span / 2 * 85 / 100, "out {out:?} of the last {:?}", span / 2);
}
