//! Finding the running usage of an event, so that it can be taken out again.
//!
//! The bytes around it stay as the engine wrote them: what is cut is the member and the comma that joins it to
//! the others, and the event reads as if the engine had not been asked.

use std::ops::Range;

use super::members::{Members, span};

/// Where the member `usage` stands in an event of one `data` line, its comma included. `None` where there is none, or
/// where it is written in a way no engine writes it (its name with escapes, or twice).
pub fn usage_member(event: &[u8]) -> Option<Range<usize>> {
    let data = event.strip_prefix(b"data:")?;
    let before = event.len() - data.len();
    let text = std::str::from_utf8(data).ok()?;
    let members = Members::read(text, ["usage"]).ok()?;
    let value = members.values[0].filter(|_| members.twice.is_none())?;
    let value = span(text, value);
    let name = text[..value.start].trim_ascii_end().strip_suffix(':')?.trim_ascii_end();
    let head = name.strip_suffix("\"usage\"")?;
    let member = match head.trim_ascii_end().strip_suffix(',') {
        Some(others) => others.len()..value.end,
        // The first member: the comma behind it goes, if there is one.
        None => head.len()..value.end + comma_behind(&text[value.end..]),
    };
    Some(before + member.start..before + member.end)
}

fn comma_behind(rest: &str) -> usize {
    let after = rest.trim_ascii_start();
    if after.starts_with(',') { rest.len() - after.len() + 1 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without(event: &str) -> String {
        let cut = usage_member(event.as_bytes()).unwrap_or(0..0);
        format!("{}{}", &event[..cut.start], &event[cut.end..])
    }

    #[test]
    fn an_event_reads_as_if_nobody_had_asked() {
        for (event, left) in [
            (r#"data: {"a":1,"usage":{"t":[1,{}]},"b":2}"#, r#"data: {"a":1,"b":2}"#),
            (r#"data: {"a":1 , "usage" : {"t":1} }"#, r#"data: {"a":1  }"#),
            (r#"data:{"usage":{"t":1}, "b":2}"#, r#"data:{ "b":2}"#),
            (r#"data: {"usage":{"t":1}}"#, "data: {}"),
        ] {
            assert_eq!(without(event), left);
        }
    }

    #[test]
    fn what_is_not_clearly_there_is_not_cut() {
        for event in [
            r#"data: {"a":"\"usage\":{}"}"#,
            r#"data: {"a":{"usage":{"t":1}}}"#,
            r#"data: {"us\u0061ge":{"t":1}}"#,
            r#"data: {"usage":{"t":1},"usage":{"t":2}}"#,
            r#"data: {"usage":{"t":1}"#,
            "data: usage",
            ": usage",
        ] {
            assert_eq!(without(event), event);
        }
    }
}
