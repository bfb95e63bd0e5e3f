//! The `clusters` part.

use std::sync::Arc;
use std::time::Duration;

use super::names::{self, Unique};
use super::{auth, fleet, guard, headers, stream, tls, url, value};
use crate::config::environment::Environment;
use crate::config::place::At;
use crate::config::raw::{self, Field};
use crate::config::{Auth, Backend, Balance, Cluster, Profile, Timeouts};
use crate::header_rules::Rules;
use crate::openai::profiles;

/// A cluster and the time budgets that its routes start from.
pub(super) struct Resolved {
    pub(super) cluster: Cluster,
    pub(super) timeouts: Timeouts,
}

/// Every cluster in the order of the file.
pub(super) fn clusters(
    file: &raw::File,
    at: &At<'_>,
    global: &Timeouts,
    has_keys: bool,
    environment: &Environment,
) -> Vec<Resolved> {
    let Some(entries) = file.clusters.get() else { return Vec::new() };
    let cluster = |(name, raw): &(String, Field<raw::Cluster>), at: &At<'_>| {
        names::label(name, at);
        match raw {
            Field::Set(raw) => resolve(name, raw, at, global, has_keys, environment),
            Field::Absent => resolve(name, &raw::Cluster::default(), at, global, has_keys, environment),
            Field::Wrong => Resolved { cluster: empty(name), timeouts: global.clone() },
        }
    };
    entries.0.iter().zip(at.children()).map(|(entry, at)| cluster(entry, &at)).collect()
}

fn empty(name: &str) -> Cluster {
    Cluster {
        name: Arc::from(name),
        profile: Profile::Openai,
        backends: Vec::new(),
        discover: None,
        balance: Balance::LeastLoad,
        affinity: fleet::DEFAULT_AFFINITY,
        health: fleet::default_health(Profile::Openai),
        scrape: fleet::default_scrape(Profile::Openai),
        queue_max: fleet::QUEUE_MAX,
        retry: fleet::RETRY,
        auth: Auth::Pass,
        headers: Rules::default(),
        keepalive: Duration::from_secs(4),
        salts: false,
        continuous_usage: false,
    }
}

fn resolve(
    name: &str,
    raw: &raw::Cluster,
    at: &At<'_>,
    global: &Timeouts,
    has_keys: bool,
    environment: &Environment,
) -> Resolved {
    let default = empty(name);
    let toward = tls::toward(raw, &at.key("tls"), environment);
    let discover = fleet::discover(raw, &at.key("discover"));
    let backends = backends(raw, at, &toward);
    let profile = profile(raw);
    tls::warn(&toward, raw, backends.iter().any(|backend| backend.tls.is_some()), &at.key("tls"));
    let cluster = Cluster {
        profile,
        backends,
        discover,
        balance: fleet::balance(raw),
        affinity: fleet::affinity(raw, &at.key("affinity")),
        health: fleet::health(raw, &at.key("health"), profile),
        scrape: fleet::scrape(raw, &at.key("scrape"), profile),
        queue_max: fleet::queue_max(raw, &at.key("queue")),
        retry: fleet::retry(raw, &at.key("retry")),
        auth: auth::auth(raw, &at.key("auth"), has_keys, environment),
        headers: headers::rules(raw.headers.get(), &at.key("headers")),
        keepalive: value::positive(&raw.keepalive, &at.key("keepalive"), default.keepalive),
        salts: guard::salts(raw, &at.key("cache_salt"), profile, has_keys),
        continuous_usage: continuous_usage(raw, &at.key("continuous_usage"), profile),
        ..default
    };
    Resolved { cluster, timeouts: stream::timeouts(raw.timeouts.get(), &at.key("timeouts"), global) }
}

fn continuous_usage(raw: &raw::Cluster, at: &At<'_>, profile: Profile) -> bool {
    let is_wanted = raw.continuous_usage.get() == Some(&true);
    if is_wanted && !profiles::of(profile).has_running_usage {
        at.problem(
            "only vLLM and SGLang tell usage with each event",
            "leave it out, or write profile: vllm or profile: sglang",
        );
    }
    is_wanted
}

fn profile(raw: &raw::Cluster) -> Profile {
    match raw.profile.get() {
        None | Some(raw::Profile::Openai) => Profile::Openai,
        Some(raw::Profile::Vllm) => Profile::Vllm,
        Some(raw::Profile::Deepseek) => Profile::Deepseek,
        Some(raw::Profile::Sglang) => Profile::Sglang,
        Some(raw::Profile::Llamacpp) => Profile::Llamacpp,
    }
}

fn backends(raw: &raw::Cluster, at: &At<'_>, toward: &tls::Toward) -> Vec<Backend> {
    let at_list = at.key("backends");
    if raw.backends.is_absent() && !raw.discover.is_absent() {
        return Vec::new();
    }
    let fix = "write [ { name: gpu-1, url: \"http://HOST:PORT\" } ]";
    let list = value::filled(&raw.backends, &at_list, "the cluster has no backends", fix);
    let mut unique = Unique::new("backend");
    let readable = list.iter().enumerate().filter_map(|(i, raw)| Some((at_list.index(i), raw.get()?)));
    readable.filter_map(|(at, raw)| backend(raw, &at, &mut unique, toward)).collect()
}

fn backend<'t>(
    raw: &raw::Backend,
    at: &At<'t>,
    unique: &mut Unique<'t>,
    toward: &tls::Toward,
) -> Option<Backend> {
    let name = value::required(&raw.name, "name", at, "write name: gpu-1");
    if let Some(name) = name {
        names::label(name, &at.key("name"));
        unique.check(name, &at.key("name"), "names are unique in a cluster");
    }
    let weight = fleet::weight(raw, &at.key("weight"));
    let max_inflight = fleet::max_inflight(raw, &at.key("max_inflight"));
    let url = value::required(&raw.url, "url", at, "write url: \"http://HOST:PORT\"")?;
    match url::parse(url) {
        Ok(target) => Some(Backend {
            name: Arc::from(name?.as_str()),
            tls: target.https.then(|| toward.backend(&target.host)),
            authority: target.authority,
            host: target.host,
            port: target.port,
            prefix: target.prefix,
            weight,
            max_inflight,
            drain: raw.drain.get().copied().unwrap_or(false),
        }),
        Err(bad) => {
            at.key("url").problem(bad.what, bad.fix);
            None
        }
    }
}
