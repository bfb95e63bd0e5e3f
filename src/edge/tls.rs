//! TLS toward clients: certificates from files, HTTP/2 or HTTP/1.1 by ALPN.
//!
//! The handshake is made here and not in Pingora's listener, which gives one a fixed minute. Our `Conn`
//! comes on top, so that it sees the bytes of HTTP whatever is below it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use pingora::protocols::tls::SslStream;
use pingora::protocols::tls::server::prepare_tls_stream;
use pingora::protocols::{Stream, l4};
use pingora::tls::error::ErrorStack;
use pingora::tls::ssl::{
    self, NameType, SniError, SslAcceptor, SslAcceptorBuilder, SslContext, SslVerifyMode,
};
use pingora::tls::x509::X509;
use pingora::tls::x509::store::X509StoreBuilder;

use super::pair::{Pair, Shown, read};
use crate::config::{NamedFile, ServerTls};

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

/// Which setting of a listener is to blame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The certificate with this index.
    Certificate(usize),
    /// The authorities of clients.
    ClientCa,
}

/// Accepts TLS connections. Clones share the certificates.
#[derive(Clone)]
pub struct Tls(Arc<ArcSwap<InForce>>);

/// What connections that come now are accepted with.
struct InForce {
    acceptor: SslAcceptor,
    shown: Vec<Shown>,
}

/// The contexts by server name; `*.` stands for exactly one label.
type Names = BTreeMap<String, SslContext>;

impl Tls {
    /// Reads the files. The first certificate is for clients that name no server or an unknown one.
    ///
    /// # Errors
    /// The setting that is to blame, and why.
    pub fn load(tls: &ServerTls) -> Result<Self, (Place, TlsError)> {
        let clients = tls.client_ca.as_ref().map(Clients::load).transpose();
        let clients = clients.map_err(|error| (Place::ClientCa, error))?;
        let builder = |pair: &Pair, place| {
            let built = pair.builder().and_then(|mut builder| {
                clients.iter().try_for_each(|clients| clients.demand(&mut builder))?;
                Ok(builder)
            });
            built.map_err(|error| (place, error.into()))
        };
        let mut names = Names::new();
        let mut shown = Vec::with_capacity(tls.certificates.len());
        let mut default = None;
        for (i, certificate) in tls.certificates.iter().enumerate() {
            let place = Place::Certificate(i);
            let pair = Pair::load(certificate).map_err(|error| (place, error))?;
            let context = builder(&pair, place)?.build().into_context();
            let leaf = pair.shown(certificate).map_err(|error| (place, error.into()))?;
            for name in &leaf.names {
                names.entry(name.clone()).or_insert_with(|| context.clone());
            }
            shown.push(leaf);
            default.get_or_insert(pair);
        }
        // The configuration knows no TLS listener without a certificate.
        let first = Place::Certificate(0);
        let default = default.ok_or_else(|| (first, ErrorStack::get().into()))?;
        let mut builder = builder(&default, first)?;
        builder.set_servername_callback(move |ssl, _alert| {
            let name = ssl.servername(NameType::HOST_NAME).map(str::to_ascii_lowercase);
            match name.as_deref().and_then(|name| find(&names, name)) {
                Some(context) => ssl.set_ssl_context(context).map_err(|_| SniError::ALERT_FATAL),
                None => Ok(()),
            }
        });
        Ok(Self(Arc::new(ArcSwap::from_pointee(InForce { acceptor: builder.build(), shown }))))
    }

    /// Takes the certificates of `other` for connections that come from now on, and gives those that are others than
    /// before.
    pub fn renew(&self, other: &Self) -> Vec<Shown> {
        let before = self.0.swap(other.0.load_full());
        let is_new = |shown: &&Shown| before.shown.iter().all(|old| !old.is_same(shown));
        other.shown().iter().filter(is_new).cloned().collect()
    }

    /// The certificates in force, in the order of the file.
    pub fn shown(&self) -> Vec<Shown> {
        self.0.load().shown.clone()
    }

    /// Makes the handshake.
    ///
    /// # Errors
    /// It failed, which is the client's affair.
    pub(super) async fn accept(&self, stream: Stream) -> Result<SslStream<l4::stream::Stream>, NoTls> {
        // What Pingora has accepted on a listener without TLS is nothing else.
        let socket = stream.into_any().downcast::<l4::stream::Stream>().map_err(|_| NoTls::Failed)?;
        let prepared = prepare_tls_stream(&self.0.load_full().acceptor, *socket);
        let mut stream = prepared.map_err(|_| NoTls::Failed)?;
        match stream.accept().await {
            Ok(()) => Ok(stream),
            Err(error) if is_plain_http(&error) => Err(NoTls::PlainHttp(Box::new(stream))),
            Err(error) => {
                log::debug!("TLS handshake: {error}");
                Err(NoTls::Failed)
            }
        }
    }
}

/// Why there is no TLS with a client.
pub(super) enum NoTls {
    /// The handshake failed.
    Failed,
    /// The client began with a request of HTTP in the clear. Nothing has been written to the socket below.
    PlainHttp(Box<SslStream<l4::stream::Stream>>),
}

/// What OpenSSL says of a first record that begins with `GET `, `POST `, `HEAD ` or `PUT ` (`SSL_R_HTTP_REQUEST` of
/// sslerr.h). It sends no alert then.
const HTTP_REQUEST: i32 = 156;

fn is_plain_http(error: &ssl::Error) -> bool {
    error
        .ssl_error()
        .is_some_and(|stack| stack.errors().iter().any(|error| error.reason_code() == HTTP_REQUEST))
}

/// Whose certificates clients must have.
struct Clients(Vec<X509>);

impl Clients {
    fn load(file: &NamedFile) -> Result<Self, TlsError> {
        let not_pem = || TlsError::NotPem { path: file.path.clone(), what: "certificate" };
        let authorities = X509::stack_from_pem(&read(&file.path)?).map_err(|_| not_pem())?;
        if authorities.is_empty() { Err(not_pem()) } else { Ok(Self(authorities)) }
    }

    /// No handshake without a certificate that one of the authorities has signed.
    fn demand(&self, builder: &mut SslAcceptorBuilder) -> Result<(), ErrorStack> {
        let mut store = X509StoreBuilder::new()?;
        for authority in &self.0 {
            store.add_cert(authority.clone())?;
            builder.add_client_ca(authority)?;
        }
        builder.set_cert_store(store.build());
        builder.set_verify(SslVerifyMode::PEER | SslVerifyMode::FAIL_IF_NO_PEER_CERT);
        // Sessions are resumed under the same demand only; without an id OpenSSL refuses to resume any.
        builder.set_session_id_context(b"streamgate")
    }
}

fn find<'n>(names: &'n Names, name: &str) -> Option<&'n SslContext> {
    names.get(name).or_else(|| {
        let (_, rest) = name.split_once('.')?;
        names.get(&format!("*.{rest}"))
    })
}
