//! Answers that are no stream: the work, and then all of it at once.

use super::answer::{self, Answer, Framing, JSON};
use super::ask::Ask;
use super::clock;
use super::connection::Request;
use super::event::Events;
use super::generate::prefill;
use super::plan::Plan;
use super::reply::{begin, flush, whole};
use super::stats::Job;
use super::text::{Finish, Text};
use super::wire::{Over, Wire};

/// Blank lines of a request that is queued, one every `keep_alive_every`.
const BLANK_LINES: u32 = 3;

/// Gives `text` as one JSON object.
pub(super) async fn answer<'a>(
    wire: &mut Wire<'_>,
    request: &Request<'a>,
    plan: &Plan,
    text: Text,
    job: &mut Job<'a>,
) -> Result<Finish, Over> {
    let blank_lines = plan.script.blank_lines && !request.head.http_1_0;
    if blank_lines {
        queue(wire, request, plan).await?;
    }
    let _slot = prefill(wire, request, text.prompt_tokens, plan, job).await?;
    decode(wire, plan, text.tokens, job).await?;
    let mut events = Events::new(text.clone(), plan, false, false);
    let content = events.content(plan.stamp.then(clock::unix_us));
    job.proves(events.chain());
    let body = text.whole(&content).to_string();
    if blank_lines {
        wire.send(format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len()).as_bytes()).await?;
    } else {
        whole(wire, request, &plan.script, Answer::text(200, JSON, body)).await?;
    }
    Ok(text.finish)
}

/// Gives the embeddings of all inputs.
pub(super) async fn embeddings<'a>(
    wire: &mut Wire<'_>,
    request: &Request<'a>,
    ask: &Ask,
    plan: &Plan,
    job: &mut Job<'a>,
) -> Result<Finish, Over> {
    let _slot = prefill(wire, request, ask.prompt_tokens, plan, job).await?;
    let model = &request.shared.settings.model;
    let created = request.arrival_us / 1_000_000;
    let body = answer::embeddings(&request.id, model, created, ask.inputs, ask.prompt_tokens);
    whole(wire, request, &plan.script, Answer::text(200, JSON, body.to_string())).await?;
    Ok(Finish::Stop)
}

/// The head, and blank lines as DeepSeek's API sends them while a request is queued.
async fn queue(wire: &mut Wire<'_>, request: &Request<'_>, plan: &Plan) -> Result<(), Over> {
    let head = request.head_bytes(&Answer::text(200, JSON, String::new()), Framing::Chunked);
    let mut out = Vec::new();
    begin(wire, &plan.script, head, &mut out).await?;
    for _ in 0..BLANK_LINES {
        out.extend_from_slice(b"1\r\n\n\r\n");
        flush(wire, &mut out).await?;
        wire.pause(plan.keep_alive_every).await?;
    }
    Ok(())
}

/// Takes the time that the tokens would take as a stream.
async fn decode(wire: &mut Wire<'_>, plan: &Plan, tokens: u32, job: &mut Job<'_>) -> Result<(), Over> {
    let mut made = 0;
    while made < tokens {
        let batch = plan.batch.min(tokens - made);
        if made > 0 && !plan.inter_token.is_zero() {
            wire.pause(plan.inter_token * batch).await?;
        }
        job.step(batch);
        made += batch;
    }
    Ok(())
}
