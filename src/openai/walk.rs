//! One walk over the bytes of a body, which finds all that is wanted of it and checks its bounds.
//!
//! The walk follows the branches that a pointer names and passes over everything else, string by
//! string, so that a picture in a prompt costs what `memchr` costs.
//!
//! The one hard idea: it reads text that is known to be valid JSON, so it needs no grammar, only
//! the ends of strings and the balance of brackets. A string with a colon behind it is a name.

use super::elements::Elements;
use super::lexical::{nesting, past_mark, past_space, plain, string_end};
use super::places::{Place, Places};
use super::wanted::{Wanted, is_schema};

/// Most members of all objects of a body together. The largest requests of agents have some thousands; each
/// costs an engine that parses into a tree a hundred bytes or more.
pub const MEMBERS_MAX: usize = 100_000;
/// Longest number in bytes. Doubles need 24; parsers that read numbers of any size (Python's) take a time
/// that grows with the square.
pub const NUMBER_BYTES_MAX: usize = 64;

/// Why a walk ended early.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// The body is nested too deep.
    TooDeep,
    /// It has too many members.
    TooMany,
    /// It has a number that is too long.
    LongNumber,
    /// A member that a pointer names or passes stands twice.
    Twice(String),
}

/// Walks the value that begins at `start` of valid JSON, nested at most `depth` deep. Gives its end too.
pub(super) fn walk(
    json: &[u8],
    start: usize,
    depth: usize,
    wanted: &Wanted,
) -> Result<(Places, usize), Lost> {
    let places = Places::nowhere(wanted.pointers.len());
    let mut walk = Walk { json, wanted, places, room: depth, members: 0, schema: None };
    let end = walk.value(start, 0)?;
    Ok((walk.places, end))
}

struct Walk<'a> {
    json: &'a [u8],
    wanted: &'a Wanted,
    places: Places,
    /// Levels that may still be entered.
    room: usize,
    /// Members seen so far.
    members: usize,
    /// The room outside of the schema that is being walked.
    schema: Option<usize>,
}

impl Walk<'_> {
    /// The value at `start`, which `node` stands for. Its end.
    fn value(&mut self, start: usize, node: usize) -> Result<usize, Lost> {
        let is_leaf = self.wanted.pointers.is_leaf(node);
        let (end, elements) = match self.json.get(start) {
            Some(b'{') if !is_leaf => (self.object(start, node)?, None),
            Some(b'[') if !is_leaf => {
                let (end, elements) = self.array(start, node)?;
                (end, Some(elements))
            }
            _ => (self.skip(start)?, None),
        };
        if self.places.found(node, Place { span: start..end, elements }) {
            return Err(Lost::Twice(self.wanted.pointers.spelt(node)));
        }
        Ok(end)
    }

    fn object(&mut self, start: usize, node: usize) -> Result<usize, Lost> {
        self.enter()?;
        let mut at = past_space(self.json, start + 1);
        while self.json.get(at) == Some(&b'"') {
            let (end, is_escaped) = string_end(self.json, at);
            let value = past_mark(self.json, end, b':');
            let json = self.json;
            let name = plain(&json[at..end], is_escaped);
            self.member(&name, value)?;
            at = self.child(value, self.wanted.pointers.named(node, &name))?;
            at = past_mark(self.json, at, b',');
        }
        self.leave();
        Ok(at + 1)
    }

    /// The array at `start`: its end, and its elements.
    fn array(&mut self, start: usize, node: usize) -> Result<(usize, Elements), Lost> {
        self.enter()?;
        let mut at = past_space(self.json, start + 1);
        let mut elements = Elements::default();
        while let Some(&first) = self.json.get(at).filter(|byte| **byte != b']') {
            at = self.child(at, self.wanted.pointers.indexed(node, elements.count))?;
            at = past_mark(self.json, at, b',');
            elements.note(first);
        }
        self.leave();
        Ok((at + 1, elements))
    }

    fn child(&mut self, start: usize, child: Option<usize>) -> Result<usize, Lost> {
        match child {
            Some(node) => self.value(start, node),
            None => self.skip(start),
        }
    }

    /// The end of the value at `start`, in which no pointer leads anywhere.
    fn skip(&mut self, start: usize) -> Result<usize, Lost> {
        let outside = self.room;
        let mut at = start;
        while let Some(&byte) = self.json.get(at) {
            at = match byte {
                b'"' => self.string(at)?,
                b'{' | b'[' => self.enter().map(|()| at + 1)?,
                b'}' | b']' => {
                    self.leave();
                    at + 1
                }
                b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => self.scalar(at)?,
                _ => at + 1,
            };
            if self.room == outside {
                break;
            }
        }
        Ok(at)
    }

    /// The string at `at`, which is a name where a colon follows. Its end.
    fn string(&mut self, at: usize) -> Result<usize, Lost> {
        let (end, is_escaped) = string_end(self.json, at);
        if self.json.get(past_space(self.json, end)) == Some(&b':') {
            let json = self.json;
            let name = plain(&json[at..end], is_escaped);
            self.member(&name, past_mark(json, end, b':'))?;
        }
        Ok(end)
    }

    fn scalar(&self, at: usize) -> Result<usize, Lost> {
        let ends = |byte: &u8| matches!(byte, b',' | b']' | b'}' | b' ' | b'\n' | b'\r' | b'\t');
        let length = self.json[at..].iter().position(ends).unwrap_or(self.json.len() - at);
        if length > NUMBER_BYTES_MAX { Err(Lost::LongNumber) } else { Ok(at + length) }
    }

    /// A member of this name, whose value begins at `value`. `null` says nothing.
    fn member(&mut self, name: &[u8], value: usize) -> Result<(), Lost> {
        self.members += 1;
        if self.members > MEMBERS_MAX {
            return Err(Lost::TooMany);
        }
        if let Some(number) = self.wanted.names.find(name)
            && self.json.get(value) != Some(&b'n')
        {
            self.places.named(number);
        }
        if self.wanted.schemas && self.schema.is_none() && is_schema(name) {
            self.enter_schema(value);
        }
        Ok(())
    }

    /// A schema begins at `value`. One that is written as a string, as guided decoding takes it, is measured at
    /// once.
    fn enter_schema(&mut self, value: usize) {
        match self.json.get(value) {
            Some(b'{' | b'[') => self.schema = Some(self.room),
            Some(b'"') => {
                let (end, is_escaped) = string_end(self.json, value);
                self.places.schema(nesting(&plain(&self.json[value..end], is_escaped)));
            }
            _ => {}
        }
    }

    fn enter(&mut self) -> Result<(), Lost> {
        self.room = self.room.checked_sub(1).ok_or(Lost::TooDeep)?;
        if let Some(outside) = self.schema {
            self.places.schema(outside - self.room);
        }
        Ok(())
    }

    fn leave(&mut self) {
        self.room += 1;
        if self.schema == Some(self.room) {
            self.schema = None;
        }
    }
}
