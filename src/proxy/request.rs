//! The client's request as far as it has been read: filled in from the head first, then from the body.

use std::net::IpAddr;
use std::time::SystemTime;

use http::header::HeaderValue;

use crate::admission::charge::Estimate;
use crate::cluster::affinity::Keys;
use crate::forwarded::Handed;
use crate::openai::About;
use crate::openai::patch::Unasked;
use crate::session_map::Session;
use crate::upstream::Body;

/// The request as far as we read it.
#[derive(Default)]
pub(super) struct Request {
    /// Where the client is.
    pub(super) client: Option<IpAddr>,
    /// It came over TLS, here or at a trusted proxy.
    pub(super) is_tls: bool,
    /// What a trusted proxy says of it.
    pub(super) handed: Option<Handed>,
    /// The origin of the page that sent it, if it may read the answer.
    pub(super) origin: Option<HeaderValue>,
    /// As it was sent.
    pub(super) method: String,
    /// The raw path, without the query.
    pub(super) path: String,
    /// The client's model name.
    pub(super) model: Option<String>,
    /// It asks for a stream.
    pub(super) streaming: bool,
    /// Usage that was asked for by us, and that the client does not expect.
    pub(super) unasked: Unasked,
    /// Its session.
    pub(super) session: Session,
    /// What it is estimated to cost its backend, in tokens to generate.
    pub(super) cost: u64,
    /// What it is estimated to use.
    pub(super) estimate: Estimate,
    /// Most tokens that it lets its answer have, if it says so.
    pub(super) tokens_max: Option<u64>,
    /// What it sticks by.
    pub(super) keys: Keys,
    /// The whole body, until no attempt can need it.
    pub(super) body: Option<Body>,
}

impl Request {
    /// What an error may have to name of the exchange.
    pub(super) fn about<'a>(&'a self, id: &'a str, arrived_at: SystemTime) -> About<'a> {
        let began = arrived_at.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        About { request_id: id, model: self.model.as_deref(), began }
    }
}
