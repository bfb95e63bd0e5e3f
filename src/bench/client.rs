//! One request from its connection to the last byte of its answer, or to where the client leaves.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::time::timeout;

use super::ask::Ask;
use super::fetch::request;
use super::form::judge_whole;
use super::judge::Judge;
use super::lot::{Manner, Shares};
use super::paced::delay;
use super::road::{Body, Road};
use super::roads::Roads;
use super::tally::{End, Notes, Tally};
use super::target::Place;
use super::wait::Wait;
use super::wrong::{Wrong, quote, said};
use crate::sim::unix_us;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Asks a simulated engine for stamped tokens; nobody else knows it.
const STAMP: HeaderName = HeaderName::from_static("x-sim-stamp");
const EVENT_STREAM: &str = "text/event-stream";
const JSON: &str = "application/json";

/// Largest answer that is no stream.
const WHOLE_MAX: usize = 64 << 20;
/// Most that is read of an answer that is none.
const REFUSAL_MAX: usize = 4 << 10;
/// Pause after a connection that did not come about: a target that is away is asked patiently.
const AWAY_PAUSE: Duration = Duration::from_millis(100);

/// All that requests have in common.
pub(super) struct Client {
    pub(super) roads: Roads,
    pub(super) place: Place,
    pub(super) http2: bool,
    pub(super) headers: HeaderMap,
    pub(super) ask: Ask,
    pub(super) shares: Shares,
    /// Longest silence.
    pub(super) patience: Duration,
    /// What the ids of this run begin with.
    pub(super) run: String,
    pub(super) tally: Arc<Tally>,
}

impl Client {
    /// Makes the request with this number, and counts what becomes of it.
    pub(super) async fn exchange(&self, number: u64) {
        let id = format!("{}-{number}", self.run);
        let manner = self.shares.manner(number);
        let began = Instant::now();
        let end = match manner {
            Manner::Unary => self.unary(&id).await.map(|()| End::Whole),
            _ => self.stream(&id, manner, began).await,
        };
        let away = matches!(end, Err(Wrong::Connect(_)));
        self.tally.state().ended(&id, manner, began.elapsed(), end);
        if away {
            tokio::time::sleep(AWAY_PAUSE).await;
        }
    }

    async fn stream(&self, id: &str, manner: Manner, began: Instant) -> Result<End, Wrong> {
        let mut notes = Noting { tally: &self.tally, notes: Notes::new(began, manner) };
        self.read_stream(id, manner, &mut notes.notes).await
    }

    async fn read_stream(&self, id: &str, manner: Manner, notes: &mut Notes) -> Result<End, Wrong> {
        let rate = if let Manner::Slow { rate } = manner { Some(rate) } else { None };
        let leave_at = if let Manner::Cancel { at } = manner { at } else { u64::MAX };
        let (mut body, road) = self.ask(id, manner, rate, EVENT_STREAM).await?;
        let mut judge = Judge::new(id, self.ask.max_tokens);
        let mut wait = Wait::new(self.patience(rate));
        while let Some(chunk) = next(&mut body, judge.tokens(), &wait).await? {
            let (now, now_us) = (Instant::now(), unix_us());
            let brought = judge.take(chunk)?;
            wait.heard(brought.events > 0 || judge.is_within_data());
            self.tally.tokens.fetch_add(brought.texts.into(), Relaxed);
            if notes.note(&brought, now, now_us) {
                self.tally.add(notes);
            }
            if notes.texts >= leave_at {
                let left_us = unix_us();
                drop((body, road));
                return Ok(End::Left(left_us));
            }
        }
        // What the usage says is the better count where an event holds more than one token.
        let tokens = judge.end()?;
        self.tally.tokens.fetch_add(tokens.saturating_sub(notes.texts), Relaxed);
        self.roads.give_back(road, rate).await?;
        Ok(End::Whole)
    }

