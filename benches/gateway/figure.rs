//! Values over the rounds, and the little arithmetic that makes figures of them. Pure.

use std::collections::BTreeMap;

use crate::sheet::Figure;
use crate::target::Target;

/// Values of each target over the rounds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rounds(BTreeMap<Target, Vec<f64>>);

impl Rounds {
    pub(crate) fn push(&mut self, target: Target, value: f64) {
        self.0.entry(target).or_default().push(value);
    }

    /// What the proxies add to what the engine alone takes, round by round.
    pub(crate) fn added(&self) -> Self {
        let direct = self.0.get(&Target::Direct).map(Vec::as_slice).unwrap_or_default();
        let minus_direct =
            |values: &[f64]| values.iter().zip(direct).map(|(value, direct)| value - direct).collect();
        let proxies = self.0.iter().filter(|(target, _)| **target != Target::Direct);
        Self(proxies.map(|(target, values)| (*target, minus_direct(values))).collect())
    }

    /// The median round of each target.
    pub(crate) fn figure(&self, scenario: &str, name: &str, unit: &str) -> Figure {
        let value =
            |(target, values): (&Target, &Vec<f64>)| Some((target.name().to_owned(), median(values)?));
        Figure::new(scenario, name, unit, self.0.iter().filter_map(value).collect())
    }
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = sorted[(sorted.len() - 1) / 2];
    Some(f64::midpoint(lower, upper))
}

/// The value that `share` of the values (0 to 1) do not exceed; 0 for no values.
pub(crate) fn percentile(values: &mut [u32], share: f64) -> f64 {
    values.sort_unstable();
    let rank = (values.len() as f64 * share).ceil() as usize;
    values.get(rank.saturating_sub(1)).map_or(0.0, |value| f64::from(*value))
}
