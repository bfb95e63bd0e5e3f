//! An engine's end of a connection: plain, or with TLS.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use openssl::ssl::{NameType, Ssl, SslAcceptor, SslContext, SslMethod};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_openssl::SslStream;

use super::certificates::Identity;

/// What the gateway asked for in its handshake.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Hello {
    /// The server name.
    pub(crate) sni: Option<String>,
    /// The protocols, as they go over the wire.
    pub(crate) alpn: Vec<u8>,
}

/// Plain, or with TLS.
#[derive(Debug)]
pub(crate) enum Channel {
    Plain(TcpStream),
    Tls(Box<SslStream<TcpStream>>, Hello),
}

/// What an engine needs to speak TLS.
#[derive(Clone)]
pub(crate) struct Tls {
    context: SslContext,
    alpn: Arc<Mutex<Vec<u8>>>,
}

impl Tls {
    /// TLS as whoever that is; HTTP/2 would be taken if it were offered.
    pub(crate) fn of(identity: &Identity) -> Self {
        let mut builder = SslAcceptor::mozilla_intermediate_v5(SslMethod::tls_server()).expect("a context");
        builder.set_private_key(&identity.key).expect("key");
        builder.set_certificate(&identity.certificate).expect("certificate");
        let alpn = Arc::new(Mutex::new(Vec::new()));
        let asked = Arc::clone(&alpn);
        builder.set_alpn_select_callback(move |_, offered| {
            *asked.lock().expect("not poisoned") = offered.to_vec();
            openssl::ssl::select_next_proto(b"\x02h2\x08http/1.1", offered)
                .ok_or(openssl::ssl::AlpnError::NOACK)
        });
        Self { context: builder.build().into_context(), alpn }
    }

    /// The engine's side of the handshake. `None` if it fails, which is the gateway's choice.
    pub(crate) async fn accept(&self, stream: TcpStream) -> Option<Channel> {
        let mut stream = SslStream::new(Ssl::new(&self.context).expect("TLS"), stream).expect("TLS");
        Pin::new(&mut stream).accept().await.ok()?;
        let sni = stream.ssl().servername(NameType::HOST_NAME).map(str::to_owned);
        let alpn = self.alpn.lock().expect("not poisoned").clone();
        Some(Channel::Tls(Box::new(stream), Hello { sni, alpn }))
    }
}

impl From<TcpStream> for Channel {
    fn from(stream: TcpStream) -> Self {
        Self::Plain(stream)
    }
}

impl Channel {
    /// The socket.
    pub(crate) fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Tls(stream, _) => stream.get_ref(),
        }
    }

    /// What was asked for in the handshake.
    pub(crate) fn hello(&self) -> &Hello {
        match self {
            Self::Plain(_) => panic!("no TLS"),
            Self::Tls(_, hello) => hello,
        }
    }
}

impl AsyncRead for Channel {
    /// A connection that ends without TLS's own farewell ends all the same.
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(stream, _) => Pin::new(stream).poll_read(cx, buf).map(|read| match read {
                Err(error) if error.kind() != io::ErrorKind::ConnectionReset => Ok(()),
                read => read,
            }),
        }
    }
}

impl AsyncWrite for Channel {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Tls(stream, _) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream, _) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream, _) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
