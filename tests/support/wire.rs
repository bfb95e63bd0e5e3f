//! The bytes of the cases: requests, stream heads, events and chunks, as they go over the wire.

/// Head of a streamed answer.
pub(crate) const SSE_HEAD: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
/// Event with a finish reason and an empty delta.
pub(crate) const FINISH: &str = "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\
                                 \"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
/// The usage frame: 7 prompt and 3 completion tokens.
pub(crate) const USAGE: &str = "data: {\"id\":\"c1\",\"choices\":[],\"usage\":{\"prompt_tokens\":7,\
                                \"completion_tokens\":3,\"total_tokens\":10}}\n\n";
/// The end marker of a stream.
pub(crate) const DONE: &str = "data: [DONE]\n\n";
/// The end of a chunked body.
pub(crate) const LAST_CHUNK: &str = "0\r\n\r\n";
/// Body of a streamed chat request.
pub(crate) const CHAT: &str = "{\"model\":\"m\",\"stream\":true,\"stream_options\":{\"include_usage\":true},\
                               \"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}";
/// Body of a chat request that does not stream.
pub(crate) const CHAT_UNARY: &str =
    "{\"model\":\"m\",\"stream\":false,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}";
/// A whole answer that does not stream.
pub(crate) const ANSWER: &str = "{\"id\":\"c1\",\"object\":\"chat.completion\",\"choices\":[{\"index\":0,\"message\":\
                                 {\"role\":\"assistant\",\"content\":\"x\"},\"finish_reason\":\"stop\"}],\"usage\":\
                                 {\"prompt_tokens\":7,\"completion_tokens\":3,\"total_tokens\":10}}";

/// A secret, to be looked for in every output.
pub(crate) const CANARY: &str = "canary-0c7e41d95a";

/// The path most tests use.
pub(crate) const CHAT_PATH: &str = "/v1/chat/completions";

/// Bytes in a MiB.
pub(crate) const MIB: usize = 1024 * 1024;

/// The stream of H01: two events, the finish reason, usage and the end marker.
pub(crate) fn whole_stream() -> String {
    [&event("a"), &event("b"), FINISH, USAGE, DONE].concat()
}

/// A chat body of exactly `size` bytes that do not repeat, the fields that matter last.
pub(crate) fn chat_of(size: usize) -> Vec<u8> {
    let head = "{\"messages\":[{\"role\":\"user\",\"content\":\"";
    let tail = "\"}],\"model\":\"m\",\"stream\":true}";
    let mut state = 1_u32;
    let filling = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        b'a' + (state >> 24) as u8 % 26
    });
    let mut body = head.as_bytes().to_vec();
    body.extend(filling.take(size - head.len() - tail.len()));
    body.extend_from_slice(tail.as_bytes());
    body
}

/// One event with a piece of content.
pub(crate) fn event(content: &str) -> String {
    format!(
        "data: {{\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"choices\":[{{\"index\":0,\
         \"delta\":{{\"content\":\"{content}\"}},\"finish_reason\":null}}]}}\n\n"
    )
}

/// One HTTP chunk.
pub(crate) fn chunk(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let bytes = bytes.as_ref();
    let mut out = format!("{:x}\r\n", bytes.len()).into_bytes();
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
    out
}

/// A whole answer with a Content-Length; `headers` are full lines without their CRLF.
pub(crate) fn answer(status: &str, headers: &[&str], body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let mut out = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n", body.len());
    for line in headers {
        out.push_str(line);
        out.push_str("\r\n");
    }
    let mut out = out.into_bytes();
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(body);
    out
}

/// A 200 with a JSON body.
pub(crate) fn json_answer(body: &str) -> Vec<u8> {
    answer("200 OK", &["Content-Type: application/json"], body)
}

/// A streamed answer in one piece: `content`, then the end marker.
pub(crate) fn stream_answer(content: &str) -> Vec<u8> {
    let mut out = SSE_HEAD.as_bytes().to_vec();
    out.extend(chunk(event(content)));
    out.extend(chunk(DONE));
    out.extend_from_slice(LAST_CHUNK.as_bytes());
    out
}

