//! The `stream` and `timeouts` parts, at each level on which they may stand.

use std::time::Duration;

use super::value;
use crate::config::place::At;
use crate::config::raw;
use crate::config::{FailureEnd, HalfClose, Stream, Timeouts};

/// What holds where the file says nothing.
pub(super) const DEFAULT: Stream = Stream {
    heartbeat: Some(Duration::from_secs(15)),
    hold_headers: Duration::from_secs(5),
    early_headers: None,
    window: 64 * 1024,
    event_hold: 16 * 1024,
    write_stall: Duration::from_secs(30),
    half_close: HalfClose::Abort,
    failure_end: FailureEnd::Clean,
};

/// What holds where the file says nothing.
pub(super) const TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(5),
    first_event: Duration::from_secs(120),
    unary: Duration::from_secs(600),
    idle: Duration::from_secs(60),
    total: Duration::from_secs(1800),
    queue: Duration::from_secs(30),
};

/// Bounds of `window`: below, a batch of 16 KiB does not fit; above, slow readers cost too much.
const WINDOW: std::ops::RangeInclusive<u64> = 16 * 1024..=16 * 1024 * 1024;
/// Smallest `event_hold`: an ordinary event with a long token still fits.
const EVENT_HOLD_MIN: u64 = 1024;

/// `above` with what is written here.
pub(super) fn stream(raw: Option<&raw::Stream>, at: &At<'_>, above: &Stream) -> Stream {
    let Some(raw) = raw else { return above.clone() };
    let window = value::size(&raw.window, &at.key("window"), above.window as u64, WINDOW);
    Stream {
        heartbeat: value::positive_or_never(&raw.heartbeat, &at.key("heartbeat"), above.heartbeat),
        hold_headers: value::duration(&raw.hold_headers, above.hold_headers),
        early_headers: value::positive_or_never(
            &raw.early_headers,
            &at.key("early_headers"),
            above.early_headers,
        ),
        window: bytes(window),
        event_hold: bytes(event_hold(raw, at, above, window)),
        write_stall: value::positive(&raw.write_stall, &at.key("write_stall"), above.write_stall),
        half_close: match raw.half_close.get() {
            None => above.half_close,
            Some(raw::HalfClose::Abort) => HalfClose::Abort,
            Some(raw::HalfClose::Finish) => HalfClose::Finish,
        },
        failure_end: match raw.failure_end.get() {
            None => above.failure_end,
            Some(raw::FailureEnd::Clean) => FailureEnd::Clean,
            Some(raw::FailureEnd::Abort) => FailureEnd::Abort,
        },
    }
}

/// An event that is held must fit in the window. The default, and what a level above says, gives way
/// to a smaller window; what is written beside it does not.
fn event_hold(raw: &raw::Stream, at: &At<'_>, above: &Stream, window: u64) -> u64 {
    let window = window.clamp(*WINDOW.start(), *WINDOW.end());
    let default = (above.event_hold as u64).min(window);
    value::size(&raw.event_hold, &at.key("event_hold"), default, EVENT_HOLD_MIN..=window)
}

/// Exact: what is out of bounds was noted, and 64-bit targets hold any size.
fn bytes(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}

/// With `half_close: finish`, only a failed write shows that a client left, and a silent stream
/// writes nothing but heartbeats.
pub(super) fn warn_silent_finish(stream: &Stream, at: &At<'_>) {
    if stream.half_close == HalfClose::Finish && stream.heartbeat.is_none() {
        at.key("half_close").warning(
            "finish without a heartbeat: a client that leaves in silence keeps its engine busy",
            "set a heartbeat, as in 15s",
        );
    }
}

/// `above` with what is written here.
pub(super) fn timeouts(raw: Option<&raw::Timeouts>, at: &At<'_>, above: &Timeouts) -> Timeouts {
    let Some(raw) = raw else { return above.clone() };
    Timeouts {
        connect: value::positive(&raw.connect, &at.key("connect"), above.connect),
        first_event: value::positive(&raw.first_event, &at.key("first_event"), above.first_event),
        unary: value::positive(&raw.unary, &at.key("unary"), above.unary),
        idle: value::positive(&raw.idle, &at.key("idle"), above.idle),
        total: value::positive(&raw.total, &at.key("total"), above.total),
        queue: value::positive(&raw.queue, &at.key("queue"), above.queue),
    }
}
