//! What a hook is told of a request.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use http::HeaderMap;

/// What is known of a request when a hook is asked. Of its body: the model, and whether it asks for a stream.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    /// Its request id.
    pub id: &'a str,
    /// Its method.
    pub method: &'a str,
    /// Its raw path, without the query.
    pub path: &'a str,
    /// Its headers as the client sent them. Its credentials are among them: they belong in no log.
    pub headers: &'a HeaderMap,
    /// Where the client is; `None` behind a unix socket.
    pub client: Option<IpAddr>,
    /// The name of its route.
    pub route: &'a str,
    /// The client's model name, before any alias.
    pub model: Option<&'a str>,
    /// The name of its API key; `None` where nobody needs one.
    pub key: Option<&'a str>,
    /// A hash (xxh3, 64 bits) of its session id, the same in every gateway; `None` without one.
    pub session: Option<u64>,
    /// It asks for a stream.
    pub streaming: bool,
}

impl fmt::Debug for Facts<'_> {
    /// Without the headers, which hold credentials.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Facts")
            .field("id", &self.id)
            .field("method", &self.method)
            .field("path", &self.path)
            .field("route", &self.route)
            .field("model", &self.model)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

/// The same, to be kept with an exchange. There is one only where there are hooks.
pub struct OwnedFacts {
    pub(crate) id: String,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) client: Option<IpAddr>,
    pub(crate) route: Arc<str>,
    pub(crate) model: Option<String>,
    pub(crate) key: Option<Arc<str>>,
    pub(crate) session: Option<u64>,
    pub(crate) streaming: bool,
}

impl OwnedFacts {
    /// What a hook sees.
    pub(crate) fn facts(&self) -> Facts<'_> {
        Facts {
            id: &self.id,
            method: &self.method,
            path: &self.path,
            headers: &self.headers,
            client: self.client,
            route: &self.route,
            model: self.model.as_deref(),
            key: self.key.as_deref(),
            session: self.session,
            streaming: self.streaming,
        }
    }
}

impl fmt::Debug for OwnedFacts {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.facts().fmt(to)
    }
}
