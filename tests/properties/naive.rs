//! The slow and obvious SSE reader: it sees the whole input at once.

use streamgate::sse::EventKind;

/// One event as the gateway counts them: a lone comment line is one, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) kind: EventKind,
    /// Data as WHATWG 9.2.6 joins it.
    pub(crate) data: Option<Vec<u8>>,
    /// Bytes without the blank line's own end.
    pub(crate) len: usize,
    /// Offset just after the event, its line end included.
    pub(crate) end: usize,
}

/// All complete events, and the offset after the last boundary.
pub(crate) fn events(input: &[u8]) -> (Vec<Event>, usize) {
    let (mut events, mut block, mut block_start, mut boundary) = (Vec::new(), Vec::new(), 0, 0);
    for (start, line, end) in lines(input) {
        let text = if start == 0 { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) } else { line };
        if text.is_empty() {
            if !block.is_empty() {
                events.push(event(&block, start - block_start, end));
            }
        } else if text[0] == b':' && block.is_empty() {
            let len = start + line.len() - block_start;
            events.push(Event { kind: EventKind::Comment, data: None, len, end });
        } else {
            block.push(text.to_vec());
            continue;
        }
        block.clear();
        (block_start, boundary) = (end, end);
    }
    (events, boundary)
}

fn event(block: &[Vec<u8>], len: usize, end: usize) -> Event {
    let mut values = Vec::new();
    for line in block {
        let colon = line.iter().position(|&byte| byte == b':').unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        if &line[..colon] == b"data" {
            values.push(value.strip_prefix(b" ").unwrap_or(value).to_vec());
        }
    }
    let data = (!values.is_empty()).then(|| values.join(&b'\n'));
    let kind = if data.is_some() { EventKind::Data } else { EventKind::Other };
    Event { kind, data, len, end }
}

/// Complete lines as (start, text, offset after the line end).
fn lines(input: &[u8]) -> Vec<(usize, &[u8], usize)> {
    let (mut lines, mut start, mut at) = (Vec::new(), 0, 0);
    while at < input.len() {
        let end = match input[at] {
            b'\r' if input.get(at + 1) == Some(&b'\n') => at + 2,
            b'\r' | b'\n' => at + 1,
            _ => {
                at += 1;
                continue;
            }
        };
        lines.push((start, &input[start..at], end));
        (start, at) = (end, end);
    }
    lines
}
