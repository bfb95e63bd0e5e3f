//! Questions of the gateway's own to a backend: whether it is well, how loaded it is, for one token.
//!
//! They go the way of real work, so that they meet what it would meet: the same dialer, with the TLS and the
//! authorities of the backend (Pingora's own health check would read those anew for each connection and
//! check no address), and the same strict reading of the answer. Each has a connection of its own, which
//! proves that the backend still takes some; dropping the future closes it.

use std::sync::Arc;

use pingora::protocols::http::v1::client::{HttpSession, http_req_header_to_wire};
use pingora::upstreams::peer::HttpPeer;
use pingora_http::RequestHeader;

use super::dial::Dialer;
use super::duplex::Duplex;
use super::opening::{cause, classify, read_head};
use crate::cluster::Backend;
use crate::failure::Failure;

/// Asks backends. Clones share the TLS contexts.
#[derive(Clone)]
pub struct Asker {
    dialer: Arc<Dialer>,
}

/// What a backend answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heard {
    /// The status.
    pub status: u16,
    /// The body, as much of it as was asked for.
    pub body: Vec<u8>,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unheard {
    /// As an attempt would have failed.
    #[error("{failure}{}", .cause.as_ref().map(|cause| format!(": {cause}")).unwrap_or_default())]
    Failed {
        /// How.
        failure: Failure,
        /// What the system says of it.
        cause: Option<String>,
    },
    /// The answer is larger than may be read.
    #[error("the answer is larger than {most} bytes")]
    TooLarge {
        /// The bound in bytes.
        most: usize,
    },
}

impl Unheard {
    /// The want of the gateway's own for which nothing was asked, if that is why.
    pub fn own_want(&self) -> Option<Failure> {
        match self {
            Self::Failed { failure, .. } if failure.is_own_want() => Some(*failure),
            _ => None,
        }
    }
}

impl From<Failure> for Unheard {
    fn from(failure: Failure) -> Self {
        Self::Failed { failure, cause: None }
    }
}

impl Asker {
    pub(super) fn new(dialer: Arc<Dialer>) -> Self {
        Self { dialer }
    }

    /// Sends a request and reads the answer; of the body at most `body_max` bytes, and with 0 nothing of it.
    /// It has no deadline of its own.
    ///
    /// # Errors
    /// [`Unheard`]: there was no whole answer.
    pub async fn ask(
        &self,
        backend: &Backend,
        head: &RequestHeader,
        body: &[u8],
        body_max: usize,
    ) -> Result<Heard, Unheard> {
        let mut wire = http_req_header_to_wire(head).ok_or(Failure::NotHttp)?;
        wire.extend_from_slice(body);
        let peer = HttpPeer::new(backend.addr, false, String::new());
        let opened = self.dialer.open(&peer, backend.tls.as_deref()).await;
        let stream = opened.map_err(|(failure, cause)| Unheard::Failed { failure, cause })?;
        let mut session = HttpSession::new(Box::new(Duplex::new(stream, wire.freeze(), None)));
        read_head(&mut session).await.map_err(|(failure, cause)| Unheard::Failed { failure, cause })?;
        let status = session.get_status().map_or(0, |status| status.as_u16());
        let body = if body_max == 0 { Vec::new() } else { read_body(&mut session, body_max).await? };
        Ok(Heard { status, body })
    }
}

async fn read_body(session: &mut HttpSession, most: usize) -> Result<Vec<u8>, Unheard> {
    let mut body = Vec::new();
    loop {
        let read = session.read_body_ref().await;
        let chunk: Option<&[u8]> = match read {
            Ok(chunk) => chunk,
            Err(error) => return Err(Unheard::Failed { failure: classify(&error), cause: cause(&error) }),
        };
        let Some(chunk) = chunk else { return Ok(body) };
        if body.len() + chunk.len() > most {
            return Err(Unheard::TooLarge { most });
        }
        body.extend_from_slice(chunk);
    }
}
