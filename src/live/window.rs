//! The samples of the last minute, and what they come to.
//!
//! Percentiles and counts are of the whole window, so that they stand on enough; rates are of its last seconds, so
//! that they follow. The window is as long as somebody has watched, or as the process is old: it begins with the
//! first sample there is, and each view says how long it is.

use std::collections::VecDeque;
use std::time::Duration;

use super::problems;
use super::sample::{BackendCounts, RouteCounts, Sample};
use super::view::{
    Backend, BackendNow, Cancels, Cluster, ClusterNow, History, Now, Output, Percentiles, Route, Totals, View,
};
use crate::outcome::Phase;
use crate::spread::{Counts, GAPS, WAITS};

/// How far back a view reaches.
pub const LENGTH: Duration = Duration::from_secs(60);
/// How far back a rate reaches: streams add their tokens twice a second, so that a shorter time would flicker.
const RATE: Duration = Duration::from_secs(5);

/// The samples of the last minute.
#[derive(Debug)]
pub struct Window {
    /// Ascending in time, never empty.
    samples: VecDeque<Sample>,
}

impl Window {
    /// A window that begins with this sample.
    pub fn new(first: Sample) -> Self {
        Self { samples: VecDeque::from([first]) }
    }

    /// Adds a sample, later than those before, and forgets what lies further back than [`LENGTH`].
    pub fn add(&mut self, sample: Sample) {
        let at = sample.at;
        self.samples.push_back(sample);
        while self.samples.front().is_some_and(|first| at.saturating_duration_since(first.at) > LENGTH) {
            self.samples.pop_front();
        }
    }

    /// What the samples come to, with what is known at the moment of the last one.
    pub fn view(&self, now: Now) -> View {
        let last = self.last();
        let look = Look { last, first: &self.samples[0], recent: self.recent() };
        let clusters: Vec<Cluster> =
            now.clusters.into_iter().map(|(cluster, backends)| look.cluster(cluster, backends)).collect();
        let routes: Vec<Route> =
            now.routes.into_iter().map(|(name, streams)| look.route(name, streams)).collect();
        let totals = look.totals(&clusters, &routes);
        View {
            problems: problems::find(&now.gateway, &clusters, &routes, &totals),
            history: self.history(),
            cancels: look.cancels(),
            gateway: now.gateway,
            totals,
            clusters,
            routes,
            failures: now.failures,
        }
    }

    fn last(&self) -> &Sample {
        &self.samples[self.samples.len() - 1]
    }

    /// The sample that rates are measured from: the newest that is old enough, or the oldest there is.
    fn recent(&self) -> &Sample {
        let at = self.last().at;
        let is_old = |sample: &&Sample| at.saturating_duration_since(sample.at) >= RATE;
        self.samples.iter().rev().find(is_old).unwrap_or(&self.samples[0])
    }

    fn history(&self) -> History {
        let mut history = History::default();
        for (before, after) in self.samples.iter().zip(self.samples.iter().skip(1)) {
            let time = after.at.saturating_duration_since(before.at);
            let figures: [(&mut Vec<f64>, u64); 3] = [
                (&mut history.tokens_per_second, after.tokens().saturating_sub(before.tokens())),
                (&mut history.requests_per_second, grown(after, before, |route| route.requests)),
                (&mut history.failed_per_second, grown(after, before, |route| route.failed)),
            ];
            for (series, count) in figures {
                series.push(rate(count, time).unwrap_or(0.0));
            }
        }
        history
    }
}

/// The last sample beside those that it is compared with.
struct Look<'a> {
    last: &'a Sample,
    /// The first of the window.
    first: &'a Sample,
    /// The one that rates are measured from.
    recent: &'a Sample,
}

