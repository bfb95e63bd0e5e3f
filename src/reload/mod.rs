//! The configuration in force, and how another one comes in its place.
//!
//! One task, the `keeper`, owns it. Everything that may change it asks that task: SIGHUP, a file that
//! has changed (`watch`), an operator, a name that has other addresses now (`discovery`). So two changes
//! never race, and what piles up while one is made is made as one. The work itself (`build`) is done
//! aside of the threads that serve, with the code of the start; then one pointer is swapped. Whatever
//! fails, fails before that, and nothing has changed.

mod build;
mod departures;
mod hosts;
mod keeper;
mod tell;
mod watch;

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

pub use build::{Builder, Found, Unbuildable, names};
pub use hosts::Hosts;
pub use keeper::Keeper;
pub use watch::Watch;

use crate::config::{Config, Loaded, Text, Version};

/// Questions that may wait for the keeper. More are not needed: a file that is to be read again is read
/// once, however many ask.
const WAITING_MAX: usize = 64;

/// Who wants the file read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// SIGHUP.
    Signal,
    /// The file has other content than when it was last read.
    File,
    /// POST /reload.
    Operator,
}

impl fmt::Display for Cause {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Signal => "SIGHUP",
            Self::File => "the file has changed",
            Self::Operator => "POST /reload",
        })
    }
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is in force.
    Applied {
        /// Its number.
        generation: u64,
    },
    /// It says what is in force already.
    Unchanged {
        /// The number of that.
        generation: u64,
    },
    /// It is refused, and nothing has changed.
    Refused {
        /// Every problem, one a line.
        problems: String,
    },
    /// Nothing is changed any more: the process is on its way out.
    Leaving,
}

/// What the keeper is asked.
#[derive(Debug)]
pub enum Ask {
    /// To read the file again.
    Reload(Cause, Option<oneshot::Sender<Outcome>>),
    /// To take over the addresses of a name, in order and each once.
    Found(Name, Vec<IpAddr>),
}

/// A name whose addresses are backends, and their port.
pub type Name = (String, u16);

/// How the last reading of the file ended.
#[derive(Debug, Clone)]
pub struct Last {
    /// When.
    pub at: SystemTime,
    /// Who wanted it; `None` for the start.
    pub cause: Option<Cause>,
    /// What came of it.
    pub outcome: Outcome,
}

/// What may be known of the configuration from outside of the keeper.
#[derive(Debug)]
pub struct Book {
    /// The file; `None` for the demonstration, which has none.
    pub file: Option<PathBuf>,
    text: Mutex<Text>,
    last: Mutex<Last>,
}

impl Book {
    /// The text of the configuration in force.
    pub fn text(&self) -> Text {
        self.text.lock().clone()
    }

    /// How the last reading ended.
    pub fn last(&self) -> Last {
        self.last.lock().clone()
    }
}

/// Asks the keeper. Clones ask the same one.
#[derive(Debug, Clone)]
pub struct Reloader {
    asks: mpsc::Sender<Ask>,
    /// What is known of the configuration.
    pub book: Arc<Book>,
}

impl Reloader {
    /// A place to ask, and where the questions come out.
    pub fn new(file: Option<PathBuf>, loaded: &Loaded) -> (Self, mpsc::Receiver<Ask>) {
        let (asks, asked) = mpsc::channel(WAITING_MAX);
        let last = Last { at: SystemTime::now(), cause: None, outcome: Outcome::Applied { generation: 1 } };
        let book = Book { file, text: Mutex::new(loaded.text.clone()), last: Mutex::new(last) };
        (Self { asks, book: Arc::new(book) }, asked)
    }

    /// Has the file read again, some time soon. Where that many wait already, one of them will do.
    pub fn poke(&self, cause: Cause) {
        if self.asks.try_send(Ask::Reload(cause, None)).is_err() {
            log::debug!("{cause}: the file is about to be read anyway");
        }
    }

    /// Has the file read again, and waits for what comes of it.
    pub async fn reload(&self, cause: Cause) -> Outcome {
        let (answer, answered) = oneshot::channel();
        if self.asks.send(Ask::Reload(cause, Some(answer))).await.is_err() {
            return Outcome::Leaving;
        }
        answered.await.unwrap_or(Outcome::Leaving)
    }

    /// Takes over the addresses of a name. False when nobody listens any more.
    pub async fn found(&self, name: Name, addrs: Vec<IpAddr>) -> bool {
        self.asks.send(Ask::Found(name, addrs)).await.is_ok()
    }
}

/// A configuration and the text it was read from.
#[derive(Debug, Clone)]
pub struct InForce {
    /// As it was read.
    pub config: Arc<Config>,
    /// Its text.
    pub text: Text,
}

impl InForce {
    /// To be compared with another.
    fn version(&self) -> Version<'_> {
        Version { config: &self.config, text: &self.text }
    }
}
