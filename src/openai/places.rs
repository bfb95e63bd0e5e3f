//! Where JSON pointers lead in a body, found by one walk over its bytes.
//!
//! The walk follows only the branches that a pointer names and skips everything else, string by
//! string, so that a picture in a prompt costs what `memchr` costs. It checks the depth on the way.
//!
//! The one hard idea: it reads text that is known to be valid JSON, so it needs no grammar, only
//! the ends of strings and the balance of brackets.

use std::ops::Range;

use memchr::memchr2;

use super::pointers::Pointers;

/// What a pointer leads to.
#[derive(Debug, PartialEq, Eq)]
pub enum Found<'p> {
    /// A value, at these bytes of the body; not `null`.
    Value(Range<usize>),
    /// Nothing, or `null`, which says as much. `within` is the innermost value on the way, and `names`
    /// are those that it lacks, none where it is itself the `null`.
    Nothing {
        /// Bytes of an object or a `null`.
        within: Range<usize>,
        /// What would have to be added.
        names: &'p [String],
    },
    /// Nothing, and there is no object that could have it: a scalar or an array is in the way.
    Blocked,
}

/// Where the pointers lead in one body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places(Vec<Option<Range<usize>>>);

impl Places {
    /// Where pointer `number` leads. `body` and `pointers` are those of the walk.
    pub fn find<'p>(&self, body: &[u8], pointers: &'p Pointers, number: usize) -> Found<'p> {
        let (trail, names) = pointers.trail(number);
        let known = trail.iter().take_while(|&&node| self.0[node].is_some()).count();
        let Some(innermost) = known.checked_sub(1).and_then(|last| self.0[trail[last]].clone()) else {
            return Found::Blocked;
        };
        let names = &names[known - 1..];
        match &body[innermost.clone()] {
            b"null" => Found::Nothing { within: innermost, names },
            _ if names.is_empty() => Found::Value(innermost),
            [b'{', ..] => Found::Nothing { within: innermost, names },
            _ => Found::Blocked,
        }
    }
}

/// Why a walk ended early.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// The body is nested too deep.
    TooDeep,
    /// A member that a pointer names or passes stands twice.
    Twice(String),
}

/// Walks the value that begins at `start` of valid JSON, nested at most `depth` deep.
pub(super) fn walk(
    json: &[u8],
    start: usize,
    depth: usize,
    pointers: &Pointers,
) -> Result<(Places, usize), Lost> {
    let mut walk = Walk { json, pointers, spans: vec![None; pointers.len()] };
    let end = walk.value(start, depth, 0)?;
    Ok((Places(walk.spans), end))
}

struct Walk<'a> {
    json: &'a [u8],
    pointers: &'a Pointers,
    spans: Vec<Option<Range<usize>>>,
}

impl Walk<'_> {
    /// The value at `start`, which `node` stands for. Its end.
    fn value(&mut self, start: usize, room: usize, node: usize) -> Result<usize, Lost> {
        let is_leaf = self.pointers.is_leaf(node);
        let end = match self.json.get(start) {
            Some(b'{' | b'[') if room == 0 => return Err(Lost::TooDeep),
            Some(b'{') if !is_leaf => self.object(start, room - 1, node)?,
            Some(b'[') if !is_leaf => self.array(start, room - 1, node)?,
            _ => skip(self.json, start, room).ok_or(Lost::TooDeep)?,
        };
        if self.spans[node].replace(start..end).is_some() {
            return Err(Lost::Twice(self.pointers.spelt(node)));
        }
        Ok(end)
    }

    fn object(&mut self, start: usize, room: usize, node: usize) -> Result<usize, Lost> {
        let mut at = past_space(self.json, start + 1);
        while self.json.get(at) == Some(&b'"') {
            let name_end = at + 1 + string_len(&self.json[at + 1..]);
            let child = self.named(node, &self.json[at..name_end]);
            let value = past_mark(self.json, name_end, b':');
            at = self.child_value(value, room, child)?;
            at = past_mark(self.json, at, b',');
        }
        Ok(at + 1)
    }

    fn array(&mut self, start: usize, room: usize, node: usize) -> Result<usize, Lost> {
        let mut at = past_space(self.json, start + 1);
        let mut index = 0;
        while self.json.get(at).is_some_and(|byte| *byte != b']') {
            let child = self.pointers.indexed(node, index);
            at = self.child_value(at, room, child)?;
            at = past_mark(self.json, at, b',');
            index += 1;
        }
        Ok(at + 1)
    }

    fn child_value(&mut self, start: usize, room: usize, child: Option<usize>) -> Result<usize, Lost> {
        match child {
            Some(node) => self.value(start, room, node),
            None => skip(self.json, start, room).ok_or(Lost::TooDeep),
        }
    }

    /// The child of a name as it stands in the body, quotes included.
    fn named(&self, node: usize, quoted: &[u8]) -> Option<usize> {
        let decoded: String;
        let mut plain = &quoted[1..quoted.len() - 1];
        if memchr::memchr(b'\\', plain).is_some() {
            // A name with half a surrogate pair is nobody's.
            decoded = serde_json::from_slice(quoted).ok()?;
            plain = decoded.as_bytes();
        }
        self.pointers.named(node, plain)
    }
}

