//! Clients that speak TLS, and the files of a listener that does.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;

use openssl::ssl::{SslConnector, SslMethod, SslVersion};
use openssl::x509::X509;
use serde_json::{Value, json};
use socket2::SockRef;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_openssl::SslStream;

use super::certificates::Identity;
use super::client::Client;
use super::h2::H2;
use super::wait::{SOON, within};

/// A certificate that signs itself, and its key, as files.
#[derive(Debug, Clone)]
pub(crate) struct Pair {
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
    x509: X509,
}

impl Pair {
    /// Makes one for these DNS names; the files are named after the first.
    pub(crate) fn make(dir: &Path, names: &[&str]) -> Self {
        Self::of(Identity::of_its_own(names), dir, names[0])
    }

    /// The files of one that there is already, called by a name.
    pub(crate) fn of(identity: Identity, dir: &Path, name: &str) -> Self {
        let Identity { key, certificate: x509 } = identity;
        let file = |end: &str| dir.join(format!("{}.{end}", name.replace('*', "any")));
        let pair = Self { cert: file("crt"), key: file("key"), x509 };
        std::fs::write(&pair.cert, pair.x509.to_pem().expect("PEM")).expect("write");
        std::fs::write(&pair.key, key.private_key_to_pem_pkcs8().expect("PEM")).expect("write");
        pair
    }

    /// As the configuration names it.
    pub(crate) fn named(&self) -> Value {
        json!({ "cert": self.cert, "key": self.key })
    }

    /// Its bytes.
    pub(crate) fn der(&self) -> Vec<u8> {
        self.x509.to_der().expect("DER")
    }
}

/// What a client offers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offer<'a> {
    /// Server name.
    pub(crate) name: &'a str,
    /// Protocols, in ALPN's form; empty for none.
    pub(crate) alpn: &'a [u8],
    /// The newest version it knows.
    pub(crate) newest: SslVersion,
}

impl Default for Offer<'_> {
    fn default() -> Self {
        Self { name: "localhost", alpn: b"\x02h2\x08http/1.1", newest: SslVersion::TLS1_3 }
    }
}

/// Makes a handshake; certificates are not verified, but can be looked at.
pub(crate) async fn connect(addr: SocketAddr, offer: Offer<'_>) -> Result<SslStream<TcpStream>, String> {
    connect_behind(addr, offer, b"").await
}

/// The same behind bytes that are sent before the handshake.
pub(crate) async fn connect_behind(
    addr: SocketAddr,
    offer: Offer<'_>,
    before: &[u8],
) -> Result<SslStream<TcpStream>, String> {
    shake_hands(addr, offer, before, None).await
}

/// Makes a handshake in which the client shows a certificate, if it is asked for one.
pub(crate) async fn connect_showing(
    addr: SocketAddr,
    offer: Offer<'_>,
    identity: &Identity,
) -> Result<SslStream<TcpStream>, String> {
    shake_hands(addr, offer, b"", Some(identity)).await
}

async fn shake_hands(
    addr: SocketAddr,
    offer: Offer<'_>,
    before: &[u8],
    identity: Option<&Identity>,
) -> Result<SslStream<TcpStream>, String> {
    let mut builder = SslConnector::builder(SslMethod::tls()).expect("a connector");
    builder.set_max_proto_version(Some(offer.newest)).expect("a version");
    builder.set_min_proto_version(None).expect("a version");
    // Old versions need ciphers that OpenSSL has switched off.
    builder.set_cipher_list("ALL:@SECLEVEL=0").expect("ciphers");
    if !offer.alpn.is_empty() {
        builder.set_alpn_protos(offer.alpn).expect("ALPN");
    }
    if let Some(identity) = identity {
        builder.set_certificate(&identity.certificate).expect("a certificate");
        builder.set_private_key(&identity.key).expect("a key");
    }
    let mut config = builder.build().configure().expect("a configuration");
    config.set_verify(openssl::ssl::SslVerifyMode::NONE);
    config.set_verify_hostname(false);
    let ssl = config.into_ssl(offer.name).expect("TLS");
    let mut stream = within("connect", SOON, TcpStream::connect(addr)).await.expect("connect");
    stream.set_nodelay(true).expect("TCP_NODELAY");
    stream.write_all(before).await.expect("send");
    let mut stream = SslStream::new(ssl, stream).expect("TLS");
    let shaken = within("the TLS handshake", SOON, Pin::new(&mut stream).connect()).await;
    shaken.map(|()| stream).map_err(|error| error.to_string())
}

/// A client that speaks HTTP/2 over TLS.
pub(crate) async fn h2_client(addr: SocketAddr) -> Client {
    let stream = connect(addr, Offer::default()).await.expect("a handshake");
    assert_eq!(stream.ssl().selected_alpn_protocol(), Some(&b"h2"[..]));
    let socket = SockRef::from(stream.get_ref()).try_clone().expect("dup");
    Client::from(H2::secured(stream, socket, 65_535).await)
}
