//! The admin listener: for operators and their tools, never for clients.
//!
//! Who may ask what is decided in `guard`, what is told of the fleet in `status`, what the live page shows in `live`
//! and `facts`; requests come in by `head` and answers go out in `serve`, and what is done is here. `places` bounds how many may be
//! connected. `place` is the other side: how commands of this binary ask such a listener.

mod answer;
mod facts;
mod guard;
mod head;
mod live;
mod page;
pub(crate) mod place;
mod places;
mod process;
mod serve;
mod status;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde_json::json;

use crate::cluster::{Backend, Leave};
use crate::config::{self, Address};
use crate::proxy::Shared;
use crate::reload::{Cause, Outcome, Reloader};
use crate::told::Told;
use answer::{Answer, json, not_allowed, reply, text};
use live::{Frame, Live};
use places::{CONNECTIONS_MAX, Places};

const METRICS: &str = "text/plain; version=0.0.4";

/// What there is, for those who ask for something else.
const PATHS: &str = "GET / /live/events /livez /readyz /metrics /status /config\n\
                     POST /reload /drain/CLUSTER/BACKEND /undrain/CLUSTER/BACKEND\n";

/// Answers operators.
pub struct Admin {
    shared: Arc<Shared>,
    /// Each backend has had its first check: those that a reload adds do not make it unready again.
    was_checked: AtomicBool,
    reloader: Reloader,
    /// Where clients are served, in the order of the file.
    listeners: Vec<Address>,
    live: Live,
    places: Places,
    /// Connections for which there was no place.
    turned_away: Told,
}

/// What is asked for, by path alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Page<'a> {
    /// The live page, which knows nothing by itself.
    Live,
    /// What it shows: a stream of events.
    Events,
    Livez,
    Readyz,
    Metrics,
    Status,
    Config,
    Reload,
    /// Give this backend of this cluster no new work, or give it some again.
    Drain(&'a str, &'a str, bool),
}

impl<'a> Page<'a> {
    fn of(path: &'a str) -> Option<Self> {
        let mut steps = path.strip_prefix('/')?.split('/');
        let page = match (steps.next()?, steps.next(), steps.next()) {
            ("", None, None) => Self::Live,
            ("live", Some("events"), None) => Self::Events,
            ("livez", None, None) => Self::Livez,
            ("readyz", None, None) => Self::Readyz,
            ("metrics", None, None) => Self::Metrics,
            ("status", None, None) => Self::Status,
            ("config", None, None) => Self::Config,
            ("reload", None, None) => Self::Reload,
            ("drain", Some(cluster), Some(backend)) => Self::Drain(cluster, backend, true),
            ("undrain", Some(cluster), Some(backend)) => Self::Drain(cluster, backend, false),
            _ => return None,
        };
        steps.next().is_none().then_some(page)
    }

    /// Whether asking changes something.
    fn acts(self) -> bool {
        matches!(self, Self::Reload | Self::Drain(..))
    }

    /// Whether probes and Prometheus ask it, which have no token; or a browser that asks for the page, which is the
    /// same for everybody.
    fn is_open(self) -> bool {
        matches!(self, Self::Live | Self::Livez | Self::Readyz | Self::Metrics)
    }
}

impl Admin {
    /// An admin page over what all exchanges share, and over what changes the configuration; `listeners` is where
    /// clients are served, in the order of the file.
    pub fn new(shared: Arc<Shared>, reloader: Reloader, listeners: Vec<Address>) -> Self {
        let (was_checked, live) = (AtomicBool::new(false), Live::new(Instant::now()));
        let (places, turned_away) = (Places::new(CONNECTIONS_MAX), Told::default());
        Self { shared, reloader, listeners, was_checked, live, places, turned_away }
    }

    /// Whether each backend that is checked has had its first check.
    fn is_checked(&self) -> bool {
        if self.was_checked.load(Ordering::Relaxed) {
            return true;
        }
        let snapshot = self.shared.snapshot.load();
        let is_checked = snapshot.is_checked();
        self.was_checked.store(is_checked, Ordering::Relaxed);
        is_checked
    }

