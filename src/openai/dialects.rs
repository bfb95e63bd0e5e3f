//! The form in which clients of an endpoint expect an error.
//!
//! The only place that writes error JSON. It knows no status codes and chooses no words.

use bytes::Bytes;
use serde::Serialize;

use crate::sse::encode;

/// A client API's form of events and errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// `/v1/chat/completions`.
    Chat,
    /// `/v1/completions`.
    Completions,
    /// Any other endpoint; errors are in OpenAI's form too.
    Other,
}

impl Dialect {
    /// The dialect of a request path, given without its query. DeepSeek's `/beta` and paths without
    /// `/v1` count as well.
    pub fn of(path: &str) -> Self {
        let path = path.strip_suffix('/').unwrap_or(path);
        if path.ends_with("/chat/completions") {
            Self::Chat
        } else if path.ends_with("/completions") {
            Self::Completions
        } else {
            Self::Other
        }
    }

    /// Whether requests may carry `stream_options`.
    pub fn has_stream_options(self) -> bool {
        self != Self::Other
    }

    /// An error as an event, for a stream whose status has gone out. No `[DONE]` follows it:
    /// clients take that for success.
    pub fn error_event(self, code: &str, kind: &str, message: &str) -> Bytes {
        encode::event(&error_json(code, kind, message, None))
    }

    /// An error as a JSON body, for a real status. `param` names the field it is about.
    pub fn error_body(self, code: &str, kind: &str, message: &str, param: Option<&str>) -> Bytes {
        error_json(code, kind, message, param).into()
    }
}

/// OpenAI's error object (platform.openai.com, error codes): message, type, param, code.
fn error_json(code: &str, kind: &str, message: &str, param: Option<&str>) -> String {
    #[derive(Serialize)]
    struct Body<'a> {
        error: Object<'a>,
    }
    #[derive(Serialize)]
    struct Object<'a> {
        message: &'a str,
        r#type: &'a str,
        param: Option<&'a str>,
        code: &'a str,
    }
    let body = Body { error: Object { message, r#type: kind, param, code } };
    serde_json::to_string(&body).expect("strings and null always serialise")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_known_by_their_path() {
        for (path, want) in [
            ("/v1/chat/completions", Dialect::Chat),
            ("/beta/chat/completions/", Dialect::Chat),
            ("/v1/completions", Dialect::Completions),
            ("/v1/embeddings", Dialect::Other),
            ("/v1/chat/completions/batch", Dialect::Other),
        ] {
            assert_eq!(Dialect::of(path), want, "{path}");
        }
    }

    #[test]
    fn an_error_has_the_openai_form() {
        let json = r#"{"error":{"message":"no \"new\"\nevent","type":"timeout","param":null,"code":"idle_timeout"}}"#;
        let (code, kind, message) = ("idle_timeout", "timeout", "no \"new\"\nevent");
        assert_eq!(Dialect::Chat.error_body(code, kind, message, None), json);
        assert_eq!(Dialect::Chat.error_event(code, kind, message), format!("data: {json}\n\n"));
    }
}
