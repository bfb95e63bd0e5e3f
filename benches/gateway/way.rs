//! How clients come to a proxy: in the clear, over TLS 1.3, or with HTTP/2 over TLS 1.3, many on one connection.
//!
//! The engine speaks neither, so what a proxy adds is told against clients that ask it in the clear: the clients'
//! own part of the work is in the figures, alike for each proxy.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Poll, ready};

use bytes::Bytes;
use h2::client::SendRequest;
use openssl::error::ErrorStack;
use openssl::ssl::{Ssl, SslContext, SslMethod, SslVerifyMode, SslVersion};
use tokio::io::{AsyncRead as _, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;
use tokio_openssl::SslStream;

use crate::client::{self, Ask, Leave, Seen, unix_us};
use crate::judge::{Answer, Tokens, Wrong};
use crate::target::Target;

/// Windows of an HTTP/2 client: it never lets a proxy wait.
const WINDOW: u32 = 16 << 20;
/// Streams that share a connection of HTTP/2: fewer than any proxy's bound.
pub(crate) const SHARING: u32 = 100;

/// How clients come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Plain,
    Tls,
    H2,
}

impl Way {
    /// How they come to this one.
    pub(crate) fn to(self, target: Target) -> Self {
        if target == Target::Direct { Self::Plain } else { self }
    }

    /// A scenario's name in the report.
    pub(crate) fn name(self, plain: &'static str) -> &'static str {
        match (self, plain) {
            (Self::Plain, plain) => plain,
            (Self::Tls, "streams") => "streams, TLS",
            (Self::Tls, _) => "short, TLS",
            (Self::H2, "streams") => "streams, HTTP/2",
            (Self::H2, _) => "short, HTTP/2",
        }
    }
}

/// One connection for many requests, one after the other; of HTTP/2 for many at once, too.
pub(crate) enum Road {
    Plain(TcpStream),
    Tls(Pin<Box<SslStream<TcpStream>>>),
    H2(SendRequest<Bytes>),
}

impl Road {
    pub(crate) async fn open(way: Way, addr: SocketAddr) -> Result<Self, Wrong> {
        let socket = client::connect(addr).await?;
        match way {
            Way::Plain => Ok(Self::Plain(socket)),
            Way::Tls => Ok(Self::Tls(Box::pin(shake_hands(socket, b"\x08http/1.1").await?))),
            Way::H2 => {
                let stream = shake_hands(socket, b"\x02h2").await?;
                let mut builder = h2::client::Builder::new();
                builder.initial_window_size(WINDOW).initial_connection_window_size(WINDOW);
                let (sender, connection) = builder.handshake(stream).await.map_err(h2_failed)?;
                // It ends with its last request; what went wrong those are told.
                tokio::spawn(async move { drop(connection.await) });
                Ok(Self::H2(sender))
            }
        }
    }

    /// Another user of the same connection, where there can be one.
    pub(crate) fn share(&self) -> Option<Self> {
        if let Self::H2(sender) = self { Some(Self::H2(sender.clone())) } else { None }
    }

    /// Asks, and gives the body of the answer in `body`.
    pub(crate) async fn exchange(&mut self, ask: &Ask, body: &mut Vec<u8>) -> Result<(), Wrong> {
        body.clear();
        self.read(ask, |bytes| {
            body.extend_from_slice(bytes);
            Ok(())
        })
        .await
    }

    /// Asks for a stream and reads it to its end.
    async fn stream(mut self, ask: &Ask, tokens: Tokens) -> Result<Seen, Wrong> {
        let mut seen = Seen { tokens, first_us: None, left_us: None };
        let tokens = &mut seen.tokens;
        self.read(ask, |bytes| {
            tokens.buffer.extend_from_slice(bytes);
            tokens.take(unix_us())
        })
        .await?;
        seen.tokens.complete().map(|()| seen)
    }

