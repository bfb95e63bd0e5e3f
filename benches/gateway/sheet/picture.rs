//! Which figures become pictures, and what stands above them.

use super::chart::{Bar, Chart, Scale};
use super::{Figure, OURS, Sheet};

/// A picture: a figure or two for each target.
struct Subject {
    file: &'static str,
    title: &'static str,
    scenario: &'static str,
    figures: &'static [&'static str],
    scale: Scale,
}

const SUBJECTS: [Subject; 7] = [
    Subject {
        file: "latency.svg",
        title: "Added latency of an event, median (above) and 99th percentile (below)",
        scenario: "streams",
        figures: &["added latency per event, p50", "added latency per event, p99"],
        scale: Scale::Logarithmic,
    },
    Subject {
        file: "cpu.svg",
        title: "Processor time for an event",
        scenario: "streams",
        figures: &["CPU per event"],
        scale: Scale::Logarithmic,
    },
    Subject {
        file: "memory.svg",
        title: "Memory for a stream",
        scenario: "streams",
        figures: &["memory per stream"],
        scale: Scale::Linear,
    },
    Subject {
        file: "slow-reader.svg",
        title: "Held for a client that reads 1 KB/s of a firehose, sockets included",
        scenario: "slow",
        figures: &["held by the proxy, both together"],
        scale: Scale::Logarithmic,
    },
    Subject {
        file: "waste.svg",
        title: "Tokens generated for clients that had left, of all: 30 % leave at token 15",
        scenario: "cancel",
        figures: &["streaming: tokens wasted"],
        scale: Scale::Linear,
    },
    Subject {
        file: "reload.svg",
        title: "Memory, at most, while the configuration is read again ten times a second under 200 streams",
        scenario: "reload",
        figures: &["memory, at most"],
        scale: Scale::Logarithmic,
    },
    Subject {
        file: "many.svg",
        title: "Memory with 9,500 streams",
        scenario: "large",
        figures: &["memory with 9,500 streams"],
        scale: Scale::Linear,
    },
];

/// The pictures of a run by their file names; one whose figures were not measured is left out.
pub(crate) fn pictures(sheet: &Sheet) -> Vec<(&'static str, String)> {
    let picture = |subject: &Subject| Some((subject.file, chart(sheet, subject)?.svg()));
    SUBJECTS.iter().filter_map(picture).collect()
}

fn chart(sheet: &Sheet, subject: &Subject) -> Option<Chart> {
    let find = |name: &&str| {
        let is_it = |figure: &&Figure| figure.scenario == subject.scenario && figure.figure == **name;
        sheet.figures.iter().find(is_it)
    };
    let figures: Vec<&Figure> = subject.figures.iter().filter_map(find).collect();
    let unit = figures.first()?.unit.clone();
    // What a proxy costs: of the engine alone there is nothing to draw.
    let proxies =
        sheet.entrants.iter().filter(|entrant| entrant.not_run.is_none() && entrant.name != "direct");
    let bars = proxies.filter_map(|entrant| {
        let values: Option<Vec<f64>> =
            figures.iter().map(|figure| figure.values.get(&entrant.name).copied()).collect();
        Some(Bar { label: entrant.label(), values: values?, is_ours: entrant.name == OURS })
    });
    let parts = if sheet.entrants.iter().any(|entrant| entrant.one_of > 1) {
        "; (1/n): with that part of the clients"
    } else {
        ""
    };
    let unit = unit + if subject.scale == Scale::Logarithmic { ", logarithmic" } else { "" };
    let subtitle = format!("{unit}; less is better{parts}");
    Some(Chart { title: subject.title, subtitle, scale: subject.scale, bars: bars.collect() })
}
