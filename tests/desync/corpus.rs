//! The notation of the corpus.

use std::path::Path;

/// One case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Case {
    /// File and name.
    pub(crate) name: String,
    /// What stands between the bars.
    pub(crate) wanted: Vec<String>,
    /// What is sent.
    pub(crate) lines: Vec<Vec<u8>>,
}

impl Case {
    /// All that is sent, as lines of HTTP/1.1.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.lines.concat()
    }
}

/// Every case of a file of the corpus.
pub(crate) fn read(file: &str) -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/desync/corpus").join(file);
    let text = std::fs::read_to_string(path).expect("the corpus is there");
    parse(file, &text)
}

fn parse(file: &str, text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let mut lines: Vec<&str> = Vec::new();
    for line in text.lines() {
        let Some(head) = line.strip_prefix("= ") else {
            lines.push(line);
            continue;
        };
        if let Some(last) = cases.last_mut() {
            // What separates two cases.
            assert_eq!(lines.pop(), Some(""), "{}: an empty line follows a case", last.name);
            last.lines = lines.iter().map(|line| unescaped(line)).collect();
        }
        lines.clear();
        let mut parts = head.split('|').map(|part| part.trim().to_owned());
        let name = format!("{file}: {}", parts.next().expect("a name"));
        cases.push(Case { name, wanted: parts.collect(), lines: Vec::new() });
    }
    let last = cases.last_mut().expect("a corpus has cases");
    last.lines = lines.iter().map(|line| unescaped(line)).collect();
    cases
}

/// The bytes of a line, with its end.
fn unescaped(line: &str) -> Vec<u8> {
    let is_open = line.ends_with('\\') && !line.ends_with("\\\\");
    let mut rest = line.strip_suffix('\\').filter(|_| is_open).unwrap_or(line);
    let mut bytes = Vec::new();
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at + 1..];
        let kind = rest.chars().next().expect("a character follows a backslash");
        rest = &rest[kind.len_utf8()..];
        match kind {
            'r' => bytes.push(b'\r'),
            'n' => bytes.push(b'\n'),
            't' => bytes.push(b'\t'),
            '0' => bytes.push(0),
            '\\' => bytes.push(b'\\'),
            'x' => {
                bytes.push(u8::from_str_radix(&rest[..2], 16).expect("two hexadecimal digits"));
                rest = &rest[2..];
            }
            '{' => {
                let (run, behind) = rest.split_once('}').expect("a run ends");
                let (count, text) = run.split_once('*').expect("a run is COUNT*TEXT");
                bytes.extend(text.repeat(count.parse().expect("a count")).into_bytes());
                rest = behind;
            }
            other => panic!("no escape: \\{other} in {line:?}"),
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    if !is_open {
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

#[test]
fn the_notation_is_bytes() {
    let text =
        "# comment\n= one | 400 | closed\nA\\x20\\t\\\\\nB\\{3*xy}\\n\\\n\n= two | - | waits\n\\\\v\\\n";
    let cases = parse("f", text);
    assert_eq!(cases[0].wanted, ["400", "closed"]);
    assert_eq!(cases[0].bytes(), b"A \t\\\r\nBxyxyxy\n");
    assert_eq!((cases[1].name.as_str(), cases[1].bytes()), ("f: two", b"\\v".to_vec()));
}
