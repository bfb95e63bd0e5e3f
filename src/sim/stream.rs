//! One stream: head, prefill, tokens at their pace, the end.

use tokio::time::Instant;

use super::answer::{Answer, EVENT_STREAM, Framing};
use super::ask::Ask;
use super::clock;
use super::connection::Request;
use super::event::Events;
use super::generate::prefill;
use super::plan::{Cut, Plan};
use super::reply::{begin, cut_off, flush};
use super::stats::Job;
use super::text::{Finish, Text};
use super::wire::{Over, Wire};

/// Streams `text`.
pub(super) async fn answer<'a>(
    wire: &mut Wire<'_>,
    request: &Request<'a>,
    ask: &Ask,
    plan: &Plan,
    text: Text,
    job: &mut Job<'a>,
) -> Result<Finish, Over> {
    let (tokens, finish) = (text.tokens, text.finish);
    let framing = if request.head.http_1_0 { Framing::Close } else { Framing::Chunked };
    let head = request.head_bytes(&Answer::text(200, EVENT_STREAM, String::new()), framing);
    let mut events = Events::new(text, plan, framing == Framing::Chunked, ask.continuous_usage);
    let mut out = Vec::new();
    let _slot = if plan.early_200 {
        begin(wire, &plan.script, head, &mut out).await?;
        flush(wire, &mut out).await?;
        prefill(wire, request, ask.prompt_tokens, plan, job).await?
    } else {
        let slot = prefill(wire, request, ask.prompt_tokens, plan, job).await?;
        begin(wire, &plan.script, head, &mut out).await?;
        slot
    };
    if plan.script.comments_only {
        return Err(comments(wire, &events, plan, &mut out).await);
    }
    events.opening(&mut out);
    pour(wire, &mut events, plan, tokens, &mut out, job).await?;
    events.finish(&mut out);
    if ask.include_usage {
        events.usage(&mut out);
    }
    if !plan.script.no_done {
        events.done(&mut out);
    }
    events.end(&mut out);
    flush(wire, &mut out).await?;
    Ok(finish)
}

/// Sends the tokens, at most to the place where the answer is cut.
async fn pour(
    wire: &mut Wire<'_>,
    events: &mut Events,
    plan: &Plan,
    tokens: u32,
    out: &mut Vec<u8>,
    job: &mut Job<'_>,
) -> Result<(), Over> {
    let stop_at = plan.script.cut_count().unwrap_or(u32::MAX).min(tokens);
    let mut sent = 0;
    let mut due = Instant::now();
    while sent < stop_at {
        if sent > 0 {
            due = rest(wire, plan, due).await?;
        }
        let batch = plan.batch.min(stop_at - sent);
        let stamp = plan.stamp.then(clock::unix_us);
        for n in sent..sent + batch {
            events.token(out, n, stamp);
        }
        sent += batch;
        job.step(batch);
        job.proves(events.chain());
        flush(wire, out).await?;
    }
    flush(wire, out).await?;
    match plan.script.cut_at(sent) {
        None => Ok(()),
        Some(cut) => Err(break_off(wire, events, cut, out).await),
    }
}

/// The pause before the next write. A write that came late delays those that follow, and no burst
/// makes up for it.
async fn rest(wire: &mut Wire<'_>, plan: &Plan, due: Instant) -> Result<Instant, Over> {
    if plan.inter_token.is_zero() {
        wire.breathe().await?;
        return Ok(due);
    }
    let due = (due + plan.inter_token * plan.batch).max(Instant::now());
    wire.pause_until(due).await?;
    Ok(due)
}

async fn break_off(wire: &mut Wire<'_>, events: &Events, cut: Cut, out: &mut Vec<u8>) -> Over {
    match cut {
        Cut::Stall | Cut::Reset | Cut::Fin => {}
        Cut::TruncatedChunk => out.extend_from_slice(b"40\r\ndata: {\"id"),
        Cut::Error { done } => {
            events.error(out);
            if done {
                events.done(out);
            }
            events.end(out);
        }
    }
    match flush(wire, out).await {
        Ok(()) => cut_off(wire, cut).await,
        Err(over) => over,
    }
}

async fn comments(wire: &mut Wire<'_>, events: &Events, plan: &Plan, out: &mut Vec<u8>) -> Over {
    loop {
        events.comment(out);
        let sent = match flush(wire, out).await {
            Ok(()) => wire.pause(plan.keep_alive_every).await,
            Err(over) => Err(over),
        };
        if let Err(over) = sent {
            return over;
        }
    }
}
