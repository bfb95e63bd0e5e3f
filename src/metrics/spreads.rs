//! Histograms by route that are counted in [`Spread`]s, as Prometheus reads them.
//!
//! Its own histograms take one value at a time; a stream adds many at once.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::RwLock;
use prometheus::Opts;
use prometheus::core::{Collector, Desc};
use prometheus::proto::{Bucket, Histogram, LabelPair, Metric, MetricFamily, MetricType};

use crate::spread::{Counts, Spread};

/// A histogram for each route. Clones are the same one.
#[derive(Debug, Clone)]
pub(super) struct Spreads {
    desc: Arc<Desc>,
    bounds: &'static [f64],
    by_route: Arc<RwLock<BTreeMap<Arc<str>, Arc<Spread>>>>,
}

impl Spreads {
    /// None yet.
    pub(super) fn new(opts: &Opts, bounds: &'static [f64]) -> prometheus::Result<Self> {
        let name = format!("{}_{}", opts.namespace, opts.name);
        let desc = Desc::new(name, opts.help.clone(), vec!["route".to_owned()], HashMap::new())?;
        Ok(Self { desc: Arc::new(desc), bounds, by_route: Arc::default() })
    }

    /// That of a route.
    pub(super) fn of(&self, route: &Arc<str>) -> Arc<Spread> {
        if let Some(known) = self.by_route.read().get(route) {
            return Arc::clone(known);
        }
        let mut all = self.by_route.write();
        Arc::clone(all.entry(Arc::clone(route)).or_insert_with(|| Arc::new(Spread::new(self.bounds))))
    }

    /// What that of a route holds.
    pub(super) fn read(&self, route: &str) -> Counts {
        self.by_route.read().get(route).map_or_else(|| Counts::none(self.bounds), |spread| spread.read())
    }
}

impl Collector for Spreads {
    fn desc(&self) -> Vec<&Desc> {
        vec![&self.desc]
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let metrics: Vec<Metric> =
            self.by_route.read().iter().map(|(route, spread)| metric(route, spread)).collect();
        let mut family = MetricFamily::default();
        family.set_name(self.desc.fq_name.clone());
        family.set_help(self.desc.help.clone());
        family.set_field_type(MetricType::HISTOGRAM);
        family.set_metric(metrics);
        vec![family]
    }
}

fn metric(route: &str, spread: &Spread) -> Metric {
    let counts = spread.read();
    let buckets = counts.cumulative().map(|(bound, count)| {
        let mut bucket = Bucket::default();
        bucket.set_upper_bound(bound);
        bucket.set_cumulative_count(count);
        bucket
    });
    let mut histogram = Histogram::default();
    histogram.set_bucket(buckets.collect());
    histogram.set_sample_count(counts.count());
    histogram.set_sample_sum(spread.sum().as_secs_f64());
    let mut label = LabelPair::default();
    label.set_name("route".to_owned());
    label.set_value(route.to_owned());
    let mut metric = Metric::from_label(vec![label]);
    metric.set_histogram(histogram);
    metric
}
