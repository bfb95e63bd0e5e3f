//! Reloads of a gateway while it is under load: each is asked for and checked.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use http::Method;
use http::header::{AUTHORIZATION, HeaderMap};
use serde::Serialize;
use serde_json::Value;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::Error;
use super::args::{Reload, Way};
use super::dial::Dialer;
use super::fetch::fetch;
use super::wrong::{Wrong, quote, said};

/// Failures that are told one by one.
const TOLD_MAX: usize = 10;

/// What became of the reloads.
#[derive(Debug, Default)]
pub(super) struct Reloads(Mutex<Counts>);

/// Their counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Counts {
    /// Those that were answered, or should have been.
    pub(super) asked: u64,
    pub(super) failed: u64,
    /// By what the gateway says came of them: `applied`, `unchanged`.
    pub(super) results: BTreeMap<String, u64>,
    /// What the first failures were.
    pub(super) told: Vec<String>,
}

impl Reloads {
    /// Asks for a reload again and again, until it is dropped.
    ///
    /// # Errors
    /// The name of the place leads nowhere.
    pub(super) async fn run(&self, reload: &Reload, way: &Way) -> Result<std::convert::Infallible, Error> {
        // An operator's listener speaks HTTP/1.1.
        let way = Way { http2: false, ..way.clone() };
        let dialer = Dialer::new(&reload.place, &way).await?;
        let mut headers = HeaderMap::new();
        headers.extend(reload.token.iter().map(|token| (AUTHORIZATION, token.header_value().clone())));
        let mut turns = interval_at(Instant::now() + reload.every, reload.every);
        turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            turns.tick().await;
            let answer = fetch(&dialer, &way, Method::POST, &reload.place, &headers).await;
            self.counts().answered(judge(answer));
        }
    }

    pub(super) fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    fn answered(&mut self, result: Result<String, String>) {
        self.asked += 1;
        match result {
            Ok(result) => *self.results.entry(result).or_default() += 1,
            Err(why) => {
                self.failed += 1;
                if self.told.len() < TOLD_MAX {
                    self.told.push(why);
                }
            }
        }
    }
}

/// What came of a reload; why it failed.
fn judge(answer: Result<(u16, bytes::Bytes), Wrong>) -> Result<String, String> {
    let (status, body) = answer.map_err(|wrong| wrong.to_string())?;
    if !(200..300).contains(&status) {
        return Err(format!("status {status}: {}", said(&body)));
    }
    let value: Option<Value> = serde_json::from_slice(&body).ok();
    let result = value.as_ref().and_then(|value| value.get("result")?.as_str());
    Ok(result.map_or_else(|| "done".into(), |result| quote(result.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reload_is_judged_by_its_answer() {
        let mut counts = Counts::default();
        let answers = [
            (200, r#"{"result":"unchanged","generation":1}"#),
            (200, r#"{"result":"applied","generation":2}"#),
            (204, ""),
            (422, r#"{"problems":["line 3"]}"#),
        ];
        for (status, body) in answers {
            counts.answered(judge(Ok((status, body.into()))));
        }
        counts.answered(judge(Err(Wrong::Connect("refused".into()))));
        let results = ["applied", "done", "unchanged"].map(|result| (result.to_owned(), 1));
        assert_eq!(counts.results, BTreeMap::from(results));
        assert_eq!((counts.asked, counts.failed), (5, 2));
        assert_eq!(counts.told, [r#"status 422: {"problems":["line 3"]}"#, "no connection: refused"]);
    }
}
