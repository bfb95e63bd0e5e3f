//! Homes over the life of a fleet: what keeps them, and what moves them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use streamgate::cluster::affinity::{Kept, session_key};
use streamgate::cluster::load::TYPICAL;
use streamgate::cluster::{Ask, Backend, Cluster, InFlight, Reading, Report};
use streamgate::snapshot::Snapshot;

use super::fleet::snapshot;

const STICKY: &str = "balance: least_load, affinity: { by: [session] }";

fn three(policy: &str, before: Option<&Snapshot>, drained: &str) -> Snapshot {
    let names = ["a", "b", "c"]
        .map(|name| format!("{{ name: {name}, url: \"http://{name}\", drain: {} }}", name == drained));
    snapshot(&names.join(","), policy, before)
}

/// One attempt, and what became of it.
fn pick(cluster: &Cluster, keys: &[u64], tried: &[Arc<Backend>], draw: u64) -> InFlight {
    let ask = Ask {
        lenient: true,
        sound: false,
        tried,
        now: Instant::now(),
        draw: draw.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        cost: TYPICAL,
        keys,
        chooser: None,
    };
    cluster.pick(&ask).expect("a backend")
}

fn told(attempt: &InFlight) -> (String, Option<Kept>) {
    (attempt.backend().name.to_string(), attempt.kept())
}

/// A draw that would take each of the three first, by chance: the same key goes home whatever is drawn.
#[test]
fn a_session_goes_home_whatever_is_drawn() {
    let fleet = three(STICKY, None, "-");
    let cluster = &fleet.clusters[0];
    let key = session_key("c", Some("m"), None, "s");
    let (home, kept) = told(&pick(cluster, &key, &[], 0));
    assert_eq!(kept, Some(Kept::New));
    for draw in 1..50 {
        assert_eq!(told(&pick(cluster, &key, &[], draw)), (home.clone(), Some(Kept::Hit)));
    }
    let other_model = session_key("c", Some("n"), None, "s");
    assert_eq!(
        told(&pick(cluster, &other_model, &[], 0)).1,
        Some(Kept::New),
        "another model shares no cache"
    );
    assert_eq!(told(&pick(cluster, &[], &[], 0)).1, None, "what has no key sticks by nothing");
}

/// A drained backend is no home any more; when it is back, what has moved stays where it is.
#[test]
fn a_home_moves_when_its_backend_is_drained_or_gone() {
    let fleet = three(STICKY, None, "-");
    let key = session_key("c", Some("m"), None, "s");
    let (home, _) = told(&pick(&fleet.clusters[0], &key, &[], 0));

    let drained = three(STICKY, Some(&fleet), &home);
    let (second, kept) = told(&pick(&drained.clusters[0], &key, &[], 0));
    assert_eq!(kept, Some(Kept::Moved));
    assert_ne!(second, home);
    let back = three(STICKY, Some(&drained), "-");
    assert_eq!(told(&pick(&back.clusters[0], &key, &[], 0)), (second.clone(), Some(Kept::Hit)));

    let names = ["a", "b", "c"].into_iter().filter(|name| **name != *second);
    let rest: Vec<String> = names.map(|name| format!("{{ name: {name}, url: \"http://{name}\" }}")).collect();
    let smaller = snapshot(&rest.join(","), STICKY, Some(&back));
    let (third, kept) = told(&pick(&smaller.clusters[0], &key, &[], 0));
    assert_eq!(kept, Some(Kept::Moved));
    assert_ne!(third, second);
}

/// A second attempt goes elsewhere, and the next exchange goes home.
#[test]
fn an_attempt_that_failed_moves_no_home() {
    let fleet = three(STICKY, None, "-");
    let cluster = &fleet.clusters[0];
    let key = session_key("c", Some("m"), None, "s");
    let first = pick(cluster, &key, &[], 0);
    let tried = [Arc::clone(first.backend())];
    let second = pick(cluster, &key, &tried, 0);
    assert_eq!(second.kept(), Some(Kept::Spill));
    assert_ne!(second.backend().name, first.backend().name);
    assert_eq!(told(&pick(cluster, &key, &[], 0)), (tried[0].name.to_string(), Some(Kept::Hit)));
}

/// What others do on a backend counts toward its bound, as long as its engine says so.
#[test]
fn the_work_of_others_makes_a_home_too_full() {
    let policy = "profile: vllm, balance: least_load, affinity: { by: [session] }";
    let fleet = three(policy, None, "-");
    let cluster = &fleet.clusters[0];
    let key = session_key("c", Some("m"), None, "s");
    let first = pick(cluster, &key, &[], 0);
    let state = Arc::clone(&first.backend().state);
    drop(first);
    let reading = Reading { at: Instant::now(), running: 40, waiting: 3, kv_usage: None, steps: None };
    state.read(reading);
    assert_eq!(told(&pick(cluster, &key, &[], 0)).1, Some(Kept::Spill));
    let long_ago = reading.at.checked_sub(Duration::from_secs(60)).expect("the machine runs for a minute");
    state.read(Reading { at: long_ago, ..reading });
    let later = Ask {
        lenient: true,
        sound: false,
        tried: &[],
        now: reading.at + Duration::from_secs(60),
        draw: 0,
        cost: 1,
        keys: &key,
        chooser: None,
    };
    assert_eq!(told(&cluster.pick(&later).expect("a backend")).1, Some(Kept::Hit));
}

/// The same key, the same backend, in gateways that know nothing of each other, and without a memory.
#[test]
fn a_hash_agrees_between_gateways() {
    let policy = "balance: consistent_hash";
    let (one, two) = (three(policy, None, "-"), three(policy, None, "-"));
    let mut used = std::collections::BTreeSet::new();
    for session in 0..60 {
        let key = session_key("c", Some("m"), None, &session.to_string());
        let (here, kept) = told(&pick(&one.clusters[0], &key, &[], session));
        assert_eq!((here.clone(), kept), told(&pick(&two.clusters[0], &key, &[], session + 1)));
        used.insert(here);
    }
    assert_eq!(used.len(), 3);
    assert!(one.clusters[0].state.homes.is_empty());
}

/// After a 429 the other backend gets the work, until that is long past.
#[test]
fn a_backend_in_trouble_is_asked_less() {
    let fleet = three("balance: least_load", None, "c");
    let cluster = &fleet.clusters[0];
    let now = Instant::now();
    let busy = Report { status: Some(429), ..Report::of(now) };
    cluster.backends[0].state.learn(&busy);
    let asked = |now, draw| {
        let ask = Ask {
            lenient: true,
            sound: false,
            tried: &[],
            now,
            draw,
            cost: TYPICAL,
            keys: &[],
            chooser: None,
        };
        told(&cluster.pick(&ask).expect("a backend")).0
    };
    let draws = || (0..64).map(|draw: u64| draw << 58);
    assert!(draws().all(|draw| asked(now, draw) == "b"));
    assert!(draws().any(|draw| asked(now + Duration::from_secs(11), draw) == "a"));
}
