//! One connection: request after request, until one of the two ends it.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::net::TcpStream;

use super::accept::Shared;
use super::answer::{Answer, Common, Framing, Refusal, head_bytes};
use super::ask::Ask;
use super::endpoint::{Endpoint, Work};
use super::head::Head;
use super::plan::{Instead, Plan, Script};
use super::stats::Stats;
use super::wire::{Over, Stop, Wire};
use super::{clock, generate, page, reply};

/// One request and what its answers have in common.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub(super) shared: &'a Shared,
    pub(super) head: Head,
    pub(super) id: String,
    /// Unix microseconds.
    pub(super) arrival_us: u64,
}

impl<'a> Request<'a> {
    fn new(shared: &'a Shared, head: Head) -> Self {
        let arrival_us = clock::unix_us();
        let id = head.request_id.clone().unwrap_or_else(|| shared.new_id());
        Self { shared, head, id, arrival_us }
    }

    /// The head of an answer to it.
    pub(super) fn head_bytes(&self, answer: &Answer, framing: Framing) -> Vec<u8> {
        let date = clock::http_date();
        let common = Common { engine: &self.shared.settings.name, request_id: &self.id, date: &date };
        head_bytes(&self.head, &common, answer, framing)
    }
}

/// Serves a connection to its end.
pub(super) async fn serve(stream: TcpStream, shared: &Shared) {
    let _open = Stats::gauge(&shared.stats.open_connections);
    let mut wire = Wire::new(stream, &shared.stats);
    let mut idle = None;
    let over = loop {
        match exchange(&mut wire, shared, idle).await {
            Ok(()) => idle = Some(shared.settings.keepalive),
            Err(over) => break over,
        }
    };
    wire.close(over).await;
}

async fn exchange(wire: &mut Wire<'_>, shared: &Shared, idle: Option<Duration>) -> Result<(), Over> {
    let (head, stop) = match wire.head(idle).await {
        Ok(head) => (head, None),
        Err(stop) => (Head::unreadable(), Some(stop)),
    };
    let request = Request::new(shared, head);
    let answered = match stop {
        None => respond(wire, &request).await,
        Some(stop) => Err(stop),
    };
    match answered {
        Ok(()) if request.head.keep_alive => Ok(()),
        Ok(()) => Err(Over::Close),
        Err(Stop::Over(over)) => Err(over),
        Err(Stop::Refused(refusal)) => Err(last_answer(wire, request, refusal).await),
    }
}

/// The answer where we cannot tell where the next request begins.
async fn last_answer(wire: &mut Wire<'_>, mut request: Request<'_>, refusal: Refusal) -> Over {
    request.head.keep_alive = false;
    match reply::whole(wire, &request, &Script::default(), refusal.into()).await {
        Ok(()) => Over::CloseUnread,
        Err(over) => over,
    }
}

async fn respond(wire: &mut Wire<'_>, request: &Request<'_>) -> Result<(), Stop> {
    let wishes = match &request.head.wishes {
        Ok(wishes) => wishes,
        Err(wrong) => {
            wire.body(&request.head).await?;
            let answer = Refusal::new(400, wrong).into();
            return Ok(reply::whole(wire, request, &Script::default(), answer).await?);
        }
    };
    let endpoint = Endpoint::find(&request.head.target);
    let work = match endpoint {
        Some(Endpoint::Work(work)) if request.head.method == "POST" => Some(work),
        _ => None,
    };
    let Shared { settings, stats, .. } = request.shared;
    let number = work.map_or(0, |_| stats.requests.fetch_add(1, Relaxed) + 1);
    let faults = request.shared.faults();
    let plan = Plan::new(settings, &faults, number, wishes);
    if plan.script.instead == Some(Instead::TooLarge) {
        stats.strike();
        return Err(Refusal::new(413, "the request body is too large").into());
    }
    let body = wire.body(&request.head).await?;
    let Some(work) = work else {
        return Ok(page::serve(wire, request, endpoint, &body, &plan.script).await?);
    };
    let ask = match ask(request, work, body) {
        Ok(ask) => ask,
        Err(refusal) => return Ok(reply::whole(wire, request, &Script::default(), refusal.into()).await?),
    };
    let plan = Plan::new(settings, &faults, number, &wishes.clone().or(ask.wishes.clone()));
    Ok(generate::serve(wire, request, work, &ask, &plan).await?)
}

/// Takes the body, so that its memory is free while the answer is made.
fn ask(request: &Request<'_>, work: Work, body: Vec<u8>) -> Result<Ask, Refusal> {
    Ask::parse(work, &body, &request.shared.settings.model)
}
