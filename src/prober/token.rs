//! The one-token probe: the only question whose answer proves that a wedged engine works again.
//!
//! It goes to `/v1/chat/completions` with the model that the backend last served. An engine that refuses it
//! (no chat template, credentials that only clients have) has not proved anything; then a client's request is
//! let through to decide.

use std::time::Instant;

use tokio::time::timeout;

use super::{Prober, Target, question};
use crate::cluster::{Probed, Trial};

/// The path, behind the backend's prefix.
const PATH: &str = "/v1/chat/completions";

/// Most of the answer that is read: one token and its dress.
const ANSWER_MAX: usize = 256 * 1024;

/// Asks for one token and lets the backend's health learn what came.
pub(super) async fn probe(prober: Prober, target: Target, trial: Trial) {
    let probed = ask(&prober, &target).await;
    let (backend, now) = (&target.backend, Instant::now());
    prober.shared.metrics.asked(backend, "probe", probed == Probed::Token);
    let passive = &target.cluster.config.health.passive;
    let change = backend.state.health.probed(&trial, probed, now, fastrand::u64(..), passive);
    if let Some(change) = change {
        prober.shared.health_changed(backend, &change, Some("a probe for one token"), now);
    }
}

async fn ask(prober: &Prober, target: &Target) -> Probed {
    let Some(model) = target.backend.state.health.model() else { return Probed::Refused };
    let body = serde_json::json!({
        "model": &*model,
        "messages": [{ "role": "user", "content": "ping" }],
        "max_tokens": 1,
        "stream": false,
    });
    let body = body.to_string();
    let Ok(head) = question::head(target, PATH, Some(body.len())) else { return Probed::Refused };
    let asked = prober.asker.ask(&target.backend, &head, body.as_bytes(), ANSWER_MAX);
    match timeout(patience(prober, target), asked).await {
        Ok(Ok(heard)) if heard.status == 200 && has_choice(&heard.body) => Probed::Token,
        Ok(Ok(heard)) if (400..500).contains(&heard.status) => Probed::Refused,
        // It has not been asked, so it has proved nothing.
        Ok(Err(unheard)) if unheard.own_want().is_some() => Probed::Refused,
        _ => Probed::Silence,
    }
}

/// As long as a client's request may wait for its first event: the longest time of the cluster's routes.
fn patience(prober: &Prober, target: &Target) -> std::time::Duration {
    let snapshot = prober.shared.snapshot.load();
    let name = &target.cluster.config.name;
    let is_ours = |at: usize| snapshot.clusters.get(at).is_some_and(|cluster| cluster.config.name == *name);
    let budgets = snapshot.routes.iter().flat_map(|route| route.clusters());
    let ours = budgets.filter(|(at, _)| is_ours(*at)).map(|(_, timeouts)| timeouts.first_event);
    ours.max().unwrap_or(target.cluster.config.health.wedged_after)
}

fn has_choice(body: &[u8]) -> bool {
    let answer: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    answer.is_some_and(|answer| answer["choices"].as_array().is_some_and(|choices| !choices.is_empty()))
}
