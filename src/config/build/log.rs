//! The `log` part.

use super::value;
use crate::config::place::{At, shown};
use crate::config::raw;
use crate::config::{AccessTarget, Log, LogFormat, NamedFile, Rotate, UsageTarget};

/// Smallest size at which a usage file is rotated: below it, files would come and go by the second.
const ROTATE_LEAST: u64 = 64 << 10;
/// Most old usage files: each rotation renames them all.
const KEEP_MAX: u64 = 1000;

/// Where log lines go.
pub(super) fn log(raw: Option<&raw::Log>, at: &At<'_>) -> Log {
    let empty = raw::Log::default();
    let raw = raw.unwrap_or(&empty);
    let level = match raw.level.get() {
        None | Some(raw::Level::Info) => log::LevelFilter::Info,
        Some(raw::Level::Off) => log::LevelFilter::Off,
        Some(raw::Level::Error) => log::LevelFilter::Error,
        Some(raw::Level::Warn) => log::LevelFilter::Warn,
        Some(raw::Level::Debug) => log::LevelFilter::Debug,
        Some(raw::Level::Trace) => log::LevelFilter::Trace,
    };
    let format = match raw.format.get() {
        None | Some(raw::Format::Text) => LogFormat::Text,
        Some(raw::Format::Json) => LogFormat::Json,
    };
    let access = match raw.access.get().map(String::as_str) {
        None | Some("stdout") => AccessTarget::Stdout,
        Some("stderr") => AccessTarget::Stderr,
        Some("none") => AccessTarget::None,
        Some(path) => {
            let fix = "write stdout, stderr, none, or a path with a \"/\" in it, as in ./access.log";
            AccessTarget::File(named(path, &at.key("access"), fix))
        }
    };
    let access_sample = raw.access_sample.get().map_or(1.0, |percent| percent.0 / 100.0);
    let slow = value::positive_or_never(&raw.slow, &at.key("slow"), None);
    let usage = usage(raw, at);
    if let (AccessTarget::File(access), Some(usage)) = (&access, &usage)
        && access.path == usage.file.path
    {
        at.key("usage").problem("log.access writes into this file", "name another file");
    }
    Log { level, format, access, access_sample, usage, slow }
}

fn usage(raw: &raw::Log, at: &At<'_>) -> Option<UsageTarget> {
    let empty = raw::Rotate::default();
    let rotate_at = at.key("usage_rotate");
    let rotate = raw.usage_rotate.get().unwrap_or(&empty);
    let size = rotate.size.get().map_or(256 << 20, |size| size.0);
    if size < ROTATE_LEAST {
        rotate_at.key("size").problem("too small", "write 64KiB or more");
    }
    let keep = rotate.keep.get().map_or(8, |count| count.0);
    if keep == 0 || keep > KEEP_MAX {
        rotate_at.key("keep").problem("no number of old files to keep", "write 1 to 1000");
    }
    let path = raw.usage.get().filter(|path| *path != "none")?;
    let fix = "write none, or a path with a \"/\" in it, as in ./usage.log";
    let file = named(path, &at.key("usage"), fix);
    Some(UsageTarget { file, rotate: Rotate { size, keep } })
}

/// A file that lines go to. Without a slash it is more likely a misspelt word than a file in the working directory.
fn named(path: &str, at: &At<'_>, fix: &'static str) -> NamedFile {
    if !path.contains('/') {
        at.problem(format!("{} is not known here", shown(path)), fix);
    }
    NamedFile { path: path.into(), line: at.line() }
}
