//! What is wrong in a configuration file, told so that it can be put right.
//!
//! It holds problems and prints them; it finds none. A problem names the place twice, since a
//! person looks for a line and a program for a path.

use std::fmt;

/// One thing that is wrong, or that deserves a warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The setting, as in `clusters.qwen.backends[1].url`; empty when the file is no YAML at all.
    pub path: String,
    /// Line in the file, from 1.
    pub line: Option<u64>,
    /// Column in the line, from 1.
    pub column: Option<u64>,
    /// What was read and why it cannot be.
    pub what: String,
    /// What to write instead; empty when `what` says it all.
    pub fix: String,
}

impl Problem {
    /// A problem of the file as a whole, or of its syntax.
    pub(super) fn of_file(
        line: Option<u64>,
        column: Option<u64>,
        what: impl Into<String>,
        fix: &str,
    ) -> Self {
        Self { path: String::new(), line, column, what: what.into(), fix: fix.into() }
    }

    /// The problem as one line, with the name of its file.
    pub fn in_file<'p>(&'p self, file: &'p str) -> impl fmt::Display + use<'p> {
        InFile { problem: self, file }
    }

    /// Writes the problem as one line; `file` may be empty.
    fn write(&self, file: &str, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (file, self.line) {
            ("", None) => {}
            ("", Some(line)) => write!(to, "line {line}: ")?,
            (file, None) => write!(to, "{file}: ")?,
            (file, Some(line)) => write!(to, "{file}:{line}: ")?,
        }
        if !self.path.is_empty() {
            write!(to, "{}: ", self.path)?;
        }
        write!(to, "{}", self.what)?;
        if !self.fix.is_empty() {
            write!(to, " ({})", self.fix)?;
        }
        Ok(())
    }
}

/// A problem, and the name of its file.
struct InFile<'p> {
    problem: &'p Problem,
    file: &'p str,
}

impl fmt::Display for InFile<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem.write(self.file, to)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write("", to)
    }
}

/// Every problem of one file, in the order of its lines. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems {
    file: String,
    list: Vec<Problem>,
    hidden: usize,
    unreadable: bool,
}

impl Problems {
    /// Sorts `list` by line; `hidden` more were found and not kept.
    pub(super) fn new(mut list: Vec<Problem>, hidden: usize) -> Self {
        list.sort_by_key(|problem| (problem.line, problem.column));
        Self { file: String::new(), list, hidden, unreadable: false }
    }

    /// One problem that is not of the text: what the file says cannot be done here and now.
    pub fn here_and_now(what: impl Into<String>) -> Self {
        Self::from(Problem::of_file(None, None, what, ""))
    }

    /// Names the file, for printing.
    #[must_use]
    pub fn in_file(mut self, file: impl Into<String>) -> Self {
        self.file = file.into();
        self
    }

    /// Says that the file could not even be read.
    #[must_use]
    pub(super) fn unreadable(self) -> Self {
        Self { unreadable: true, ..self }
    }

    /// Whether the file could not even be read.
    pub fn is_unreadable(&self) -> bool {
        self.unreadable
    }

    /// The problems, in the order of their lines.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.list.iter()
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self::new(vec![problem], 0)
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a Problem;
    type IntoIter = std::slice::Iter<'a, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Problems {
    /// One problem a line, `FILE:LINE: PATH: what (fix)`, with no line end after the last.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.list.iter().enumerate() {
            if i > 0 {
                writeln!(to)?;
            }
            problem.write(&self.file, to)?;
        }
        if self.hidden > 0 {
            write!(to, "\n... and {} more", self.hidden)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_print_place_reason_and_fix_in_the_order_of_lines() {
        let at = |line, path: &str, fix: &str| Problem {
            path: path.into(),
            line,
            column: Some(3),
            what: "is odd".into(),
            fix: fix.into(),
        };
        let problems = Problems::new(vec![at(Some(9), "log", ""), at(Some(2), "server", "mend it")], 4);
        assert_eq!(
            problems.clone().in_file("a.yaml").to_string(),
            "a.yaml:2: server: is odd (mend it)\na.yaml:9: log: is odd\n... and 4 more"
        );
        assert_eq!(problems.iter().next().unwrap().to_string(), "line 2: server: is odd (mend it)");
    }
}