    async fn unary(&self, id: &str) -> Result<(), Wrong> {
        let (mut body, road) = self.ask(id, Manner::Unary, None, JSON).await?;
        let mut whole = BytesMut::new();
        let mut wait = Wait::new(self.patience);
        while let Some(chunk) = next(&mut body, 0, &wait).await? {
            // Blank lines in front of an answer are some vendors' heartbeats.
            wait.heard(!chunk.trim_ascii().is_empty());
            whole.extend_from_slice(&chunk);
            if whole.len() > WHOLE_MAX {
                return Err(Wrong::TooLarge("an answer", WHOLE_MAX));
            }
        }
        let tokens = judge_whole(&whole, id)?;
        self.tally.tokens.fetch_add(tokens, Relaxed);
        self.roads.give_back(road, None).await
    }

    /// Sends a request and judges the head of its answer, whose body has this type.
    async fn ask(
        &self,
        id: &str,
        manner: Manner,
        rate: Option<u32>,
        due: &'static str,
    ) -> Result<(Incoming, Road), Wrong> {
        let request = self.request(id, manner, due);
        let patience = self.patience(rate);
        let sent = timeout(patience, self.roads.send(&request, rate)).await;
        let (answer, road) = sent.map_err(|_| Wrong::Silence(patience))??;
        let status = answer.status().as_u16();
        if status != 200 {
            return Err(Wrong::Status { status, said: refusal(answer.into_body(), patience).await });
        }
        check_type(&answer, due)?;
        Ok((answer.into_body(), road))
    }

    fn request(&self, id: &str, manner: Manner, accept: &'static str) -> http::Request<Body> {
        let body = self.ask.body(id, manner).into();
        let mut request = request(Method::POST, &self.place, self.http2, &self.headers, body);
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        headers.insert(REQUEST_ID, id.parse().expect("an id is made of letters, digits and hyphens"));
        headers.insert(STAMP, HeaderValue::from_static("1"));
        request
    }

    /// Longest silence for a reader of this rate.
    fn patience(&self, rate: Option<u32>) -> Duration {
        self.patience + rate.map(delay).unwrap_or_default()
    }
}

/// What a stream has noted is added however it ends, an interrupt of the run included.
struct Noting<'a> {
    tally: &'a Tally,
    notes: Notes,
}

impl Drop for Noting<'_> {
    fn drop(&mut self) {
        self.tally.add(&mut self.notes);
    }
}

/// The next bytes of a body that has brought so many tokens; `None` at its clean end.
async fn next(body: &mut Incoming, tokens: u64, wait: &Wait) -> Result<Option<Bytes>, Wrong> {
    loop {
        match wait.on(body.frame()).await? {
            None => return Ok(None),
            Some(Err(error)) => return Err(Wrong::failed(tokens, &error)),
            // Trailers say nothing of an answer.
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

/// What a refusal says, as far as it comes.
async fn refusal(mut body: Incoming, patience: Duration) -> String {
    let (mut begin, wait) = (BytesMut::new(), Wait::new(patience));
    while begin.len() < REFUSAL_MAX {
        let Ok(Some(chunk)) = next(&mut body, 0, &wait).await else { break };
        begin.extend_from_slice(&chunk);
    }
    said(&begin)
}

/// Whether the body is said to be what is due.
fn check_type(answer: &Response<Incoming>, due: &'static str) -> Result<(), Wrong> {
    let value = answer.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    if is_type(value, due) { Ok(()) } else { Err(Wrong::ContentType { got: quote(value), due }) }
}

fn is_type(value: &[u8], due: &str) -> bool {
    let essence = value.split(|byte| *byte == b';').next().unwrap_or_default();
    essence.trim_ascii().eq_ignore_ascii_case(due.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_type_may_have_parameters() {
        for right in ["text/event-stream", "Text/Event-Stream; charset=utf-8", "text/event-stream ;x"] {
            assert!(is_type(right.as_bytes(), EVENT_STREAM), "{right}");
        }
        for wrong in ["", "text/event-streams", "application/json", "x; text/event-stream"] {
            assert!(!is_type(wrong.as_bytes(), EVENT_STREAM), "{wrong}");
        }
    }
}
