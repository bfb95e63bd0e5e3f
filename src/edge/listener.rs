//! Listening sockets, bound by us and handed to Pingora.
//!
//! Pingora would try a taken port for half a minute, panic in a task and live on without a listener.
//! Binding before anything starts makes it an error of the start, and tells the port that the kernel
//! chose for port 0.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::IntoRawFd;
use std::sync::Arc;

use parking_lot::Mutex;
use pingora::server::{Fds, ListenFds};
use socket2::{Domain, Protocol, Socket, Type};

/// Connections that may wait to be accepted; the kernel's `somaxconn` bounds it further.
const BACKLOG: i32 = 65_535;

/// Sockets that listen, and the table through which Pingora takes them over.
pub struct Bound {
    /// Where they listen, in the order asked for.
    pub addrs: Vec<SocketAddr>,
    /// The table: Pingora looks a socket up by the text of its address.
    pub fds: ListenFds,
}

/// Binds every address.
///
/// # Errors
/// The address that could not be bound, and why.
pub fn bind(addrs: &[SocketAddr]) -> Result<Bound, (SocketAddr, io::Error)> {
    let mut bound = Vec::with_capacity(addrs.len());
    let mut fds = Fds::new();
    for addr in addrs {
        let listener = listen(*addr).map_err(|error| (*addr, error))?;
        let local = listener.local_addr().map_err(|error| (*addr, error))?;
        fds.add(local.to_string(), listener.into_raw_fd());
        bound.push(local);
    }
    Ok(Bound { addrs: bound, fds: Arc::new(Mutex::new(fds)) })
}

fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if addr.is_ipv6() {
        // "[::]" means IPv6 only: IPv4 has its own line in the file, on every system alike.
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&addr.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_is_an_error_that_names_it() {
        let first = bind(&["127.0.0.1:0".parse().unwrap()]).unwrap();
        let (addr, error) = bind(&first.addrs).err().unwrap();
        assert_eq!((addr, error.kind()), (first.addrs[0], io::ErrorKind::AddrInUse));
    }
}
