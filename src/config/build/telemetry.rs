//! The `telemetry` part.

use http::Uri;

use crate::config::Telemetry;
use crate::config::place::At;
use crate::config::raw;

/// Where traces go and how many.
pub(super) fn telemetry(raw: Option<&raw::Telemetry>, at: &At<'_>) -> Telemetry {
    let empty = raw::Telemetry::default();
    let raw = raw.unwrap_or(&empty);
    let otlp = raw.otlp.get().map(|url| otlp(url, &at.key("otlp")));
    Telemetry { otlp, sample: raw.sample.get().map_or(0.01, |percent| percent.0 / 100.0) }
}

fn otlp(url: &str, at: &At<'_>) -> String {
    const FIX: &str = "write http://HOST:4317, the gRPC port of a collector";
    // What is wrong may be a password, which must not be told.
    match url.parse::<Uri>() {
        Ok(uri) if uri.scheme_str() == Some("https") => {
            at.problem(
                "TLS to a collector is not available",
                "run one beside the gateway and write http://127.0.0.1:4317",
            );
        }
        Ok(uri) if uri.scheme_str() != Some("http") || uri.path() != "/" || uri.query().is_some() => {
            at.problem("no address of a collector", FIX);
        }
        Ok(uri) if uri.authority().is_none_or(|host| host.as_str().contains('@')) => {
            at.problem("credentials have no place in it", FIX);
        }
        Ok(_) => {}
        Err(_) => at.problem("no address of a collector", FIX),
    }
    url.to_owned()
}
