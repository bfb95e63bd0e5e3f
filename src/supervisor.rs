//! What systemd is told of the process (sd_notify(3)), where it asks for that by `NOTIFY_SOCKET`.
//!
//! Each message is one datagram to a socket with a large buffer, at moments that are rare: the start, a
//! reload, the end.

use sd_notify::NotifyState;

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
