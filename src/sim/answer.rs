//! Answers that are no stream: heads, errors in vLLM's form, whole JSON bodies. Pure.

use serde_json::{Value, json};

use super::head::Head;

/// The content type of JSON answers.
pub(super) const JSON: &str = "application/json";
/// The content type of plain text.
pub(super) const PLAIN: &str = "text/plain; charset=utf-8";
/// The content type of streams, as vLLM writes it.
pub(super) const EVENT_STREAM: &str = "text/event-stream; charset=utf-8";

/// A request that the engine will not serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) message: String,
    pub(super) param: Option<&'static str>,
}

impl Refusal {
    pub(super) fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), param: None }
    }

    pub(super) fn bad_request(message: String, param: Option<&'static str>) -> Self {
        Self { status: 400, message, param }
    }

    pub(super) fn unknown_model(model: &str) -> Self {
        let message = format!("the model `{model}` does not exist");
        Self { status: 404, message, param: Some("model") }
    }
}

/// A whole answer with a body of known length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) content_type: &'static str,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn text(status: u16, content_type: &'static str, body: String) -> Self {
        Self { status, content_type, headers: Vec::new(), body: body.into_bytes() }
    }

    pub(super) fn header(mut self, name: &'static str, value: impl ToString) -> Self {
        self.headers.push((name, value.to_string()));
        self
    }
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Self {
        let body = error_body(refusal.status, &refusal.message, refusal.param);
        Self::text(refusal.status, JSON, body.to_string())
    }
}

/// An error as vLLM writes it: the code is an integer.
pub(super) fn error_body(status: u16, message: &str, param: Option<&str>) -> Value {
    json!({"error": {"message": message, "type": error_type(status), "param": param, "code": status}})
}

fn error_type(status: u16) -> &'static str {
    match status {
        401 => "AuthenticationError",
        403 => "PermissionDeniedError",
        404 => "NotFoundError",
        429 => "RateLimitError",
        503 => "ServiceUnavailableError",
        500.. => "InternalServerError",
        _ => "BadRequestError",
    }
}

/// How the body of an answer is framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    Length(usize),
    Chunked,
    /// The end of the connection ends the body (HTTP/1.0).
    Close,
}

/// What every head of one request's answers carries.
#[derive(Debug)]
pub(super) struct Common<'a> {
    pub(super) engine: &'a str,
    pub(super) request_id: &'a str,
    /// The instant for `date`, as an HTTP date.
    pub(super) date: &'a str,
}

/// The head of an answer to `head`, up to and with its blank line.
pub(super) fn head_bytes(head: &Head, common: &Common<'_>, answer: &Answer, framing: Framing) -> Vec<u8> {
    let status = answer.status;
    let mut text = format!("HTTP/1.1 {status} {}\r\ndate: {}\r\n", reason(status), common.date);
    let mut line = |name: &str, value: &str| {
        text.push_str(name);
        text.push_str(": ");
        text.push_str(value);
        text.push_str("\r\n");
    };
    line("server", "streamgate-sim");
    line("content-type", answer.content_type);
    line("x-request-id", common.request_id);
    line("x-sim-engine", common.engine);
    for (name, value) in &answer.headers {
        line(name, value);
    }
    match framing {
        Framing::Length(length) => line("content-length", &length.to_string()),
        Framing::Chunked => line("transfer-encoding", "chunked"),
        Framing::Close => {}
    }
    if !head.keep_alive {
        line("connection", "close");
    }
    text.push_str("\r\n");
    text.into_bytes()
}

fn reason(status: u16) -> &'static str {
    http::StatusCode::from_u16(status).ok().and_then(|code| code.canonical_reason()).unwrap_or("Unknown")
}

/// The answer of `/v1/models`.
pub(super) fn models(model: &str, created: u64) -> Value {
    let one = json!({"id": model, "object": "model", "created": created, "owned_by": "streamgate-sim",
        "root": model, "parent": null, "max_model_len": 131_072, "permission": []});
    json!({"object": "list", "data": [one]})
}

/// The answer of `/v1/embeddings`: eight numbers for each input, told apart by its index.
pub(super) fn embeddings(request_id: &str, model: &str, created: u64, inputs: usize, tokens: u32) -> Value {
    let one = |index| {
        let embedding = [index as f64, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875];
        json!({"object": "embedding", "index": index, "embedding": embedding})
    };
    let data: Vec<Value> = (0..inputs).map(one).collect();
    json!({"id": format!("embd-{request_id}"), "object": "list", "created": created, "model": model,
        "data": data, "usage": usage(tokens, 0)})
}

/// The usage object.
pub(super) fn usage(prompt: u32, completion: u32) -> Value {
    let total = u64::from(prompt) + u64::from(completion);
    json!({"prompt_tokens": prompt, "total_tokens": total, "completion_tokens": completion})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_vllms_form() {
        let answer = Answer::from(Refusal::unknown_model("x"));
        let error = json!({"error": {"message": "the model `x` does not exist", "type": "NotFoundError",
            "param": "model", "code": 404}});
        assert_eq!(serde_json::from_slice::<Value>(&answer.body).unwrap(), error);
    }

    #[test]
    fn a_head_names_its_framing() {
        let (head, _) = Head::parse(b"GET / HTTP/1.1\r\n\r\n").unwrap().unwrap();
        let common = Common { engine: "e", request_id: "r", date: "D" };
        let answer = Answer::text(429, JSON, String::new()).header("retry-after", 3);
        let bytes = head_bytes(&head, &common, &answer, Framing::Length(5));
        let text = "HTTP/1.1 429 Too Many Requests\r\ndate: D\r\nserver: streamgate-sim\r\n\
                    content-type: application/json\r\nx-request-id: r\r\nx-sim-engine: e\r\n\
                    retry-after: 3\r\ncontent-length: 5\r\n\r\n";
        assert_eq!(String::from_utf8(bytes).unwrap(), text);
    }
}
