//! TLS toward backends: contexts that are built once, and the handshake.
//!
//! The handshake is ours and not Pingora's, for four reasons (measured on 0.9.1): that one checks
//! nothing at all when there is no server name to ask for, cannot check an address, takes TLS 1.0, and
//! builds the store of a private authority anew for each connection.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use openssl::error::ErrorStack;
use openssl::ssl::{
    ErrorCode, Ssl, SslContext, SslContextBuilder, SslMethod, SslMode, SslVerifyMode, SslVersion,
};
use openssl::x509::X509VerifyResult;
use openssl::x509::store::X509StoreBuilder;
use openssl::x509::verify::X509CheckFlags;
use pingora::protocols::Stream;
use pingora::protocols::tls::SslStream;

use super::below::Below;
use crate::config::{ServerName, Tls, Trust};

/// Why there is no TLS with a backend, for the log.
#[derive(Debug, thiserror::Error)]
pub(super) enum TlsFailure {
    /// OpenSSL could not be set up.
    #[error("TLS could not be set up: {0}")]
    Setup(#[from] ErrorStack),
    /// Nor on this connection.
    #[error("TLS could not be set up: {0}")]
    Stream(#[source] Box<pingora::Error>),
    /// The backend is not who it must be, or nobody vouches for it.
    #[error("its certificate was refused: {0}")]
    Certificate(String),
    /// It does not speak TLS, or not with us.
    #[error("the TLS handshake failed: {0}")]
    Handshake(String),
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
        let built = context(&tls.trust)?;
        known.insert(tls.trust_key, built.clone());
        Ok(built)
    }

    /// Speaks TLS on a fresh connection.
    ///
    /// # Errors
    /// The backend speaks no TLS, or is not who it must be.
    pub(super) async fn handshake(&self, stream: Stream, tls: &Tls) -> Result<Stream, TlsFailure> {
        let ssl = self.prepare(tls)?;
        let mut stream = SslStream::new(ssl, Below(stream)).map_err(TlsFailure::Stream)?;
        match stream.connect().await {
            Ok(()) => Ok(Box::new(stream)),
            Err(error) => Err(told(stream.ssl().verify_result(), &error, &tls.name)),
        }
    }

    fn prepare(&self, tls: &Tls) -> Result<Ssl, ErrorStack> {
        let mut ssl = Ssl::new(&*self.of(tls)?)?;
        if let ServerName::Dns(name) = &tls.name {
            ssl.set_hostname(name)?;
        }
        if tls.trust == Trust::Anyone {
            ssl.set_verify(SslVerifyMode::NONE);
            return Ok(ssl);
        }
        ssl.set_verify(SslVerifyMode::PEER);
        let wanted = ssl.param_mut();
        // "f*.example.com" vouches for nothing (RFC 9525, 6.3).
        wanted.set_hostflags(X509CheckFlags::NO_PARTIAL_WILDCARDS);
        match &tls.name {
            ServerName::Dns(name) => wanted.set_host(name)?,
            ServerName::Ip(ip) => wanted.set_ip(*ip)?,
        }
        Ok(ssl)
    }
}

fn context(trust: &Trust) -> Result<SslContext, ErrorStack> {
    let mut builder = SslContextBuilder::new(SslMethod::tls_client())?;
    builder.set_min_proto_version(Some(SslVersion::TLS1_2))?;
    // Writes are tried again from wherever the rest lies then; idle connections hold no buffers, and
    // one read of the socket takes a record whole.
    builder.set_mode(
        SslMode::ENABLE_PARTIAL_WRITE | SslMode::ACCEPT_MOVING_WRITE_BUFFER | SslMode::RELEASE_BUFFERS,
    );
    builder.set_read_ahead(true);
    builder.set_alpn_protos(b"\x08http/1.1")?;
    match trust {
        Trust::System => system_authorities(&mut builder)?,
        Trust::Authorities(authorities) => {
            let mut store = X509StoreBuilder::new()?;
            for one in &authorities.list {
                store.add_cert(one.clone())?;
            }
            builder.set_cert_store(store.build());
        }
        Trust::Anyone => {}
    }
    Ok(builder.build())
}

/// Where systems keep them differs; `SSL_CERT_FILE` and `SSL_CERT_DIR` say so where they are set.
fn system_authorities(builder: &mut SslContextBuilder) -> Result<(), ErrorStack> {
    let found = openssl_probe::probe();
    if found.cert_file.is_none() && found.cert_dir.is_none() {
        log::warn!("this system has no trusted authorities: https backends need tls.ca");
        return Ok(());
    }
    builder.load_verify_locations(found.cert_file.as_deref(), found.cert_dir.as_deref())
}

/// What OpenSSL says, with what it most likely means.
fn told(verified: X509VerifyResult, error: &openssl::ssl::Error, name: &ServerName) -> TlsFailure {
    if verified != X509VerifyResult::OK {
        let reason = verified.error_string();
        return TlsFailure::Certificate(match verified.as_raw() {
            HOST_MISMATCH | IP_MISMATCH => format!("it is not for {name} ({reason})"),
            SELF_SIGNED | SELF_SIGNED_IN_CHAIN | NO_ISSUER | NO_LEAF_SIGNATURE | BAD_SIGNATURE => {
                format!("no authority that is trusted here has signed it ({reason})")
            }
            _ => reason.to_owned(),
        });
    }
    let reasons: Vec<_> = error
        .ssl_error()
        .map(|stack| stack.errors().iter().filter_map(|one| one.reason()).collect())
        .unwrap_or_default();
    let speaks_no_tls = reasons
        .iter()
        .any(|reason| ["wrong version number", "http request", "packet length too long"].contains(reason));
    TlsFailure::Handshake(match (error.code(), error.io_error()) {
        _ if speaks_no_tls => "what came back is no TLS; is it plain HTTP on this port?".to_owned(),
        (_, Some(error)) => error.to_string(),
        (ErrorCode::ZERO_RETURN | ErrorCode::SYSCALL, None) => "the backend closed the connection".to_owned(),
        _ if reasons.contains(&"unexpected eof while reading") => {
            "the backend closed the connection".to_owned()
        }
        _ => reasons.join(", "),
    })
}

// X509_V_ERR_* of OpenSSL's x509_vfy.h.
// A bad signature is an authority of the same name and another key.
const BAD_SIGNATURE: i32 = 7;
const SELF_SIGNED: i32 = 18;
const SELF_SIGNED_IN_CHAIN: i32 = 19;
const NO_ISSUER: i32 = 20;
const NO_LEAF_SIGNATURE: i32 = 21;
const HOST_MISMATCH: i32 = 62;
const IP_MISMATCH: i32 = 64;
