//! Where one request ends and the next begins.
//!
//! Clients may send on while they are answered (pipelining, RFC 9112, 9.3.2). Pingora takes whatever
//! follows a request for a fault and aborts its answer, and with its own pipelining switched on it stops
//! looking whether the client is still there. So it never sees those bytes: each read is cut where the
//! request ends, and what lies behind it waits here for its turn, up to a bound. Beyond the bound nothing
//! is kept: the running answer is completed, the connection is closed behind it, and a client that
//! pipelines knows to send the rest anew.

use bytes::BytesMut;

use super::chunks::{Chunks, Malformed};
use super::head::Framing;

/// Bytes of later requests that a connection may hold: about a hundred short ones.
const AHEAD_MAX: usize = 32 * 1024;

/// What comes next on a connection.
#[derive(Debug)]
enum Stage {
    /// A head.
    Head,
    /// So many bytes of a body.
    Length(u64),
    /// A chunked body.
    Chunked(Chunks),
    /// Nothing of the request that is being answered.
    Whole,
    /// A body whose framing is wrong: nothing in it can be told apart any more.
    Lost,
}

/// The bytes of one connection, request by request.
#[derive(Debug)]
pub(super) struct Inbound {
    stage: Stage,
    /// Bytes of later requests.
    ahead: BytesMut,
    /// More came than is kept.
    dropped: bool,
}

impl Inbound {
    pub(super) fn new() -> Self {
        Self { stage: Stage::Head, ahead: BytesMut::new(), dropped: false }
    }

    /// Gives `bytes` to the next reads, before anything that comes from the client.
    pub(super) fn unread(&mut self, bytes: BytesMut) {
        self.ahead = bytes;
    }

    /// A head has been read: it ends at `end` of `bytes`. What does not belong to its request is taken out.
    ///
    /// # Errors
    /// The body's framing is wrong.
    pub(super) fn begin(
        &mut self,
        framing: Framing,
        bytes: &mut BytesMut,
        end: usize,
    ) -> Result<(), Malformed> {
        self.stage = match framing {
            Framing::Length(0) => Stage::Whole,
            Framing::Length(length) => Stage::Length(length),
            Framing::Chunked => Stage::Chunked(Chunks::default()),
        };
        let used = self.cut(&bytes[end..])?;
        self.put_back(bytes, end + used);
        Ok(())
    }

    /// The request has been answered; what comes is the next one. Gives whether it can be read: bytes may
    /// have been dropped.
    pub(super) fn next(&mut self) -> bool {
        self.stage = Stage::Head;
        !self.dropped
    }

