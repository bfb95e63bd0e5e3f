//! Waiting: the one place of the tests that may sleep.
//!
//! [`wait_until`] waits on a value; [`silence`] is not a wait but a stimulus: nobody sends anything
//! for that long, which is what a timer is tested with.

use std::future::Future;
use std::time::{Duration, Instant};

/// How long anything that should happen "at once" may take on a busy machine: two cores and twice the load
/// they can bear. Less than the timeouts that a test sets far away.
pub(crate) const SOON: Duration = Duration::from_secs(8);

const POLL: Duration = Duration::from_millis(4);

/// Polls until `holds` says true; panics with `what` after `deadline`.
pub(crate) async fn wait_until(what: &str, deadline: Duration, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < deadline, "not within {deadline:?}: {what}");
        tokio::time::sleep(POLL).await;
    }
}

/// Like [`wait_until`] for a condition that needs to ask somebody.
pub(crate) async fn wait_until_async<F: Future<Output = bool>>(
    what: &str,
    deadline: Duration,
    mut holds: impl FnMut() -> F,
) {
    let start = Instant::now();
    while !holds().await {
        assert!(start.elapsed() < deadline, "not within {deadline:?}: {what}");
        tokio::time::sleep(POLL).await;
    }
}

/// Awaits `future`; panics with `what` after `deadline`.
pub(crate) async fn within<F: Future>(what: &str, deadline: Duration, future: F) -> F::Output {
    match tokio::time::timeout(deadline, future).await {
        Ok(output) => output,
        Err(_) => panic!("not within {deadline:?}: {what}"),
    }
}

/// A pause that is part of the stimulus.
pub(crate) async fn silence(length: Duration) {
    tokio::time::sleep(length).await;
}

/// Milliseconds, for short test settings.
pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
