//! The `sim` part: engines to simulate.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use super::names::{self, Unique};
use super::value;
use crate::config::place::At;
use crate::config::raw::{self, Field};
use crate::sim::{Fault, Settings};

/// Most tokens of a simulated answer.
const TOKENS_MAX: u64 = 1_000_000;
/// Most events written at once.
const BATCH_MAX: u64 = 10_000;
/// Sizes of one simulated event.
const EVENT_BYTES: std::ops::RangeInclusive<u64> = 1..=16 << 20;

/// The engines, in the order of the file.
pub(super) fn engines(file: &raw::File, at: &At<'_>) -> Vec<Settings> {
    let mut unique = Unique::new("simulated engine");
    let engines = file.sim.get().map_or(&[][..], Vec::as_slice).iter().enumerate();
    let empty = raw::Sim::default();
    engines
        .map(|(i, sim)| {
            let (at, raw) = (at.index(i), sim.get().unwrap_or(&empty));
            let name = raw.name.get().cloned().unwrap_or_else(|| format!("sim-{}", i + 1));
            names::text(&name, &at.key("name"));
            unique.check(&name, &at.key("name"), "give each its own name");
            engine(raw, &at, name, sim.get().is_some())
        })
        .collect()
}

fn engine(raw: &raw::Sim, at: &At<'_>, name: String, is_readable: bool) -> Settings {
    let model = raw.model.get().cloned().unwrap_or_else(|| "sim-model".into());
    names::text(&model, &at.key("model"));
    let tokens = raw.tokens.get().map_or(120, |count| count.0);
    let event_bytes = value::size(&raw.event_bytes, &at.key("event_bytes"), 230, EVENT_BYTES);
    let batch = raw.batch.get().map_or(1, |count| count.0);
    Settings {
        name,
        listen: listen(raw, at, is_readable),
        model,
        first_event: value::duration(&raw.first_event, Duration::from_millis(200)),
        inter_token: value::duration(&raw.inter_token, Duration::from_millis(20)),
        tokens: u32::try_from(value::within(tokens, &at.key("tokens"), 1..=TOKENS_MAX)).unwrap_or(u32::MAX),
        event_bytes: usize::try_from(event_bytes).unwrap_or(usize::MAX),
        early_200: raw.early_200.get().copied().unwrap_or(true),
        keepalive: value::positive(&raw.keepalive, &at.key("keepalive"), Duration::from_secs(5)),
        batch: u32::try_from(value::within(batch, &at.key("batch"), 1..=BATCH_MAX)).unwrap_or(1),
        faults: faults(raw, &at.key("faults")),
        ..Settings::default()
    }
}

fn listen(raw: &raw::Sim, at: &At<'_>, is_readable: bool) -> SocketAddr {
    match &raw.listen {
        Field::Set(text) => value::address(text, &at.key("listen")),
        Field::Absent if is_readable => {
            at.key("listen").problem("missing", "write listen: 127.0.0.1:9101");
            None
        }
        Field::Absent | Field::Wrong => None,
    }
    .unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 0).into())
}

/// Faults are given as words, each read by the engine's own parser.
fn faults(raw: &raw::Sim, at: &At<'_>) -> Vec<Fault> {
    let words = raw.faults.get().map_or(&[][..], Vec::as_slice).iter().enumerate();
    let parsed = words.filter_map(|(i, word)| Some((i, word.get()?.parse::<Fault>())));
    parsed
        .filter_map(|(i, fault)| match fault {
            Ok(fault) => Some(fault),
            Err(error) => {
                at.index(i).problem(error.to_string(), "see docs/simulated-engine.md for the faults");
                None
            }
        })
        .collect()
}
