//! The strict check of a chunked request body, and where it ends.
//!
//! ```text
//! Size --;--> Extension --CR--> SizeEnd --LF--> Data --> DataCr --> DataLf --> Size ...
//!                                  `--LF of size 0--> Line --CR--> End (an empty line)
//!                                                      `--> Name --:--> Trailer --CR--> LineEnd --LF--> Line
//! ```
//!
//! Readers of chunked bodies are lenient in different ways (an empty size, blanks around it, a bare LF),
//! and whatever two of them could split differently is refused here (RFC 9112, 7.1 and 11.2). Pingora
//! reads the same bytes afterwards; this check only ever refuses more.

/// Digits of a size: as many as httparse takes.
const DIGITS_MAX: u8 = 15;

/// Bytes of the extensions of one chunk. Nobody uses them; a server ought to bound them (RFC 9112, 7.1.1).
const EXTENSION_MAX: u16 = 256;

/// Bytes of the trailer section, which is read and dropped.
const TRAILERS_MAX: u16 = 8 * 1024;

/// A body that is not framed as the grammar has it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// Where in a chunked body its reader is.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    at: At,
    /// Digits of the size read so far.
    digits: u8,
    /// Bytes of the chunk that are still to come; while its size is read, the size so far.
    left: u64,
    /// Bytes of the extension read so far.
    extension: u16,
    /// Bytes of the trailer section read so far.
    trailers: u16,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum At {
    #[default]
    Size,
    Extension,
    SizeEnd,
    Data,
    DataCr,
    DataLf,
    /// The beginning of a line behind the last chunk.
    Line,
    /// The name of a trailer.
    Name,
    Trailer,
    LineEnd,
    End,
    Whole,
}

impl Chunks {
    /// Whether the body is whole.
    pub(super) fn is_whole(&self) -> bool {
        self.at == At::Whole
    }

    /// Reads on. Gives how many of the bytes belong to the body: all, unless it ends among them.
    ///
    /// # Errors
    /// The framing is wrong.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Result<usize, Malformed> {
        let mut read = 0;
        while read < bytes.len() && !self.is_whole() {
            if self.at == At::Data {
                read += self.skip(bytes.len() - read);
            } else {
                self.at = self.step(bytes[read])?;
                read += 1;
            }
        }
        Ok(read)
    }

    fn skip(&mut self, available: usize) -> usize {
        let skipped = usize::try_from(self.left).unwrap_or(usize::MAX).min(available);
        self.left -= skipped as u64;
        if self.left == 0 {
            self.at = At::DataCr;
        }
        skipped
    }

    fn step(&mut self, byte: u8) -> Result<At, Malformed> {
        match (self.at, byte) {
            (At::Size, b';') if self.digits > 0 => Ok(At::Extension),
            (At::Size | At::Extension, b'\r') if self.digits > 0 => Ok(At::SizeEnd),
            (At::Size, digit) if digit.is_ascii_hexdigit() => self.digit(digit),
            (At::Extension, b'\t' | b' '..=b'~' | 0x80..) => self.extension(),
            (At::SizeEnd, b'\n') => Ok(self.sized()),
            (At::DataCr, b'\r') => Ok(At::DataLf),
            (At::DataLf, b'\n') => Ok(At::Size),
            (At::Line, b'\r') => Ok(At::End),
            (At::End, b'\n') => Ok(At::Whole),
            (At::Trailer, b'\r') => Ok(At::LineEnd),
            (At::LineEnd, b'\n') => Ok(At::Line),
            (At::Line | At::Name, name) if is_token(name) => self.trailer(At::Name),
            (At::Name, b':') | (At::Trailer, b'\t' | b' '..=b'~' | 0x80..) => self.trailer(At::Trailer),
            _ => Err(Malformed),
        }
    }

    fn digit(&mut self, digit: u8) -> Result<At, Malformed> {
        if self.digits == DIGITS_MAX {
            return Err(Malformed);
        }
        let value = char::from(digit).to_digit(16).ok_or(Malformed)?;
        self.left = self.left * 16 + u64::from(value);
        self.digits += 1;
        Ok(At::Size)
    }

    fn extension(&mut self) -> Result<At, Malformed> {
        self.extension += 1;
        if self.extension > EXTENSION_MAX { Err(Malformed) } else { Ok(At::Extension) }
    }

    fn trailer(&mut self, next: At) -> Result<At, Malformed> {
        self.trailers += 1;
        if self.trailers > TRAILERS_MAX { Err(Malformed) } else { Ok(next) }
    }

    fn sized(&mut self) -> At {
        (self.digits, self.extension) = (0, 0);
        if self.left == 0 { At::Line } else { At::Data }
    }
}

/// What a header's name is made of (RFC 9110, 5.6.2).
pub(super) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many bytes belong to the body, read in pieces of this size; `None` while it is not whole.
    fn length(body: &[u8], piece: usize) -> Result<Option<usize>, Malformed> {
        let mut chunks = Chunks::default();
        let mut read = 0;
        for piece in body.chunks(piece) {
            read += chunks.read(piece)?;
        }
        Ok(chunks.is_whole().then_some(read))
    }

    #[test]
    fn a_body_ends_at_its_last_line_however_it_is_cut() {
        let long = format!("1;{}\r\nx\r\n0\r\n\r\n", "e".repeat(256));
        let whole = [
            "0\r\n\r\n",
            "5\r\nhello\r\n0\r\n\r\n",
            "00a;ext=\"1\"\r\n0123456789\r\n1\r\n\n\r\n000\r\n\r\n",
            "3\r\na\r\n\r\n0;x\r\nTrailer: 1\r\nOther: 2\r\n\r\n",
            &long,
        ];
        for body in whole {
            let followed = format!("{body}GET / HTTP/1.1\r\n\r\n");
            for piece in 1..=followed.len() {
                assert_eq!(length(followed.as_bytes(), piece), Ok(Some(body.len())), "{body:?} by {piece}");
            }
            for end in 0..body.len() {
                assert_eq!(length(&body.as_bytes()[..end], 4), Ok(None), "{body:?} up to {end}");
            }
        }
    }

    #[test]
    fn what_readers_could_split_differently_is_refused() {
        let long = format!("1;{}", "e".repeat(257));
        let trailers = format!("0\r\na: {}", "b".repeat(TRAILERS_MAX.into()));
        let wrong = [
            "\r\n",
            "\n",
            ";a\r\n",
            " 2\r\n",
            "2 \r\n",
            "2\t;a\r\n",
            "2\n",
            "0x2\r\n",
            "+2\r\n",
            "-2\r\n",
            "zz",
            "2\rx",
            "2\r\nabc",
            "2\r\nab\n",
            "2\r\nab\rx",
            "2;a\n",
            "2;\0",
            "0\r\n\n",
            "0\r\n\rx",
            "0\r\na: b\n",
            "0\r\na\r\n",
            "0\r\na b: c\r\n",
            "0\r\n: c\r\n",
            "0\r\na: b\r\n c\r\n",
            "0\r\na: b\rx",
            "0000000000000001",
            &long,
            &trailers,
        ];
        for body in wrong {
            for piece in [1, 3, body.len()] {
                assert_eq!(length(body.as_bytes(), piece), Err(Malformed), "{body:?} by {piece}");
            }
        }
    }
}
