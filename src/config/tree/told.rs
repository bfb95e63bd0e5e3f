//! What the YAML parser's errors say to the one who wrote the file.

use serde_saphyr::Error;
use serde_saphyr::budget::BudgetBreach;

use super::{ALIASES_MAX, DEPTH_MAX, NODES_MAX};
use crate::config::error::Problem;
use crate::config::place::shown;

/// The parser's error in our words, with a fix where its cause is a habit.
pub(super) fn told(error: &Error, text: &str) -> Problem {
    let place = error.location();
    let line = place.map(|at| at.line()).filter(|&line| line > 0);
    let column = place.map(|at| at.column()).filter(|&column| column > 0);
    let (what, fix) = match error.without_snippet() {
        Error::RecursiveReferencesRequireWeakTypes { .. } => {
            ("an alias within what it stands for".to_owned(), "write the values out")
        }
        Error::Budget { breach: BudgetBreach::Documents { .. }, .. } | Error::MultipleDocuments { .. } => {
            ("more than one YAML document".to_owned(), "keep to one, without \"---\" between")
        }
        Error::Budget { breach, .. } => (over_budget(breach), "a configuration needs far less"),
        Error::AliasReplayLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. } => {
            ("aliases that multiply without end".to_owned(), "write the values out")
        }
        Error::AliasError { error, .. } => return Problem { line, column, ..told(error, text) },
        Error::UnsupportedTag { tag, .. } => {
            (format!("the tag {} is not supported", shown(tag)), "leave it out")
        }
        Error::Eof { .. } => ("the file is empty".to_owned(), "conf/streamgate.yaml is a file to start from"),
        Error::UnknownAnchor { .. } => {
            ("\"*\" begins an alias here, and no such anchor exists".to_owned(), "quote it: \"*...\"")
        }
        Error::MergeKeyNotAllowed { .. } => {
            ("merge keys (\"<<\") are not supported".to_owned(), "write the keys out")
        }
        other => (first_line(&other.to_string()), habit(text, line)),
    };
    Problem::of_file(line, column, what, fix)
}

fn over_budget(breach: &BudgetBreach) -> String {
    match breach {
        BudgetBreach::Depth { .. } => format!("nested more than {DEPTH_MAX} deep"),
        BudgetBreach::Nodes { .. } | BudgetBreach::Events { .. } => {
            format!("more than {NODES_MAX} values")
        }
        BudgetBreach::Aliases { .. } | BudgetBreach::Anchors { .. } => {
            format!("more than {ALIASES_MAX} anchors or aliases")
        }
        _ => "too much for one file".to_owned(),
    }
}

/// The parser's message without its own mention of the place.
fn first_line(message: &str) -> String {
    if message.contains("recursion limit") {
        return format!("nested more than {DEPTH_MAX} deep");
    }
    let line = message.lines().next().unwrap_or_default();
    match line.rfind(" at line ") {
        Some(end) => line[..end].to_owned(),
        None => line.to_owned(),
    }
}

/// A fix for the line on which the syntax broke.
fn habit(text: &str, line: Option<u64>) -> &'static str {
    let Some(line) = line.and_then(|n| text.lines().nth(usize::try_from(n).ok()?.checked_sub(1)?)) else {
        return "";
    };
    let indent = &line[..line.len() - line.trim_start().len()];
    if indent.contains('\t') {
        "indent with spaces, not tabs"
    } else if line.contains(": *") || line.contains("- *") || line.contains("[*") {
        "quote what begins with \"*\""
    } else if line.contains("${") && line.contains("{ ") {
        "between braces, quote it: \"${NAME}\""
    } else {
        ""
    }
}
