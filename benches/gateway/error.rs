//! What can go wrong with a run as a whole. What can go wrong with one exchange is `judge::Wrong`.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::judge::Wrong;
use crate::target::Target;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("cannot {what}")]
    Io {
        what: String,
        #[source]
        source: io::Error,
    },
    #[error("{name} was not ready in time, or ended before: see {output}")]
    NotReady { name: &'static str, output: String },
    #[error("{} is not what a run of this benchmark writes", file.display())]
    NoSheet {
        file: PathBuf,
        #[source]
        source: serde_json::Error,
    },
    #[error("{wrong} of {all} exchanges went wrong ({target:?}); the first one")]
    Incorrect {
        target: Target,
        wrong: usize,
        all: usize,
        #[source]
        first: Wrong,
    },
    #[error("{text} ({target:?})")]
    Fault { target: Target, text: String },
    #[error("the engine did not answer a question about itself")]
    Control(#[source] Wrong),
    #[error("the engine's answer about itself lacks {0}")]
    Answer(&'static str),
    #[error("{what} did not happen within {within:?} ({target:?})")]
    TooLate { what: String, within: Duration, target: Target },
    #[error("{0} is not what /proc should hold")]
    Proc(String),
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    pub(crate) fn io(what: impl Into<String>, source: io::Error) -> Self {
        Self::Io { what: what.into(), source }
    }
}

/// An error with its causes on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
