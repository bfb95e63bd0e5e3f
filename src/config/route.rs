//! Which requests go where, and on which terms.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::header::HeaderName;

use super::{Stream, Timeouts};
use crate::guard::Guard;

/// Which requests, and where they go.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    /// Label in metrics and log.
    pub name: Arc<str>,
    /// Raw paths; a trailing `/*` stands for exactly one more segment.
    pub paths: Vec<String>,
    /// Glob on the client's model name (`*` matches any run of characters); `None` = any.
    pub model: Option<String>,
    /// Methods in upper case; empty = the default of GET and POST.
    pub methods: Vec<String>,
    /// Headers and globs on their values: each must match a line of the request.
    pub headers: Vec<(HeaderName, String)>,
    /// What the route does.
    pub action: Action,
    /// Tried in order when the first cluster has no backend to offer.
    pub fallback: Vec<Fallback>,
    /// What `GET /v1/models` lists for this route.
    pub models: Vec<String>,
    /// The client's model name -> the backend's.
    pub aliases: BTreeMap<String, String>,
    /// Whether a request must ask for a stream.
    pub streaming: Streaming,
    /// Ask for the usage frame on streams, and cut it out for clients that did not.
    pub include_usage: bool,
    /// Largest body in bytes.
    pub body_bytes: u64,
    /// Stream settings of this route.
    pub stream: Stream,
    /// Time budgets of this route at its first cluster.
    pub timeouts: Timeouts,
    /// What a body may ask.
    pub guard: Option<Guard>,
}

impl Route {
    /// The indices of its clusters and its time budgets at each, in the order in which they are tried; none for
    /// a fixed answer.
    pub fn clusters(&self) -> impl Iterator<Item = (usize, &Timeouts)> {
        let first = match self.action {
            Action::Proxy(cluster) => Some((cluster, &self.timeouts)),
            Action::Respond(_) => None,
        };
        first.into_iter().chain(self.fallback.iter().map(|fallback| (fallback.cluster, &fallback.timeouts)))
    }

    /// Whether it names this model of the client's itself, and not by a pattern.
    pub fn names(&self, model: &str) -> bool {
        self.aliases.contains_key(model)
            || self.model.as_deref() == Some(model)
            || self.models.iter().any(|listed| listed == model)
    }
}

/// Another cluster of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fallback {
    /// Its index in [`Config::clusters`](super::Config::clusters).
    pub cluster: usize,
    /// Time budgets of the route there.
    pub timeouts: Timeouts,
}

/// What a route does with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Send it to the cluster at this index of [`Config::clusters`](super::Config::clusters).
    Proxy(usize),
    /// Answer it here.
    Respond(Fixed),
}

/// A fixed answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fixed {
    /// HTTP status, 200 to 599.
    pub status: u16,
    /// Value of `Content-Type`.
    pub content_type: String,
    /// The body.
    pub body: String,
    /// It is for those who have a key. It never is where there are none.
    pub needs_key: bool,
}

/// Whether a request must ask for a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streaming {
    /// Either way.
    Any,
    /// `stream: true` or 400.
    Required,
}
