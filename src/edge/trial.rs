//! What the bytes of a whole connection are as requests, without a socket: for tests and for fuzzing.

use bytes::BytesMut;

use super::head::Limits;
use super::inbound::Inbound;
use super::reader::{Head, judge};

/// A connection that has been read to its end.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Connection {
    /// Each whole request, head and body as they came.
    pub requests: Vec<Vec<u8>>,
    /// What ended it was refused; otherwise the bytes ran out.
    pub refused: bool,
}

/// Reads a connection that comes in pieces of this size, at least 1, by the very parts that read real ones.
pub fn connection(bytes: &[u8], piece: usize, limits: &Limits) -> Connection {
    let mut reader = Reader { inbound: Inbound::new(), pieces: bytes.chunks(piece.max(1)) };
    let mut seen = Connection::default();
    loop {
        match reader.request(limits) {
            Ok(Some(request)) => seen.requests.push(request),
            Ok(None) => return seen,
            Err(Refused) => {
                seen.refused = true;
                return seen;
            }
        }
        reader.inbound.next();
    }
}

struct Reader<'a> {
    inbound: Inbound,
    pieces: std::slice::Chunks<'a, u8>,
}

struct Refused;

impl Reader<'_> {
    /// `None` where the bytes end first.
    fn request(&mut self, limits: &Limits) -> Result<Option<Vec<u8>>, Refused> {
        let (mut bytes, mut scanned) = (BytesMut::new(), 0);
        let (mut request, end, framing) = loop {
            let Some(more) = self.more()? else { return Ok(None) };
            bytes.extend_from_slice(&more);
            match judge(&mut bytes, &mut scanned, limits) {
                Some(Head::Whole { bytes, end, framing }) => break (bytes, end, framing),
                Some(Head::Bad(_) | Head::Closed) => return Err(Refused),
                None => {}
            }
        };
        self.inbound.begin(framing, &mut request, end).map_err(|_| Refused)?;
        while !self.inbound.is_over() {
            let Some(more) = self.more()? else { return Ok(None) };
            request.extend_from_slice(&more);
        }
        Ok(Some(request.to_vec()))
    }

    /// The next bytes of the current request; `None` at the end.
    fn more(&mut self) -> Result<Option<BytesMut>, Refused> {
        if self.inbound.has_ahead() {
            return self.inbound.take_ahead(usize::MAX).map(Some).map_err(|_| Refused);
        }
        let Some(piece) = self.pieces.next() else { return Ok(None) };
        let used = self.inbound.split(piece).map_err(|_| Refused)?;
        Ok(Some(BytesMut::from(&piece[..used])))
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const LIMITS: Limits = Limits { uri_bytes: 64, header_bytes: 512, header_count: 8 };

    const PIECES: [&str; 22] = [
        "GET / HTTP/1.1\r\n",
        "POST /a HTTP/1.1\r\n",
        "GET / HTTP/1.0\r\n",
        "Host: a\r\n",
        "Host: b\r\n",
        "\r\n",
        "Content-Length: 3\r\n",
        "Content-Length: 0\r\n",
        "Transfer-Encoding: chunked\r\n",
        "3\r\nabc\r\n",
        "0\r\n",
        "abc",
        "1;x\r\ny\r\n",
        "X: y\r\n",
        " folded\r\n",
        "\n",
        "\r",
        "0\r\n\r\n",
        "Transfer-Encoding: x\r\n",
        "\0",
        "TE: y\r\n",
        "ffff\r\n",
    ];

    proptest! {
        #[test]
        fn a_connection_is_the_same_requests_however_it_is_cut(picks in vec(0..PIECES.len(), 0..24), piece in 1..20_usize) {
            let bytes: Vec<u8> = picks.iter().flat_map(|&pick| PIECES[pick].bytes()).collect();
            let whole = connection(&bytes, bytes.len(), &LIMITS);
            prop_assert_eq!(&connection(&bytes, piece, &LIMITS), &whole);
            prop_assert_eq!(&connection(&bytes, 1, &LIMITS), &whole);
            let read: usize = whole.requests.iter().map(Vec::len).sum();
            prop_assert!(read <= bytes.len());
        }
    }

    #[test]
    fn requests_are_taken_with_their_bodies() {
        let bytes = b"\r\nPOST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\nHost: a\r\n\r\nGET";
        let seen = connection(bytes, 7, &LIMITS);
        assert_eq!((seen.requests.len(), seen.refused), (2, false));
        assert!(seen.requests[0].ends_with(b"\r\n\r\nabc") && seen.requests[1].starts_with(b"GET"));
        assert!(connection(b"GET / HTTP/1.1\r\n\r\n", 3, &LIMITS).refused);
    }
}
