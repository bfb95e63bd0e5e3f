//! What one attempt is to do: handed to the session with the request head.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use pingora::upstreams::peer::HttpPeer;

use super::link::Link;
use super::window::Credit;
use crate::cluster::BackendState;
use crate::config::{Route, Timeouts, Tls};
use crate::drain::Drain;
use crate::ledger::Reservation;

/// A whole request body, and whatever counts its bytes.
#[derive(Clone)]
pub struct Body {
    /// The bytes, shared by all attempts.
    pub bytes: Bytes,
    /// Gives their count back when the last clone is dropped.
    pub held: Arc<Reservation>,
}

/// The plan of one attempt.
pub struct Plan {
    /// Where to connect.
    pub peer: HttpPeer,
    /// The backend's name, for the log.
    pub backend: Arc<str>,
    /// TLS on that connection; `None` for http.
    pub tls: Option<Arc<Tls>>,
    /// What to send after the head.
    pub body: std::sync::Mutex<Option<Body>>,
    /// Its stream settings.
    pub route: Arc<Route>,
    /// Its time budgets at this cluster.
    pub timeouts: Timeouts,
    /// A pooled connection that turns out dead may be replaced.
    pub may_resend: bool,
    /// The client asked for a stream.
    pub streaming: bool,
    /// When the whole exchange must be over.
    pub total_at: Instant,
    /// From when `early_headers` counts: the request was complete and had its place.
    pub ready_at: Instant,
    /// Facts shared with the filters.
    pub link: Arc<Link>,
    /// Bytes under way to the client.
    pub credit: Arc<Credit>,
    /// What is known of the backend: also that it must have no more attempts.
    pub state: Arc<BackendState>,
    /// Tells when the drain is over.
    pub drain: Arc<Drain>,
}

impl Plan {
    pub(super) fn body(&self) -> Option<Body> {
        self.body.lock().map_or(None, |body| body.clone())
    }

    /// Lets go of the body: no attempt can need it any more.
    pub(super) fn drop_body(&self) {
        if let Ok(mut body) = self.body.lock() {
            *body = None;
        }
    }
}
