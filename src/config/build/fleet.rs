//! What a cluster says of the choice of a backend, of their health and of their load.
//!
//! Health checks and load readings have defaults where the profile's engines are known to answer them;
//! `null` switches either off.

use std::time::Duration;

use super::{names, url, value};
use crate::config::place::At;
use crate::config::raw;
use crate::config::units::{OrNever, Rate};
use crate::config::{
    Active, Affinity, AffinityBy, Balance, Discover, Health, Passive, Profile, Retry, Scrape,
};

/// Most that any count here can be: far beyond use, and a `u32` on every machine.
pub(super) const COUNT_MAX: u64 = 1_000_000;

/// What holds where the file says nothing.
pub(super) const RETRY: Retry =
    Retry { attempts: 2, budget: 0.2, floor: Rate { count: 10, per: Duration::from_secs(1) } };
/// Requests that may wait where the file says nothing.
pub(super) const QUEUE_MAX: usize = 1000;

const ACTIVE: (Duration, Duration, u32, u32) = (Duration::from_secs(2), Duration::from_secs(1), 3, 2);
const SCRAPE_EVERY: Duration = Duration::from_secs(2);
const DISCOVER_EVERY: Duration = Duration::from_secs(5);
const PASSIVE: Passive = Passive {
    consecutive: 3,
    ejection: Duration::from_secs(10),
    ejection_max: Duration::from_secs(300),
    max_ejected: 0.5,
};
const WEDGED_AFTER: Duration = Duration::from_secs(120);
const SLOW_START: Duration = Duration::from_secs(10);
const LOAD_BOUND: f64 = 1.25;
/// Nothing sticks where the file says nothing.
pub(super) const DEFAULT_AFFINITY: Affinity = Affinity { by: Vec::new(), load_bound: LOAD_BOUND };

/// How a backend is noticed that is bad, where nothing is written.
pub(super) fn default_health(profile: Profile) -> Health {
    Health {
        active: answers_checks(profile).then(default_active),
        passive: PASSIVE,
        wedged_after: WEDGED_AFTER,
        slow_start: SLOW_START,
    }
}

/// Where load is read, where nothing is written.
pub(super) fn default_scrape(profile: Profile) -> Option<Scrape> {
    answers_checks(profile).then(default_readings)
}

/// Hosted services have no `/health`, and of any other server nobody knows.
fn answers_checks(profile: Profile) -> bool {
    matches!(profile, Profile::Vllm | Profile::Sglang | Profile::Llamacpp)
}

fn default_active() -> Active {
    let (every, timeout, fall, rise) = ACTIVE;
    Active { path: "/health".to_owned(), every, timeout, fall, rise }
}

fn default_readings() -> Scrape {
    Scrape { path: "/metrics".to_owned(), every: SCRAPE_EVERY }
}

pub(super) fn balance(raw: &raw::Cluster) -> Balance {
    match raw.balance.get() {
        Some(raw::Balance::RoundRobin) => Balance::RoundRobin,
        Some(raw::Balance::Random) => Balance::Random,
        None | Some(raw::Balance::LeastLoad) => Balance::LeastLoad,
        Some(raw::Balance::ConsistentHash) => Balance::ConsistentHash,
    }
}

pub(super) fn affinity(raw: &raw::Cluster, at: &At<'_>) -> Affinity {
    let Some(raw) = raw.affinity.get() else { return DEFAULT_AFFINITY };
    let by = raw.by.get().map_or(&[][..], Vec::as_slice).iter().filter_map(|by| by.get());
    let by = by.map(|by| match by {
        raw::AffinityBy::Session => AffinityBy::Session,
        raw::AffinityBy::Prefix => AffinityBy::Prefix,
    });
    let load_bound = raw.load_bound.get().copied().unwrap_or(LOAD_BOUND);
    if !(1.0..=100.0).contains(&load_bound) {
        at.key("load_bound").problem(format!("{load_bound} is out of bounds"), "write 1 to 100, as in 1.25");
    }
    Affinity { by: by.collect(), load_bound }
}

pub(super) fn health(raw: &raw::Cluster, at: &At<'_>, profile: Profile) -> Health {
    let default = default_health(profile);
    let Some(raw) = raw.health.get() else { return default };
    Health {
        active: active(raw.active.get(), &at.key("active"), default.active),
        passive: passive(raw.passive.get(), &at.key("passive"), default.passive),
        wedged_after: raw.wedged.get().map_or(default.wedged_after, |wedged| {
            value::positive(&wedged.after, &at.key("wedged").key("after"), default.wedged_after)
        }),
        slow_start: value::duration(&raw.slow_start, default.slow_start),
    }
}

