//! Listening sockets, bound by us and handed to Pingora.
//!
//! Pingora would try a taken port for half a minute, panic in a task and live on without a listener.
//! Binding before anything starts makes it an error of the start, and tells the port that the kernel
//! chose for port 0.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, IntoRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pingora::server::{Fds, ListenFds};
use socket2::{Domain, Protocol, SockAddr, Socket, TcpKeepalive, Type};

use crate::config::Address;

/// Connections that may wait to be accepted; the kernel's `somaxconn` bounds it further.
const BACKLOG: i32 = 65_535;

/// A vanished client (no FIN) is noticed after a minute of silence and three unanswered probes.
const KEEPALIVE: TcpKeepalive = TcpKeepalive::new()
    .with_time(Duration::from_secs(60))
    .with_interval(Duration::from_secs(10))
    .with_retries(3);

/// Sockets that listen, and the table through which Pingora takes them over.
pub struct Bound {
    /// Where they listen, in the order asked for.
    pub addresses: Vec<Address>,
    /// The table: Pingora looks a socket up by the text of its address.
    pub fds: ListenFds,
    /// The sockets once more, in the same order, to be handed on. They listen as long as one of the two is open.
    pub copies: Vec<OwnedFd>,
}

/// Listens on every address: with the socket that `given` has for it, else with a new one.
///
/// # Errors
/// The address that could not be bound, and why.
pub fn bind<'a>(
    addresses: impl IntoIterator<Item = &'a Address>,
    mut given: impl FnMut(&Address) -> Option<OwnedFd>,
) -> Result<Bound, (&'a Address, io::Error)> {
    let (mut bound, mut copies) = (Vec::new(), Vec::new());
    let mut fds = Fds::new();
    for address in addresses {
        let listener = match (given(address), address) {
            (Some(given), _) => adopt(given),
            (None, Address::Tcp(tcp)) => listen(*tcp),
            (None, Address::Unix { path, mode }) => listen_unix(path, *mode),
        };
        let at = |error| (address, error);
        let listener = listener.map_err(at)?;
        let local = match (address, listener.local_addr().map_err(at)?.as_socket()) {
            (Address::Tcp(_), Some(local)) => Address::Tcp(local),
            _ => address.clone(),
        };
        copies.push(listener.as_fd().try_clone_to_owned().map_err(at)?);
        fds.add(key(&local), listener.into_raw_fd());
        bound.push(local);
    }
    Ok(Bound { addresses: bound, fds: Arc::new(Mutex::new(fds)), copies })
}

/// A socket that another process has bound: it is made what ours are.
fn adopt(socket: OwnedFd) -> io::Result<Socket> {
    let socket = Socket::from(socket);
    socket.set_nonblocking(true)?;
    if socket.local_addr()?.as_socket().is_some() {
        socket.set_tcp_keepalive(&KEEPALIVE)?;
    }
    Ok(socket)
}

/// The text by which Pingora knows an address.
pub fn key(address: &Address) -> String {
    match address {
        Address::Tcp(tcp) => tcp.to_string(),
        Address::Unix { path, .. } => path.display().to_string(),
    }
}

/// In place of a socket that nobody listens on any more. Nobody can connect before the mode is set.
fn listen_unix(path: &Path, mode: u32) -> io::Result<Socket> {
    let is_socket = path.symlink_metadata().is_ok_and(|meta| meta.file_type().is_socket());
    if is_socket {
        if UnixStream::connect(path).is_ok() {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        fs::remove_file(path)?;
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::unix(path)?)?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}

fn listen(addr: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if addr.is_ipv6() {
        // "[::]" means IPv6 only: IPv4 has its own line in the file, on every system alike.
        socket.set_only_v6(true)?;
    }
    // Each accepted connection inherits it, which spares it five calls of its own.
    socket.set_tcp_keepalive(&KEEPALIVE)?;
    socket.set_nonblocking(true)?;
    socket.bind(&addr.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_taken_port_is_an_error_that_names_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sock");
        let wanted = [
            Address::Tcp("127.0.0.1:0".parse().unwrap()),
            Address::Tcp("[::1]:0".parse().unwrap()),
            Address::Unix { path: path.clone(), mode: 0o620 },
        ];
        let first = bind(&wanted, |_| None).unwrap();
        for taken in &first.addresses {
            let (address, error) = bind([taken], |_| None).err().unwrap();
            assert_eq!((address, error.kind()), (taken, io::ErrorKind::AddrInUse));
        }
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o620);
    }

    #[test]
    fn a_socket_that_is_left_over_is_replaced_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let (left, file) = (dir.path().join("left"), dir.path().join("file"));
        drop(UnixListener::bind(&left).unwrap());
        fs::write(&file, "kept").unwrap();
        assert!(listen_unix(&left, 0o600).is_ok());
        assert!(listen_unix(&file, 0o600).is_err());
        assert_eq!(fs::read_to_string(file).unwrap(), "kept");
    }
}
