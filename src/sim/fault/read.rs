//! Reads fault lists: `NAME[=ARGUMENT][;retry_after=S][;p=N]`, separated by commas.

use std::str::FromStr;

use super::{Fault, FaultKind};

/// Why a fault list was not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// No fault has this name.
    #[error("unknown fault `{0}`; `streamgate sim --help` names them all")]
    Unknown(String),
    /// The fault needs `=ARGUMENT`.
    #[error("fault `{name}` needs {expected}, as `{name}=..`")]
    NoArgument {
        /// The fault.
        name: String,
        /// What its argument is.
        expected: &'static str,
    },
    /// The argument makes no sense.
    #[error("fault `{name}`: `{argument}` is not {expected}")]
    BadArgument {
        /// The fault or its option.
        name: String,
        /// What was read.
        argument: String,
        /// What it has to be.
        expected: &'static str,
    },
    /// The fault takes no argument.
    #[error("fault `{0}` takes no argument")]
    UnwantedArgument(String),
    /// An option that this fault does not have.
    #[error("fault `{name}` has no option `{option}`")]
    UnknownOption {
        /// The fault.
        name: String,
        /// The option.
        option: String,
    },
}

const COUNT: &str = "a whole number";
const STATUS: &str = "a status from 400 to 599";

impl FromStr for Fault {
    type Err = FaultError;

    /// Reads `NAME[=ARGUMENT][;retry_after=S][;p=N]`.
    fn from_str(text: &str) -> Result<Self, FaultError> {
        let mut parts = text.trim().split(';').map(str::trim);
        let (name, argument) = pair(parts.next().unwrap_or_default());
        let mut fault = Self::from(kind(name, argument)?);
        for option in parts {
            fault.set(name, option)?;
        }
        Ok(fault)
    }
}

impl Fault {
    fn set(&mut self, name: &str, option: &str) -> Result<(), FaultError> {
        let (key, value) = pair(option);
        match (key, &mut self.kind) {
            ("p", _) => self.period = number(key, value, "a whole number from 1")?,
            ("retry_after", FaultKind::Status { retry_after, .. }) => {
                *retry_after = Some(number(key, value, COUNT)?);
            }
            _ => {
                return Err(FaultError::UnknownOption { name: name.to_owned(), option: key.to_owned() });
            }
        }
        Ok(())
    }
}

fn kind(name: &str, argument: Option<&str>) -> Result<FaultKind, FaultError> {
    if let Some(kind) = plain(name) {
        return match argument {
            None => Ok(kind),
            Some(_) => Err(FaultError::UnwantedArgument(name.to_owned())),
        };
    }
    let at = |make: fn(u32) -> FaultKind| number(name, argument, COUNT).map(make);
    match name {
        "status" => Ok(FaultKind::Status { code: status(name, argument)?, retry_after: None }),
        "health" => status(name, argument).map(FaultKind::Health),
        "stall_at" => at(FaultKind::StallAt),
        "reset_at" => at(FaultKind::ResetAt),
        "fin_at" => at(FaultKind::FinAt),
        "truncated_chunk_at" => at(FaultKind::TruncatedChunkAt),
        "error_at" => at(FaultKind::ErrorAt),
        "error_then_done" => at(FaultKind::ErrorThenDone),
        "interim" => at(FaultKind::Interim),
        _ => Err(FaultError::Unknown(name.to_owned())),
    }
}

fn plain(name: &str) -> Option<FaultKind> {
    Some(match name {
        "refuse" => FaultKind::Refuse,
        "stall_before_head" => FaultKind::StallBeforeHead,
        "reset_before_head" => FaultKind::ResetBeforeHead,
        "fin_before_head" => FaultKind::FinBeforeHead,
        "stall_after_head" => FaultKind::StallAfterHead,
        "reset_after_head" => FaultKind::ResetAfterHead,
        "fin_after_head" => FaultKind::FinAfterHead,
        "no_done" => FaultKind::NoDone,
        "comments_only" => FaultKind::CommentsOnly,
        "blank_lines" => FaultKind::BlankLines,
        "crlf" => FaultKind::Crlf,
        "short_content_length" => FaultKind::ShortContentLength,
        "extra_bytes" => FaultKind::ExtraBytes,
        "garbage" => FaultKind::Garbage,
        "early_413" => FaultKind::Early413,
        "head_trickle" => FaultKind::HeadTrickle,
        "unsolicited_101" => FaultKind::Unsolicited101,
        "big_head" => FaultKind::BigHead,
        "ignore_cancel" => FaultKind::IgnoreCancel,
        _ => return None,
    })
}

fn pair(text: &str) -> (&str, Option<&str>) {
    match text.split_once('=') {
        Some((key, value)) => (key.trim(), Some(value.trim())),
        None => (text, None),
    }
}

fn status(name: &str, argument: Option<&str>) -> Result<u16, FaultError> {
    let code = number(name, argument, STATUS)?;
    if (400..=599).contains(&code) {
        return Ok(code);
    }
    Err(FaultError::BadArgument { name: name.to_owned(), argument: code.to_string(), expected: STATUS })
}

fn number<T: FromStr>(name: &str, argument: Option<&str>, expected: &'static str) -> Result<T, FaultError> {
    let name = || name.to_owned();
    let argument = argument.ok_or_else(|| FaultError::NoArgument { name: name(), expected })?;
    let bad = |_| FaultError::BadArgument { name: name(), argument: argument.to_owned(), expected };
    argument.parse().map_err(bad)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::super::HELP;
    use super::*;

    #[test]
    fn arguments_and_options_are_read() {
        let status = FaultKind::Status { code: 429, retry_after: Some(30) };
        let third = NonZeroU32::new(3).unwrap();
        assert_eq!("status=429;retry_after=30;p=3".parse(), Ok(Fault { kind: status, period: third }));
        assert_eq!(" reset_at = 5 ".parse(), Ok(Fault::from(FaultKind::ResetAt(5))));
        assert_eq!("garbage".parse(), Ok(Fault::from(FaultKind::Garbage)));
    }

    #[test]
    fn lists_are_separated_by_commas() {
        let both = vec![Fault::from(FaultKind::Crlf), Fault::from(FaultKind::NoDone)];
        assert_eq!(Fault::list("crlf, no_done"), Ok(both));
        assert_eq!(Fault::list(""), Ok(Vec::new()));
    }

    #[test]
    fn every_name_in_the_help_is_known() {
        let names = HELP.split_once("; each").unwrap().0;
        for name in names.split(", ") {
            let text = name.replace("NNN", "503").replace("=N", "=4").replace("[;retry_after=S]", "");
            assert!(text.parse::<Fault>().is_ok(), "{text}");
        }
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let message = |text: &str| text.parse::<Fault>().unwrap_err().to_string();
        assert_eq!(message("reset_at"), "fault `reset_at` needs a whole number, as `reset_at=..`");
        assert_eq!(message("reset_at=x"), "fault `reset_at`: `x` is not a whole number");
        assert_eq!(message("status=200"), "fault `status`: `200` is not a status from 400 to 599");
        assert_eq!(message("crlf=1"), "fault `crlf` takes no argument");
        assert_eq!(message("crlf;retry_after=3"), "fault `crlf` has no option `retry_after`");
        assert_eq!(message("crlf;p=0"), "fault `p`: `0` is not a whole number from 1");
        assert_eq!(message("nope"), "unknown fault `nope`; `streamgate sim --help` names them all");
    }
}
