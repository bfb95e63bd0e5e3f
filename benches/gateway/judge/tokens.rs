//! Checks the events of one stream as they come: every token there, once, in order and whole.
//!
//! Pure. It reads the engine's own form of events (token n is `tok<n> `, then a time stamp if one was
//! asked for) and nothing more: a client that parsed JSON would cost more than what it measures. A proxy that
//! parses and writes events anew is held to less: the same tokens in the same order, whatever stands around them.

use memchr::memmem;

use super::Wrong;

/// What stands before a token's number.
const TOKEN: &[u8] = b"\"content\":\"tok";
/// What stands before a time stamp.
const STAMP: &[u8] = b" t=";

/// The tokens of one stream.
#[derive(Debug)]
pub(crate) struct Tokens {
    wanted: u32,
    /// Bytes of each event with a token; `None` where events are written anew.
    event_bytes: Option<usize>,
    seen: u32,
    done: bool,
    /// Body bytes that are not a whole event yet.
    pub(crate) buffer: Vec<u8>,
    /// Where the last event had its `TOKEN`: a good guess for the next one.
    place: usize,
    /// Microseconds from the engine's stamp to our reading, token for token, where stamps are on.
    pub(crate) latencies_us: Vec<u32>,
}

impl Tokens {
    /// Expects so many tokens, each in an event of so many bytes.
    pub(crate) fn new(wanted: u32, event_bytes: usize) -> Self {
        Self::of(wanted, Some(event_bytes))
    }

    /// Expects so many tokens behind a proxy that writes events anew.
    pub(crate) fn rewritten(wanted: u32) -> Self {
        Self::of(wanted, None)
    }

    fn of(wanted: u32, event_bytes: Option<usize>) -> Self {
        let (buffer, latencies_us) = (Vec::new(), Vec::new());
        Self { wanted, event_bytes, seen: 0, done: false, buffer, place: 0, latencies_us }
    }

    /// Tokens so far.
    pub(crate) fn seen(&self) -> u32 {
        self.seen
    }

    /// Takes the whole events out of the buffer, which was read at `now_us`.
    ///
    /// # Errors
    /// A token that is not the next one, an event of the wrong size, an error object.
    pub(crate) fn take(&mut self, now_us: u64) -> Result<(), Wrong> {
        let buffer = std::mem::take(&mut self.buffer);
        let mut start = 0;
        while let Some(length) = memmem::find(&buffer[start..], b"\n\n") {
            self.event(&buffer[start..start + length], now_us)?;
            start += length + 2;
        }
        self.buffer = buffer;
        self.buffer.drain(..start);
        Ok(())
    }

    /// Nothing is missing at the end of the answer.
    ///
    /// # Errors
    /// A token or `[DONE]` is missing, or something that is no event came last.
    pub(crate) fn complete(&self) -> Result<(), Wrong> {
        if self.seen == self.wanted && self.done && self.buffer.is_empty() {
            return Ok(());
        }
        Err(Wrong::Incomplete { seen: self.seen, wanted: self.wanted })
    }

    fn event(&mut self, event: &[u8], now_us: u64) -> Result<(), Wrong> {
        if event.starts_with(b":") {
            return Ok(());
        }
        if event == b"data: [DONE]" {
            self.done = true;
            return Ok(());
        }
        if event.starts_with(b"data: {\"error\"") {
            return Err(Wrong::ErrorEvent(String::from_utf8_lossy(event).into_owned()));
        }
        match self.find(event) {
            Some(place) => self.token(event, place, now_us),
            // The role, the finish reason.
            None => Ok(()),
        }
    }

    fn find(&mut self, event: &[u8]) -> Option<usize> {
        let guess = event.get(self.place..);
        if !guess.is_some_and(|guess| guess.starts_with(TOKEN)) {
            self.place = memmem::find(event, TOKEN)?;
        }
        Some(self.place + TOKEN.len())
    }

    fn token(&mut self, event: &[u8], place: usize, now_us: u64) -> Result<(), Wrong> {
        let (number, rest) = number(&event[place..]);
        if number != u64::from(self.seen) {
            return Err(Wrong::Order { got: number, wanted: self.seen });
        }
        let got = event.len() + 2;
        if let Some(wanted) = self.event_bytes.filter(|wanted| *wanted != got) {
            return Err(Wrong::Size { got, wanted });
        }
        self.seen += 1;
        if rest.starts_with(STAMP) {
            let (stamp_us, _) = self::number(&rest[STAMP.len()..]);
            let latency_us = now_us.saturating_sub(stamp_us);
            self.latencies_us.push(u32::try_from(latency_us).unwrap_or(u32::MAX));
        }
        Ok(())
    }
}

/// The number at the front, and what follows it.
fn number(text: &[u8]) -> (u64, &[u8]) {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let add = |sum: u64, digit: &u8| sum.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
    (text[..digits].iter().fold(0, add), &text[digits..])
}
