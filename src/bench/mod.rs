//! `streamgate bench`: load on an OpenAI-compatible endpoint, and a judgement of every answer.
//!
//! ```text
//! load (when) -> client (one request) -> roads (connections, hyper)
//!                   |-> judge, form (is the answer right?)
//!                   `-> tally (counts, samples) -> report (table, JSON)
//! ```
//!
//! HTTP is read by hyper and not by what the gateway is built on: a fault of the one does not hide in the other.
//!
//! The one hard idea: a figure of a broken stream is worth nothing, so whether answers are right comes first and is the
//! exit code. Simulated engines stamp their tokens with index and time; with them each token is accounted for, and what
//! lies between engine and client adds to each event exactly what the two clocks of one machine differ by.

mod args;
mod ask;
mod client;
mod dial;
mod engines;
mod fetch;
mod figures;
mod form;
mod judge;
mod load;
mod lot;
mod paced;
mod progress;
mod reloads;
mod report;
mod road;
mod roads;
mod sample;
mod saved;
mod stamps;
mod tally;
mod target;
mod wait;
mod wrong;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use http::Method;
use serde::Deserialize;

pub(crate) use args::Args;
use args::Plan;
use ask::Ask;
use client::Client;
use dial::Dialer;
use load::Pace;
use progress::Progress;
use reloads::Reloads;
use report::{Report, Requests, Times};
use roads::Roads;
use saved::Saved;
use tally::Tally;
use wrong::{Wrong, said};

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The arguments are wrong, or the target wants others.
    #[error("{0}")]
    Argument(String),
    /// Somebody cannot be reached.
    #[error("{0}")]
    Away(String),
    /// The file for the figures cannot be written.
    #[error("--json {0}")]
    File(String),
}

/// What a run came to.
pub(crate) struct Outcome {
    /// The report.
    pub(crate) text: String,
    /// An answer was wrong.
    pub(crate) is_wrong: bool,
    /// The figures, and the file that they are for.
    json: Option<(Saved, Vec<u8>)>,
}

impl Outcome {
    /// Writes the figures into their file, where one is asked for.
    ///
    /// # Errors
    /// It could not be written.
    pub(crate) fn save(self) -> Result<(), Error> {
        self.json.map_or(Ok(()), |(file, figures)| file.write(&figures))
    }
}

/// Runs the load until it is done, or until `stop`: what was done until then is reported all the same.
///
/// # Errors
/// Nothing could be measured.
pub(crate) async fn run(args: Args, stop: impl Future<Output = ()>) -> Result<Outcome, Error> {
    let plan = Plan::try_from(args)?;
    // A file that cannot be written is told before the load, not behind it.
    let file = plan.json.as_deref().map(Saved::prepare).transpose()?;
    // Where it cannot be raised, connections will say so.
    drop(rlimit::increase_nofile_limit(u64::MAX));
    let mut stop = std::pin::pin!(stop);
    let client = tokio::select! {
        client = client(&plan) => Arc::new(client?),
        () = &mut stop => return Err(Error::Away(format!("interrupted before {} had answered", plan.target.models))),
    };
    let (reloads, began) = (Reloads::default(), Instant::now());
    let interrupted = measure(&plan, &client, &reloads, stop).await?;
    let took = began.elapsed();
    let left = std::mem::take(&mut client.tally.state().left);
    // An engine that has gone meanwhile does not take the report with it.
    let (cancel, remark) = match engines::cancels(&plan.engines, &plan.way, &left).await {
        Ok(cancel) => (cancel, String::new()),
        Err(error) => (None, format!("\n{error}")),
    };
    let mut report = report(&client, took, interrupted, cancel);
    report.reloads = plan.reload.is_some().then(|| reloads.counts().clone());
    let json = file.map(|file| (file, report.json()));
    Ok(Outcome { text: report.text() + &remark, is_wrong: report.is_wrong(), json })
}