    /// The newest frame of the live view.
    fn frame(&self) -> Frame {
        self.live.frame(&self.shared, &self.reloader.book, self.is_checked())
    }

    /// The answer to a request that may be made; a stream of events only where it may not be.
    async fn answer(&self, method: &str, page: Page<'_>) -> Answer {
        let allowed: &[&str] = match page {
            Page::Events => &["GET"],
            _ if page.acts() => &["POST"],
            _ => &["GET", "HEAD"],
        };
        if !allowed.contains(&method) {
            return not_allowed(&allowed.join(", "));
        }
        match page {
            Page::Live => page::answer(),
            Page::Events => text(503, "as many watch as may\n"),
            Page::Livez => text(200, "ok\n"),
            Page::Readyz if self.shared.drain.is_leaving() => text(503, "draining\n"),
            Page::Readyz if !self.is_checked() => text(503, "checking\n"),
            Page::Readyz => text(200, "ready\n"),
            Page::Metrics => reply(200, METRICS, self.shared.metrics.render(&self.shared)),
            Page::Status => json(200, &status::of(&self.shared, &self.reloader.book, &self.listeners)),
            Page::Config => json(200, &config::view(&self.reloader.book.text())),
            Page::Reload => reloaded(self.reloader.reload(Cause::Operator).await),
            Page::Drain(cluster, backend, drain) => self.drain(cluster, backend, drain),
        }
    }

    fn drain(&self, cluster: &str, backend: &str, drain: bool) -> Answer {
        let snapshot = self.shared.snapshot.load();
        let found = snapshot.clusters.iter().find(|known| &*known.config.name == cluster);
        let Some(found) = found else {
            let known = snapshot.clusters.iter().map(|cluster| &*cluster.config.name);
            return text(404, &format!("no cluster {cluster:?}; there is {}\n", list(known)));
        };
        let Some(backend) = found.backends.iter().find(|known| &*known.name == backend) else {
            let known = found.backends.iter().map(|backend| &*backend.name);
            return text(404, &format!("no backend {backend:?} in {cluster}; there is {}\n", list(known)));
        };
        let answer = drained(backend, drain);
        found.state.queue.nudge();
        answer
    }
}

/// Names in an answer; the first of many.
fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.take(20).collect::<Vec<_>>().join(", ")
}

fn drained(backend: &Backend, drain: bool) -> Answer {
    let leaving = &backend.state.leaving;
    let before = leaving.is(Leave::Operator);
    leaving.set(Leave::Operator, drain);
    if before != drain {
        let word = if drain { "gets no new work" } else { "gets work again" };
        log::warn!("{}/{} {word}: an operator said so", backend.cluster, backend.name);
    }
    if !drain && leaving.takes_nothing() {
        return text(409, "the configuration says drain: true, so it gets no new work still\n");
    }
    json(200, &status::backend(backend))
}

fn reloaded(outcome: Outcome) -> Answer {
    match outcome {
        Outcome::Applied { generation } => {
            json(200, &json!({ "result": "applied", "generation": generation }))
        }
        Outcome::Unchanged { generation } => {
            json(200, &json!({ "result": "unchanged", "generation": generation }))
        }
        Outcome::Refused { problems } => {
            let problems: Vec<&str> = problems.lines().collect();
            json(422, &json!({ "result": "refused", "problems": problems }))
        }
        Outcome::Leaving => text(503, "the gateway is on its way out: the configuration stays as it is\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_exact_paths() {
        assert_eq!(Page::of("/"), Some(Page::Live));
        assert_eq!(Page::of("/live/events"), Some(Page::Events));
        assert_eq!(Page::of("/livez"), Some(Page::Livez));
        assert_eq!(Page::of("/drain/c/2001:db8::1"), Some(Page::Drain("c", "2001:db8::1", true)));
        assert_eq!(Page::of("/undrain/c/u1"), Some(Page::Drain("c", "u1", false)));
        for path in [
            "//",
            "/live",
            "/live/",
            "/live/events/",
            "",
            "*",
            "/livez/",
            "/livez/x",
            "/drain",
            "/drain/c",
            "/drain/c/u1/x",
            "/reload/x",
        ] {
            assert_eq!(Page::of(path), None, "{path}");
        }
    }
}
