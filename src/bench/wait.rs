//! How long a client waits for an answer that goes on.
//!
//! The one hard idea: heartbeats show that a connection lives, not that an answer comes. What ends the wait is data; a
//! comment only tells what the silence was like.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::wrong::Wrong;

/// A wait for the data of one answer.
pub(super) struct Wait {
    longest: Duration,
    until: Instant,
    /// Something that is no data has come since the last.
    heard: bool,
}

impl Wait {
    /// Begins to wait.
    pub(super) fn new(longest: Duration) -> Self {
        Self { longest, until: Instant::now() + longest, heard: false }
    }

    /// What comes next, or that nothing has come for too long.
    pub(super) async fn on<T>(&self, next: impl Future<Output = T>) -> Result<T, Wrong> {
        timeout_at(self.until, next).await.map_err(|_| {
            if self.heard { Wrong::Heartbeats(self.longest) } else { Wrong::Silence(self.longest) }
        })
    }

    /// Something has come, and whether there was data in it.
    pub(super) fn heard(&mut self, data: bool) {
        if data {
            *self = Self::new(self.longest);
        } else {
            self.heard = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_data_begins_the_wait_anew() {
        let longest = Duration::from_secs(10);
        let (mut wait, silence) = (Wait::new(longest), std::future::pending::<()>);
        let part = || tokio::time::sleep(Duration::from_secs(6));
        wait.on(part()).await.expect("in time");
        wait.heard(true);
        wait.on(part()).await.expect("in time again");
        wait.heard(false);
        assert_eq!(wait.on(part()).await, Err(Wrong::Heartbeats(longest)));
        wait.heard(true);
        assert_eq!(wait.on(silence()).await, Err(Wrong::Silence(longest)));
    }
}
