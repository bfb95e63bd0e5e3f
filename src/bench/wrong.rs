//! What can be wrong with an answer. Pure.
//!
//! A [`Wrong`] has a kind, by which many are counted, and words for the first ones that are told.

use std::time::Duration;

use crate::server::chain;

/// Longest piece of an answer that is repeated, in characters.
const QUOTE_MAX: usize = 160;

/// Why an answer is not the one that was due.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Wrong {
    /// There was no connection to ask on.
    #[error("no connection: {0}")]
    Connect(String),
    /// The connection ended or broke before the answer did.
    #[error("cut after {tokens} tokens: {why}")]
    Cut {
        /// Tokens that had come.
        tokens: u64,
        /// What the connection said.
        why: String,
    },
    /// What came is no HTTP.
    #[error("it is no HTTP that can be read: {0}")]
    Http(String),
    /// Nothing came for too long.
    #[error("nothing came for {0:?}")]
    Silence(Duration),
    /// For so long only what says that the connection lives.
    #[error("nothing but heartbeats came for {0:?}")]
    Heartbeats(Duration),
    /// A status other than 200.
    #[error("status {status}: {said}")]
    Status {
        /// The status.
        status: u16,
        /// The beginning of what came with it.
        said: String,
    },
    /// Neither an event stream nor JSON, where that was due.
    #[error("content type {got:?} where {due} was due")]
    ContentType {
        /// What the head says.
        got: String,
        /// What was due.
        due: &'static str,
    },
    /// Data that is no JSON, or not of the form that was due.
    #[error("it cannot be read as JSON: {0}")]
    Json(String),
    /// An error where an answer was due.
    #[error("an error event: {0}")]
    ErrorEvent(String),
    /// A token that is not the next one.
    #[error("token {got} came where {due} was due")]
    Order {
        /// Its index.
        got: u64,
        /// The index of the next one.
        due: u64,
    },
    /// A stamped token with something else around it.
    #[error("between stamped tokens: {0:?}")]
    Content(String),
    /// Fewer tokens than the engine says it has sent, or more.
    #[error("{got} tokens came of {due}")]
    Lost {
        /// Tokens that came.
        got: u64,
        /// Tokens that were sent.
        due: u64,
    },
    /// An event of another request's answer.
    #[error("an event of the answer {0:?}")]
    Crosstalk(String),
    /// The body ended cleanly, the answer did not.
    #[error("it ended after {tokens} tokens without {missing}")]
    NoEnd {
        /// Tokens that had come.
        tokens: u64,
        /// What should have come.
        missing: &'static str,
    },
    /// Something behind the end.
    #[error("behind its end came {0}")]
    Behind(String),
    /// More than is read of one event or one answer.
    #[error("{0} of more than {1} bytes")]
    TooLarge(&'static str, usize),
}

impl Wrong {
    /// What a connection says that failed after so many tokens.
    pub(super) fn failed(tokens: u64, error: &hyper::Error) -> Self {
        let why = chain(error);
        if error.is_parse() { Self::Http(why) } else { Self::Cut { tokens, why } }
    }

    /// By what it is counted: a few words that never hold anything of an answer.
    pub(super) fn kind(&self) -> String {
        match self {
            Self::Connect(_) => "no connection".into(),
            Self::Cut { .. } => "cut".into(),
            Self::Http(_) => "no HTTP".into(),
            Self::Silence(_) | Self::Heartbeats(_) => "silence".into(),
            Self::Status { status, .. } => format!("status {status}"),
            Self::ContentType { .. } => "content type".into(),
            Self::Json(_) => "no JSON".into(),
            Self::ErrorEvent(_) => "error event".into(),
            Self::Order { .. } => "order".into(),
            Self::Content(_) => "content".into(),
            Self::Lost { .. } => "lost tokens".into(),
            Self::Crosstalk(_) => "crosstalk".into(),
            Self::NoEnd { .. } => "no end".into(),
            Self::Behind(_) => "behind the end".into(),
            Self::TooLarge(..) => "too large".into(),
        }
    }
}

/// The beginning of a text from outside, on one line and without what a terminal would obey.
pub(super) fn quote(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(&text[..text.len().min(4 * QUOTE_MAX)]);
    let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
    let mut quoted: String = text.trim().chars().take(QUOTE_MAX).map(plain).collect();
    if text.trim().chars().nth(QUOTE_MAX).is_some() {
        quoted.push('…');
    }
    quoted
}

/// What an error body says: the message of its JSON, else its beginning.
pub(super) fn said(body: &[u8]) -> String {
    let value: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let message = value.as_ref().and_then(|value| {
        let error = value.get("error")?;
        error.get("message").unwrap_or(error).as_str()
    });
    quote(message.map_or(body, str::as_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_repeated_is_short_and_plain() {
        assert_eq!(quote(b" a\nb\x1b[2J "), "a b [2J");
        let long = quote("é".repeat(900).as_bytes());
        assert_eq!((long.chars().count(), long.chars().last()), (QUOTE_MAX + 1, Some('…')));
        assert_eq!(quote(b"\xff"), "\u{fffd}");
    }

    #[test]
    fn of_an_error_its_message_is_told() {
        assert_eq!(
            said(br#"{"error":{"message":"the model `x` does not exist","code":404}}"#),
            "the model `x` does not exist"
        );
        assert_eq!(said(br#"{"error":"overloaded"}"#), "overloaded");
        assert_eq!(said(b"<html>502</html>"), "<html>502</html>");
        assert_eq!(said(b""), "");
    }
}
