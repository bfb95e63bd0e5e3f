//! What systemd is told of the process (sd_notify(3)), where it asks for that by `NOTIFY_SOCKET`, and how its journal
//! reads what the process writes.
//!
//! Each message is one datagram to a socket with a large buffer, at moments that are rare: the start, a
//! reload, the end.

use log::Level;
use sd_notify::NotifyState;

/// Whether systemd asks to be told.
pub(crate) fn is_there() -> bool {
    std::env::var_os("NOTIFY_SOCKET").is_some()
}

/// Whether standard error is the journal.
pub(crate) fn is_journal() -> bool {
    let stream = std::env::var("JOURNAL_STREAM");
    let stderr = rustix::fs::fstat(std::io::stderr());
    stream.is_ok_and(|named| stderr.is_ok_and(|is| named == format!("{}:{}", is.st_dev, is.st_ino)))
}

/// Lines as the journal takes them with a level (sd-daemon(3)), which it does not show.
pub(crate) fn leveled(level: Level, lines: &str) -> String {
    let priority = match level {
        Level::Error => 3,
        Level::Warn => 4,
        Level::Info => 6,
        Level::Debug | Level::Trace => 7,
    };
    let lines: Vec<String> = lines.lines().map(|line| format!("<{priority}>{line}")).collect();
    lines.join("\n")
}

/// The process serves, as `status` says.
pub(crate) fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(&one_line(status))]);
}

/// The configuration is being read anew; `ready` follows, whatever comes of it.
pub(crate) fn reloading() {
    // systemd takes no reload without the moment of it.
    if let Ok(now) = NotifyState::monotonic_usec_now() {
        tell(&[NotifyState::Reloading, now]);
    }
}

/// The process is on its way out.
pub(crate) fn stopping(status: &str) {
    tell(&[NotifyState::Stopping, NotifyState::Status(&one_line(status))]);
}

/// The service goes on in another process. systemd heeds it only of the process that it knows, and of that one
/// alone until then.
pub(crate) fn succeeded_by(pid: u32) {
    tell(&[NotifyState::MainPid(pid)]);
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        log::warn!("systemd cannot be told: {error}");
    }
}

/// A line break would begin another message.
fn one_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_has_its_level() {
        assert_eq!(leveled(Level::Warn, "one\ntwo"), "<4>one\n<4>two");
        let levels =
            [(Level::Error, "<3>"), (Level::Info, "<6>"), (Level::Debug, "<7>"), (Level::Trace, "<7>")];
        for (level, begin) in levels {
            assert_eq!(leveled(level, "x"), format!("{begin}x"));
        }
    }
}
