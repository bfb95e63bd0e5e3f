//! Connections that end at once.
//!
//! The hard idea: to close a socket is not to be rid of it. Behind an ordinary close the kernel keeps what has not
//! been sent and goes on offering it, for minutes to a peer that takes nothing: memory that none of our counts
//! sees. A reset drops it, and tells the peer that what it has is not all.

use std::io;
use std::time::Duration;

use filedescriptor::OwnedHandle;
use pingora::protocols::UniqueIDType;
use pingora::protocols::l4::ext::get_tcp_info;
use socket2::SockRef;

/// Makes the coming close of a connection's socket a reset. On a unix socket it changes nothing: there the kernel
/// keeps nothing that is not the peer's already.
pub(crate) fn on_close(socket: UniqueIDType) {
    set(socket, |socket| socket.set_linger(Some(Duration::ZERO)));
}

/// Has a connection that is closed reset where the peer takes nothing of what the kernel still has for it, for
/// `patience` (`TCP_USER_TIMEOUT`; RFC 5482). Without it that takes the kernel minutes.
pub(crate) fn soon(socket: UniqueIDType, patience: Duration) {
    if has_unsent(socket) {
        set(socket, |socket| socket.set_tcp_user_timeout(Some(patience)));
    }
}

fn set(socket: UniqueIDType, option: impl FnOnce(SockRef<'_>) -> io::Result<()>) {
    let done =
        OwnedHandle::dup(&socket).map_err(io::Error::other).and_then(|socket| option(SockRef::from(&socket)));
    if let Err(error) = done {
        log::warn!("a connection that should be reset is only closed: {error}");
    }
}

/// Whether the kernel has bytes for the peer that it could not send yet; false where it does not say, as on a unix
/// socket.
pub(crate) fn has_unsent(socket: UniqueIDType) -> bool {
    get_tcp_info(socket).is_ok_and(|info| info.tcpi_notsent_bytes > 0)
}
