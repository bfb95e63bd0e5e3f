//! TLS toward clients: certificates from files, HTTP/2 or HTTP/1.1 by ALPN.
//!
//! The handshake is made here and not in Pingora's listener, which gives one a fixed minute. Our `Conn`
//! comes on top, so that it sees the bytes of HTTP whatever is below it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pingora::protocols::tls::SslStream;
use pingora::protocols::tls::server::handshake;
use pingora::protocols::{Stream, l4};
use pingora::tls::error::ErrorStack;
use pingora::tls::pkey::{PKey, Private};
use pingora::tls::ssl::{
    AlpnError, NameType, SniError, SslAcceptor, SslAcceptorBuilder, SslContext, SslMethod, SslVersion,
    select_next_proto,
};
use pingora::tls::x509::X509;

use crate::config::Certificate;

/// What we speak, the best first, in ALPN's form (RFC 7301, 3.1). A client that names neither gets HTTP/1.1.
const PROTOCOLS: &[u8] = b"\x02h2\x08http/1.1";

/// Why a listener cannot have TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{path:?} cannot be read (check the path and who may read it)")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("{path:?} is no {what} (write the file in PEM form; a key must not be encrypted)")]
    NotPem {
        /// The file.
        path: PathBuf,
        /// What it should be.
        what: &'static str,
    },
    /// The key belongs to another certificate.
    #[error(
        "the key {key:?} does not belong to the first certificate of {cert:?} (name the pair that was issued together)"
    )]
    Mismatch {
        /// The certificate's file.
        cert: PathBuf,
        /// The key's file.
        key: PathBuf,
    },
    /// The TLS library refused.
    #[error("the TLS library refuses")]
    Library(#[from] ErrorStack),
}

/// Accepts TLS connections.
#[derive(Clone)]
pub struct Tls(Arc<SslAcceptor>);

/// The contexts by server name; `*.` stands for exactly one label.
type Names = BTreeMap<String, SslContext>;

impl Tls {
    /// Reads the certificates. The first is for clients that name no server or an unknown one.
    ///
    /// # Errors
    /// The index of the certificate that is to blame, and why.
    pub fn load(certificates: &[Certificate]) -> Result<Self, (usize, TlsError)> {
        let mut names = Names::new();
        let mut default = None;
        for (i, certificate) in certificates.iter().enumerate() {
            let pair = Pair::load(certificate).map_err(|error| (i, error))?;
            let context = pair.builder().map_err(|error| (i, error.into()))?.build().into_context();
            for name in pair.names() {
                names.entry(name).or_insert_with(|| context.clone());
            }
            default.get_or_insert(pair);
        }
        // The configuration knows no TLS listener without a certificate.
        let default = default.ok_or_else(|| (0, ErrorStack::get().into()))?;
        let mut builder = default.builder().map_err(|error| (0, error.into()))?;
        builder.set_servername_callback(move |ssl, _alert| {
            let name = ssl.servername(NameType::HOST_NAME).map(str::to_ascii_lowercase);
            match name.as_deref().and_then(|name| find(&names, name)) {
                Some(context) => ssl.set_ssl_context(context).map_err(|_| SniError::ALERT_FATAL),
                None => Ok(()),
            }
        });
        Ok(Self(Arc::new(builder.build())))
    }

    /// Makes the handshake. `None` when it fails, which is the client's affair.
    pub(super) async fn accept(&self, stream: Stream) -> Option<SslStream<l4::stream::Stream>> {
        // What Pingora has accepted on a listener without TLS is nothing else.
        let socket = stream.into_any().downcast::<l4::stream::Stream>().ok()?;
        handshake(&self.0, *socket).await.inspect_err(|error| log::debug!("TLS handshake: {error}")).ok()
    }
}

/// A certificate chain and its key.
struct Pair {
    chain: Vec<X509>,
    key: PKey<Private>,
}

impl Pair {
    fn load(files: &Certificate) -> Result<Self, TlsError> {
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
    fn builder(&self) -> Result<SslAcceptorBuilder, ErrorStack> {
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

    /// The DNS names that the leaf is good for, in lower case.
    fn names(&self) -> Vec<String> {
        let names = self.chain.first().and_then(|leaf| leaf.subject_alt_names());
        let names = names.iter().flatten().filter_map(|name| name.dnsname());
        names.map(str::to_ascii_lowercase).collect()
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|source| TlsError::Unreadable { path: path.to_owned(), source })
}

fn find<'n>(names: &'n Names, name: &str) -> Option<&'n SslContext> {
    names.get(name).or_else(|| {
        let (_, rest) = name.split_once('.')?;
        names.get(&format!("*.{rest}"))
    })
}
