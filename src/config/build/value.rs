//! Single values: their default where absent, their bounds where set.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::config::place::{At, shown};
use crate::config::raw::Field;
use crate::config::units::{self, OrNever};

/// A list that must not be empty. One that is, is told; one that could not be read has been.
pub(super) fn filled<'t, T>(
    field: &'t Field<Vec<T>>,
    at: &At<'_>,
    what: &'static str,
    fix: &'static str,
) -> &'t [T] {
    match field {
        Field::Set(list) if !list.is_empty() => return list,
        Field::Wrong => {}
        Field::Set(_) | Field::Absent => at.problem(what, fix),
    }
    &[]
}

/// A text that must be there.
pub(super) fn required<'t>(
    field: &'t Field<String>,
    key: &'static str,
    at: &At<'_>,
    fix: &'static str,
) -> Option<&'t String> {
    if field.is_absent() {
        at.key(key).problem("missing", fix);
    }
    field.get()
}

/// A duration that may be 0.
pub(super) fn duration(field: &Field<units::Duration>, default: Duration) -> Duration {
    field.get().map_or(default, |span| span.0)
}

/// A duration that must be more than 0. What is inherited was judged where it is written.
pub(super) fn positive(field: &Field<units::Duration>, at: &At<'_>, default: Duration) -> Duration {
    let Some(span) = field.get() else { return default };
    not_zero(span.0, at, "write 1ms or more");
    span.0
}

/// A duration of more than 0, or never.
pub(super) fn positive_or_never(
    field: &Field<OrNever<units::Duration>>,
    at: &At<'_>,
    default: Option<Duration>,
) -> Option<Duration> {
    match field.get() {
        None => default,
        Some(OrNever::Never) => None,
        Some(OrNever::Set(span)) => {
            not_zero(span.0, at, "write 1ms or more, or never");
            Some(span.0)
        }
    }
}

fn not_zero(span: Duration, at: &At<'_>, fix: &'static str) {
    if span.is_zero() {
        at.problem("0 would be over before it began", fix);
    }
}

/// A number within bounds.
pub(super) fn within(number: u64, at: &At<'_>, bounds: RangeInclusive<u64>) -> u64 {
    if !bounds.contains(&number) {
        at.problem(
            format!("{number} is out of bounds"),
            format!("write {} to {}", bounds.start(), bounds.end()),
        );
    }
    number
}

/// A size within bounds.
pub(super) fn size(
    field: &Field<units::Size>,
    at: &At<'_>,
    default: u64,
    bounds: RangeInclusive<u64>,
) -> u64 {
    let Some(&units::Size(bytes)) = field.get() else { return default };
    if !bounds.contains(&bytes) {
        let (low, high) = (units::Size(*bounds.start()), units::Size(*bounds.end()));
        at.problem(format!("{} is out of bounds", units::Size(bytes)), format!("write {low} to {high}"));
    }
    bytes
}

/// The address of a listener: a literal and a port, 0 for any.
pub(super) fn address(text: &str, at: &At<'_>) -> Option<SocketAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    let (host, port) = text.rsplit_once(':').unwrap_or((text, ""));
    let fix = match (host, port.parse::<u16>()) {
        ("" | "*", Ok(port)) => {
            format!("write 0.0.0.0:{port} for every IPv4 address, [::]:{port} for every IPv6 one")
        }
        ("localhost", Ok(port)) => format!("write 127.0.0.1:{port}"),
        (host, Err(_)) if host.parse::<std::net::IpAddr>().is_ok() => {
            format!("add a port from 0 to 65535, as in {host}:8080")
        }
        (host, Ok(port)) if host.contains(':') && !host.starts_with('[') => format!("write [{host}]:{port}"),
        (_, Ok(_)) => "write an address, not a name, as in 127.0.0.1:8080".to_owned(),
        _ => "write ADDRESS:PORT, as in 127.0.0.1:8080".to_owned(),
    };
    at.problem(format!("{} is no address to listen on", shown(text)), fix);
    None
}
