//! Whose a request is: settled by its head, before a byte of its body is read.

use std::sync::Arc;
use std::time::Instant;

use pingora_http::RequestHeader;

use super::exchange::Exchange;
use super::shared::Shared;
use crate::config::Key;
use crate::keys::{Denied, KeyError, Presented, presented};
use crate::rejection::Rejection;

/// The key of a request; none where nobody needs one. The exchange knows already where it comes from.
///
/// # Errors
/// It has none that is known. Missing, unknown, revoked and doubled keys are told the same.
pub(super) fn of(
    shared: &Shared,
    head: &RequestHeader,
    exchange: &mut Exchange,
) -> Result<Option<Arc<Key>>, Rejection> {
    let ring = &exchange.snapshot.keys;
    if ring.is_open() {
        return Ok(None);
    }
    let known = match presented(&head.headers) {
        Presented::Key(key) => ring.find(key).cloned().ok_or(KeyError::Unknown),
        Presented::No(why) => Err(why),
    };
    known.map(Some).map_err(|why| {
        exchange.ending.key_error = Some(why);
        match why {
            KeyError::Missing | KeyError::OtherScheme => {
                shared.metrics.denied(Denied::Missing);
                Rejection::Unauthorized
            }
            KeyError::Malformed | KeyError::Differing | KeyError::Unknown => {
                wrong(shared, exchange, Instant::now())
            }
        }
    })
}

/// What is told of a wrong key.
fn wrong(shared: &Shared, exchange: &Exchange, now: Instant) -> Rejection {
    let client = exchange.request.client;
    let Err(wait) = shared.strangers.note(client, now) else {
        shared.metrics.denied(Denied::Unknown);
        return Rejection::Unauthorized;
    };
    shared.metrics.denied(Denied::Repeated);
    if let Some(count) = shared.strangers.told.note(now) {
        let from = client.map_or_else(|| "a unix socket".to_owned(), |client| client.to_string());
        log::warn!(
            "too many wrong API keys from {from} ({count} refused since the last line, from all addresses)"
        );
    }
    Rejection::WrongKeys { retry_after: wait.as_secs_f64().ceil().max(1.0).to_string() }
}

/// Refuses a model that the key may not use.
pub(super) fn may_use(shared: &Shared, exchange: &Exchange) -> Result<(), Rejection> {
    let model = exchange.request.model.as_deref();
    match &exchange.key {
        Some(key) if !key.may_use(model) => {
            shared.metrics.denied(Denied::Model);
            Err(Rejection::ModelNotAllowed { model: model.map(str::to_owned) })
        }
        _ => Ok(()),
    }
}
