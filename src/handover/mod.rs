//! The listening sockets go from a process to its successor, and no client notices.
//!
//! ```text
//! successor                              the process that runs
//!   checks its file, builds everything,
//!   asks every backend once
//!   ── Hello ──────────────────────────>   (a private socket; the user must be its own)
//!   <───────────────── Socket × n, End ──  goes on accepting
//!   accepts
//!   ── Ready ──────────────────────────>   stops accepting, closes its private socket
//!   <──────────────────────────── Yours ──
//!   opens a private socket of its own      lets its streams end, and exits
//! ```
//! Both hold the same sockets, so a connection always finds somebody who accepts it: no moment is
//! without. Until `Ready` the process that runs has changed nothing; a successor that dies, fails or keeps
//! silent costs a line in the log.

mod give;
mod launch;
mod private;
mod take;
mod wire;

use std::os::fd::OwnedFd;

use serde::{Deserialize, Serialize};

pub(crate) use give::{Estate, Giver, Successor};
pub(crate) use launch::{Program, start_as_between};
pub(crate) use private::PrivateSocket;
pub use take::TakeError;
pub(crate) use take::{Predecessor, WARM_MAX};

/// What a socket is for. A port of 0 says it of many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    Clients,
    Operators,
}

/// A socket that listens, from one process to the next.
#[derive(Debug)]
pub(crate) struct Handed {
    /// `None`: whoever passes it does not know.
    pub(crate) role: Option<Role>,
    /// As a file writes it.
    pub(crate) address: String,
    pub(crate) socket: OwnedFd,
}
