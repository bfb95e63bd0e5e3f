//! A fake engine on a port of its own: it records what it is asked and says only what the test says.
//!
//! Each request becomes a [`Call`], which owns its connection: the test writes the answer piece by
//! piece, sees when the gateway leaves, and decides whether the connection lives on.

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::certificates::Identity;
use super::channel::{Channel, Hello, Tls};
use super::framing::{BodyDecoder, Head};
use super::wait::{SOON, ms, silence, within};
use super::{score, sockets, wire};

/// What the gateway asked.
#[derive(Debug, Clone)]
pub(crate) struct Recorded {
    /// Request line and headers.
    pub(crate) head: Head,
    /// The decoded body.
    pub(crate) body: Vec<u8>,
}

/// How the gateway left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gone {
    /// It closed.
    Fin,
    /// It reset.
    Reset,
}

/// A fake engine.
#[derive(Debug)]
pub(crate) struct Upstream {
    /// Where it listens.
    pub(crate) addr: SocketAddr,
    calls: mpsc::UnboundedReceiver<Call>,
    connections: Arc<AtomicUsize>,
}

impl Upstream {
    /// Listens on a port of the kernel's choice.
    pub(crate) async fn start() -> Self {
        Self::on(Ipv4Addr::LOCALHOST.into(), None).await
    }

    /// The same over TLS.
    pub(crate) async fn with_tls(identity: &Identity) -> Self {
        Self::on(Ipv4Addr::LOCALHOST.into(), Some(Tls::of(identity))).await
    }

    /// Listens on this address, with TLS or without.
    pub(crate) async fn on(ip: IpAddr, tls: Option<Tls>) -> Self {
        Self::at(SocketAddr::new(ip, 0), tls).await
    }

    /// Listens on this address and port; of a port that is given, another engine has the same on another
    /// address.
    pub(crate) async fn at(addr: SocketAddr, tls: Option<Tls>) -> Self {
        let listener = TcpListener::bind(addr).await.expect("bind");
        let addr = listener.local_addr().expect("bound");
        let (sender, calls) = mpsc::unbounded_channel();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let connection = count.fetch_add(1, Ordering::SeqCst);
                stream.set_nodelay(true).expect("TCP_NODELAY");
                let (tls, sender) = (tls.clone(), sender.clone());
                tokio::spawn(async move {
                    let channel = match tls {
                        Some(tls) => tls.accept(stream).await,
                        None => Some(Channel::Plain(stream)),
                    };
                    if let Some(channel) = channel {
                        serve(channel, Vec::new(), connection, sender);
                    }
                });
            }
        });
        Self { addr, calls, connections }
    }

    /// An engine that answers each request at once with what `reply` makes of it.
    pub(crate) async fn answering(reply: impl Fn(&Recorded) -> Vec<u8> + Send + 'static) -> SocketAddr {
        let upstream = Self::start().await;
        let addr = upstream.addr;
        upstream.each(move |call| {
            let bytes = reply(&call.request);
            call.answer(bytes)
        });
        addr
    }

    /// Serves each request in a task of its own.
    pub(crate) fn each<F>(mut self, serve: impl Fn(Call) -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        tokio::spawn(async move {
            while let Some(call) = self.calls.recv().await {
                tokio::spawn(serve(call));
            }
        });
    }

    /// The next request.
    pub(crate) async fn call(&mut self) -> Call {
        self.call_within(SOON).await
    }

    /// The same from a client that takes its time.
    pub(crate) async fn call_within(&mut self, deadline: Duration) -> Call {
        within("the engine is asked", deadline, self.calls.recv()).await.expect("the engine runs")
    }

    /// Connections accepted so far.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Asserts that no request is waiting to be taken.
    pub(crate) fn assert_not_asked(&mut self) {
        if let Ok(call) = self.calls.try_recv() {
            panic!("the engine was asked again: {:?}", call.request.head);
        }
    }
}

/// The next request to either engine, and the engine that was not asked.
pub(crate) async fn either<'a>(one: &'a mut Upstream, two: &'a mut Upstream) -> (Call, &'a mut Upstream) {
    let (call, first) = tokio::select! {
        call = one.call() => (call, true),
        call = two.call() => (call, false),
    };
    (call, if first { two } else { one })
}

/// One request and the connection it came on.
#[derive(Debug)]
pub(crate) struct Call {
    /// What was asked.
    pub(crate) request: Recorded,
    /// Number of the connection, from 0.
    pub(crate) connection: usize,
    stream: Channel,
    after: Vec<u8>,
    calls: mpsc::UnboundedSender<Self>,
}

