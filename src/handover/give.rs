//! The side of the process that runs: it gives the sockets away when a successor is ready for them.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use tokio::signal::unix::Signal;
use tokio::time::timeout;

use super::launch::{Launched, Program};
use super::wire::{Channel, Message, PROTOCOL};
use super::{Handed, PrivateSocket, Role};

/// How long a successor may take from its first word until it accepts. All that takes time is behind it.
const READY_WITHIN: Duration = Duration::from_secs(10);

/// How long a message may take. They are small, and there is room for many.
const SAID_WITHIN: Duration = Duration::from_secs(1);

/// What can be handed on, and to whom.
#[derive(Debug)]
pub(crate) struct Estate {
    pub(crate) private: PrivateSocket,
    pub(crate) sockets: Vec<Handed>,
    pub(crate) program: Program,
}

/// Waits for a successor.
pub(crate) struct Giver {
    /// Or why there can be none.
    estate: Result<Estate, String>,
    quits: Signal,
    launched: Option<Launched>,
    /// Told of each attempt that came to nothing.
    failed: Box<dyn Fn() + Send + Sync>,
}

/// A successor that accepts.
#[derive(Debug)]
pub(crate) struct Successor {
    /// Its process.
    pub(crate) pid: u32,
    channel: Channel,
}

impl Successor {
    /// Tells it that it is alone now.
    pub(crate) async fn is_alone(&self) {
        if said(self.channel.send(&Message::Yours)).await.is_err() {
            log::warn!("process {} has taken over, and is not there to be told so", self.pid);
        }
    }
}

/// What happens while nobody is being served.
enum Event {
    Came(io::Result<Channel>),
    Quit,
    LaunchFailed(String),
}

impl Giver {
    /// One for what there is to hand on, or for the reason that there is nothing.
    pub(crate) fn new(
        estate: Result<Estate, String>,
        quits: Signal,
        failed: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        Self { estate, quits, launched: None, failed: Box::new(failed) }
    }

    /// Returns once a successor accepts.
    pub(crate) async fn give(&mut self) -> Successor {
        loop {
            match self.event().await {
                Event::Quit => self.launch(),
                Event::LaunchFailed(why) => {
                    self.launched = None;
                    self.fail(&why);
                }
                Event::Came(Err(error)) => {
                    log::error!("server.upgrade_socket: {error}");
                    // Too many open files, most likely: they are not there again at once.
                    tokio::time::sleep(SAID_WITHIN).await;
                }
                Event::Came(Ok(channel)) => match self.serve(&channel).await {
                    Ok(pid) => {
                        if let Some(launched) = self.launched.take_if(|launched| launched.is(pid)) {
                            launched.let_go(pid).await;
                        }
                        return Successor { pid, channel };
                    }
                    Err(why) => {
                        // It may have heard nothing of us at all.
                        drop(said(channel.send(&Message::Refused { why: why.clone() })).await);
                        self.fail(&why);
                    }
                },
            }
        }
    }

    async fn event(&mut self) -> Event {
        let came = async {
            match &self.estate {
                Ok(estate) => estate.private.accept().await,
                Err(_) => std::future::pending().await,
            }
        };
        let launch_failed = async {
            match &mut self.launched {
                Some(launched) => launched.failed().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            came = came => Event::Came(came),
            _ = self.quits.recv() => Event::Quit,
            why = launch_failed => Event::LaunchFailed(why),
        }
    }

    fn launch(&mut self) {
        let estate = match &self.estate {
            Ok(estate) => estate,
            Err(why) => return log::warn!("SIGQUIT: nothing can be handed over: {why}; nothing changes"),
        };
        if self.launched.is_some() {
            return log::warn!("SIGQUIT: a successor is starting already; nothing changes");
        }
        if std::process::id() == 1 {
            return log::warn!(
                "SIGQUIT: this is process 1, whose end would be that of its container: replace the container; \
                 nothing changes"
            );
        }
        log::info!("SIGQUIT: starting a successor");
        match estate.program.launch() {
            Ok(launched) => self.launched = Some(launched),
            Err(error) => self.fail(&error.to_string()),
        }
    }

    fn fail(&self, why: &str) {
        log::error!("no successor: {why}; this process goes on serving");
        (self.failed)();
    }

    /// Gives it the sockets and waits until it accepts; its process, or why not.
    async fn serve(&self, channel: &Channel) -> Result<u32, String> {
        let Ok(estate) = &self.estate else { return Err("there is nothing to hand over".into()) };
        let (pid, user) = channel.peer().map_err(|error| error.to_string())?;
        let own = rustix::process::geteuid();
        if user != own.as_raw() && user != 0 {
            return Err(format!("process {pid} is user {user}'s, and this one is user {}'s", own.as_raw()));
        }
        match timeout(READY_WITHIN, converse(channel, &estate.sockets)).await {
            Ok(Ok(())) => Ok(pid),
            Ok(Err(why)) => Err(format!("process {pid}: {why}")),
            Err(_) => Err(format!("process {pid} has not said that it is ready within {READY_WITHIN:?}")),
        }
    }
}

async fn converse(channel: &Channel, sockets: &[Handed]) -> Result<(), String> {
    let lost = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
            "it was gone before it was ready".to_owned()
        }
        _ => error.to_string(),
    };
    match channel.receive().await.map_err(lost)? {
        (Message::Hello { protocol: PROTOCOL }, _) => {}
        (Message::Hello { protocol }, _) => {
            return Err(format!("it hands over by protocol {protocol}, and this process by {PROTOCOL}"));
        }
        (other, _) => return Err(format!("it began with {other:?}")),
    }
    for handed in sockets {
        let role = handed.role.unwrap_or(Role::Clients);
        let message = Message::Socket { role, address: handed.address.clone() };
        channel.send_with(&message, Some(handed.socket.as_fd())).await.map_err(lost)?;
    }
    channel.send(&Message::End).await.map_err(lost)?;
    match channel.receive().await.map_err(lost)? {
        (Message::Ready, _) => Ok(()),
        (Message::Failed { why }, _) => Err(why),
        (other, _) => Err(format!("it said {other:?} where it was to be ready")),
    }
}

async fn said(message: impl Future<Output = io::Result<()>>) -> io::Result<()> {
    timeout(SAID_WITHIN, message).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