fn active(raw: Option<&raw::Active>, at: &At<'_>, default: Option<Active>) -> Option<Active> {
    let Some(raw) = raw else { return default.filter(|_| !is_null(at)) };
    let own = default.unwrap_or_else(default_active);
    Some(Active {
        path: path(&raw.path, &at.key("path"), own.path),
        every: value::positive(&raw.every, &at.key("every"), own.every),
        timeout: value::positive(&raw.timeout, &at.key("timeout"), own.timeout),
        fall: count(&raw.fall, &at.key("fall"), own.fall),
        rise: count(&raw.rise, &at.key("rise"), own.rise),
    })
}

fn passive(raw: Option<&raw::Passive>, at: &At<'_>, default: Passive) -> Passive {
    let Some(raw) = raw else { return default };
    let passive = Passive {
        consecutive: count(&raw.consecutive, &at.key("consecutive"), default.consecutive),
        ejection: value::positive(&raw.ejection, &at.key("ejection"), default.ejection),
        ejection_max: value::positive(&raw.ejection_max, &at.key("ejection_max"), default.ejection_max),
        max_ejected: raw.max_ejected.get().map_or(default.max_ejected, |share| share.0 / 100.0),
    };
    if passive.ejection > passive.ejection_max && raw.ejection_max.get().is_some() {
        at.key("ejection_max").problem("shorter than ejection", "write ejection or more");
    }
    Passive { ejection_max: passive.ejection_max.max(passive.ejection), ..passive }
}

pub(super) fn scrape(raw: &raw::Cluster, at: &At<'_>, profile: Profile) -> Option<Scrape> {
    let default = default_scrape(profile);
    let Some(raw) = raw.scrape.get() else { return default.filter(|_| !is_null(at)) };
    let own = default.unwrap_or_else(default_readings);
    Some(Scrape {
        path: path(&raw.path, &at.key("path"), own.path),
        every: value::positive(&raw.every, &at.key("every"), own.every),
    })
}

pub(super) fn discover(raw: &raw::Cluster, at: &At<'_>) -> Option<Discover> {
    let raw = raw.discover.get()?;
    let every = value::positive(&raw.every, &at.key("every"), DISCOVER_EVERY);
    let dns = value::required(&raw.dns, "dns", at, "write dns: \"HOST:PORT\"")?;
    match url::authority(dns) {
        Ok((host, port)) => Some(Discover { host, port, every }),
        Err(bad) => {
            at.key("dns").problem(bad.what, bad.fix);
            None
        }
    }
}

pub(super) fn queue_max(raw: &raw::Cluster, at: &At<'_>) -> usize {
    let Some(max) = raw.queue.get().and_then(|queue| queue.max.get()) else { return QUEUE_MAX };
    usize::try_from(value::within(max.0, &at.key("max"), 0..=COUNT_MAX)).unwrap_or(QUEUE_MAX)
}

pub(super) fn retry(raw: &raw::Cluster, at: &At<'_>) -> Retry {
    let Some(raw) = raw.retry.get() else { return RETRY };
    let attempts = raw.attempts.get().map_or_else(|| u64::from(RETRY.attempts), |count| count.0);
    Retry {
        attempts: u32::try_from(value::within(attempts, &at.key("attempts"), 1..=2))
            .unwrap_or(RETRY.attempts),
        budget: raw.budget.get().map_or(RETRY.budget, |share| share.0 / 100.0),
        floor: raw.floor.get().copied().unwrap_or(RETRY.floor),
    }
}

/// A backend's share of the work.
pub(super) fn weight(raw: &raw::Backend, at: &At<'_>) -> u32 {
    let Some(weight) = raw.weight.get() else { return 1 };
    if weight.0 == 0 {
        at.problem("a backend of weight 0 gets no work", "write drain: true instead");
        return 1;
    }
    u32::try_from(value::within(weight.0, at, 1..=COUNT_MAX)).unwrap_or(1)
}

pub(super) fn max_inflight(raw: &raw::Backend, at: &At<'_>) -> Option<usize> {
    match raw.max_inflight.get()? {
        OrNever::Never => None,
        OrNever::Set(max) => usize::try_from(value::within(max.0, at, 1..=COUNT_MAX)).ok(),
    }
}

fn count(field: &raw::Field<crate::config::units::Count>, at: &At<'_>, default: u32) -> u32 {
    let Some(count) = field.get() else { return default };
    u32::try_from(value::within(count.0, at, 1..=COUNT_MAX)).unwrap_or(default)
}

fn path(field: &raw::Field<String>, at: &At<'_>, default: String) -> String {
    let Some(path) = field.get() else { return default };
    names::request_path(path, at);
    path.clone()
}

fn is_null(at: &At<'_>) -> bool {
    at.node().is_some_and(crate::config::tree::Node::is_null)
}