impl Call {
    /// Sends bytes in one write.
    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send(bytes).await.expect("the engine sends");
    }

    /// Sends bytes that the gateway may not take any more.
    pub(crate) async fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> std::io::Result<()> {
        within("the engine sends", Duration::from_secs(30), self.stream.write_all(bytes.as_ref())).await
    }

    /// Sends the head of a stream.
    pub(crate) async fn open(&mut self) {
        self.send(wire::SSE_HEAD).await;
    }

    /// Sends one HTTP chunk in one write.
    pub(crate) async fn chunk(&mut self, bytes: impl AsRef<[u8]>) {
        self.send(wire::chunk(bytes)).await;
    }

    /// Sends one byte a chunk and a write, slowly enough that most are read one by one.
    pub(crate) async fn trickle(&mut self, bytes: impl AsRef<[u8]>) {
        for byte in bytes.as_ref() {
            self.chunk([*byte]).await;
            silence(ms(1)).await;
        }
    }

    /// Ends the chunked body; the connection serves the next request.
    pub(crate) async fn finish(mut self) {
        self.send(wire::LAST_CHUNK).await;
        self.keep();
    }

    /// Answers with `content` as a short stream; the connection serves the next request.
    pub(crate) async fn stream(mut self, content: &str) {
        self.send(wire::stream_answer(content)).await;
        self.keep();
    }

    /// Answers with these bytes; the connection serves the next request.
    pub(crate) async fn answer(mut self, bytes: impl AsRef<[u8]>) {
        self.send(bytes).await;
        self.keep();
    }

    /// Serves the next request on the same connection.
    pub(crate) fn keep(self) {
        serve(self.stream, self.after, self.connection, self.calls);
    }

    /// What the gateway asked for in its handshake.
    pub(crate) fn hello(&self) -> &Hello {
        self.stream.hello()
    }

    /// Waits for the first byte of a next request, without taking it; false where none comes on this connection.
    pub(crate) async fn next_byte(&self) -> bool {
        let mut byte = [0];
        let peeked = tokio::time::timeout(ms(1000), self.stream.tcp().peek(&mut byte)).await;
        matches!(peeked, Ok(Ok(1)))
    }

    /// Closes with a FIN.
    pub(crate) fn close(self) {
        score::struck(1, "the engine closes");
        drop(self);
    }

    /// Closes with a reset.
    pub(crate) fn reset(self) {
        score::struck(1, "the engine resets");
        sockets::reset(self.stream);
    }

    /// Bounds what the kernel buffers for this connection.
    pub(crate) fn narrow(&self) {
        sockets::narrow_send(self.stream.tcp(), 16 * 1024);
    }

    /// Waits until the gateway leaves, which must happen without another byte from it.
    pub(crate) async fn gone(&mut self) -> Gone {
        self.gone_within(SOON).await
    }

    /// Like [`Call::gone`] with a deadline of one's own.
    pub(crate) async fn gone_within(&mut self, deadline: Duration) -> Gone {
        let mut byte = [0];
        match within("the gateway leaves the engine", deadline, self.stream.read(&mut byte)).await {
            Ok(0) => Gone::Fin,
            Ok(_) => panic!("the gateway sent more than the request"),
            Err(_) => Gone::Reset,
        }
    }

    /// Sends the same bytes over and over until the gateway leaves or `total` bytes are sent.
    ///
    /// Gives a counter of the bytes that the socket took, to be read while the flood goes on.
    pub(crate) fn flood(
        mut self,
        piece: Vec<u8>,
        total: usize,
    ) -> (Arc<AtomicUsize>, impl Future<Output = Option<Self>>) {
        let taken = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&taken);
        let task = tokio::spawn(async move {
            for _ in 0..total.div_ceil(piece.len()) {
                for part in piece.chunks(16 * 1024) {
                    self.stream.write_all(part).await.ok()?;
                    count.fetch_add(part.len(), Ordering::SeqCst);
                }
            }
            Some(self)
        });
        (taken, async { task.await.expect("the flood does not panic") })
    }
}

/// Reads one request off a connection and hands it to the test.
fn serve(mut stream: Channel, mut raw: Vec<u8>, connection: usize, calls: mpsc::UnboundedSender<Call>) {
    tokio::spawn(async move {
        if let Some(request) = read_request(&mut stream, &mut raw).await {
            let (after, next) = (raw, calls.clone());
            // The test may be over.
            drop(calls.send(Call { request, connection, stream, after, calls: next }));
        }
    });
}

/// `None` when the connection ends before a whole request.
async fn read_request(stream: &mut Channel, raw: &mut Vec<u8>) -> Option<Recorded> {
    let head = loop {
        if let Some(head) = Head::take(raw) {
            break head;
        }
        read_more(stream, raw).await?;
    };
    let mut decoder = BodyDecoder::request(&head);
    let mut body = Vec::new();
    loop {
        decoder.decode(raw, &mut body);
        if decoder.is_done() {
            return Some(Recorded { head, body });
        }
        read_more(stream, raw).await?;
    }
}

async fn read_more(stream: &mut Channel, raw: &mut Vec<u8>) -> Option<()> {
    let mut buffer = vec![0; 64 * 1024];
    match stream.read(&mut buffer).await {
        Ok(0) | Err(_) => None,
        Ok(count) => {
            raw.extend_from_slice(&buffer[..count]);
            Some(())
        }
    }
}
