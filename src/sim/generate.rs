//! One generating request: it waits for a slot, runs, and is settled.
//!
//! The order is vLLM's: a stream's head, then the wait for a slot and the prefill, then tokens.

use std::time::Duration;

use tokio::sync::SemaphorePermit;

use super::ask::Ask;
use super::connection::Request;
use super::endpoint::Work;
use super::plan::{Instead, Plan};
use super::proof::Chain;
use super::stats::{Job, Stats};
use super::text::{Finish, Form, Text};
use super::wire::{Over, Wire};
use super::{clock, complete, reply, stream};

/// The shortest pause of an engine that generates for nobody.
const PAUSE_MIN: Duration = Duration::from_millis(1);

/// Answers a generating request.
pub(super) async fn serve(
    wire: &mut Wire<'_>,
    request: &Request<'_>,
    work: Work,
    ask: &Ask,
    plan: &Plan,
) -> Result<(), Over> {
    let mut job = request.shared.stats.job(&request.id);
    if request.shared.slots.is_none() || plan.script.instead.is_some() {
        job.runs();
    }
    job.proves(plan.proof.then(|| Chain::of(&request.id)));
    if plan.script.strikes_at_once() {
        job.strike();
    }
    let text = text(request, work, ask, plan);
    let tokens = text.tokens;
    let finish = match (plan.script.instead, work) {
        (Some(instead), _) => return fault(wire, request, instead, &mut job).await,
        (None, Work::Embeddings) => complete::embeddings(wire, request, ask, plan, &mut job).await,
        (None, _) if ask.stream => stream::answer(wire, request, ask, plan, text, &mut job).await,
        (None, _) => complete::answer(wire, request, plan, text, &mut job).await,
    };
    match finish {
        Ok(finish) => job.finished(finish),
        Err(Over::ClientLeft) => leave(plan, tokens, &mut job).await,
        Err(_) => {}
    }
    finish.map(|_| ())
}

async fn fault(
    wire: &mut Wire<'_>,
    request: &Request<'_>,
    instead: Instead,
    job: &mut Job<'_>,
) -> Result<(), Over> {
    let answered = reply::instead(wire, request, instead).await;
    if answered == Err(Over::ClientLeft) {
        job.aborted(clock::unix_us());
    }
    answered
}

/// Notes at once that the client has left.
async fn leave(plan: &Plan, tokens: u32, job: &mut Job<'_>) {
    job.aborted(clock::unix_us());
    if plan.script.ignore_cancel {
        job.strike();
        go_on(plan, tokens, job).await;
    }
}

/// Waits for a slot and computes the prompt. The permit is the slot: it is held while the request runs.
pub(super) async fn prefill<'a>(
    wire: &mut Wire<'_>,
    request: &Request<'a>,
    prompt_tokens: u32,
    plan: &Plan,
    job: &mut Job<'a>,
) -> Result<Option<SemaphorePermit<'a>>, Over> {
    let mut slot = None;
    if let Some(slots) = &request.shared.slots {
        // A semaphore that is never closed gives a permit in the end.
        slot = wire.wait(slots.acquire()).await?.ok();
        job.runs();
    }
    let prefilling = Stats::gauge(&request.shared.stats.prefilling);
    wire.pause(plan.first_event).await?;
    drop(prefilling);
    job.prefilled(prompt_tokens);
    Ok(slot)
}

fn text(request: &Request<'_>, work: Work, ask: &Ask, plan: &Plan) -> Text {
    let form = match (&ask.tool, work) {
        (Some(tool), Work::Chat) => Form::ToolCall(tool.clone()),
        (None, Work::Chat) => Form::Chat,
        _ => Form::Completion,
    };
    let tokens = ask.max_tokens.map_or(plan.tokens, |most| most.min(plan.tokens));
    let finish = match form {
        _ if tokens < plan.tokens => Finish::Length,
        Form::ToolCall(_) => Finish::ToolCalls,
        Form::Chat | Form::Completion => Finish::Stop,
    };
    Text {
        form,
        request_id: request.id.clone(),
        model: request.shared.settings.model.clone(),
        created: request.arrival_us / 1_000_000,
        prompt_tokens: ask.prompt_tokens,
        tokens,
        finish,
    }
}

/// Generates the rest of an answer that nobody will read.
async fn go_on(plan: &Plan, tokens: u32, job: &mut Job<'_>) {
    while job.tokens() < u64::from(tokens) {
        tokio::time::sleep((plan.inter_token * plan.batch).max(PAUSE_MIN)).await;
        let missing = u64::from(tokens) - job.tokens();
        job.step(u32::try_from(missing).unwrap_or(u32::MAX).min(plan.batch));
    }
}
