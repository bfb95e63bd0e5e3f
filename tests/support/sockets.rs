//! Odd sockets: resets, small buffers, and listeners that refuse or swallow connections.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use socket2::{Domain, SockRef, Socket, Type};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use super::channel::Channel;

/// For a test with more connections than the soft limit of many systems allows.
pub(crate) fn many_descriptors() {
    let limit = rlimit::increase_nofile_limit(u64::MAX).expect("RLIMIT_NOFILE");
    assert!(limit >= 4096, "only {limit} descriptors are allowed");
}

/// Closes with a reset instead of a FIN.
pub(crate) fn reset(stream: impl Into<Channel>) {
    let stream = stream.into();
    SockRef::from(stream.tcp()).set_linger(Some(Duration::ZERO)).expect("SO_LINGER");
    drop(stream);
}

/// Connects with a small receive buffer, so that not reading is felt early.
pub(crate) async fn connect_narrow(addr: SocketAddr, receive_bytes: u32) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("socket");
    socket.set_recv_buffer_size(receive_bytes).expect("SO_RCVBUF");
    socket.connect(addr).await.expect("connect")
}

/// Bounds what the kernel takes from a writer that nobody reads from.
pub(crate) fn narrow_send(stream: &TcpStream, send_bytes: usize) {
    SockRef::from(stream).set_send_buffer_size(send_bytes).expect("SO_SNDBUF");
}

/// A port that answers every connect with a reset: bound, but not listening.
#[derive(Debug)]
pub(crate) struct Refusing {
    socket: Socket,
}

impl Refusing {
    /// Takes a port of the kernel's choice.
    pub(crate) fn start() -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("socket");
        socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).expect("bind");
        Self { socket }
    }

    /// Its address.
    pub(crate) fn addr(&self) -> SocketAddr {
        local(&self.socket)
    }

    /// Takes connections from now on. The port was held all the while: nobody else can have it.
    pub(crate) fn listen(self) -> TcpListener {
        self.socket.listen(128).expect("listen");
        self.socket.set_nonblocking(true).expect("O_NONBLOCK");
        TcpListener::from_std(self.socket.into()).expect("a runtime")
    }
}

/// A port whose accept queue is full: a connect gets no answer at all.
#[derive(Debug)]
pub(crate) struct Blackhole {
    socket: Socket,
    _queued: Vec<TcpStream>,
}

impl Blackhole {
    /// Fills the queue of a listener that never accepts.
    pub(crate) async fn start() -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("socket");
        socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).expect("bind");
        socket.listen(0).expect("listen");
        let mut queued = Vec::new();
        let patience = Duration::from_millis(300);
        while let Ok(Ok(stream)) = tokio::time::timeout(patience, TcpStream::connect(local(&socket))).await {
            queued.push(stream);
            assert!(queued.len() < 64, "the queue does not fill");
        }
        super::score::struck(1, "a port that swallows connects");
        Self { socket, _queued: queued }
    }

    /// Its address.
    pub(crate) fn addr(&self) -> SocketAddr {
        local(&self.socket)
    }
}

fn local(socket: &Socket) -> SocketAddr {
    socket.local_addr().ok().and_then(|addr| addr.as_socket()).expect("bound to an IP address")
}

/// Bytes that a kernel of this machine holds for the socket at `peer`: written to it by others, and not acknowledged.
pub(crate) fn unsent_to(peer: SocketAddr) -> u64 {
    let SocketAddr::V4(peer) = peer else { panic!("/proc/net/tcp is of IPv4") };
    let wanted = format!("{:08X}:{:04X}", u32::from_le_bytes(peer.ip().octets()), peer.port());
    let table = std::fs::read_to_string("/proc/net/tcp").expect("/proc/net/tcp");
    let queues = table.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let queue = fields.get(4)?.split(':').next()?;
        (fields[2] == wanted).then(|| u64::from_str_radix(queue, 16).expect("a number"))
    });
    queues.sum()
}