    /// Whether nothing of the current request is to come, so that what comes is not for its reader.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Whole | Stage::Lost)
    }

    /// Whether bytes wait that were read ahead.
    pub(super) fn has_ahead(&self) -> bool {
        !self.ahead.is_empty()
    }

    /// Hands out at most `room` bytes that were read ahead and belong to the current request.
    ///
    /// # Errors
    /// The body's framing is wrong.
    pub(super) fn take_ahead(&mut self, room: usize) -> Result<BytesMut, Malformed> {
        // An empty rest would keep the memory of what was taken.
        let takes_all = room >= self.ahead.len();
        let mut taken = if takes_all { std::mem::take(&mut self.ahead) } else { self.ahead.split_to(room) };
        let used = self.cut(&taken)?;
        self.put_back(&mut taken, used);
        Ok(taken)
    }

    /// Moves what is behind `end` back before the bytes that wait.
    fn put_back(&mut self, bytes: &mut BytesMut, end: usize) {
        if end < bytes.len() {
            let mut behind = bytes.split_off(end);
            behind.unsplit(std::mem::take(&mut self.ahead));
            self.ahead = behind;
        }
    }

    /// Bytes have come. Gives how many belong to the current request; the others are kept for later.
    ///
    /// # Errors
    /// The body's framing is wrong.
    pub(super) fn split(&mut self, bytes: &[u8]) -> Result<usize, Malformed> {
        let used = self.cut(bytes)?;
        self.keep(&bytes[used..]);
        Ok(used)
    }

    /// Keeps bytes that come while a request is answered.
    pub(super) fn keep(&mut self, bytes: &[u8]) {
        let is_lost = matches!(self.stage, Stage::Lost);
        if is_lost || self.dropped || self.ahead.len() + bytes.len() > AHEAD_MAX {
            self.dropped |= !bytes.is_empty();
            self.ahead = BytesMut::new();
        } else {
            self.ahead.extend_from_slice(bytes);
        }
    }

    /// Where the current request ends among `bytes`.
    fn cut(&mut self, bytes: &[u8]) -> Result<usize, Malformed> {
        match &mut self.stage {
            Stage::Head => Ok(bytes.len()),
            Stage::Whole | Stage::Lost => Ok(0),
            Stage::Length(left) => {
                let used = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left -= used as u64;
                if *left == 0 {
                    self.stage = Stage::Whole;
                }
                Ok(used)
            }
            Stage::Chunked(chunks) => {
                let read = chunks.read(bytes);
                if read.is_err() {
                    self.stage = Stage::Lost;
                } else if chunks.is_whole() {
                    self.stage = Stage::Whole;
                }
                read
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds a connection and gives what each of its requests was: its head (two bytes here) and body.
    fn requests(bytes: &[u8], piece: usize, framings: &[Framing]) -> Vec<Vec<u8>> {
        let mut inbound = Inbound::new();
        let mut pieces = bytes.chunks(piece);
        let mut requests = Vec::new();
        for framing in framings {
            let mut request = BytesMut::new();
            while request.len() < 2 {
                more(&mut inbound, &mut pieces, &mut request);
            }
            inbound.begin(*framing, &mut request, 2).unwrap();
            while !inbound.is_over() {
                more(&mut inbound, &mut pieces, &mut request);
            }
            // While it is answered, one more piece comes.
            inbound.keep(pieces.next().unwrap_or_default());
            requests.push(request.to_vec());
            assert!(inbound.next(), "nothing was dropped");
        }
        requests
    }

    fn more<'a>(inbound: &mut Inbound, pieces: &mut impl Iterator<Item = &'a [u8]>, request: &mut BytesMut) {
        if inbound.has_ahead() {
            request.extend_from_slice(&inbound.take_ahead(3).unwrap());
        } else {
            let piece = pieces.next().unwrap();
            let used = inbound.split(piece).unwrap();
            request.extend_from_slice(&piece[..used]);
        }
    }

    #[test]
    fn requests_are_told_apart_however_they_are_cut() {
        let all: [&[u8]; 5] = [b"A:hello", b"B:", b"C:2\r\nxx\r\n0\r\n\r\n", b"D:", b"E:0123456789"];
        let framings = [
            Framing::Length(5),
            Framing::Length(0),
            Framing::Chunked,
            Framing::Length(0),
            Framing::Length(10),
        ];
        let bytes = all.concat();
        for piece in 1..=bytes.len() {
            assert_eq!(requests(&bytes, piece, &framings), all, "by {piece}");
        }
    }

    #[test]
    fn beyond_its_bound_nothing_is_kept() {
        let mut inbound = Inbound::new();
        inbound.begin(Framing::Length(0), &mut BytesMut::from("A:"), 2).unwrap();
        inbound.keep(&[b'x'; AHEAD_MAX]);
        assert!(!inbound.dropped && inbound.has_ahead());
        inbound.keep(b"x");
        assert!(inbound.dropped && !inbound.has_ahead());
        inbound.keep(b"GET");
        assert!(!inbound.has_ahead() && !inbound.next(), "what follows a gap is no request");
    }

    #[test]
    fn behind_wrong_framing_nothing_is_told_apart() {
        let mut inbound = Inbound::new();
        assert_eq!(inbound.begin(Framing::Chunked, &mut BytesMut::from("A:zz"), 2), Err(Malformed));
        inbound.keep(b"0\r\n\r\nB:");
        assert!(inbound.is_over() && !inbound.has_ahead() && !inbound.next());
    }
}
