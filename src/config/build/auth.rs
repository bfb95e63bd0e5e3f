//! `clusters.*.auth`: what a backend is sent as credentials.

use std::path::Path;

use http::HeaderName;

use crate::config::environment::Environment;
use crate::config::expand;
use crate::config::place::{At, shown};
use crate::config::raw::{self, Field};
use crate::config::{Auth, Credential};
use crate::secret::{BadSecret, Secret};

/// Headers that mean something else on the way to a backend.
const TAKEN: [&str; 15] = [
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-forwarded-for",
    "x-request-id",
];

const FORMS: &str = "write { bearer_env: NAME }, { bearer_file: PATH }, { header: x-api-key, env: NAME } or { header: x-api-key, file: PATH }";

/// What the cluster sends.
pub(super) fn auth(raw: &raw::Cluster, at: &At<'_>, environment: &Environment) -> Auth {
    match raw.auth.get() {
        None => Auth::Pass,
        Some(raw::Auth::Word(word)) => match word.as_str() {
            "pass" => Auth::Pass,
            "none" => Auth::None,
            other => {
                let what = format!("{} is not known here", shown(other));
                at.problem(what, format!("write pass or none, or {}", FORMS.trim_start_matches("write ")));
                Auth::None
            }
        },
        // The default matters only beside a problem, which stops the start.
        Some(raw::Auth::Source(source)) => own(source, at, environment).map_or(Auth::None, Auth::Own),
    }
}

/// The gateway's own credential. `None` has been told.
fn own(raw: &raw::AuthSource, at: &At<'_>, environment: &Environment) -> Option<Credential> {
    let text = |field: &Field<String>, key| field.get().map(|text| (text.clone(), at.key(key)));
    let written = [&raw.bearer_env, &raw.bearer_file, &raw.header, &raw.env, &raw.file];
    let authorization = http::header::AUTHORIZATION;
    let (header, source, make): (_, _, fn(&str) -> Result<Secret, BadSecret>) =
        match written.map(|field| !field.is_absent()) {
            [true, false, false, false, false] => {
                (authorization, variable(&text(&raw.bearer_env, "bearer_env")?, environment), Secret::bearer)
            }
            [false, true, false, false, false] => {
                (authorization, file(&text(&raw.bearer_file, "bearer_file")?, environment), Secret::bearer)
            }
            [false, false, true, true, false] => (
                header(&text(&raw.header, "header")?)?,
                variable(&text(&raw.env, "env")?, environment),
                Secret::header,
            ),
            [false, false, true, false, true] => (
                header(&text(&raw.header, "header")?)?,
                file(&text(&raw.file, "file")?, environment),
                Secret::header,
            ),
            _ => {
                at.problem("a credential comes from one place", FORMS);
                return None;
            }
        };
    let (value, source, at) = source?;
    match make(&value) {
        Ok(value) => Some(Credential { header, value }),
        Err(bad) => {
            at.problem_as_is(format!("{source} holds no credential: {bad}"), "");
            None
        }
    }
}

fn header((name, at): &(String, At<'_>)) -> Option<HeaderName> {
    match HeaderName::from_bytes(name.as_bytes()) {
        Ok(header) if TAKEN.contains(&header.as_str()) => {
            at.problem(format!("the header {header} cannot carry a credential"), "as in x-api-key");
            None
        }
        Ok(header) => Some(header),
        Err(_) => {
            at.problem(format!("{} is no header name", shown(name)), "as in x-api-key");
            None
        }
    }
}

/// A value, and what to call its source.
type Found<'t> = Option<(String, String, At<'t>)>;

fn variable<'t>((name, at): &(String, At<'t>), environment: &Environment) -> Found<'t> {
    // Whoever writes the token itself here by mistake must not find it in the log.
    if !expand::is_name(name) {
        at.problem("no name of an environment variable", "write a name of letters, digits and \"_\"");
        return None;
    }
    let source = format!("the environment variable {}", shown(name));
    let reason = match (environment.variable)(name) {
        Ok(value) => return Some((value, source, at.clone())),
        Err(std::env::VarError::NotPresent) => "is not set",
        Err(std::env::VarError::NotUnicode(_)) => "is no text",
    };
    at.problem(format!("{source} {reason}"), "set it in the environment of the gateway, and of check");
    None
}

/// An editor ends the last line of a file: that line end is no part of the credential.
fn file<'t>((path, at): &(String, At<'t>), environment: &Environment) -> Found<'t> {
    let source = format!("the file {}", shown(path));
    let reason = match (environment.file)(Path::new(path)).map(String::from_utf8) {
        Ok(Ok(mut text)) => {
            if text.ends_with('\n') {
                text.pop();
                if text.ends_with('\r') {
                    text.pop();
                }
            }
            return Some((text, source, at.clone()));
        }
        Ok(Err(_)) => "is no text".to_owned(),
        Err(reason) => reason,
    };
    at.problem(format!("{source} {reason}"), "");
    None
}
