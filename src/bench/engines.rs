//! When simulated engines saw cancelled requests leave.
//!
//! The engine and the client read the same clock where they run on one machine, and an engine remembers the request and
//! the instant: their difference is what a cancel takes through everything in between.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use http::Method;
use http::header::HeaderMap;
use serde::Deserialize;

use super::Error;
use super::args::Way;
use super::dial::Dialer;
use super::fetch::fetch;
use super::sample::{Sample, Spread};
use super::target::Place;

/// How long after the load engines are asked for leaves that they have not seen, and how often.
const SETTLE: Duration = Duration::from_secs(3);
const POLL: Duration = Duration::from_millis(50);

/// The part of an engine's statistics that is read.
#[derive(Debug, Deserialize)]
struct Stats {
    aborts: Vec<Abort>,
}

#[derive(Debug, Deserialize)]
struct Abort {
    request_id: String,
    at_unix_us: u64,
}

/// Whether all of them can be asked: told before a load, not behind it.
///
/// # Errors
/// One cannot.
pub(super) async fn check(engines: &[Place], way: &Way) -> Result<(), Error> {
    let way = Way { http2: false, ..way.clone() };
    for engine in engines {
        aborts(engine, &way).await?;
    }
    Ok(())
}

/// Asks all engines until they have seen each of `left` leave, or for some seconds.
///
/// # Errors
/// An engine cannot be asked.
pub(super) async fn cancels(
    engines: &[Place],
    way: &Way,
    left: &BTreeMap<String, u64>,
) -> Result<Option<Spread>, Error> {
    let way = Way { http2: false, ..way.clone() };
    let until = Instant::now() + SETTLE;
    loop {
        let mut seen = Sample::default();
        for engine in engines {
            seen.extend(matches(&aborts(engine, &way).await?, left));
        }
        let spread = seen.spread();
        let all = spread.map_or(0, |spread| spread.count) >= left.len() as u64;
        if all || engines.is_empty() || Instant::now() >= until {
            return Ok(spread);
        }
        tokio::time::sleep(POLL).await;
    }
}

async fn aborts(engine: &Place, way: &Way) -> Result<Vec<Abort>, Error> {
    let failed = |why: String| Error::Away(format!("the engine {engine}: {why}"));
    let place = engine.at("/sim/stats").map_err(failed)?;
    let dialer = Dialer::new(&place, way).await?;
    let answer = fetch(&dialer, way, Method::GET, &place, &HeaderMap::new()).await;
    let (status, body) = answer.map_err(|wrong| failed(wrong.to_string()))?;
    if status != 200 {
        return Err(failed(format!("GET /sim/stats says {status}; is it a simulated one?")));
    }
    let stats: Stats = serde_json::from_slice(&body).map_err(|error| failed(error.to_string()))?;
    Ok(stats.aborts)
}

/// Microseconds from leaving to being seen, of those that are ours.
fn matches(aborts: &[Abort], left: &BTreeMap<String, u64>) -> Vec<u32> {
    let since = |abort: &Abort| {
        let micros = abort.at_unix_us.saturating_sub(*left.get(&abort.request_id)?);
        Some(u32::try_from(micros).unwrap_or(u32::MAX))
    };
    aborts.iter().filter_map(since).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_are_matched_by_their_request() {
        let stats = r#"{"name":"e","aborts":[{"request_id":"a-1","tokens":5,"at_unix_us":1500},
            {"request_id":"other","tokens":5,"at_unix_us":1600},{"request_id":"a-2","tokens":5,"at_unix_us":1900}]}"#;
        let stats: Stats = serde_json::from_str(stats).unwrap();
        let left = ["a-1", "a-2", "a-3"].map(|id| (id.to_owned(), 1_000));
        assert_eq!(matches(&stats.aborts, &BTreeMap::from(left)), [500, 900]);
    }
}
