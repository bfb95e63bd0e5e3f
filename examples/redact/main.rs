//! A gateway that redacts: nothing that looks like an API key (`sk-` and at least 16 letters, digits, `-` or `_`)
//! reaches a client, be it in a JSON answer or in a stream, and also where it is split over events.
//!
//! ```text
//! cargo run --example redact -- run -c conf/streamgate.yaml
//! ```
//!
//! In a stream each text (the content, the reasoning, the arguments of a tool call, of each choice) comes in pieces. What
//! may become a key stays back, at most 18 bytes, until the next piece of the same text decides; all else of the event goes
//! on at once, byte for byte, texts of the same choice among it. With the finish reason of the choice, or `[DONE]`, what is
//! held back goes out in an event of its own before what ended it; a stream that ends without either loses it.
//!
//! It fails closed. What it cannot read is broken off rather than passed: texts in other places (a list of parts, the older
//! `function_call`, log probabilities), a text after its finish reason, letters of keys written as `\u0073`, events with other
//! lines than one `data`. What it was not made for (other endpoints than chat and completions) is not let in. A key is
//! looked for crudely: `risk-` followed by 16 letters is taken for one.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it says where it listens, and why it does not, as the command does"
)]

mod chunk;
mod text;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use chunk::{Chunk, Field};
use serde_json::{Value, json};
use streamgate::Gateway;
use streamgate::config::{self, Environment, Problems};
use streamgate::hooks::{Admit, Change, Facts, Observe, Unseen};
use streamgate::rejection::{Class, Refusal};
use streamgate::server::{Listening, StartError, chain};
use streamgate::sse::{Event, EventKind};
use text::{Text, hides_letters, plain, redact};

/// Exit codes, which are those of the command: bad usage or configuration, and what keeps it from starting.
const WRONG: u8 = 64;
const NOT_NOW: u8 = 75;

fn main() -> ExitCode {
    env_logger::init();
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failed(code, text)) => {
            eprintln!("redact: {text}");
            code.into()
        }
    }
}

fn serve() -> Result<(), Failed> {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    let [verb, _, file] = &args[..] else {
        return Err(Failed(WRONG, "usage: redact run|upgrade -c FILE".to_owned()));
    };
    let builder = Gateway::builder(config::load(file.as_ref(), &Environment::detect())?)
        .file(file)
        .admit(Scope)
        .observe(|_| Some(Box::new(Redactor::default())))
        .on_listening(announce);
    let builder = if verb == "upgrade" { builder.as_successor() } else { builder };
    Ok(builder.build()?.run()?)
}

/// An exit code, and why.
struct Failed(u8, String);

impl From<Problems> for Failed {
    fn from(problems: Problems) -> Self {
        Self(if problems.is_unreadable() { NOT_NOW } else { WRONG }, problems.to_string())
    }
}

impl From<StartError> for Failed {
    fn from(error: StartError) -> Self {
        Self(if error.is_configuration() { WRONG } else { NOT_NOW }, chain(&error))
    }
}

fn announce(listening: &Listening) {
    for url in &listening.clients {
        println!("streamgate listening on {url}");
    }
    println!("streamgate admin on {}\nready", listening.admin);
}

/// Lets in what the redactor can read.
struct Scope;

impl Admit for Scope {
    fn admit(&self, request: &Facts<'_>) -> Result<(), Refusal> {
        if request.path.ends_with("/completions") {
            return Ok(());
        }
        Err(Refusal::new(
            Class::Forbidden,
            "only chat and completions are served here: others cannot be redacted",
        ))
    }
}

/// Redacts one answer.
#[derive(Default)]
struct Redactor {
    /// The texts of its stream, by choice.
    texts: BTreeMap<(u64, Field), Text>,
    /// Choices that have had their finish reason.
    finished: BTreeSet<u64>,
    /// The data of the last event that something of was held back.
    held_of: String,
}

impl Observe for Redactor {
    fn event(&mut self, event: &Event<'_>) -> Change {
        self.redacted(event).unwrap_or(Change::Break)
    }

    fn answer(&mut self, body: &[u8]) -> Change {
        match std::str::from_utf8(body) {
            Ok(body) if !hides_letters(body) => changed(body, redact(body)),
            _ => Change::Break,
        }
    }

    fn unseen(&self) -> Unseen {
        Unseen::Break
    }
}

impl Redactor {
    /// `None` for an event of a form that is not known here.
    fn redacted(&mut self, event: &Event<'_>) -> Option<Change> {
        let raw = std::str::from_utf8(event.raw?).ok()?;
        if event.kind != EventKind::Data {
            return Some(changed(raw, redact(raw)));
        }
        // All engines write their chunks on one line.
        let Some(Cow::Borrowed(data)) = event.data().filter(|_| event.single) else { return None };
        let data = std::str::from_utf8(data).ok()?;
        if data == "[DONE]" {
            let held = self.let_go(|_| true);
            return Some(changed(raw, held + raw));
        }
        let chunk: Chunk<'_> = serde_json::from_str(data).ok()?;
        let (mut out, mut edits) = (String::new(), BTreeMap::new());
        for choice in chunk.choices.unwrap_or_default() {
            let pieces = choice.texts()?;
            let is_last = choice.finish_reason.is_some();
            if is_last {
                out += &self.let_go(|(index, field)| *index == choice.index && !pieces.contains_key(field));
            }
            if !pieces.is_empty() && self.finished.contains(&choice.index) {
                return None;
            }
            for (field, piece) in pieces {
                let text = self.texts.entry((choice.index, field)).or_default();
                let whole: String = serde_json::from_str(piece.get()).ok()?;
                // Of arguments, which are JSON again, a client reads escapes once more.
                if hides_letters(&whole) {
                    return None;
                }
                let mut shown = text.push(&whole);
                if is_last {
                    shown += &text.finish();
                }
                if !text.held.is_empty() {
                    data.clone_into(&mut self.held_of);
                }
                let json = if shown == whole { piece.get().to_owned() } else { json!(shown).to_string() };
                edits.insert(place(raw, piece.get()), (piece.get().len(), json));
            }
            if is_last {
                self.finished.insert(choice.index);
            }
        }
        let mut from = 0;
        for (at, (length, json)) in edits {
            out = out + &plain(&raw[from..at])? + &json;
            from = at + length;
        }
        out += &plain(&raw[from..])?;
        Some(changed(raw, out))
    }

    /// Events with what is held back of these texts, which have ended.
    fn let_go(&mut self, ended: impl Fn(&(u64, Field)) -> bool) -> String {
        let mut events = String::new();
        for (place, text) in self.texts.iter_mut().filter(|(place, _)| ended(place)) {
            let rest = text.finish();
            // Its own data was read before.
            if let (false, Ok(mut chunk)) = (rest.is_empty(), serde_json::from_str::<Value>(&self.held_of)) {
                chunk["choices"] = json!([place.1.choice(place.0, &rest)]);
                // Told already, with the event that this was held back of.
                chunk.as_object_mut().map(|chunk| chunk.remove("usage"));
                events += &format!("data: {chunk}\n\n");
            }
        }
        events
    }
}

/// Where `part`, which is a piece of `whole`, stands in it.
fn place(whole: &str, part: &str) -> usize {
    part.as_ptr() as usize - whole.as_ptr() as usize
}

fn changed(before: &str, after: String) -> Change {
    if before == after { Change::Pass } else { Change::Replace(after.into()) }
}
