//! Which pages of other origins may read our answers (the Fetch standard, 3.3).
//!
//! A browser asks nobody but us: before a request that is not simple it sends a *preflight*, and it shows a page an
//! answer only if the answer names the page's origin. The one hard idea: the name is never `*`, but the origin
//! that asked, and only if the file has it; so answers differ by origin, and every one says so (`Vary`), lest
//! a cache gives one page what was meant for another.

use http::header::{
    ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, HeaderMap, HeaderValue, ORIGIN,
};

/// Request headers that every page may send.
pub const HEADERS: &str = "authorization, content-type, x-api-key, x-request-id";

/// Response headers that a page may read, beside those that it always may.
pub const EXPOSED: &str = "x-request-id, request-id, retry-after, x-ratelimit-limit-requests, \
    x-ratelimit-limit-tokens, x-ratelimit-remaining-requests, x-ratelimit-remaining-tokens, \
    x-ratelimit-reset-requests, x-ratelimit-reset-tokens";

/// Methods that a page may use whatever the routes say; those of routes come beside them.
pub const METHODS: [&str; 3] = ["GET", "HEAD", "POST"];

/// How long a browser need not ask again, in seconds: the most that Chromium remembers.
pub const MAX_AGE: &str = "7200";

/// Longest list of headers that a preflight may ask for, in bytes.
const ASKED_MAX: usize = 1024;

/// The origins that are let in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cors {
    /// As browsers write them, in lower case. Empty = none, and answers are the same for all.
    pub origins: Vec<String>,
    /// The methods that pages may use, as they are told.
    pub methods: String,
}

/// What a preflight asks for, as it is granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    /// Value of `Access-Control-Allow-Headers`.
    pub headers: String,
}

impl Cors {
    /// Whether answers may differ by origin.
    pub fn is_on(&self) -> bool {
        !self.origins.is_empty()
    }

    /// The origin of a request, if it is let in.
    pub fn origin<'a>(&self, headers: &'a HeaderMap) -> Option<&'a HeaderValue> {
        if !self.is_on() {
            return None;
        }
        let mut origins = headers.get_all(ORIGIN).iter();
        match (origins.next(), origins.next()) {
            (Some(origin), None) => {
                self.origins.iter().any(|known| origin == known.as_str()).then_some(origin)
            }
            _ => None,
        }
    }

    /// What a preflight of an origin that is let in is granted; `None` if the request is none.
    pub fn preflight(&self, method: &str, headers: &HeaderMap) -> Option<Granted> {
        if method != "OPTIONS" || !headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
            return None;
        }
        self.origin(headers)?;
        Some(Granted { headers: granted(headers) })
    }
}

/// The headers that every page may send, and those that this one asks for: clients of vendors have many, and a
/// page that is let in could do no more with them than any other client.
fn granted(headers: &HeaderMap) -> String {
    let asked = headers.get(ACCESS_CONTROL_REQUEST_HEADERS).and_then(|asked| asked.to_str().ok());
    let is_list = |asked: &&str| {
        asked.len() <= ASKED_MAX
            && asked.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_, ".contains(&byte))
    };
    let asked = asked.filter(is_list).unwrap_or_default();
    let is_new =
        |name: &&str| !name.is_empty() && !HEADERS.split(", ").any(|one| one.eq_ignore_ascii_case(name));
    let others = asked.split(',').map(str::trim).filter(is_new);
    others.fold(HEADERS.to_owned(), |all, name| all + ", " + name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cors() -> Cors {
        Cors { origins: vec!["https://a.example".into(), "http://localhost:3000".into()], ..Cors::default() }
    }

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn only_an_origin_of_the_list_is_let_in_and_only_one_at_a_time() {
        let origin = |lines: &[&str]| {
            let lines: Vec<_> = lines.iter().map(|line| ("origin", *line)).collect();
            cors().origin(&headers(&lines)).is_some()
        };
        assert!(origin(&["https://a.example"]) && origin(&["http://localhost:3000"]));
        for other in [
            "https://a.example.evil.test",
            "https://a.exampl",
            "http://a.example",
            "https://a.example:8443",
            "https://sub.a.example",
            "HTTPS://A.EXAMPLE",
            "null",
            "*",
            "",
        ] {
            assert!(!origin(&[other]), "{other}");
        }
        assert!(!origin(&[]) && !origin(&["https://a.example", "https://a.example"]));
        let none = Cors::default();
        assert!(!none.is_on() && none.origin(&headers(&[("origin", "null")])).is_none());
    }

    #[test]
    fn a_preflight_is_granted_what_it_asks_for_beside_what_all_may() {
        let ask = |asked: &str| {
            let lines = [
                ("origin", "https://a.example"),
                ("access-control-request-method", "POST"),
                ("access-control-request-headers", asked),
            ];
            cors().preflight("OPTIONS", &headers(&lines)).unwrap().headers
        };
        assert_eq!(ask("authorization,content-type"), HEADERS);
        assert_eq!(ask("Authorization, x-stainless-os,,x-b"), format!("{HEADERS}, x-stainless-os, x-b"));
        assert_eq!(ask("x-a\"; evil"), HEADERS);
        assert_eq!(ask(&"x".repeat(ASKED_MAX + 1)), HEADERS);
    }

    #[test]
    fn a_request_of_another_kind_or_origin_is_no_preflight() {
        let lines = [("origin", "https://a.example"), ("access-control-request-method", "POST")];
        assert!(cors().preflight("OPTIONS", &headers(&lines)).is_some());
        assert!(cors().preflight("POST", &headers(&lines)).is_none());
        assert!(cors().preflight("OPTIONS", &headers(&lines[..1])).is_none());
        assert!(cors().preflight("OPTIONS", &headers(&lines[1..])).is_none());
        let other = [("origin", "https://b.example"), lines[1]];
        assert!(cors().preflight("OPTIONS", &headers(&other)).is_none());
    }
}
