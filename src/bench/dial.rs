//! Connections: TCP, TLS where the URL says so, and a slow reader where one is wanted.

use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use openssl::ssl::SslContext;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpSocket, TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_openssl::SslStream;

use super::Error;
use super::args::Way;
use super::paced::{Paced, delay};
use super::target::Place;
use super::wrong::Wrong;
use crate::config::{ServerName, Trust};
use crate::tls;

/// How long a connection may take, and a handshake.
const CONNECT: Duration = Duration::from_secs(10);
/// Receive buffer of a slow reader; the kernel makes of it what it can do with, some 4 KiB.
const NARROW: u32 = 4 << 10;

/// A connection of any kind.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Connects to one place, whose name is looked up once: what a name service takes is no part of the figures.
pub(super) struct Dialer {
    addresses: Vec<SocketAddr>,
    name: ServerName,
    trust: Trust,
    /// `None` in the clear.
    context: Option<SslContext>,
    http2: bool,
}

impl Dialer {
    /// Looks the place up.
    ///
    /// # Errors
    /// Its name leads nowhere, or OpenSSL cannot be set up.
    pub(super) async fn new(place: &Place, way: &Way) -> Result<Self, Error> {
        let failed = |why: &dyn std::fmt::Display| Error::Away(format!("{place}: {why}"));
        let found = timeout(CONNECT, lookup_host((place.host(), place.port()))).await;
        let found = found.map_err(|_| failed(&"its name is not answered for"))?;
        let addresses = found.map_err(|error| failed(&error))?.collect();
        let protocol: &[u8] = if way.http2 { b"\x02h2" } else { b"\x08http/1.1" };
        let context = place.tls.then(|| tls::context(&way.trust, protocol)).transpose();
        Ok(Self {
            addresses,
            name: place.server_name(),
            trust: way.trust.clone(),
            context: context.map_err(|error| failed(&error))?,
            http2: way.http2,
        })
    }

    /// A new connection, which is read at a rate of bytes a second if one is given.
    ///
    /// # Errors
    /// There is none to be had.
    pub(super) async fn dial(&self, rate: Option<u32>) -> Result<Box<dyn Stream>, Wrong> {
        let connected = timeout(CONNECT, self.connect(rate.is_some())).await;
        let socket = connected.map_err(|_| Wrong::Connect(format!("not within {CONNECT:?}")))??;
        match (rate, &self.context) {
            (None, None) => Ok(Box::new(socket)),
            (Some(rate), None) => Ok(Box::new(Paced::new(socket, rate))),
            (None, Some(context)) => self.shake_hands(context, socket, CONNECT).await,
            (Some(rate), Some(context)) => {
                self.shake_hands(context, Paced::new(socket, rate), CONNECT + delay(rate)).await
            }
        }
    }

    /// The first address that answers.
    async fn connect(&self, narrow: bool) -> Result<TcpStream, Wrong> {
        let mut why = "its name leads nowhere".to_owned();
        for address in &self.addresses {
            match connect(*address, narrow).await {
                Ok(socket) => return Ok(socket),
                Err(error) => why = error.to_string(),
            }
        }
        Err(Wrong::Connect(why))
    }

    async fn shake_hands<S: Stream + 'static>(
        &self,
        context: &SslContext,
        socket: S,
        within: Duration,
    ) -> Result<Box<dyn Stream>, Wrong> {
        let failed = |why: String| Wrong::Connect(why);
        let ssl = tls::toward(context, &self.trust, &self.name).map_err(|error| failed(error.to_string()))?;
        let mut stream = SslStream::new(ssl, socket).map_err(|error| failed(error.to_string()))?;
        let shaken = timeout(within, Pin::new(&mut stream).connect()).await;
        let shaken = shaken.map_err(|_| failed("no TLS handshake in time".into()))?;
        if let Err(error) = shaken {
            let verified = stream.ssl().verify_result();
            return Err(failed(tls::told(verified, &error, &self.name, "plain HTTP").to_string()));
        }
        if self.http2 && stream.ssl().selected_alpn_protocol() != Some(b"h2") {
            return Err(failed("it does not agree to HTTP/2".into()));
        }
        Ok(Box::new(stream))
    }
}

async fn connect(address: SocketAddr, narrow: bool) -> std::io::Result<TcpStream> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if narrow {
        socket.set_recv_buffer_size(NARROW)?;
    }
    let socket = socket.connect(address).await?;
    socket.set_nodelay(true)?;
    Ok(socket)
}
