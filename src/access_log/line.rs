//! One line of the access log.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::config::LogFormat;
use crate::keys::KeyError;
use crate::outcome::{Outcome, Phase};
use crate::usage::{Source, Usage};

/// Longest text of a client that is logged, in bytes.
const TEXT_MAX: usize = 256;

/// The facts of one exchange. Documented for operators in docs/access-log.md.
#[derive(Debug, Clone)]
pub struct Line {
    /// When it arrived.
    pub time: SystemTime,
    /// Its request id.
    pub request_id: String,
    /// The client's address.
    pub client: Option<IpAddr>,
    /// The name of its key; never the key.
    pub key: Option<Arc<str>>,
    /// HTTP method.
    pub method: String,
    /// Raw path, without the query.
    pub path: String,
    /// Name of the route.
    pub route: Option<Arc<str>>,
    /// Name of the cluster.
    pub cluster: Option<Arc<str>>,
    /// Name of the last backend it was tried on.
    pub backend: Option<Arc<str>>,
    /// Attempts in all.
    pub attempts: usize,
    /// Status the client saw; 0 for none.
    pub status: u16,
    /// How it ended.
    pub outcome: Outcome,
    /// Where it was when it ended.
    pub phase: Phase,
    /// `error.code` of what the client was told.
    pub error: Option<&'static str>,
    /// The limit, or the rule of a guard, that refused it.
    pub limit: Option<Cow<'static, str>>,
    /// Why its key was none.
    pub key_error: Option<KeyError>,
    /// The answer was an event stream.
    pub streaming: bool,
    /// The client's model name.
    pub model: Option<String>,
    /// The place that its session id came from; never the id.
    pub session: Option<Arc<str>>,
    /// Time that it waited for a free slot; `None` if it did not.
    pub queued: Option<Duration>,
    /// Arrival to first data event.
    pub first_event: Option<Duration>,
    /// Arrival to first token.
    pub first_token: Option<Duration>,
    /// Arrival to end.
    pub total: Duration,
    /// Data events.
    pub events: u64,
    /// Body bytes given to the client.
    pub bytes: u64,
    /// Tokens, and how they are known.
    pub usage: Option<(Usage, Source)>,
    /// Client gone to engine's connection closed.
    pub cancel: Option<Duration>,
    /// The engine's own request id.
    pub upstream_id: Option<String>,
    /// The configuration it lived by.
    pub generation: u64,
    /// Time that writes were blocked on the client.
    pub stalled: Duration,
    /// A dead pooled connection was replaced.
    pub resent: bool,
    /// Heartbeats given to the client.
    pub heartbeats: u64,
}

impl Line {
    /// Whether it is one to look at: it did not go well, for whatever reason.
    pub fn is_failure(&self) -> bool {
        self.outcome != Outcome::Completed || self.status >= 400
    }

    /// The fields, in their documented order.
    fn fields(&self) -> Vec<(&'static str, Value)> {
        let millis = |time: Option<Duration>| time.map(|time| (time.as_secs_f64() * 1e6).round() / 1e3);
        let usage = self.usage.map(|(usage, source)| {
            json!({
                "cached": usage.cached, "completion": usage.completion, "prompt": usage.prompt,
                "reasoning": usage.reasoning, "source": source.label(),
            })
        });
        vec![
            ("time", json!(timestamp(self.time))),
            ("request_id", json!(self.request_id)),
            ("client", json!(self.client)),
            ("key", json!(self.key.as_deref())),
            ("method", json!(short(&self.method))),
            ("path", json!(short(&self.path))),
            ("route", json!(self.route.as_deref())),
            ("cluster", json!(self.cluster.as_deref())),
            ("backend", json!(self.backend.as_deref())),
            ("attempts", json!(self.attempts)),
            ("status", json!(self.status)),
            ("outcome", json!(self.outcome.as_str())),
            ("phase", json!(self.phase.as_str())),
            ("error", json!(self.error)),
            ("limit", json!(self.limit)),
            ("key_error", json!(self.key_error.map(KeyError::as_str))),
            ("streaming", json!(self.streaming)),
            ("model", json!(self.model.as_deref().map(short))),
            ("session", json!(self.session.as_deref())),
            ("queued_ms", json!(millis(self.queued))),
            ("first_event_ms", json!(millis(self.first_event))),
            ("first_token_ms", json!(millis(self.first_token))),
            ("total_ms", json!(millis(Some(self.total)))),
            ("events", json!(self.events)),
            ("bytes", json!(self.bytes)),
            ("usage", json!(usage)),
            ("cancel_ms", json!(millis(self.cancel))),
            ("stalled_ms", json!(millis(Some(self.stalled)))),
            ("heartbeats", json!(self.heartbeats)),
            ("resent", json!(self.resent)),
            ("upstream_id", json!(self.upstream_id.as_deref().map(short))),
            ("generation", json!(self.generation)),
        ]
    }

