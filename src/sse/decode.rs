//! Reading the fields of one event.
//!
//! Works on the bytes of a whole event, as [`Event::raw`](super::Event::raw) gives them. Values are
//! bytes: invalid UTF-8 is the reader's business. It does not find events (see
//! [`Scanner`](super::Scanner)) and keeps no last event id.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

/// One field line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// Text before the first colon; never empty.
    pub name: &'a [u8],
    /// Text after it, without one leading space; empty where the line has no colon.
    pub value: &'a [u8],
}

/// The fields of an event in their order, comments and blank lines left out.
pub fn fields(raw: &[u8]) -> impl Iterator<Item = Field<'_>> {
    Lines { rest: raw }.filter_map(field)
}

/// The values of the `data` fields, in their order.
pub fn data_lines(raw: &[u8]) -> impl Iterator<Item = &[u8]> {
    fields(raw).filter(|field| field.name == b"data").map(|field| field.value)
}

/// The event's data: the `data` values joined by LF (WHATWG 9.2.6), borrowed where there is only
/// one. `None` where there is none.
pub fn data(raw: &[u8]) -> Option<Cow<'_, [u8]>> {
    let mut lines = data_lines(raw);
    let first = lines.next()?;
    let Some(second) = lines.next() else { return Some(Cow::Borrowed(first)) };
    let mut joined = Vec::with_capacity(raw.len());
    joined.extend_from_slice(first);
    for line in std::iter::once(second).chain(lines) {
        joined.push(b'\n');
        joined.extend_from_slice(line);
    }
    Some(Cow::Owned(joined))
}

fn field(line: &[u8]) -> Option<Field<'_>> {
    match memchr(b':', line) {
        Some(0) => None,
        Some(colon) => {
            let value = &line[colon + 1..];
            Some(Field { name: &line[..colon], value: value.strip_prefix(b" ").unwrap_or(value) })
        }
        None if line.is_empty() => None,
        None => Some(Field { name: line, value: b"" }),
    }
}

/// Lines by LF, CRLF or CR; a last line needs no end.
struct Lines<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let Some(end) = memchr2(b'\n', b'\r', self.rest) else {
            return Some(std::mem::take(&mut self.rest));
        };
        let (line, rest) = self.rest.split_at(end);
        self.rest = &rest[if rest.starts_with(b"\r\n") { 2 } else { 1 }..];
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_data_line_is_borrowed_without_its_first_space() {
        assert!(matches!(data(b"data:  x\n\n"), Some(Cow::Borrowed(b" x"))));
        assert!(matches!(data(b"data:x\r\n\r\n"), Some(Cow::Borrowed(b"x"))));
        assert!(matches!(data(b"data"), Some(Cow::Borrowed(b""))));
    }

    #[test]
    fn several_data_lines_are_joined() {
        let raw = b"event: delta\rid: 42\r\ndata: {\"a\":\n: note\ndata: 1}\n\n";
        assert_eq!(data(raw).as_deref(), Some(&b"{\"a\":\n1}"[..]));
        assert_eq!(data(b"data\ndata\n\n").as_deref(), Some(&b"\n"[..]));
    }

    #[test]
    fn fields_keep_order_and_colons() {
        let all: Vec<_> = fields(b"event: a:b\n:c\nretry\n").map(|f| (f.name, f.value)).collect();
        assert_eq!(all, [(&b"event"[..], &b"a:b"[..]), (b"retry", b"")]);
        assert_eq!(data(b": only\n\n"), None);
        assert_eq!(data(b"Data: x\n\n"), None);
    }

    #[test]
    fn invalid_utf8_is_just_bytes() {
        assert_eq!(data(b"data: \xff\n\n").as_deref(), Some(&b"\xff"[..]));
    }
}
