//! When requests begin.
//!
//! Without a rate the load is closed: a request begins when another has ended, and a target that is slow is asked less.
//! With a rate it is open: requests arrive at their times, whatever became of the others, as those of people do. Either
//! way no more are under way than the bound says; an arrival that finds no place is left out and counted.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::args::Bound;
use super::client::Client;

/// When requests begin, and how many at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    pub(super) concurrency: usize,
    pub(super) bound: Bound,
    /// Arrivals each second.
    pub(super) rate: Option<f64>,
}

/// Makes all requests and waits for their answers, or until `stop`: true where that came first. Requests that are under
/// way then have ended when this returns, and what they noted is in the tally.
pub(super) async fn run(client: &Arc<Client>, pace: Pace, stop: impl Future<Output = ()>) -> bool {
    let mut under_way = JoinSet::new();
    let stopped = tokio::select! {
        () = make(client, pace, &mut under_way) => false,
        () = stop => true,
    };
    under_way.shutdown().await;
    stopped
}

async fn make(client: &Arc<Client>, pace: Pace, under_way: &mut JoinSet<()>) {
    let places = Arc::new(Semaphore::new(pace.concurrency.min(Semaphore::MAX_PERMITS)));
    let begin = Instant::now();
    for number in 0.. {
        let place = match pace.bound {
            Bound::Requests(most) if number >= most => break,
            Bound::Requests(_) => turn(&places, pace.rate, begin, number).await,
            Bound::Time(time) => {
                let Ok(place) = timeout_at(begin + time, turn(&places, pace.rate, begin, number)).await
                else {
                    break;
                };
                place
            }
        };
        match place {
            Some(place) => {
                client.tally.begun.fetch_add(1, Relaxed);
                let client = Arc::clone(client);
                under_way.spawn(async move {
                    client.exchange(number).await;
                    drop(place);
                });
            }
            None => drop(client.tally.left_out.fetch_add(1, Relaxed)),
        }
        // Those that have ended are let go of.
        while let Some(ended) = under_way.try_join_next() {
            check(ended);
        }
    }
    while let Some(ended) = under_way.join_next().await {
        check(ended);
    }
}

/// A request that panicked is a fault of ours, and no run that goes on would tell it.
fn check(ended: Result<(), JoinError>) {
    if let Err(Ok(panic)) = ended.map_err(JoinError::try_into_panic) {
        std::panic::resume_unwind(panic);
    }
}

/// Waits for the time of the request with this number; its place, where there is one.
async fn turn(
    places: &Arc<Semaphore>,
    rate: Option<f64>,
    begin: Instant,
    number: u64,
) -> Option<OwnedSemaphorePermit> {
    let places = Arc::clone(places);
    match rate {
        // The semaphore is never closed.
        None => places.acquire_owned().await.ok(),
        Some(rate) => {
            sleep_until(begin + arrival(number, rate)).await;
            places.try_acquire_owned().ok()
        }
    }
}

/// When a request arrives, from the beginning. Times are computed anew for each, so that no error adds up.
fn arrival(number: u64, rate: f64) -> Duration {
    Duration::try_from_secs_f64(number as f64 / rate).unwrap_or(Duration::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_are_even_and_add_no_error_up() {
        assert_eq!(arrival(0, 3.0), Duration::ZERO);
        assert_eq!(arrival(1, 4.0), Duration::from_millis(250));
        assert_eq!(arrival(3_000_000, 3.0), Duration::from_secs(1_000_000));
    }
}
