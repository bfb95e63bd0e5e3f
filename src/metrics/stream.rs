//! What a stream counts while it flows.
//!
//! Each arrival of tokens is counted in numbers of the stream's own; they are added to the shared ones twice a second,
//! and at its end. So a token costs no write that threads share, and what is read from outside lags by half a
//! second at most while tokens flow.

use std::mem::take;
use std::sync::Arc;
use std::time::{Duration, Instant};

use prometheus::{Histogram, IntGauge};

use super::Metrics;
use crate::cluster::{BackendState, ClusterState, Output};
use crate::spread::{GAPS, Spread, place};

/// How often a stream adds what it has counted to the shared counts.
const ADD_EVERY: Duration = Duration::from_millis(500);

/// Whose stream it is, and since when it is waited for.
pub struct Streaming<'a> {
    /// Its route.
    pub route: &'a Arc<str>,
    /// Its cluster.
    pub cluster: Option<Arc<ClusterState>>,
    /// The backend that sends it.
    pub backend: Arc<BackendState>,
    /// When the request arrived.
    pub arrived: Instant,
    /// When it was sent to the backend.
    pub sent: Option<Instant>,
}

/// One stream: counted as active for as long as it lives, with its tokens.
#[derive(Debug)]
pub struct ActiveStream {
    active: IntGauge,
    first_event: Histogram,
    first_token: Arc<Spread>,
    gaps: Arc<Spread>,
    cluster: Option<Arc<ClusterState>>,
    backend: Arc<BackendState>,
    arrived: Instant,
    sent: Option<Instant>,
    /// When tokens last came.
    last: Option<Instant>,
    /// When the shared counts were last added to.
    added: Instant,
    // What has been counted since.
    tokens: u64,
    counts: [u32; GAPS.len() + 1],
    sum: Duration,
}

impl Metrics {
    /// Counts a stream that begins.
    pub fn stream(&self, of: Streaming<'_>) -> ActiveStream {
        let active = self.streams.with_label_values(&[&**of.route]);
        active.inc();
        ActiveStream {
            active,
            first_event: self.first_event.with_label_values(&[&**of.route]),
            first_token: self.first_token.of(of.route),
            gaps: self.gaps.of(of.route),
            cluster: of.cluster,
            backend: of.backend,
            arrived: of.arrived,
            sent: of.sent,
            last: None,
            added: of.arrived,
            tokens: 0,
            counts: [0; GAPS.len() + 1],
            sum: Duration::ZERO,
        }
    }
}

impl ActiveStream {
    /// Counts the first data event.
    pub fn first_event(&self, now: Instant) {
        self.first_event.observe(now.saturating_duration_since(self.arrived).as_secs_f64());
    }

    /// Counts tokens that have arrived together.
    pub fn tokens(&mut self, count: u64, now: Instant) {
        self.tokens += count;
        match self.last.replace(now) {
            Some(last) => {
                let gap = now.saturating_duration_since(last);
                self.counts[place(&GAPS, gap)] += 1;
                self.sum += gap;
            }
            None => self.first(now),
        }
        if now.saturating_duration_since(self.added) >= ADD_EVERY {
            self.added = now;
            self.add();
        }
    }

    /// When tokens last came.
    pub fn last_token(&self) -> Option<Instant> {
        self.last
    }

    fn first(&self, now: Instant) {
        self.first_token.add(now.saturating_duration_since(self.arrived));
        let Some(sent) = self.sent else { return };
        self.outputs().for_each(|output| output.first_token.add(now.saturating_duration_since(sent)));
    }

    fn outputs(&self) -> impl Iterator<Item = &Output> {
        self.cluster.iter().map(|cluster| &cluster.output).chain([&self.backend.output])
    }

    /// Adds what has been counted to the shared counts.
    fn add(&mut self) {
        let (tokens, counts, sum) = (take(&mut self.tokens), take(&mut self.counts), take(&mut self.sum));
        self.gaps.add_all(&counts, sum);
        for output in self.outputs() {
            output.add_tokens(tokens);
            output.gaps.add_all(&counts, sum);
        }
    }
}

impl Drop for ActiveStream {
    fn drop(&mut self) {
        self.add();
        self.active.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outlet::Losses;

    #[test]
    fn arrivals_are_added_twice_a_second_and_at_the_end() {
        let metrics = Metrics::new(Losses::default()).unwrap();
        let (route, backend, cluster) = (Arc::from("r"), Arc::<BackendState>::default(), Arc::default());
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut stream = metrics.stream(Streaming {
            route: &route,
            cluster: Some(Arc::clone(&cluster)),
            backend: Arc::clone(&backend),
            arrived: start,
            sent: Some(at(100)),
        });
        stream.tokens(1, at(300));
        // Three that arrive together are one arrival.
        stream.tokens(3, at(340));
        let seen = || (backend.output.tokens(), backend.output.gaps.read().count());
        assert_eq!(seen(), (0, 0), "no shared count is touched yet");
        stream.tokens(1, at(640));
        stream.tokens(1, at(700));
        assert_eq!(seen(), (5, 2));
        drop(stream);
        assert_eq!(seen(), (6, 3));
        assert_eq!((cluster.output.tokens(), metrics.gaps.read("r")), (6, cluster.output.gaps.read()));
        assert_eq!(metrics.gaps.of(&route).sum(), Duration::from_millis(400));
        // The route counts from arrival, the backend from when it was asked.
        let first = [metrics.first_token.of(&route).sum(), backend.output.first_token.sum()];
        assert_eq!(first, [300, 200].map(Duration::from_millis));
        assert_eq!(metrics.streams_active("r"), 0);
    }
}
