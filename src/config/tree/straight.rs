//! The tree straight from the parser's events, for a file with nothing unusual in it.
//!
//! A file may have 100,000 keys, and a reload should be done within a second: serde's way from the same events to the
//! tree (`from_yaml`) costs more than the parsing. The hard idea: this is no second reader of YAML with meanings of
//! its own. It takes only what cannot mean two things, and gives up at everything else (an error, an anchor, an alias,
//! a tag, a merge key, a second document, a scalar that might be a number in disguise, a bound that is passed); then the
//! whole text is read the long way, which knows what to say of it. The tests hold the two against each other.

use serde_saphyr::granit_parser::{Event, Parser, ScalarStyle, Span, StrInput, options};

use super::{DEPTH_MAX, Entries, Entry, NODES_MAX, Node, Scalar, Value};

/// The tree of `text`, if there is nothing unusual in it.
pub(super) fn parse(text: &str) -> Option<Node> {
    let options = options! {
        emit_comments: false,
        flow_nesting_limit: DEPTH_MAX,
        block_nesting_limit: DEPTH_MAX,
    };
    let mut events = Events { parser: Parser::new_from_str_with_options(text, options), left: NODES_MAX };
    events.skip(&Event::StreamStart)?;
    let (Event::DocumentStart(_, None), _) = events.next()? else { return None };
    let (first, place) = events.next()?;
    let root = events.node(first, place, DEPTH_MAX)?;
    events.skip(&Event::DocumentEnd)?;
    events.skip(&Event::StreamEnd)?;
    Some(root)
}

/// What the parser has still to say.
struct Events<'t> {
    parser: Parser<'t, StrInput<'t>>,
    /// Maps, lists and scalars that may come.
    left: usize,
}

impl<'t> Events<'t> {
    fn next(&mut self) -> Option<(Event<'t>, Span)> {
        self.parser.next_event()?.ok()
    }

    /// Takes this event and no other.
    fn skip(&mut self, expected: &Event<'t>) -> Option<()> {
        (self.next()?.0 == *expected).then_some(())
    }

    /// The node that begins with `event`; maps and lists may nest `depth` deep from here.
    fn node(&mut self, event: Event<'t>, place: Span, depth: usize) -> Option<Node> {
        self.left = self.left.checked_sub(1)?;
        let value = match event {
            Event::Scalar(text, ScalarStyle::Plain, 0, None) => Value::Scalar(plain(&text)?),
            Event::Scalar(text, _, 0, None) => Value::Scalar(Scalar::Text(text.into_owned())),
            Event::SequenceStart(_, 0, None) => Value::List(self.list(depth.checked_sub(1)?)?),
            Event::MappingStart(_, 0, None) => self.map(depth.checked_sub(1)?)?,
            _ => return None,
        };
        Some(Node { value, line: line(&place), column: column(&place) })
    }