    async fn read(&mut self, ask: &Ask, take: impl FnMut(&[u8]) -> Result<(), Wrong>) -> Result<(), Wrong> {
        match self {
            Self::Plain(socket) => {
                let (mut body, mut take) = (Vec::new(), take);
                client::exchange(socket, &ask.bytes(), &mut body).await?;
                take(&body)
            }
            Self::Tls(stream) => read_tls(stream.as_mut(), ask, take).await,
            Self::H2(sender) => read_h2(sender.clone(), ask, take).await,
        }
    }
}

/// One stream of a client's own way, over `shared` where it has one.
pub(crate) async fn stream(
    way: Way,
    addr: SocketAddr,
    shared: Option<Road>,
    ask: Ask,
    tokens: Tokens,
) -> Result<Seen, Wrong> {
    match (way, shared) {
        (Way::Plain, _) => client::stream(addr, ask, tokens, Leave::Never).await,
        (_, Some(road)) => road.stream(&ask, tokens).await,
        (way, None) => Road::open(way, addr).await?.stream(&ask, tokens).await,
    }
}

async fn shake_hands(socket: TcpStream, alpn: &[u8]) -> Result<SslStream<TcpStream>, Wrong> {
    let mut ssl = context().and_then(|context| Ssl::new(&context)).map_err(io::Error::other)?;
    ssl.set_alpn_protos(alpn).map_err(io::Error::other)?;
    let mut stream = SslStream::new(ssl, socket).map_err(io::Error::other)?;
    Pin::new(&mut stream).connect().await.map_err(io::Error::other)?;
    Ok(stream)
}

/// One for all connections: it believes anybody, and takes nothing older than TLS 1.3.
fn context() -> Result<SslContext, ErrorStack> {
    static CONTEXT: OnceLock<SslContext> = OnceLock::new();
    if let Some(context) = CONTEXT.get() {
        return Ok(context.clone());
    }
    let mut builder = SslContext::builder(SslMethod::tls_client())?;
    builder.set_verify(SslVerifyMode::NONE);
    builder.set_min_proto_version(Some(SslVersion::TLS1_3))?;
    Ok(CONTEXT.get_or_init(|| builder.build()).clone())
}

async fn read_tls(
    mut stream: Pin<&mut SslStream<TcpStream>>,
    ask: &Ask,
    mut take: impl FnMut(&[u8]) -> Result<(), Wrong>,
) -> Result<(), Wrong> {
    stream.write_all(&ask.bytes()).await?;
    let (mut answer, mut body) = (Answer::new(), Vec::new());
    while !answer.is_done() {
        poll_fn(|cx| {
            client::with_scratch(|scratch| {
                let mut read = ReadBuf::new(scratch);
                ready!(stream.as_mut().poll_read(cx, &mut read))?;
                if read.filled().is_empty() {
                    return Poll::Ready(Err(Wrong::CutOff));
                }
                Poll::Ready(answer.push(read.filled(), &mut body))
            })
        })
        .await?;
        take(&body)?;
        body.clear();
    }
    Ok(())
}

async fn read_h2(
    sender: SendRequest<Bytes>,
    ask: &Ask,
    mut take: impl FnMut(&[u8]) -> Result<(), Wrong>,
) -> Result<(), Wrong> {
    let mut sender = sender.ready().await.map_err(h2_failed)?;
    let (answer, mut sending) = sender.send_request(ask.head(), false).map_err(h2_failed)?;
    sending.send_data(ask.body().into(), true).map_err(h2_failed)?;
    let answer = answer.await.map_err(h2_failed)?;
    if answer.status() != 200 {
        return Err(Wrong::Status(answer.status().as_u16()));
    }
    let mut body = answer.into_body();
    while let Some(data) = body.data().await {
        let data = data.map_err(h2_failed)?;
        body.flow_control().release_capacity(data.len()).map_err(h2_failed)?;
        take(&data)?;
    }
    Ok(())
}

fn h2_failed(error: h2::Error) -> Wrong {
    Wrong::Connection(io::Error::other(error))
}
