//! The endpoints about the engine: models, health, metrics, and its own statistics and faults.

use super::answer::{Answer, JSON, PLAIN, Refusal, models};
use super::connection::Request;
use super::endpoint::{Endpoint, Page};
use super::fault::Fault;
use super::plan::Script;
use super::wire::{Over, Wire};
use super::{metrics, reply};

/// The content type of `/metrics`, with the version of Prometheus' text form.
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Answers a request that is no work, or that no endpoint takes.
pub(super) async fn serve(
    wire: &mut Wire<'_>,
    request: &Request<'_>,
    endpoint: Option<Endpoint>,
    body: &[u8],
    script: &Script,
) -> Result<(), Over> {
    if script.strikes_at_once() {
        wire.strike();
    }
    if let Some(instead) = script.instead {
        return reply::instead(wire, request, instead).await;
    }
    let answer = match endpoint {
        None => Refusal::new(404, "there is nothing at this path").into(),
        Some(Endpoint::Page(page)) if endpoint.is_some_and(|it| it.takes(&request.head.method)) => {
            answer(request, page, body, script)
        }
        Some(endpoint) => {
            let refusal = Refusal::new(405, format!("this path takes {} only", endpoint.method()));
            Answer::from(refusal).header("allow", endpoint.method())
        }
    };
    reply::whole(wire, request, script, answer).await
}

fn answer(request: &Request<'_>, page: Page, body: &[u8], script: &Script) -> Answer {
    let shared = request.shared;
    match page {
        Page::Health => match script.health {
            None => empty(),
            Some(code) => {
                shared.stats.strike();
                Refusal::new(code, "the engine is ill").into()
            }
        },
        Page::Models => {
            let list = models(&shared.settings.model, request.arrival_us / 1_000_000);
            Answer::text(200, JSON, list.to_string())
        }
        Page::Metrics => {
            let page = metrics::render(&shared.stats, &shared.settings.model, shared.settings.slots);
            Answer::text(200, PROMETHEUS, page)
        }
        Page::Stats => Answer::text(200, JSON, shared.stats.json(&shared.settings.name).to_string()),
        Page::Proofs => Answer::text(200, JSON, shared.stats.proofs().to_string()),
        Page::Reset => {
            shared.stats.reset();
            empty()
        }
        Page::Faults => match Fault::list(&String::from_utf8_lossy(body)) {
            Ok(faults) => {
                shared.set_faults(faults);
                empty()
            }
            Err(error) => Refusal::new(400, error.to_string()).into(),
        },
    }
}

fn empty() -> Answer {
    Answer::text(200, PLAIN, String::new())
}
