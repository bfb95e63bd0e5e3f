//! The `clusters` part.

use std::sync::Arc;
use std::time::Duration;

use super::names::{self, Unique};
use super::{auth, headers, stream, tls, url, value};
use crate::config::environment::Environment;
use crate::config::place::At;
use crate::config::raw::{self, Field};
use crate::config::{Auth, Backend, Cluster, Profile, Timeouts};
use crate::header_rules::Rules;

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
    environment: &Environment,
) -> Vec<Resolved> {
    let Some(entries) = file.clusters.get() else { return Vec::new() };
    let cluster = |(name, raw): &(String, Field<raw::Cluster>), at: &At<'_>| {
        names::label(name, at);
        match raw {
            Field::Set(raw) => resolve(name, raw, at, global, environment),
            Field::Absent => resolve(name, &raw::Cluster::default(), at, global, environment),
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
        attempts: 2,
        auth: Auth::Pass,
        headers: Rules::default(),
        keepalive: Duration::from_secs(4),
    }
}

fn resolve(
    name: &str,
    raw: &raw::Cluster,
    at: &At<'_>,
    global: &Timeouts,
    environment: &Environment,
) -> Resolved {
    let default = empty(name);
    let toward = tls::toward(raw, &at.key("tls"), environment);
    let backends = backends(raw, at, &toward);
    tls::warn(&toward, raw, backends.iter().any(|backend| backend.tls.is_some()), &at.key("tls"));
    let cluster = Cluster {
        profile: profile(raw),
        backends,
        attempts: attempts(raw, &at.key("retry").key("attempts")),
        auth: auth::auth(raw, &at.key("auth"), environment),
        headers: headers::rules(raw.headers.get(), &at.key("headers")),
        keepalive: value::positive(&raw.keepalive, &at.key("keepalive"), default.keepalive),
        ..default
    };
    Resolved { cluster, timeouts: stream::timeouts(raw.timeouts.get(), &at.key("timeouts"), global) }
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

fn attempts(raw: &raw::Cluster, at: &At<'_>) -> u32 {
    let attempts = raw.retry.get().and_then(|retry| retry.attempts.get()).map_or(2, |count| count.0);
    u32::try_from(value::within(attempts, at, 1..=2)).unwrap_or(2)
}

fn backends(raw: &raw::Cluster, at: &At<'_>, toward: &tls::Toward) -> Vec<Backend> {
    let at_list = at.key("backends");
    let fix = "write [ { name: gpu-1, url: \"http://HOST:PORT\" } ]";
    let list = value::filled(&raw.backends, &at_list, "the cluster has no backends", fix);
    let mut unique = Unique::new("backend");
    let readable = list.iter().enumerate().filter_map(|(i, raw)| Some((at_list.index(i), raw.get()?)));
    readable.filter_map(|(at, raw)| backend(raw, &at, &mut unique, toward)).collect()
}

fn backend(raw: &raw::Backend, at: &At<'_>, unique: &mut Unique, toward: &tls::Toward) -> Option<Backend> {
    let name = value::required(&raw.name, "name", at, "write name: gpu-1");
    if let Some(name) = name {
        names::label(name, &at.key("name"));
        unique.check(name, &at.key("name"), "names are unique in a cluster");
    }
    if raw.weight.get().is_some_and(|weight| weight.0 == 0) {
        at.key("weight").problem("a backend of weight 0 gets no work", "write drain: true instead");
    }
    let url = value::required(&raw.url, "url", at, "write url: \"http://HOST:PORT\"")?;
    match url::parse(url) {
        Ok(target) => Some(Backend {
            name: Arc::from(name?.as_str()),
            tls: target.https.then(|| toward.backend(&target.host)),
            authority: target.authority,
            host: target.host,
            port: target.port,
            prefix: target.prefix,
            drain: raw.drain.get().copied().unwrap_or(false),
        }),
        Err(bad) => {
            at.key("url").problem(bad.what, bad.fix);
            None
        }
    }
}