    /// The line as it is written, without its end.
    pub fn render(&self, format: LogFormat) -> String {
        let fields = self.fields();
        match format {
            LogFormat::Json => serde_json::to_string(&Object(&fields)).unwrap_or_default(),
            LogFormat::Text => {
                let mut text = String::new();
                for (name, value) in &fields {
                    pair(&mut text, name, value);
                }
                text
            }
        }
    }
}

/// Fields as one JSON object, in their order.
struct Object<'a>(&'a [(&'static str, Value)]);

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// ` key=value`; an absent value is left out, a text that could be mistaken is quoted as JSON.
fn pair(text: &mut String, name: &str, value: &Value) {
    let plain = match value {
        Value::Null => return,
        Value::Object(inner) => {
            for (key, value) in inner {
                pair(text, &format!("{name}.{key}"), value);
            }
            return;
        }
        Value::String(word) if is_plain(word) => word.clone(),
        other => other.to_string(),
    };
    if !text.is_empty() {
        text.push(' ');
    }
    text.extend([name, "=", &plain]);
}

fn is_plain(word: &str) -> bool {
    !word.is_empty()
        && word.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'=' | b'\\'))
}

/// Its first 256 bytes.
pub(crate) fn short(text: &str) -> &str {
    let mut end = text.len().min(TEXT_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// RFC 3339 in UTC with milliseconds.
pub(crate) fn timestamp(time: SystemTime) -> String {
    jiff::Timestamp::try_from(time).map_or_else(|_| "-".to_owned(), |time| format!("{time:.3}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> Line {
        Line {
            time: SystemTime::UNIX_EPOCH + Duration::from_millis(1_234),
            request_id: "r1".into(),
            client: Some([127, 0, 0, 1].into()),
            key: Some("team-a".into()),
            method: "POST".into(),
            path: "/v1/chat/completions".into(),
            route: Some("chat".into()),
            cluster: Some("qwen".into()),
            backend: Some("gpu-1".into()),
            attempts: 1,
            status: 200,
            outcome: Outcome::Completed,
            phase: Phase::Stream,
            error: None,
            limit: None,
            key_error: None,
            streaming: true,
            model: Some("evil\" outcome=completed\nmodel".into()),
            session: Some("header:X-Session-Id".into()),
            queued: None,
            first_event: Some(Duration::from_micros(1_500)),
            first_token: None,
            total: Duration::from_millis(20),
            events: 3,
            bytes: 99,
            usage: Some((Usage { completion: Some(2), ..Usage::default() }, Source::Reported)),
            cancel: None,
            upstream_id: None,
            generation: 1,
            stalled: Duration::ZERO,
            resent: false,
            heartbeats: 0,
        }
    }

    #[test]
    fn json_lines_have_every_field_and_stay_one_line() {
        let text = line().render(LogFormat::Json);
        assert!(!text.contains('\n'));
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["time"], "1970-01-01T00:00:01.234Z");
        assert_eq!(value["first_event_ms"], 1.5);
        assert_eq!(value["usage"]["completion"], 2);
        assert_eq!(value["model"], "evil\" outcome=completed\nmodel");
    }

    #[test]
    fn nothing_a_client_writes_breaks_a_text_line() {
        let text = line().render(LogFormat::Text);
        assert!(!text.contains('\n'));
        assert!(text.contains(r#"model="evil\" outcome=completed\nmodel""#), "{text}");
        assert!(text.contains("usage.completion=2"));
    }
}
