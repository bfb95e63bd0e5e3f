//! What the two processes say to each other: one message a packet, in JSON, with a socket beside some.
//!
//! The private socket is of packets (`SOCK_SEQPACKET`): a descriptor cannot slip to the next message.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};
use tokio::io::Interest;
use tokio::net::UnixStream;

use super::Role;

/// Changes when a message gets another meaning.
pub(super) const PROTOCOL: u32 = 1;

/// Longest message. One that is longer arrives cut off, and is no message.
const MESSAGE_MAX: usize = 16 << 10;

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Message {
    /// From the successor, first.
    Hello { protocol: u32 },
    /// The socket that listens there comes with this.
    Socket { role: Role, address: String },
    /// There are no more sockets.
    End,
    /// The successor accepts.
    Ready,
    /// The successor cannot start.
    Failed { why: String },
    /// The successor is alone now.
    Yours,
    /// The successor is not wanted, or not any more.
    Refused { why: String },
}

/// One side's end.
#[derive(Debug)]
pub(super) struct Channel(UnixStream);

impl Channel {
    pub(super) fn new(stream: UnixStream) -> Self {
        Self(stream)
    }

    /// Process and user of the other side, as the kernel has it.
    pub(super) fn peer(&self) -> io::Result<(u32, u32)> {
        let peer = self.0.peer_cred()?;
        let pid = peer.pid().and_then(|pid| u32::try_from(pid).ok()).unwrap_or_default();
        Ok((pid, peer.uid()))
    }

    pub(super) async fn send(&self, message: &Message) -> io::Result<()> {
        self.send_with(message, None).await
    }

    pub(super) async fn send_with(
        &self,
        message: &Message,
        socket: Option<BorrowedFd<'_>>,
    ) -> io::Result<()> {
        let bytes = serde_json::to_vec(message)?;
        let send = || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut beside = SendAncillaryBuffer::new(&mut space);
            if let Some(socket) = &socket {
                beside.push(SendAncillaryMessage::ScmRights(std::slice::from_ref(socket)));
            }
            Ok(sendmsg(self.0.as_fd(), &[IoSlice::new(&bytes)], &mut beside, SendFlags::NOSIGNAL)?)
        };
        self.0.async_io(Interest::WRITABLE, send).await.map(drop)
    }

    /// The next message. An end is an error: nobody leaves without a word.
    pub(super) async fn receive(&self) -> io::Result<(Message, Option<OwnedFd>)> {
        let mut bytes = vec![0; MESSAGE_MAX];
        let receive = || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut beside = RecvAncillaryBuffer::new(&mut space);
            let flags = RecvFlags::CMSG_CLOEXEC;
            let read = recvmsg(self.0.as_fd(), &mut [IoSliceMut::new(&mut bytes)], &mut beside, flags)?;
            let socket = beside.drain().find_map(|message| match message {
                RecvAncillaryMessage::ScmRights(mut sockets) => sockets.next(),
                _ => None,
            });
            Ok((read.bytes, socket))
        };
        let (length, socket) = self.0.async_io(Interest::READABLE, receive).await?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok((serde_json::from_slice(&bytes[..length])?, socket))
    }
}
