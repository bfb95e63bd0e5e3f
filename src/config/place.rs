//! Where in the file we are, and what has been found so far.
//!
//! An [`At`] walks down the tree beside the code that reads it, so that a problem can be told where
//! it is noticed. A setting that is absent has a place too: its path, and its parent's line.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::error::{Problem, Problems};
use super::tree::{Entry, Node, Value};
use super::{Config, Loaded};

/// Problems and warnings kept; more are only counted. A thousand lines help nobody.
const KEPT_MAX: usize = 200;

/// What the reading of one file has found.
#[derive(Debug, Default)]
pub(super) struct Report {
    problems: RefCell<Vec<Problem>>,
    hidden: Cell<usize>,
    warnings: RefCell<Vec<Problem>>,
}

impl Report {
    /// The end of the reading: `config` counts only if there is no problem.
    pub(super) fn settle(self, config: Option<Config>, text: &str) -> Result<Loaded, Problems> {
        let problems = self.problems.into_inner();
        let mut warnings = self.warnings.into_inner();
        warnings.sort_by_key(|warning| (warning.line, warning.column));
        match config {
            Some(config) if problems.is_empty() => Ok(Loaded { config, warnings, text: text.into() }),
            _ => Err(Problems::new(problems, self.hidden.get())),
        }
    }
}

/// A place in the file.
#[derive(Clone)]
pub(super) struct At<'t> {
    report: &'t Report,
    node: Option<&'t Node>,
    line: u64,
    column: u64,
    link: Option<Rc<Link<'t>>>,
}

/// One step of a path; the path is only spelt out for a problem.
struct Link<'t> {
    parent: Option<Rc<Self>>,
    step: Step<'t>,
}

/// From a map or a list to one of its members.
enum Step<'t> {
    Key(&'t str),
    Index(usize),
}

impl<'t> At<'t> {
    /// The top of the file.
    pub(super) fn root(report: &'t Report, node: &'t Node) -> Self {
        Self { report, node: Some(node), line: node.line, column: node.column, link: None }
    }

