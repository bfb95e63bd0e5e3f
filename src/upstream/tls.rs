//! TLS toward backends: contexts that are built once, and the handshake.
//!
//! The handshake is ours and not Pingora's, for four reasons (measured on 0.9.1): that one checks
//! nothing at all when there is no server name to ask for, cannot check an address, takes TLS 1.0, and
//! builds the store of a private authority anew for each connection.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use openssl::error::ErrorStack;
use openssl::ssl::SslContext;
use pingora::protocols::Stream;
use pingora::protocols::tls::SslStream;

use super::below::Below;
use crate::config::Tls;
use crate::tls::{Failed, context, told, toward};

/// What we speak inside of it, in ALPN's form.
const ALPN: &[u8] = b"\x08http/1.1";

/// Why there is no TLS with a backend, for the log.
#[derive(Debug, thiserror::Error)]
pub(super) enum TlsFailure {
    /// OpenSSL could not be set up.
    #[error("TLS could not be set up: {0}")]
    Setup(#[from] ErrorStack),
    /// Nor on this connection.
    #[error("TLS could not be set up: {0}")]
    Stream(#[source] Box<pingora::Error>),
    /// The backend is not who it must be, or does not speak TLS.
    #[error(transparent)]
    Handshake(#[from] Failed),
}

/// A context for each kind of trust, built when it is first needed and kept: reading the system's
/// authorities takes tens of milliseconds.
#[derive(Default)]
pub(super) struct Contexts(Mutex<HashMap<u64, SslContext>>);

impl Contexts {
    /// The context for this trust.
    pub(super) fn of(&self, tls: &Tls) -> Result<SslContext, ErrorStack> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(context) = known.get(&tls.trust_key) {
            return Ok(context.clone());
        }
        let built = context(&tls.trust, ALPN)?;
        known.insert(tls.trust_key, built.clone());
        Ok(built)
    }

    /// Forgets all contexts but these: each holds a store of authorities.
    pub(super) fn keep_only(&self, trust_keys: &HashSet<u64>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|key, _| trust_keys.contains(key));
    }

    /// Speaks TLS on a fresh connection.
    ///
    /// # Errors
    /// The backend speaks no TLS, or is not who it must be.
    pub(super) async fn handshake(&self, stream: Stream, tls: &Tls) -> Result<Stream, TlsFailure> {
        let ssl = toward(&self.of(tls)?, &tls.trust, &tls.name)?;
        let mut stream = SslStream::new(ssl, Below(stream)).map_err(TlsFailure::Stream)?;
        match stream.connect().await {
            Ok(()) => Ok(Box::new(stream)),
            Err(error) => Err(told(stream.ssl().verify_result(), &error, &tls.name, "plain HTTP").into()),
        }
    }
}
