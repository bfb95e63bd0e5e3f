//! A plain reading of the WHATWG rules for event streams (section 9.2.6), whole input at once.
//!
//! Slow and obvious on purpose: the oracle for what a client makes of the bytes it got.

/// What a client would dispatch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Event {
    /// The `event` field.
    pub(crate) name: String,
    /// The data lines, joined by LF.
    pub(crate) data: String,
    /// The `id` field.
    pub(crate) id: Option<String>,
    /// The `retry` field.
    pub(crate) retry: Option<u64>,
}

/// All events that are dispatched; an unfinished last one is not.
pub(crate) fn parse(bytes: &[u8]) -> Vec<Event> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut lines: Vec<&str> = text.split('\n').collect();
    lines.pop();
    let mut events = Vec::new();
    let mut fields: Vec<(&str, &str)> = Vec::new();
    for line in lines {
        if line.is_empty() {
            events.extend(dispatch(&fields));
            fields.clear();
        } else if !line.starts_with(':') {
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            fields.push((name, value.strip_prefix(' ').unwrap_or(value)));
        }
    }
    events
}

/// The data of each event.
pub(crate) fn data(bytes: &[u8]) -> Vec<String> {
    parse(bytes).into_iter().map(|event| event.data).collect()
}

fn dispatch(fields: &[(&str, &str)]) -> Option<Event> {
    let mut event = Event::default();
    let mut data = Vec::new();
    for (name, value) in fields {
        match *name {
            "data" => data.push(*value),
            "event" => event.name = (*value).to_owned(),
            "id" => event.id = Some((*value).to_owned()),
            "retry" => event.retry = value.parse().ok(),
            _ => {}
        }
    }
    event.data = data.join("\n");
    (!data.is_empty()).then_some(event)
}