/// Past a mark and the white space around it, or past the white space alone where there is no mark.
fn past_mark(json: &[u8], from: usize, mark: u8) -> usize {
    let at = past_space(json, from);
    if json.get(at) == Some(&mark) { past_space(json, at + 1) } else { at }
}

fn past_space(json: &[u8], from: usize) -> usize {
    let space = |byte: &&u8| matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
    from + json.iter().skip(from).take_while(space).count()
}

/// The end of the value at `start`; `None` where it is nested deeper than `room`.
fn skip(json: &[u8], start: usize, room: usize) -> Option<usize> {
    let mut depth = 0;
    let mut at = start;
    while let Some(&byte) = json.get(at) {
        at += 1;
        match byte {
            b'"' => at += string_len(&json[at..]),
            b'{' | b'[' if depth == room => return None,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ if depth == 0 => return Some(at + scalar_len(&json[at..])),
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    Some(at)
}

/// Length of what is left of a number, `true`, `false` or `null`.
fn scalar_len(json: &[u8]) -> usize {
    let ends = |byte: &u8| matches!(byte, b',' | b']' | b'}' | b' ' | b'\n' | b'\r' | b'\t');
    json.iter().position(ends).unwrap_or(json.len())
}

/// Length of a string after its opening quote, the closing one included.
fn string_len(json: &[u8]) -> usize {
    let mut at = 0;
    while let Some(hit) = memchr2(b'"', b'\\', &json[at..]) {
        at += hit + 1;
        if json[at - 1] == b'"' {
            return at;
        }
        at += 1;
    }
    json.len()
}

#[cfg(test)]
mod tests {
    use super::super::Pointer;
    use super::*;

    fn pointer(text: &str) -> Pointer {
        Pointer::parse(text).expect(text)
    }

    fn walked(json: &str, texts: &[&str]) -> Result<Vec<String>, Lost> {
        let mut pointers = Pointers::default();
        let numbers: Vec<usize> = texts.iter().map(|text| pointers.add(pointer(text))).collect();
        let (places, _) = walk(json.as_bytes(), 0, 64, &pointers)?;
        let told = |number| match places.find(json.as_bytes(), &pointers, number) {
            Found::Value(span) => json[span].to_owned(),
            Found::Nothing { within, names } => format!("{} lacks {}", &json[within], names.join(".")),
            Found::Blocked => "blocked".to_owned(),
        };
        Ok(numbers.into_iter().map(told).collect())
    }

    #[test]
    fn values_are_found_wherever_they_stand() {
        let json = "{ \"x\" : [1, {\"a\":2}],\n\"a\":{\"b\\u002fc\" : \"y\\\"\" , \"a\": [\"p\", {\"q\":-1.5e3}, []]} ,\"z\":true}";
        let found = walked(json, &["/a/b~1c", "/a/a/1/q", "/a/a/0", "/a/a/2", "/z", "/a/a"]).expect("valid");
        assert_eq!(found, [r#""y\"""#, "-1.5e3", r#""p""#, "[]", "true", r#"["p", {"q":-1.5e3}, []]"#]);
    }

    #[test]
    fn what_is_missing_is_told_with_its_parent() {
        let json = r#"{"a":{"b":{}},"n":null,"s":"x","l":[{"k":1}],"":2}"#;
        let texts =
            ["/q/r", "/a/c/d", "/a/b/c", "/n", "/n/m", "/s/t", "/l/1", "/l/0/m", "/l/00/k", "/l/-", "/"];
        let found = walked(json, &texts).expect("valid");
        let want = [
            &format!("{json} lacks q.r"),
            "{\"b\":{}} lacks c.d",
            "{} lacks c",
            "null lacks ",
            "null lacks m",
            "blocked",
            "blocked",
            "{\"k\":1} lacks m",
            "blocked",
            "blocked",
            "2",
        ];
        assert_eq!(found, want);
    }

    #[test]
    fn a_name_on_the_way_stands_once() {
        let twice = |json, text| walked(json, &[text]).expect_err(json);
        assert_eq!(twice(r#"{"a":1,"\u0061":2}"#, "/a"), Lost::Twice("/a".into()));
        assert_eq!(twice(r#"{"a":{},"a":{"b":1}}"#, "/a/b"), Lost::Twice("/a".into()));
        assert_eq!(twice(r#"{"a":{"/":1,"/":1}}"#, "/a/~1"), Lost::Twice("/a/~1".into()));
        assert!(walked(r#"{"x":1,"x":2,"a":{"x":1}}"#, &["/a"]).is_ok());
    }

    #[test]
    fn depth_is_counted_on_and_off_the_trail() {
        let mut pointers = Pointers::default();
        pointers.add(pointer("/a/0/0"));
        for (json, deep) in
            [("{\"a\":[[]]}", 3), ("{\"b\":[[]]}", 3), ("{\"a\":[[[]]]}", 4), ("{\"a\":\"[[[[\"}", 1)]
        {
            assert_eq!(
                walk(json.as_bytes(), 0, deep, &pointers).map(|(_, end)| end),
                Ok(json.len()),
                "{json}"
            );
            assert_eq!(walk(json.as_bytes(), 0, deep - 1, &pointers), Err(Lost::TooDeep), "{json}");
        }
    }
}
