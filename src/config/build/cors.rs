//! `cors.origins`: pages that may read our answers.

use std::net::Ipv6Addr;

use crate::config::Route;
use crate::config::place::{At, shown};
use crate::config::raw;
use crate::cors::{Cors, METHODS};

/// Most origins: each is compared with every request of a browser.
const ORIGINS_MAX: usize = 256;

pub(super) fn cors(raw: Option<&raw::Cors>, routes: &[Route], at: &At<'_>) -> Cors {
    let at = at.key("origins");
    let written = raw.and_then(|raw| raw.origins.get()).map_or(&[][..], Vec::as_slice);
    if written.len() > ORIGINS_MAX {
        at.problem(format!("{} origins are too many", written.len()), format!("write at most {ORIGINS_MAX}"));
    }
    let mut origins = Vec::new();
    for (i, origin) in written.iter().enumerate() {
        let Some(origin) = origin.get() else { continue };
        match wrong(origin) {
            None => origins.push(origin.clone()),
            Some((what, fix)) => at.index(i).problem(format!("{} {what}", shown(origin)), fix),
        }
    }
    let mut methods: Vec<&str> = METHODS.to_vec();
    for method in routes.iter().flat_map(|route| &route.methods).filter(|method| *method != "OPTIONS") {
        if !methods.contains(&method.as_str()) {
            methods.push(method);
        }
    }
    Cors { origins, methods: methods.join(", ") }
}

/// Why no browser would send this as its `Origin`, and what would do.
fn wrong(origin: &str) -> Option<(&'static str, &'static str)> {
    const FORM: &str = "write it as browsers do, as in https://chat.example.com or http://localhost:3000";
    if origin == "*" {
        return Some(("would let in every page of the internet", "name each origin in full"));
    }
    if origin == "null" {
        return Some(("is what pages without an origin say, so anybody's", "name each origin in full"));
    }
    let Some((scheme, rest)) = origin.split_once("://") else { return Some(("is no origin", FORM)) };
    if origin.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Some(("has capitals, which browsers do not send", "write it in small letters"));
    }
    if rest.contains('/') {
        return Some(("has a path", "leave out what follows the host and the port"));
    }
    let (host, port) = match rest.rfind(':') {
        Some(at) if !rest[at..].contains(']') => (&rest[..at], Some(&rest[at + 1..])),
        _ => (rest, None),
    };
    if matches!((scheme, port), ("https", Some("443")) | ("http", Some("80"))) {
        return Some(("names the port that its scheme has anyway", "leave the port out, as browsers do"));
    }
    let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|number| number.to_string() == port));
    (!is_scheme(scheme) || !is_host(host) || !is_port).then_some(("is no origin", FORM))
}

fn is_scheme(scheme: &str) -> bool {
    scheme.starts_with(|first: char| first.is_ascii_lowercase())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte))
}

fn is_host(host: &str) -> bool {
    if let Some(address) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return address.parse::<Ipv6Addr>().is_ok();
    }
    !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
}
