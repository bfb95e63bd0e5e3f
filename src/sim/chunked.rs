//! Takes the chunks out of a request body (RFC 9112 7.1). Pure; knows any split of the input.

/// Where in the body we are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// At a chunk's size line.
    Size,
    /// Within a chunk's data: so many bytes are missing.
    Data(usize),
    /// At the line end behind the data.
    DataEnd,
    /// Behind the last chunk: trailer lines until a blank one.
    Trailer,
    Done,
}

/// A body that is not chunked as it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the request body is not chunked properly")]
pub(super) struct ChunkError;

/// The longest size or trailer line, in bytes.
const LINE_BYTES_MAX: usize = 8 << 10;

/// A decoder in the middle of a body.
#[derive(Debug)]
pub(super) struct Decoder(Place);

impl Decoder {
    pub(super) fn new() -> Self {
        Self(Place::Size)
    }

    pub(super) fn is_done(&self) -> bool {
        self.0 == Place::Done
    }

    /// Appends what `input` holds of the body to `body`; says how many bytes of `input` are used up.
    pub(super) fn push(&mut self, input: &[u8], body: &mut Vec<u8>) -> Result<usize, ChunkError> {
        let mut used = 0;
        while !self.is_done() {
            match self.step(&input[used..], body)? {
                0 => break,
                taken => used += taken,
            }
        }
        Ok(used)
    }

    fn step(&mut self, input: &[u8], body: &mut Vec<u8>) -> Result<usize, ChunkError> {
        match self.0 {
            Place::Size => self.size(input),
            Place::Data(missing) => {
                let taken = missing.min(input.len());
                body.extend_from_slice(&input[..taken]);
                self.0 = if taken == missing { Place::DataEnd } else { Place::Data(missing - taken) };
                Ok(taken)
            }
            Place::DataEnd if input.len() < 2 => Ok(0),
            Place::DataEnd if input.starts_with(b"\r\n") => {
                self.0 = Place::Size;
                Ok(2)
            }
            Place::DataEnd => Err(ChunkError),
            Place::Trailer => self.trailer(input),
            Place::Done => Ok(0),
        }
    }

    fn size(&mut self, input: &[u8]) -> Result<usize, ChunkError> {
        match httparse::parse_chunk_size(input).map_err(|_| ChunkError)? {
            httparse::Status::Complete((taken, size)) => {
                let size = usize::try_from(size).map_err(|_| ChunkError)?;
                self.0 = if size == 0 { Place::Trailer } else { Place::Data(size) };
                Ok(taken)
            }
            httparse::Status::Partial => wait(input),
        }
    }

    fn trailer(&mut self, input: &[u8]) -> Result<usize, ChunkError> {
        let Some(end) = memchr::memchr(b'\n', input) else { return wait(input) };
        if matches!(&input[..end], b"" | b"\r") {
            self.0 = Place::Done;
        }
        Ok(end + 1)
    }
}

/// Nothing used up: the line needs more bytes, within reason.
fn wait(input: &[u8]) -> Result<usize, ChunkError> {
    if input.len() > LINE_BYTES_MAX { Err(ChunkError) } else { Ok(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = b"4;x=1\r\n{\"a\"\r\nB\r\n: \"\r\n\r\n 12\"\r\n1\r\n}\r\n0\r\nx-t: 1\r\n\r\nGET";

    #[test]
    fn any_split_gives_the_same_body() {
        for split in 0..BODY.len() {
            let (mut decoder, mut body, mut rest) = (Decoder::new(), Vec::new(), Vec::new());
            for part in [&BODY[..split], &BODY[split..]] {
                rest.extend_from_slice(part);
                let used = decoder.push(&rest, &mut body).unwrap();
                rest.drain(..used);
            }
            assert!(decoder.is_done(), "{split}");
            assert_eq!((body.as_slice(), rest.as_slice()), (&b"{\"a\": \"\r\n\r\n 12\"}"[..], &b"GET"[..]));
        }
    }

    #[test]
    fn a_wrong_size_is_an_error() {
        assert_eq!(Decoder::new().push(b"2\r\nabc\r\n", &mut Vec::new()), Err(ChunkError));
        assert_eq!(Decoder::new().push(b"zz\r\n", &mut Vec::new()), Err(ChunkError));
    }
}
