//! How single arguments are read. Pure.

use std::time::Duration;

use http::header::{AUTHORIZATION, HeaderName, HeaderValue};

use crate::sim::units;

/// Headers that frame a request, name a connection, or say what an answer is judged by.
const OURS: [&str; 13] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "expect",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-request-id",
    "x-sim-stamp",
];

/// A key on the command line could be read by everybody on this machine.
pub(super) fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = text.split_once(':').ok_or("a header has the form 'name: value'")?;
    let name: HeaderName = name.trim().parse().map_err(|_| format!("`{name}` is no name of a header"))?;
    if name == AUTHORIZATION {
        return Err("keys do not belong on a command line; see --key-env".into());
    }
    if OURS.contains(&name.as_str()) {
        return Err(format!("`{name}` is set by this client itself"));
    }
    let value =
        HeaderValue::from_str(value.trim()).map_err(|_| format!("the value of `{name}` cannot be sent"))?;
    Ok((name, value))
}

pub(super) fn positive(text: &str) -> Result<u64, String> {
    text.parse()
        .ok()
        .filter(|number| *number > 0)
        .ok_or_else(|| format!("`{text}` is no whole number above 0"))
}

pub(super) fn rate(text: &str) -> Result<f64, String> {
    let wrong = || format!("`{text}` is no number from 0.001 to 100000");
    text.parse().ok().filter(|rate| (0.001..=100_000.0).contains(rate)).ok_or_else(wrong)
}

pub(super) fn some_time(text: &str) -> Result<Duration, String> {
    let time = units::duration(text).map_err(|error| error.to_string())?;
    if time.is_zero() { Err(format!("`{text}` is no time at all")) } else { Ok(time) }
}