    fn list(&mut self, depth: usize) -> Option<Vec<Node>> {
        let mut list = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Some(list),
                (event, place) => list.push(self.node(event, place, depth)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Option<Value> {
        let mut entries = Entries::default();
        loop {
            let (key, place) = match self.next()? {
                (Event::MappingEnd, _) => return Some(Value::Map(entries.map)),
                (Event::Scalar(text, ScalarStyle::Plain, 0, None), place) => (word(&text)?.to_owned(), place),
                (Event::Scalar(text, _, 0, None), place) if text != "<<" => (text.into_owned(), place),
                _ => return None,
            };
            self.left = self.left.checked_sub(1)?;
            let (event, value_place) = self.next()?;
            let value = self.node(event, value_place, depth)?;
            entries.push(Entry { key, line: line(&place), column: column(&place), value });
        }
    }
}

fn line(place: &Span) -> u64 {
    place.start.line() as u64
}

fn column(place: &Span) -> u64 {
    place.start.col() as u64 + 1
}

/// What a scalar without quotes means, where that is beyond doubt.
fn plain(text: &str) -> Option<Scalar> {
    match text {
        "" | "~" | "null" => return Some(Scalar::Null),
        "true" => return Some(Scalar::Bool(true)),
        "false" => return Some(Scalar::Bool(false)),
        _ => {}
    }
    match is_count(text) {
        true => text.parse().ok().map(Scalar::Int),
        false => word(text).map(|word| Scalar::Text(word.to_owned())),
    }
}

/// Whether these are the digits of a whole number, without a sign, in the only way to write it.
fn is_count(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'))
}

/// The same text, if it can be nothing but a text: a number begins with a digit, a sign or a point, and has none but
/// these characters; null and the booleans are five words, in lower case, in capitals, or with one.
fn word(text: &str) -> Option<&str> {
    const IN_NUMBERS: &[u8] = b"0123456789abcdefABCDEFxXoO_.+-";
    const OTHERS: [&str; 3] = ["null", "true", "false"];
    let is_text = match text.as_bytes().first()? {
        b'0'..=b'9' => text.bytes().any(|b| b.is_ascii() && !IN_NUMBERS.contains(&b)),
        b'a'..=b'z' | b'A'..=b'Z' => !OTHERS.iter().any(|other| text.eq_ignore_ascii_case(other)),
        b'/' | b'$' => true,
        _ => false,
    };
    is_text.then_some(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::parse_fragment;
    use super::*;

    /// Both ways, which are to agree wherever this one does not give up.
    fn same(text: &str) -> bool {
        let Some(straight) = parse(text) else { return false };
        let long = parse_fragment(text).unwrap_or_else(|problem| panic!("{text:?}: {problem:?}"));
        assert_eq!(format!("{straight:?}"), format!("{long:?}"), "{text:?}");
        true
    }

    #[test]
    fn a_configuration_means_the_same_by_both_ways() {
        let example = include_str!("../../../conf/streamgate.yaml");
        assert!(same(example), "it is read straight");
        let keys: String =
            (0..100).map(|i| format!("  - {{ name: k-{i}, sha256: \"{i:064x}\" }}\n")).collect();
        assert!(same(&format!("keys:\n{keys}limits:\n  per_ip: {{ requests: 10/s }}\n")));
        assert!(same(
            "a: |\n  x\n   y\nb: >-\n  one\n  two\n'c d': []\ne: \"\\u00e9\"\n? f\n: 1s\ng:\n- h:\n- {}\n"
        ));
    }

    #[test]
    fn every_scalar_means_the_same_by_both_ways() {
        let straight = "a 10s 16KiB 127.0.0.1:80 12:30 1:30:00 50% /v1/x $NAME yes no on n nan inf Infinity null ~ true \
                        false truely 0 17 100/s e5 x1 1h 0s abc";
        for scalar in straight.split(' ') {
            assert!(same(scalar), "{scalar}");
            assert!(same(&format!("k: [{scalar}, {scalar}]\nl: {scalar}\n")), "{scalar}");
            same(&format!("{scalar}: 1\n"));
        }
        let odd = "${NAME} 1.5 -1 +1 0x10 0o7 0b1 1e3 1_000 .5 .inf -.inf .nan True NULL Null FALSE 007 << = - ? !t &a *a é \
                   99999999999999999999999999999999999999999999999999";
        for scalar in odd.split(' ') {
            for text in [
                scalar.to_owned(),
                format!("k: {scalar}\n"),
                format!("{scalar}: 1\n"),
                format!("[{scalar} x]"),
            ] {
                same(&text);
            }
        }
    }

    #[test]
    fn it_gives_up_at_what_is_unusual() {
        let deep = format!("{}{}", "[".repeat(DEPTH_MAX + 1), "]".repeat(DEPTH_MAX + 1));
        for text in [
            "",
            "# only",
            "a: &x 1\nb: *x",
            "a: !!str 1",
            "a: 1\n---\nb: 2",
            "<<: {a: 1}",
            "[a]: 1",
            "a: [",
            "%YAML 1.2\n---\na: 1",
            &deep,
        ] {
            assert!(parse(text).is_none(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_means_the_same_by_both_ways(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "a", "b: ", "c: 1", "- ", "\n", "\n  ", "\n    ", ": ", "{", "}", "[", "]", ", ", "'", "\"", "#", " ", "|", ">-",
                    "x y", "0", "1s", "null", "~", "true", "- a: b", "? ", "---", "...", "\t", "\r\n", "\\n", "é", "k:", "*", "&",
                ]),
                0..24,
            ),
        ) {
            same(&parts.concat());
        }
    }
}
