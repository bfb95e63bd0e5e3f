//! HTTP/1.1 heads and bodies, read incrementally and without trust.
//!
//! Does not share a line with the gateway's own parsing. The hard idea: bytes go in as they come,
//! decoded body bytes come out, and the end is told apart from a mere stop.

/// A message head.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    /// Request or status line.
    pub(crate) line: String,
    /// Names as spelled, values trimmed.
    pub(crate) headers: Vec<(String, String)>,
}

impl Head {
    /// Takes a head off the front of `raw` once its blank line is there.
    pub(crate) fn take(raw: &mut Vec<u8>) -> Option<Self> {
        let end = raw.windows(4).position(|window| window == b"\r\n\r\n")?;
        let text = String::from_utf8_lossy(&raw[..end]).into_owned();
        raw.drain(..end + 4);
        let mut lines = text.split("\r\n");
        let line = lines.next().unwrap_or_default().to_owned();
        let headers = lines
            .map(|line| line.split_once(':').unwrap_or((line, "")))
            .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
            .collect();
        Some(Self { line, headers })
    }

    /// The status of an answer.
    pub(crate) fn status(&self) -> u16 {
        let code = self.line.split(' ').nth(1).and_then(|code| code.parse().ok());
        code.unwrap_or_else(|| panic!("not a status line: {:?}", self.line))
    }

    /// All values of a header.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        let named = self.headers.iter().filter(|(spelled, _)| spelled.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str()).collect()
    }

    /// The value of a header; panics when it is there twice.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let all = self.all(name);
        assert!(all.len() <= 1, "{name} is there {} times", all.len());
        all.first().copied()
    }

    fn is_chunked(&self) -> bool {
        self.get("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked"))
    }
}

/// How far a body has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    ChunkSize,
    ChunkData(usize),
    ChunkEnd,
    Trailers,
    Length(usize),
    UntilClose,
    Done,
}

/// Decodes one body.
#[derive(Debug)]
pub(crate) struct BodyDecoder {
    state: State,
}

impl BodyDecoder {
    /// For an answer with this head; `bodiless` for the answer to a HEAD.
    pub(crate) fn response(head: &Head, bodiless: bool) -> Self {
        let status = head.status();
        let empty = bodiless || status < 200 || status == 204 || status == 304;
        let state = match head.get("content-length").map(str::parse) {
            _ if empty => State::Done,
            _ if head.is_chunked() => State::ChunkSize,
            Some(Ok(length)) => State::length(length),
            Some(Err(_)) => panic!("bad Content-Length in {head:?}"),
            None => State::UntilClose,
        };
        Self { state }
    }

    /// For a request with this head.
    pub(crate) fn request(head: &Head) -> Self {
        let state = match head.get("content-length").map(str::parse) {
            _ if head.is_chunked() => State::ChunkSize,
            Some(Ok(length)) => State::length(length),
            Some(Err(_)) => panic!("bad Content-Length in {head:?}"),
            None => State::Done,
        };
        Self { state }
    }

    /// Moves decoded bytes from `raw` to `body`; what follows the body stays in `raw`.
    pub(crate) fn decode(&mut self, raw: &mut Vec<u8>, body: &mut Vec<u8>) {
        let mut used = 0;
        while let Some((step, next)) = self.step(&raw[used..], body) {
            used += step;
            self.state = next;
        }
        raw.drain(..used);
    }

    /// One step: bytes used and the next state, or `None` when more bytes are needed.
    fn step(&self, raw: &[u8], body: &mut Vec<u8>) -> Option<(usize, State)> {
        match self.state {
            State::ChunkSize => {
                let line = line(raw)?;
                let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
                let digits = std::str::from_utf8(digits).expect("chunk size is ASCII").trim();
                let size = usize::from_str_radix(digits, 16).expect("chunk size is hexadecimal");
                let next = if size == 0 { State::Trailers } else { State::ChunkData(size) };
                Some((line.len() + 2, next))
            }
            State::ChunkData(0) => Some((0, State::ChunkEnd)),
            State::ChunkData(left) => copy(raw, left, body).map(|n| (n, State::ChunkData(left - n))),
            State::ChunkEnd => line(raw).map(|line| {
                assert!(line.is_empty(), "a chunk is longer than it said");
                (2, State::ChunkSize)
            }),
            State::Trailers => line(raw)
                .map(|line| (line.len() + 2, if line.is_empty() { State::Done } else { State::Trailers })),
            State::Length(left) => copy(raw, left, body).map(|n| (n, State::length(left - n))),
            State::UntilClose => copy(raw, usize::MAX, body).map(|n| (n, State::UntilClose)),
            State::Done => None,
        }
    }

    /// Whether the body is whole.
    pub(crate) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Whether the end of the connection is the end of the body.
    pub(crate) fn ends_with_connection(&self) -> bool {
        self.state == State::UntilClose
    }
}

impl State {
    fn length(left: usize) -> Self {
        if left == 0 { Self::Done } else { Self::Length(left) }
    }
}

fn line(raw: &[u8]) -> Option<&[u8]> {
    raw.windows(2).position(|window| window == b"\r\n").map(|end| &raw[..end])
}

fn copy(raw: &[u8], at_most: usize, body: &mut Vec<u8>) -> Option<usize> {
    let count = raw.len().min(at_most);
    body.extend_from_slice(&raw[..count]);
    (count > 0).then_some(count)
}
