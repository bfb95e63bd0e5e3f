//! The private socket: where it stands, and who may speak there.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net as unix;
use std::path::{Path, PathBuf};

use socket2::{Domain, SockAddr, Socket, Type};
use tokio::net::{UnixListener, UnixStream};

use super::wire::Channel;

/// Only its owner may write to it, and so connect.
const OWNER_ONLY: u32 = 0o600;

/// Successors that may wait for one that is being served.
const BACKLOG: i32 = 8;

/// The socket of a process that can be succeeded. Its file goes when this is dropped.
#[derive(Debug)]
pub(crate) struct PrivateSocket {
    listener: UnixListener,
    path: PathBuf,
    /// The file that is ours: another process may have put its own there.
    inode: u64,
}

impl PrivateSocket {
    /// Listens there, in place of a socket that nobody listens on any more.
    ///
    /// # Errors
    /// Somebody listens there, something else stands there, or the system refuses.
    pub(crate) fn bind(path: &Path) -> io::Result<Self> {
        if path.symlink_metadata().is_ok_and(|meta| meta.file_type().is_socket()) {
            match dial(path) {
                Ok(_) => return Err(io::ErrorKind::AddrInUse.into()),
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path)?,
                Err(error) => return Err(error),
            }
        }
        let socket = packets()?;
        socket.bind(&SockAddr::unix(path)?)?;
        // Before it listens: nobody can connect under another mode.
        fs::set_permissions(path, fs::Permissions::from_mode(OWNER_ONLY))?;
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(true)?;
        let listener = UnixListener::from_std(unix::UnixListener::from(OwnedFd::from(socket)))?;
        let inode = path.symlink_metadata()?.ino();
        tell_open_folder(path);
        Ok(Self { listener, path: path.to_owned(), inode })
    }

    /// The next one who connects.
    pub(super) async fn accept(&self) -> io::Result<Channel> {
        self.listener.accept().await.map(|(stream, _)| Channel::new(stream))
    }
}

impl Drop for PrivateSocket {
    fn drop(&mut self) {
        if self.path.symlink_metadata().is_ok_and(|meta| meta.ino() == self.inode) {
            // One that stays is taken for what it is by the next start.
            drop(fs::remove_file(&self.path));
        }
    }
}

/// Connects to a process that listens there.
pub(super) fn connect(path: &Path) -> io::Result<Channel> {
    let socket = dial(path)?;
    socket.set_nonblocking(true)?;
    Ok(Channel::new(UnixStream::from_std(unix::UnixStream::from(OwnedFd::from(socket)))?))
}

fn dial(path: &Path) -> io::Result<Socket> {
    let socket = packets()?;
    socket.connect(&SockAddr::unix(path)?)?;
    Ok(socket)
}

fn packets() -> io::Result<Socket> {
    Socket::new(Domain::UNIX, Type::SEQPACKET, None)
}

/// In a folder that others write to, anybody may put a socket there first and wait for ours.
fn tell_open_folder(path: &Path) {
    let Some(folder) = path.parent() else { return };
    if folder.metadata().is_ok_and(|meta| meta.mode() & 0o002 != 0) {
        log::warn!(
            "server.upgrade_socket: everybody may write to {}: put the socket into a folder of the gateway's own",
            folder.display()
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_a_socket_of_the_dead_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("upgrade.sock");
        let first = PrivateSocket::bind(&path).unwrap();
        assert_eq!(path.metadata().unwrap().mode() & 0o777, OWNER_ONLY);
        assert_eq!(PrivateSocket::bind(&path).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        // As a process leaves it that was killed.
        let moved = dir.path().join("left");
        fs::rename(&path, &moved).unwrap();
        drop(first);
        let second = PrivateSocket::bind(&moved).unwrap();
        drop(second);
        assert!(!moved.exists());
        fs::write(&path, "kept").unwrap();
        assert!(PrivateSocket::bind(&path).is_err());
        assert_eq!(fs::read_to_string(path).unwrap(), "kept");
    }
}
