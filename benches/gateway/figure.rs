//! Figures, and the little arithmetic behind them. Pure.

use crate::fleet::Target;

/// One line of the report: what was measured, for each target that has it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Figure {
    pub(crate) scenario: &'static str,
    pub(crate) name: String,
    pub(crate) unit: &'static str,
    pub(crate) direct: Option<f64>,
    pub(crate) nginx: Option<f64>,
    pub(crate) bare: Option<f64>,
    pub(crate) gateway: Option<f64>,
}

impl Figure {
    /// How many times nginx's figure ours is.
    pub(crate) fn ratio(&self) -> Option<f64> {
        self.gateway.zip(self.nginx).filter(|(_, nginx)| *nginx > 0.0).map(|(gateway, nginx)| gateway / nginx)
    }
}

/// Values of each target over the rounds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rounds {
    direct: Vec<f64>,
    nginx: Vec<f64>,
    bare: Vec<f64>,
    gateway: Vec<f64>,
}

impl Rounds {
    pub(crate) fn push(&mut self, target: Target, value: f64) {
        match target {
            Target::Direct => self.direct.push(value),
            Target::Nginx => self.nginx.push(value),
            Target::Bare => self.bare.push(value),
            Target::Gateway => self.gateway.push(value),
        }
    }

    /// What the proxies add to what the engine alone takes, round by round.
    pub(crate) fn added(&self) -> Self {
        let minus_direct =
            |values: &[f64]| values.iter().zip(&self.direct).map(|(value, direct)| value - direct).collect();
        Self {
            direct: Vec::new(),
            nginx: minus_direct(&self.nginx),
            bare: minus_direct(&self.bare),
            gateway: minus_direct(&self.gateway),
        }
    }

    /// The median round of each target.
    pub(crate) fn figure(&self, scenario: &'static str, name: &str, unit: &'static str) -> Figure {
        Figure {
            scenario,
            name: name.to_owned(),
            unit,
            direct: median(&self.direct),
            nginx: median(&self.nginx),
            bare: median(&self.bare),
            gateway: median(&self.gateway),
        }
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
