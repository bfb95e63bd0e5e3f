//! The side of the successor.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::timeout;

use super::wire::{Channel, Message, PROTOCOL};
use super::{Handed, private};

/// How long a successor waits for the first checks of its backends; then it takes over as it is.
pub(crate) const WARM_MAX: Duration = Duration::from_secs(20);

/// How long the other side may take to answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// Why nothing was taken over.
#[derive(Debug, thiserror::Error)]
pub enum TakeError {
    /// The file does not say where.
    #[error("server.upgrade_socket is not set: there is no telling from whom to take over")]
    NoSocket,
    /// Simulated engines would be asked by two processes.
    #[error("a gateway with simulated engines (sim) cannot be handed over")]
    Simulated,
    /// SIGTERM has come first.
    #[error("told to end before it had taken over")]
    Ended,
    /// Nobody is there, or the socket cannot be used.
    #[error("nobody to take over from at {path} (`streamgate run` starts a gateway)")]
    Nobody {
        /// The private socket.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The one who listens there is another user's.
    #[error("the process at {path} is user {user}'s")]
    Stranger {
        /// The private socket.
        path: PathBuf,
        /// The user.
        user: u32,
    },
    /// It said no.
    #[error("the process that runs has refused: {0}")]
    Refused(String),
    /// It said nothing, or something else.
    #[error("the process that runs has not answered as it should")]
    Talk(#[source] io::Error),
}

impl TakeError {
    /// Whether the file is wrong, rather than the moment.
    pub(crate) fn is_configuration(&self) -> bool {
        matches!(self, Self::NoSocket | Self::Simulated)
    }
}

/// The process whose sockets we take.
#[derive(Debug)]
pub(crate) struct Predecessor(Channel);

impl Predecessor {
    /// Asks for its sockets.
    pub(crate) async fn ask(path: &Path) -> Result<(Self, Vec<Handed>), TakeError> {
        let nobody = |source| TakeError::Nobody { path: path.to_owned(), source };
        let channel = private::connect(path).map_err(nobody)?;
        let (pid, user) = channel.peer().map_err(TakeError::Talk)?;
        let own = rustix::process::geteuid();
        if user != own.as_raw() && !own.is_root() {
            return Err(TakeError::Stranger { path: path.to_owned(), user });
        }
        let hello = Message::Hello { protocol: PROTOCOL };
        channel.send(&hello).await.map_err(TakeError::Talk)?;
        let mut sockets = Vec::new();
        loop {
            match answer(&channel).await? {
                (Message::Socket { role, address }, Some(socket)) => {
                    sockets.push(Handed { role: Some(role), address, socket });
                }
                (Message::End, _) => {
                    log::info!("taking over {} sockets from process {pid}", sockets.len());
                    return Ok((Self(channel), sockets));
                }
                (other, _) => return Err(unexpected(other)),
            }
        }
    }

    /// Says that we accept, and returns once it has stopped accepting.
    pub(crate) async fn succeed(&self) -> Result<(), TakeError> {
        self.0.send(&Message::Ready).await.map_err(TakeError::Talk)?;
        match answer(&self.0).await {
            Ok((Message::Yours, _)) => Ok(()),
            Ok((other, _)) => Err(unexpected(other)),
            Err(TakeError::Refused(why)) => Err(TakeError::Refused(why)),
            Err(error) => {
                // It has been told, and it is gone or stuck: somebody must serve.
                log::warn!("{}; taking over all the same", crate::server::chain(&error));
                Ok(())
            }
        }
    }

    /// Returns when its process has ended, which keeps its end of the conversation until then.
    pub(crate) async fn ended(&self) {
        while self.0.receive().await.is_ok() {}
    }

    /// Says that we cannot.
    pub(crate) async fn stay(&self, why: &str) {
        // It sees the end of the conversation as well.
        drop(self.0.send(&Message::Failed { why: why.to_owned() }).await);
    }
}

async fn answer(channel: &Channel) -> Result<(Message, Option<OwnedFd>), TakeError> {
    let answer = timeout(ANSWERS_WITHIN, channel.receive()).await;
    match answer.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
        Ok((Message::Refused { why }, _)) => Err(TakeError::Refused(why)),
        Ok(answer) => Ok(answer),
        Err(error) => Err(TakeError::Talk(error)),
    }
}

fn unexpected(message: Message) -> TakeError {
    TakeError::Talk(io::Error::other(format!("{message:?}")))
}
