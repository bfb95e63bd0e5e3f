//! What one run measured, as it stands in the JSON file: everything that the table and the pictures are made of.
//!
//! Pure. It knows targets by their names only, so that a file of another day can still be shown.

mod chart;
mod picture;
mod table;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub(crate) use picture::pictures;
pub(crate) use table::markdown;

/// The names that ratios are made of.
const OURS: &str = "streamgate";
const YARDSTICK: &str = "nginx";

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sheet {
    /// Fewer rounds: rougher figures.
    pub(crate) quick: bool,
    /// The command line of the run.
    pub(crate) command: Vec<String>,
    pub(crate) machine: Machine,
    /// Those who were to run, in the order of the columns.
    pub(crate) entrants: Vec<Entrant>,
    pub(crate) figures: Vec<Figure>,
    pub(crate) remarks: Vec<Remark>,
}

/// Where it ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    pub(crate) kernel: String,
    /// Load averages of one minute.
    pub(crate) load_before: String,
    pub(crate) load_after: String,
}

/// The engine or a proxy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entrant {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) version: String,
    /// Of so many clients that others get it was given one.
    pub(crate) one_of: u32,
    /// What it was started with; empty where nothing was.
    pub(crate) command: Vec<String>,
    /// Why it did not run.
    pub(crate) not_run: Option<String>,
}

/// One line of the report: what was measured, for each target that has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figure {
    pub(crate) scenario: String,
    pub(crate) figure: String,
    pub(crate) unit: String,
    /// By the entrants' names.
    pub(crate) values: BTreeMap<String, f64>,
    /// How many times nginx's figure ours is.
    pub(crate) ratio: Option<f64>,
}

/// What a figure cannot say: something that went wrong with a contender, or was left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Remark {
    pub(crate) scenario: String,
    pub(crate) name: String,
    pub(crate) text: String,
}

impl Entrant {
    /// What stands above its column and beside its bar.
    fn label(&self) -> String {
        if self.one_of == 1 { self.title.clone() } else { format!("{} (1/{})", self.title, self.one_of) }
    }
}

impl Figure {
    pub(crate) fn new(scenario: &str, figure: &str, unit: &str, values: BTreeMap<String, f64>) -> Self {
        let [ours, yardstick] = [OURS, YARDSTICK].map(|name| values.get(name).copied());
        let ratio =
            ours.zip(yardstick.filter(|value| *value > 0.0)).map(|(ours, yardstick)| ours / yardstick);
        let [scenario, figure, unit] = [scenario, figure, unit].map(str::to_owned);
        Self { scenario, figure, unit, values, ratio }
    }
}