    /// What is written here; `None` if nothing is.
    pub(super) fn node(&self) -> Option<&'t Node> {
        self.node
    }

    /// Its line in the file, from 1.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// The setting `key` of this map.
    pub(super) fn key(&self, key: &'t str) -> Self {
        match self.node.and_then(|node| node.entry(key)) {
            Some(entry) => self.entry(entry),
            None => self.down(Step::Key(key), None, self.line, self.column),
        }
    }

    /// The element `index` of this list, from 0.
    pub(super) fn index(&self, index: usize) -> Self {
        match self.node.map(|node| &node.value) {
            Some(Value::List(list)) if index < list.len() => self.element(index, &list[index]),
            _ => self.down(Step::Index(index), None, self.line, self.column),
        }
    }

    /// Every member of this map or list, in the order of the file.
    pub(super) fn children(&self) -> Vec<Self> {
        match self.node.map(|node| &node.value) {
            Some(Value::Map(map)) => map.entries.iter().map(|entry| self.entry(entry)).collect(),
            Some(Value::List(list)) => {
                list.iter().enumerate().map(|(i, node)| self.element(i, node)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Keys of this map that stand twice: the later place, and the line of the first.
    pub(super) fn duplicates(&self) -> Vec<(Self, u64)> {
        let Some(Value::Map(map)) = self.node.map(|node| &node.value) else { return Vec::new() };
        let first_line =
            |key| self.node.and_then(|node| node.entry(key)).map_or(self.line, |first| first.line);
        map.duplicates.iter().map(|again| (self.entry(again), first_line(&again.key))).collect()
    }

    /// The key of the last step; `None` at the top and in a list.
    pub(super) fn last_key(&self) -> Option<&'t str> {
        match self.link.as_ref()?.step {
            Step::Key(key) => Some(key),
            Step::Index(_) => None,
        }
    }

    fn entry(&self, entry: &'t Entry) -> Self {
        self.down(Step::Key(&entry.key), Some(&entry.value), entry.line, entry.column)
    }

    fn element(&self, index: usize, node: &'t Node) -> Self {
        self.down(Step::Index(index), Some(node), node.line, node.column)
    }

    fn down(&self, step: Step<'t>, node: Option<&'t Node>, line: u64, column: u64) -> Self {
        let link = Some(Rc::new(Link { parent: self.link.clone(), step }));
        Self { report: self.report, node, line, column, link }
    }

    /// Tells what is wrong here and what to write instead. A place has one problem: what follows from
    /// the first is not told.
    ///
    /// Where an environment variable's value stands, a text made for the occasion may repeat it and is
    /// not shown; a fixed one is.
    pub(super) fn problem(&self, what: impl Into<Cow<'static, str>>, fix: impl Into<Cow<'static, str>>) {
        let (what, fix) = self.masked(what.into(), fix.into());
        self.problem_as_is(what, fix);
    }

    /// The same with texts that are known to hold no value.
    pub(super) fn problem_as_is(&self, what: impl Into<String>, fix: impl Into<String>) {
        let mut problems = self.report.problems.borrow_mut();
        if problems.len() == KEPT_MAX {
            self.report.hidden.set(self.report.hidden.get() + 1);
            return;
        }
        let note = self.note(what.into(), fix.into());
        if !problems.iter().any(|other| other.path == note.path && other.line == note.line) {
            problems.push(note);
        }
    }

    /// Whether a problem was told here or further down.
    pub(super) fn has_problem(&self) -> bool {
        let path = self.path();
        let below = |other: &str| {
            other.strip_prefix(&*path).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        self.report.problems.borrow().iter().any(|problem| below(&problem.path))
    }

    /// Tells what works but is hardly meant.
    pub(super) fn warning(&self, what: impl Into<Cow<'static, str>>, fix: impl Into<Cow<'static, str>>) {
        let mut warnings = self.report.warnings.borrow_mut();
        if warnings.len() < KEPT_MAX {
            let (what, fix) = self.masked(what.into(), fix.into());
            warnings.push(self.note(what, fix));
        }
    }

    fn masked(&self, what: Cow<'static, str>, fix: Cow<'static, str>) -> (String, String) {
        let Some(given) = self.node.and_then(Node::given) else {
            return (what.into_owned(), fix.into_owned());
        };
        let reason = match what {
            Cow::Borrowed(what) => what,
            Cow::Owned(_) => "its value cannot be used here",
        };
        let fix = match fix {
            Cow::Borrowed(fix) => fix,
            Cow::Owned(_) => "",
        };
        (format!("{}: {reason}", shown(&given.written)), fix.to_owned())
    }

    fn note(&self, what: String, fix: String) -> Problem {
        Problem { path: self.path(), line: Some(self.line), column: Some(self.column), what, fix }
    }

    /// The path in full. A key that is no plain word is quoted.
    pub(super) fn path(&self) -> String {
        let mut steps = Vec::new();
        let mut link = self.link.as_ref();
        while let Some(here) = link {
            steps.push(&here.step);
            link = here.parent.as_ref();
        }
        let mut path = String::new();
        for step in steps.into_iter().rev() {
            match step {
                Step::Index(index) => path.push_str(&format!("[{index}]")),
                Step::Key(key) => {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    let plain = !key.is_empty()
                        && key.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
                    path.push_str(&if plain && key.len() <= SHOWN_MAX {
                        (*key).to_owned()
                    } else {
                        shown(key)
                    });
                }
            }
        }
        path
    }
}

/// Characters of a value or key that a message repeats.
const SHOWN_MAX: usize = 60;

/// `text` in quotes, escaped and cut short: a message stays one line of bearable length.
pub(super) fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        None => format!("\"{}\"", text.escape_debug()),
        Some((end, _)) => format!("\"{}...\"", text[..end].escape_debug()),
    }
}