/// True where it was ended early.
async fn measure(
    plan: &Plan,
    client: &Arc<Client>,
    reloads: &Reloads,
    stop: impl Future<Output = ()>,
) -> Result<bool, Error> {
    let pace = Pace { concurrency: plan.concurrency, bound: plan.bound, rate: plan.rate };
    let progress = Progress::new();
    let reloading = async {
        match &plan.reload {
            None => std::future::pending().await,
            Some(reload) => reloads.run(reload, &plan.way).await,
        }
    };
    tokio::select! {
        stopped = load::run(client, pace, stop) => Ok(stopped),
        failed = reloading => failed.map(|never| match never {}),
        never = progress.run(&client.tally, plan.bound) => match never {},
    }
}

/// Whoever asks: the target has been reached once, and its model is known.
async fn client(plan: &Plan) -> Result<Client, Error> {
    let place = plan.target.place.clone();
    let dialer = Dialer::new(&place, &plan.way).await?;
    let model = match &plan.model {
        Some(model) => model.clone(),
        None => first_model(&dialer, plan).await?,
    };
    let roads = Roads::new(dialer, &plan.way);
    drop(roads.dial(None).await.map_err(|wrong| away(plan, &wrong))?);
    engines::check(&plan.engines, &plan.way).await?;
    let ask = Ask {
        dialect: plan.target.dialect,
        model,
        max_tokens: plan.max_tokens,
        prompt_bytes: plan.prompt_bytes,
        usage: plan.usage,
    };
    Ok(Client {
        roads,
        place,
        http2: plan.way.http2,
        headers: plan.headers.clone(),
        ask,
        shares: plan.shares,
        patience: plan.way.patience,
        run: format!("bench-{:08x}", fastrand::u32(..)),
        tally: Arc::new(Tally::default()),
    })
}

/// The target could not be asked even once.
fn away(plan: &Plan, wrong: &Wrong) -> Error {
    let place = &plan.target.place;
    let scheme = if place.tls { "https" } else { "http" };
    let hint = match wrong {
        Wrong::Cut { .. } if plan.way.http2 && !place.tls => " (is HTTP/2 spoken there, in the clear?)",
        Wrong::Http(_) if !plan.way.http2 => " (is it HTTP/1.1 that is spoken there?)",
        _ => "",
    };
    Error::Away(format!("{scheme}://{}: {wrong}{hint}", place.authority))
}

/// A list of models as far as it is read.
#[derive(Deserialize)]
struct Models {
    data: Vec<Model>,
}

#[derive(Deserialize)]
struct Model {
    id: String,
}

async fn first_model(dialer: &Dialer, plan: &Plan) -> Result<String, Error> {
    let place = &plan.target.models;
    let answer = fetch::fetch(dialer, &plan.way, Method::GET, place, &plan.headers).await;
    let (status, body) = answer.map_err(|wrong| away(plan, &wrong))?;
    let hint = match status {
        200 => "no model is listed; name one with --model",
        401 | 403 => "see --key-env",
        _ => "name a model with --model",
    };
    let listed: Option<Models> = serde_json::from_slice(&body).ok().filter(|_| status == 200);
    let first = listed.and_then(|models| models.data.into_iter().next());
    first
        .map(|model| model.id)
        .ok_or_else(|| Error::Argument(format!("GET {place} says {status}: {} ({hint})", said(&body))))
}

fn report(client: &Client, took: Duration, interrupted: bool, cancel: Option<sample::Spread>) -> Report {
    let (tally, state) = (&client.tally, client.tally.state());
    let (begun, tokens, seconds) =
        (tally.begun.load(Relaxed), tally.tokens.load(Relaxed), took.as_secs_f64());
    let ended = state.counts;
    Report {
        target: client.place.to_string(),
        model: client.ask.model.clone(),
        seconds,
        interrupted,
        requests: Requests {
            begun,
            ended,
            unfinished: begun.saturating_sub(ended.ended()),
            left_out: tally.left_out.load(Relaxed),
        },
        tokens,
        tokens_per_second: tokens as f64 / seconds,
        requests_per_second: ended.ended() as f64 / seconds,
        microseconds: Times::of(&state, cancel),
        errors: state.errors.clone(),
        wrong: state.told.clone(),
        reloads: None,
    }
}
