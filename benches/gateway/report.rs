//! The Markdown table on stdout and the JSON file.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::error::Error;
use crate::figure::Figure;
use crate::options::Options;

/// A load average beyond which others use a good part of the two cores.
const BUSY: f64 = 0.5;

/// What a run measured, and on what machine.
#[derive(Debug)]
pub(crate) struct Report {
    quick: bool,
    load_before: String,
    figures: Vec<Figure>,
}

impl Report {
    pub(crate) fn begin(options: &Options) -> Self {
        let load_before = load_average();
        if load_before.parse::<f64>().is_ok_and(|load| load > BUSY) {
            eprintln!("bench: the machine is busy (load average {load_before}): the figures will be rough");
        }
        Self { quick: options.quick, load_before, figures: Vec::new() }
    }

    pub(crate) fn add(&mut self, figures: Vec<Figure>) {
        self.figures.extend(figures);
    }

    /// Prints the table and writes the file.
    pub(crate) fn finish(&self, file: &Path) -> Result<(), Error> {
        let load_after = load_average();
        let mut out = std::io::stdout().lock();
        out.write_all(self.markdown(&load_after).as_bytes())
            .map_err(|error| Error::io("print the table", error))?;
        let failed = |error| Error::io(format!("write {}", file.display()), error);
        if let Some(dir) = file.parent() {
            fs::create_dir_all(dir).map_err(failed)?;
        }
        fs::write(file, format!("{:#}\n", self.json(&load_after))).map_err(failed)
    }

    fn markdown(&self, load_after: &str) -> String {
        let mut text = format!(
            "\n{}, {} cores, Linux {}; load average {} before, {load_after} after{}\n\n\
             | scenario | figure | unit | direct | nginx | bare Pingora | streamgate | streamgate / nginx |\n\
             |---|---|---|---:|---:|---:|---:|---:|\n",
            cpu_model(),
            cores(),
            kernel(),
            self.load_before,
            if self.quick { "; a quick run" } else { "" }
        );
        for figure in &self.figures {
            let [direct, nginx, bare, gateway] =
                [figure.direct, figure.nginx, figure.bare, figure.gateway].map(number);
            let ratio = figure.ratio().map_or_else(String::new, |ratio| format!("{ratio:.2}"));
            let (scenario, name, unit) = (figure.scenario, &figure.name, figure.unit);
            let names = format!("| {scenario} | {name} | {unit}");
            let written = writeln!(text, "{names} | {direct} | {nginx} | {bare} | {gateway} | {ratio} |");
            debug_assert!(written.is_ok(), "a String takes all it is given");
        }
        text
    }

    fn json(&self, load_after: &str) -> Value {
        let figure = |figure: &Figure| {
            json!({
                "scenario": figure.scenario, "figure": figure.name, "unit": figure.unit,
                "direct": figure.direct, "nginx": figure.nginx, "bare": figure.bare, "streamgate": figure.gateway,
                "ratio": figure.ratio(),
            })
        };
        json!({
            "quick": self.quick,
            "machine": {
                "cpu": cpu_model(), "cores": cores(), "kernel": kernel(),
                "load_before": self.load_before, "load_after": load_after,
            },
            "figures": self.figures.iter().map(figure).collect::<Vec<_>>(),
        })
    }
}

/// Three significant digits or so.
fn number(value: Option<f64>) -> String {
    match value {
        None => String::new(),
        Some(0.0) => "0".to_owned(),
        Some(value) if value.abs() < 10.0 => format!("{value:.2}"),
        Some(value) if value.abs() < 100.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.0}"),
    }
}

fn load_average() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}

fn kernel() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned()
}

fn cpu_model() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("model name"));
    line.and_then(|line| line.split_once(": ")).map_or("unknown CPU", |(_, model)| model).to_owned()
}

/// Cores of the machine, whatever this process is bound to.
fn cores() -> usize {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    text.lines().filter(|line| line.starts_with("processor")).count()
}