impl Look<'_> {
    fn rate(&self, figure: impl Fn(&Sample) -> u64) -> Option<f64> {
        let time = self.last.at.saturating_duration_since(self.recent.at);
        rate(figure(self.last).saturating_sub(figure(self.recent)), time)
    }

    fn cluster(&self, now: ClusterNow, backends: Vec<BackendNow>) -> Cluster {
        let name = now.name.clone();
        let backends = backends.into_iter().map(|backend| Backend {
            output: self.output(|sample| sample.clusters.get(&*name)?.backends.get(&*backend.name)),
            now: backend,
        });
        let backends = backends.collect();
        let output = self.output(|sample| Some(&sample.clusters.get(&*name)?.output));
        Cluster { now, output, backends }
    }

    /// What came out of something; nothing is known of what the last sample does not have.
    fn output(&self, find: impl Fn(&Sample) -> Option<&BackendCounts>) -> Output {
        let Some(last) = find(self.last) else { return Output::default() };
        let since = |figure: fn(&BackendCounts) -> &Counts| match find(self.first) {
            Some(first) => figure(last).since(figure(first)),
            None => figure(last).clone(),
        };
        Output {
            tokens_per_second: self.rate(|sample| find(sample).map_or(0, |counts| counts.tokens)),
            first_token: percentiles(&since(|counts| &counts.first_token)),
            gap: percentiles(&since(|counts| &counts.gaps)),
        }
    }

    fn route(&self, name: String, streams: u64) -> Route {
        let none = RouteCounts::default();
        let of = |sample: &Sample| sample.routes.get(&*name).cloned().unwrap_or_else(|| none.clone());
        let (last, first) = (of(self.last), of(self.first));
        Route {
            streams,
            requests_per_second: self.rate(|sample| of(sample).requests),
            requests: last.requests.saturating_sub(first.requests),
            failed: last.failed.saturating_sub(first.failed),
            first_token: percentiles(&last.first_token.since(&first.first_token)),
            gap: percentiles(&last.gaps.since(&first.gaps)),
            name,
        }
    }

    fn totals(&self, clusters: &[Cluster], routes: &[Route]) -> Totals {
        let merged = |none: Counts, figure: fn(&RouteCounts) -> &Counts| {
            percentiles(&self.last.merged(none.clone(), figure).since(&self.first.merged(none, figure)))
        };
        let grown = |figure: fn(&RouteCounts) -> u64| grown(self.last, self.first, figure);
        Totals {
            window_seconds: rounded(self.last.at.saturating_duration_since(self.first.at).as_secs_f64()),
            streams: routes.iter().map(|route| route.streams).sum(),
            waiting: clusters.iter().map(|cluster| cluster.now.waiting as u64).sum(),
            tokens_per_second: self.rate(Sample::tokens),
            requests_per_second: self.rate(|sample| sample.sum(|route| route.requests)),
            requests: grown(|route| route.requests),
            failed: grown(|route| route.failed),
            refused: grown(|route| route.refused),
            cancels: self.cancels().iter().map(|cancels| cancels.count).sum(),
            tokens_saved: grown(|route| route.saved),
            first_token: merged(Counts::none(&WAITS), |route| &route.first_token),
            gap: merged(Counts::none(&GAPS), |route| &route.gaps),
        }
    }

    fn cancels(&self) -> Vec<Cancels> {
        let counts = self.last.cancels.iter().zip(&self.first.cancels);
        let counts = counts.map(|(last, first)| last.saturating_sub(*first));
        let all = Phase::ALL.iter().zip(counts).filter(|(_, count)| *count > 0);
        all.map(|(phase, count)| Cancels { phase: phase.as_str().to_owned(), count }).collect()
    }
}

/// What a figure of all routes has grown by.
fn grown(after: &Sample, before: &Sample, figure: impl Fn(&RouteCounts) -> u64 + Copy) -> u64 {
    after.sum(figure).saturating_sub(before.sum(figure))
}

/// So many in a time, each second; unknown without a time.
fn rate(count: u64, time: Duration) -> Option<f64> {
    (!time.is_zero()).then(|| rounded(count as f64 / time.as_secs_f64()))
}

/// With no more digits than anybody reads.
fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

fn percentiles(counts: &Counts) -> Percentiles {
    let micros = |q| counts.quantile(q).map(|seconds| (seconds * 1e6).round() / 1e6);
    Percentiles { p50: micros(0.5), p90: micros(0.9), p99: micros(0.99) }
}

#[cfg(test)]
mod tests;
