//! What an error of Pingora's loop means: the only translator.
//!
//! The attempt's own failures travel in its `Link`; Pingora's error then only says that the loop
//! stopped. What is left comes from the client's side or from us.

use pingora::{Error, ErrorSource, ErrorType};

use super::exchange::Exchange;
use crate::edge::{Client, Cut};
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::rejection::Rejection;

/// Why the loop stopped.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The attempt failed.
    Failed(Failure),
    /// We refused.
    Refused(Rejection),
    /// The client left.
    ClientGone,
    /// The client was cut because it took nothing.
    ClientStalled,
    /// The client was cut because it took little, and the memory was wanted for others.
    ClientCut,
    /// The exchange's time was over while a write was blocked on the client.
    ClientTooSlow,
    /// A fault of our own.
    Internal,
}

impl Stop {
    /// How the exchange ends by it, and what the client is told if it can still be told something.
    pub(super) fn end(self) -> (Outcome, Option<Rejection>) {
        match self {
            Self::Failed(failure) => (failure.outcome(), Some(failure.rejection())),
            Self::Refused(rejection) => (rejection.outcome(), Some(rejection)),
            Self::ClientGone => (Outcome::ClientClosed, None),
            Self::ClientStalled => (Outcome::ClientStalled, None),
            Self::ClientCut => (Outcome::ClientStalled, Some(Rejection::Overloaded)),
            Self::ClientTooSlow => (Outcome::Timeout, None),
            Self::Internal => (Outcome::Abandoned, Some(Rejection::Internal)),
        }
    }
}

/// Translates.
pub(super) fn classify(error: &Error, exchange: &Exchange) -> Stop {
    if let Some(rejection) = &exchange.rejection {
        return Stop::Refused(rejection.clone());
    }
    if let Some(failure) = exchange.attempt.as_ref().and_then(|attempt| attempt.link.failure()) {
        return Stop::Failed(failure);
    }
    match exchange.client.as_deref().and_then(Client::cut) {
        Some(Cut::Stalled) => Stop::ClientStalled,
        Some(Cut::Total) => Stop::ClientTooSlow,
        Some(Cut::Memory) => Stop::ClientCut,
        None if is_clients(error) => Stop::ClientGone,
        None => Stop::Internal,
    }
}

/// Errors of the client's side. While a body is read in `request_filter` they have no source, and a
/// request sent into a running response is a `ConnectError` (measured on 0.9.1).
fn is_clients(error: &Error) -> bool {
    match error.esource() {
        ErrorSource::Downstream => true,
        ErrorSource::Unset => matches!(
            error.etype(),
            ErrorType::ConnectionClosed | ErrorType::ReadError | ErrorType::WriteError | ErrorType::H2Error
        ),
        ErrorSource::Upstream | ErrorSource::Internal => false,
    }
}
