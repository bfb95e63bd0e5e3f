//! Reads one HTTP/1.1 answer as it comes, in pieces of any size: its head, then its body unframed.
//!
//! Pure. It understands what the engine and the proxies send, and takes anything else for an
//! error. It does not keep the body: whoever pushes bytes in gives it a place.

use super::Wrong;

/// Most header lines.
const HEADERS_MAX: usize = 64;
/// Most bytes of a head.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// One answer.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Bytes of the head so far; empty once it is read.
    head: Vec<u8>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Head,
    /// A body of known length, of which so much is missing.
    Length(u64),
    /// The line with the size of a chunk, read so far.
    Size(u64),
    /// A chunk, of which so much is missing.
    Chunk(u64),
    /// The line end behind a chunk.
    ChunkEnd,
    /// The empty line behind the last chunk.
    LastLine,
    Done,
}

impl Answer {
    pub(crate) fn new() -> Self {
        Self { head: Vec::new(), state: State::Head }
    }

    /// The answer is complete.
    pub(crate) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Takes the bytes that came; those of the body are appended to `body`.
    ///
    /// # Errors
    /// A status other than 200, a framing that is wrong, bytes behind the end.
    pub(crate) fn push(&mut self, bytes: &[u8], body: &mut Vec<u8>) -> Result<(), Wrong> {
        let mut rest = bytes;
        if self.state == State::Head {
            let Some(taken) = self.push_head(bytes)? else { return Ok(()) };
            rest = &bytes[taken..];
        }
        while !rest.is_empty() {
            let taken = self.step(rest, body)?;
            rest = &rest[taken..];
        }
        Ok(())
    }

    /// How many of `bytes` belong to the head, once it is complete.
    fn push_head(&mut self, bytes: &[u8]) -> Result<Option<usize>, Wrong> {
        let before = self.head.len();
        self.head.extend_from_slice(bytes);
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut parsed = httparse::Response::new(&mut headers);
        let status = parsed.parse(&self.head).map_err(|_| Wrong::Framing)?;
        let httparse::Status::Complete(length) = status else {
            return if self.head.len() > HEAD_BYTES_MAX { Err(Wrong::Framing) } else { Ok(None) };
        };
        let code = parsed.code.unwrap_or_default();
        if code != 200 {
            return Err(Wrong::Status(code));
        }
        self.state = framing(parsed.headers)?;
        self.head = Vec::new();
        Ok(Some(length - before))
    }

    /// Takes some bytes, at least one, and says how many.
    fn step(&mut self, rest: &[u8], body: &mut Vec<u8>) -> Result<usize, Wrong> {
        match self.state {
            State::Length(missing) | State::Chunk(missing) => Ok(self.data(missing, rest, body)),
            State::Size(size) => self.size(size, rest),
            State::ChunkEnd => match rest[0] {
                b'\r' => Ok(1),
                b'\n' => self.enter(State::Size(0)),
                _ => Err(Wrong::Framing),
            },
            State::LastLine => match rest[0] {
                b'\r' => Ok(1),
                b'\n' => self.enter(State::Done),
                _ => Err(Wrong::Framing),
            },
            State::Head | State::Done => Err(Wrong::Framing),
        }
    }

    fn data(&mut self, missing: u64, rest: &[u8], body: &mut Vec<u8>) -> usize {
        let taken = usize::try_from(missing).map_or(rest.len(), |missing| missing.min(rest.len()));
        body.extend_from_slice(&rest[..taken]);
        let missing = missing - taken as u64;
        self.state = match (self.state, missing) {
            (State::Length(_), 0) => State::Done,
            (State::Length(_), _) => State::Length(missing),
            (_, 0) => State::ChunkEnd,
            (_, _) => State::Chunk(missing),
        };
        taken
    }

    fn size(&mut self, size: u64, rest: &[u8]) -> Result<usize, Wrong> {
        match rest[0] {
            b'\r' => Ok(1),
            b'\n' if size == 0 => self.enter(State::LastLine),
            b'\n' => self.enter(State::Chunk(size)),
            digit => {
                let digit = char::from(digit).to_digit(16).ok_or(Wrong::Framing)?;
                let size = size.checked_mul(16).ok_or(Wrong::Framing)?;
                self.enter(State::Size(size + u64::from(digit)))
            }
        }
    }

    fn enter(&mut self, state: State) -> Result<usize, Wrong> {
        self.state = state;
        Ok(1)
    }
}

fn framing(headers: &[httparse::Header<'_>]) -> Result<State, Wrong> {
    let value = |name: &str| {
        let header = headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(header.value).ok()
    };
    if let Some(length) = value("content-length") {
        let length = length.parse().map_err(|_| Wrong::Framing)?;
        return Ok(if length == 0 { State::Done } else { State::Length(length) });
    }
    match value("transfer-encoding") {
        Some("chunked") => Ok(State::Size(0)),
        _ => Err(Wrong::Framing),
    }
}
