//! Limits: an exchange is let in by its address, its key and its body, and what it took is settled at its end.
//!
//! What is decided is in [`crate::admission`]; here are the facts that it is decided by, and who is told.

use std::time::Instant;

use pingora::Result;
use pingora_http::ResponseHeader;
use pingora_proxy::Session;

use super::exchange::Exchange;
use super::shared::Shared;
use crate::admission::charge::{self, Estimate, Reached};
use crate::admission::{Denial, HEADERS, Limit, Metered, Permit};
use crate::cluster::load::Work;
use crate::openai::Dialect;
use crate::outcome::Outcome;
use crate::rejection::Rejection;
use crate::told::Told;
use crate::usage::{Source, Usage};

/// What an exchange was let in by.
pub(super) struct Admitted {
    permit: Permit,
}

/// Lets a request in by where it comes from. What comes over a unix socket has no address.
pub(super) fn by_address(shared: &Shared, exchange: &Exchange) -> Result<(), Rejection> {
    let (Some(rate), Some(address)) = (exchange.snapshot.limits.per_ip_requests, exchange.request.client)
    else {
        return Ok(());
    };
    let now = Instant::now();
    let who = || format!("client address {address}");
    let taken = shared.per_ip.take(address, rate, now);
    taken.map_err(|denial| refuse(shared, denial, &shared.per_ip.told, now, who))?;
    shared.metrics.passed([Limit::PerIp]);
    Ok(())
}

/// Lets a request in by its key, before its body is read.
pub(super) async fn by_head(
    shared: &Shared,
    session: &mut Session,
    exchange: &mut Exchange,
) -> Result<(), Rejection> {
    let Some(key) = &exchange.key else { return Ok(()) };
    let Some(account) = exchange.snapshot.accounts.of(&key.name) else { return Ok(()) };
    let now = Instant::now();
    let enter = async {
        exchange.client.as_ref().map_or(Ok(()), |client| client.used_by(account, now))?;
        let mut permit = account.enter(now)?;
        take(shared, &mut permit, Metered::Requests, 1).await?;
        Ok(permit)
    };
    let permit = enter.await.map_err(|denial: Denial| {
        if denial.limit == Limit::Connections {
            session.set_keepalive(None);
        }
        refuse(shared, denial, &account.told, now, || format!("key {}", key.name))
    })?;
    shared.metrics.passed(Limit::of_head(&key.limits));
    exchange.admitted = Some(Admitted { permit });
    Ok(())
}

/// Lets a request in by what it asks for.
pub(super) async fn by_body(shared: &Shared, exchange: &mut Exchange, work: &Work) -> Result<(), Rejection> {
    exchange.request.estimate = Estimate::of(work);
    let estimate = &exchange.request.estimate;
    let Some(Admitted { permit }) = &mut exchange.admitted else { return Ok(()) };
    // What costs nothing, as reading a stored answer does, need not wait for a debt to be earned.
    if estimate.sum() == 0 {
        return Ok(());
    }
    take(shared, permit, Metered::Tokens, estimate.sum()).await.map_err(|denial| {
        let account = permit.account();
        refuse(shared, denial, &account.told, Instant::now(), || format!("key {}", account.name()))
    })?;
    let has_limit = exchange.key.as_ref().is_some_and(|key| key.limits.tokens.is_some());
    shared.metrics.passed(has_limit.then_some(Limit::Tokens));
    Ok(())
}

/// Takes so much of the bucket that all gateways share, or of this one's own where there is none or it is away.
async fn take(shared: &Shared, permit: &mut Permit, metered: Metered, amount: u64) -> Result<(), Denial> {
    let wanted = permit.wanted(metered, amount, Instant::now());
    if let (Some(store), Some(wanted)) = (&shared.store, wanted)
        && let Some(said) = store.take(permit.account().name(), metered, wanted).await
    {
        return permit.follow(metered, wanted, said, Instant::now());
    }
    permit.take(metered, amount, Instant::now())
}

fn refuse(
    shared: &Shared,
    denial: Denial,
    told: &Told,
    now: Instant,
    who: impl FnOnce() -> String,
) -> Rejection {
    shared.metrics.limited(denial.limit);
    if let Some(count) = told.note(now) {
        let requests = if count == 1 { "request" } else { "requests" };
        let (who, limit) = (who(), denial.limit.as_str());
        log::warn!("{who} has reached its limit {limit}: {count} {requests} refused since the last line");
    }
    denial.into()
}

/// Tells the client where its key stands. What the engine says of limits is of ours there, not of the client's.
pub(super) fn tell(head: &mut ResponseHeader, exchange: &Exchange) -> Result<()> {
    let Some(admitted) = &exchange.admitted else { return Ok(()) };
    for name in HEADERS.as_flattened() {
        head.remove_header(*name);
    }
    for (name, value) in admitted.permit.standing(Instant::now()).headers() {
        head.insert_header(name, value)?;
    }
    Ok(())
}

/// The engine is done with it: whoever has read its end may come again.
pub(super) fn leave(exchange: &mut Exchange) {
    exchange.admitted.iter_mut().for_each(|admitted| admitted.permit.leave());
}

/// What it used, and how that is known.
pub(super) fn used(exchange: &Exchange) -> Option<(Usage, Source)> {
    charge::used(&exchange.request.estimate, reached(exchange), exchange.answer.usage())
}

/// Charges it for what it used.
pub(super) fn settle(exchange: &mut Exchange, used: Option<&Usage>, now: Instant) {
    let Some(mut admitted) = exchange.admitted.take() else { return };
    let charged = charge::charge(&exchange.request.estimate, used);
    let beyond = admitted.permit.settle(charged, now);
    if let (Some(store), Some((rate, amount))) = (&exchange.shared.store, beyond) {
        store.charge(admitted.permit.account().name(), Metered::Tokens, rate, amount);
    }
    if gave_up_early(exchange) {
        admitted.permit.note_early_cancel(now);
    }
}

fn reached(exchange: &Exchange) -> Reached {
    let is_stream = exchange.answer.is_stream();
    // What the client was told may be an answer of ours.
    let has_no_head = exchange.attempt.as_ref().is_none_or(|attempt| attempt.status.is_none());
    match exchange.ending.outcome {
        _ if !was_worked_on(exchange) => Reached::Nothing,
        Outcome::UpstreamError | Outcome::Shutdown if is_stream || has_no_head => Reached::Nothing,
        _ if is_stream || (has_no_head && exchange.request.streaming) => Reached::Seen,
        _ => Reached::Unseen,
    }
}

/// Whether an engine has its request and has not refused it.
fn was_worked_on(exchange: &Exchange) -> bool {
    let attempt = exchange.attempt.as_ref().filter(|attempt| attempt.link.sent().is_some());
    attempt.is_some_and(|attempt| attempt.status.is_none_or(|status| status < 300))
}

/// Whether its client made an engine work and left before anything came of it.
fn gave_up_early(exchange: &Exchange) -> bool {
    let answer = &exchange.answer;
    let has_begun = match Dialect::of(&exchange.request.path) {
        Dialect::Other => answer.first_event().is_some(),
        _ => answer.first_token().is_some(),
    };
    let has_begun = has_begun || (!answer.is_stream() && answer.bytes > 0);
    exchange.ending.outcome == Outcome::ClientClosed && was_worked_on(exchange) && !has_begun
}
