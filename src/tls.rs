//! TLS toward others, on OpenSSL: who is trusted, who they must be, and what it means when a handshake fails.
//!
//! The one hard idea: a connection is only as good as what it was checked for, so a name or an address is always part of
//! what is asked of a certificate, and what is trusted is either the system's list or the file's own, never both.

use openssl::error::ErrorStack;
use openssl::ssl::{
    ErrorCode, Ssl, SslContext, SslContextBuilder, SslMethod, SslMode, SslVerifyMode, SslVersion,
};
use openssl::x509::X509VerifyResult;
use openssl::x509::store::X509StoreBuilder;
use openssl::x509::verify::X509CheckFlags;

use crate::config::{ServerName, Trust};

/// Why a handshake failed, for the log.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// Who is there is not who it must be, or nobody vouches for it.
    #[error("its certificate was refused: {0}")]
    Certificate(String),
    /// It does not speak TLS, or not with us.
    #[error("the TLS handshake failed: {0}")]
    Handshake(String),
}

/// What all connections of the same trust have in common. `alpn` is the list of protocols to offer in the form of RFC 7301,
/// empty for none.
///
/// # Errors
/// OpenSSL cannot be set up.
pub fn context(trust: &Trust, alpn: &[u8]) -> Result<SslContext, ErrorStack> {
    let mut builder = SslContextBuilder::new(SslMethod::tls_client())?;
    builder.set_min_proto_version(Some(SslVersion::TLS1_2))?;
    // Writes are tried again from wherever the rest lies then; idle connections hold no buffers, and
    // one read of the socket takes a record whole.
    builder.set_mode(
        SslMode::ENABLE_PARTIAL_WRITE | SslMode::ACCEPT_MOVING_WRITE_BUFFER | SslMode::RELEASE_BUFFERS,
    );
    builder.set_read_ahead(true);
    if !alpn.is_empty() {
        builder.set_alpn_protos(alpn)?;
    }
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
        log::warn!("this system has no trusted authorities: TLS toward others needs a file of them (ca)");
        return Ok(());
    }
    builder.load_verify_locations(found.cert_file.as_deref(), found.cert_dir.as_deref())
}

/// One connection to somebody who must be `name`, or may be anybody where anyone is trusted.
///
/// # Errors
/// OpenSSL cannot be set up.
pub fn toward(context: &SslContext, trust: &Trust, name: &ServerName) -> Result<Ssl, ErrorStack> {
    let mut ssl = Ssl::new(context)?;
    if let ServerName::Dns(name) = name {
        ssl.set_hostname(name)?;
    }
    if *trust == Trust::Anyone {
        ssl.set_verify(SslVerifyMode::NONE);
        return Ok(ssl);
    }
    ssl.set_verify(SslVerifyMode::PEER);
    let wanted = ssl.param_mut();
    // "f*.example.com" vouches for nothing (RFC 9525, 6.3).
    wanted.set_hostflags(X509CheckFlags::NO_PARTIAL_WILDCARDS);
    match name {
        ServerName::Dns(name) => wanted.set_host(name)?,
        ServerName::Ip(ip) => wanted.set_ip(*ip)?,
    }
    Ok(ssl)
}

/// What OpenSSL says, with what it most likely means. `plain` is what else may listen on that port.
pub fn told(
    verified: X509VerifyResult,
    error: &openssl::ssl::Error,
    name: &ServerName,
    plain: &str,
) -> Failed {
    if verified != X509VerifyResult::OK {
        let reason = verified.error_string();
        return Failed::Certificate(match verified.as_raw() {
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
    Failed::Handshake(match (error.code(), error.io_error()) {
        _ if speaks_no_tls => format!("what came back is no TLS; is it {plain} on this port?"),
        (_, Some(error)) => error.to_string(),
        (ErrorCode::ZERO_RETURN | ErrorCode::SYSCALL, None) => "the connection was closed".to_owned(),
        _ if reasons.contains(&"unexpected eof while reading") => "the connection was closed".to_owned(),
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
