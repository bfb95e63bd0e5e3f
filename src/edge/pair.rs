//! A certificate with its key, as clients are shown it, and what operators are told of it.

use std::path::{Path, PathBuf};

use openssl::asn1::{Asn1Time, Asn1TimeRef};
use pingora::tls::error::ErrorStack;
use pingora::tls::pkey::{PKey, Private};
use pingora::tls::ssl::{
    AlpnError, SslAcceptor, SslAcceptorBuilder, SslMethod, SslVersion, select_next_proto,
};
use pingora::tls::x509::X509;

use super::tls::TlsError;
use crate::config::Certificate;

/// What we speak, the best first, in ALPN's form (RFC 7301, 3.1). A client that names neither gets HTTP/1.1.
const PROTOCOLS: &[u8] = b"\x02h2\x08http/1.1";

/// A certificate that clients are shown; of a chain the first, which is the server's own.
#[derive(Debug, Clone)]
pub struct Shown {
    /// Its file, as the configuration names it.
    pub file: PathBuf,
    /// The line of the configuration that does.
    pub line: u64,
    /// The DNS names that it is good for, in lower case.
    pub names: Vec<String>,
    /// When it begins to be good, in seconds since 1970.
    pub not_before: i64,
    /// The last moment at which it is good, in seconds since 1970.
    pub not_after: i64,
    der: Vec<u8>,
}

impl Shown {
    /// Whether the other is the same certificate, whatever its file.
    pub fn is_same(&self, other: &Self) -> bool {
        self.der == other.der
    }
}

/// A certificate chain and its key.
pub(super) struct Pair {
    chain: Vec<X509>,
    key: PKey<Private>,
}

impl Pair {
    /// Reads both files.
    pub(super) fn load(files: &Certificate) -> Result<Self, TlsError> {
        let not_pem = |path: &Path, what| TlsError::NotPem { path: path.to_owned(), what };
        let chain = X509::stack_from_pem(&read(&files.cert)?).unwrap_or_default();
        let leaf = chain.first().ok_or_else(|| not_pem(&files.cert, "certificate"))?;
        // Without a callback OpenSSL would ask the terminal for the password of an encrypted key.
        let key = PKey::private_key_from_pem_callback(&read(&files.key)?, |_| Ok(0));
        let key = key.map_err(|_| not_pem(&files.key, "private key"))?;
        if !leaf.public_key().is_ok_and(|public| public.public_eq(&key)) {
            return Err(TlsError::Mismatch { cert: files.cert.clone(), key: files.key.clone() });
        }
        Ok(Self { chain, key })
    }

    /// Mozilla's intermediate settings: TLS 1.2 and 1.3.
    pub(super) fn builder(&self) -> Result<SslAcceptorBuilder, ErrorStack> {
        let mut builder = SslAcceptor::mozilla_intermediate_v5(SslMethod::tls())?;
        builder.set_min_proto_version(Some(SslVersion::TLS1_2))?;
        for (i, certificate) in self.chain.iter().enumerate() {
            if i == 0 {
                builder.set_certificate(certificate)?;
            } else {
                builder.add_extra_chain_cert(certificate.clone())?;
            }
        }
        builder.set_private_key(&self.key)?;
        builder.set_alpn_select_callback(|_, offered| {
            select_next_proto(PROTOCOLS, offered).ok_or(AlpnError::NOACK)
        });
        Ok(builder)
    }

    /// What there is to tell of it.
    pub(super) fn shown(&self, files: &Certificate) -> Result<Shown, ErrorStack> {
        // `load` knows no chain without a leaf.
        let leaf = self.chain.first().ok_or_else(ErrorStack::get)?;
        let names = leaf.subject_alt_names();
        let names = names.iter().flatten().filter_map(|name| name.dnsname());
        Ok(Shown {
            file: files.cert.clone(),
            line: files.line,
            names: names.map(str::to_ascii_lowercase).collect(),
            not_before: unix(leaf.not_before())?,
            not_after: unix(leaf.not_after())?,
            der: leaf.to_der()?,
        })
    }
}

/// A time of a certificate in seconds since 1970.
fn unix(time: &Asn1TimeRef) -> Result<i64, ErrorStack> {
    let since = Asn1Time::from_unix(0)?.diff(time)?;
    Ok(i64::from(since.days) * 86_400 + i64::from(since.secs))
}

/// The bytes of a file of a certificate, or a key.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let read = crate::config::read(path).map_err(std::io::Error::other);
    read.map_err(|source| TlsError::Unreadable { path: path.to_owned(), source })
}