/// A request being put together.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    line: String,
    headers: Vec<String>,
    body: Vec<u8>,
    chunk_bytes: Option<usize>,
}

impl Request {
    /// The streamed chat request of the cases.
    pub(crate) fn chat() -> Self {
        Self::post(CHAT_PATH, CHAT)
    }

    /// A chat request that does not stream.
    pub(crate) fn unary() -> Self {
        Self::post(CHAT_PATH, CHAT_UNARY)
    }

    /// A POST with a JSON body and a key.
    pub(crate) fn post(path: &str, body: impl AsRef<[u8]>) -> Self {
        Self::bare("POST", path)
            .header("Authorization: Bearer k1")
            .header("Content-Type: application/json")
            .body(body)
    }

    /// A request with nothing but a Host.
    pub(crate) fn bare(method: &str, path: &str) -> Self {
        Self {
            line: format!("{method} {path} HTTP/1.1"),
            headers: vec!["Host: gateway.test".to_owned()],
            body: Vec::new(),
            chunk_bytes: None,
        }
    }

    /// The same as a client of HTTP/1.0 sends it: without a Host.
    pub(crate) fn http10(mut self) -> Self {
        self.line = self.line.replace("HTTP/1.1", "HTTP/1.0");
        self.without("host")
    }

    /// The same with a secret in place of its key and in its prompt: no output may have it.
    pub(crate) fn marked(mut self) -> Self {
        for line in &mut self.headers {
            *line = line.replace("Authorization: Bearer k1", &format!("Authorization: Bearer {CANARY}"));
        }
        if self.body == CHAT.as_bytes() || self.body == CHAT_UNARY.as_bytes() {
            let body = String::from_utf8_lossy(&self.body).replace("\"hi\"", &format!("\"{CANARY}\""));
            self.body = body.into_bytes();
        }
        self
    }

    /// Adds one header line.
    pub(crate) fn header(mut self, line: &str) -> Self {
        self.headers.push(line.to_owned());
        self
    }

    /// Adds several header lines.
    pub(crate) fn lines(self, lines: &[&str]) -> Self {
        lines.iter().fold(self, |request, line| request.header(line))
    }

    /// Drops the header lines of this name.
    pub(crate) fn without(mut self, name: &str) -> Self {
        let is_it = |line: &str| line.split(':').next().is_some_and(|found| found.eq_ignore_ascii_case(name));
        self.headers.retain(|line| !is_it(line));
        self
    }

    /// Sets the body.
    pub(crate) fn body(mut self, body: impl AsRef<[u8]>) -> Self {
        self.body = body.as_ref().to_vec();
        self
    }

    /// Sends the body in chunks of this size instead of with a Content-Length.
    pub(crate) fn chunked(mut self, chunk_bytes: usize) -> Self {
        self.chunk_bytes = Some(chunk_bytes);
        self
    }

    /// The head, with its blank line.
    pub(crate) fn head(&self) -> Vec<u8> {
        let mut out = format!("{}\r\n", self.line);
        for line in &self.headers {
            out.push_str(line);
            out.push_str("\r\n");
        }
        match self.chunk_bytes {
            Some(_) => out.push_str("Transfer-Encoding: chunked\r\n"),
            None if self.body.is_empty() && !self.line.starts_with("POST") => {}
            None => out.push_str(&format!("Content-Length: {}\r\n", self.body.len())),
        }
        out.push_str("\r\n");
        out.into_bytes()
    }

    /// The body as framed.
    pub(crate) fn framed_body(&self) -> Vec<u8> {
        let Some(size) = self.chunk_bytes else { return self.body.clone() };
        let mut out: Vec<u8> = self.body.chunks(size).flat_map(chunk).collect();
        out.extend_from_slice(LAST_CHUNK.as_bytes());
        out
    }

    /// The whole request.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = self.head();
        out.extend(self.framed_body());
        out
    }
}
