//! `clusters.*.auth`: what a backend is sent as credentials.

use std::path::Path;

use http::HeaderName;

use crate::config::environment::Environment;
use crate::config::expand;
use crate::config::file::text_of;
use crate::config::place::{At, shown};
use crate::config::raw::{self, Field};
use crate::config::{Auth, Credential};
use crate::header_rules::{HOP_BY_HOP, OURS};
use crate::secret::Secret;

/// Headers of the body, which say how it is to be read.
const OF_THE_BODY: [&str; 3] = ["accept-encoding", "content-encoding", "content-type"];

const FORMS: &str = "write { bearer_env: NAME }, { bearer_file: PATH }, { header: x-api-key, env: NAME } or { header: x-api-key, file: PATH }";

/// What the cluster sends. With keys the client's credential is a key of this gateway, and stays here.
pub(super) fn auth(raw: &raw::Cluster, at: &At<'_>, has_keys: bool, environment: &Environment) -> Auth {
    match raw.auth.get() {
        None if has_keys => Auth::None,
        None => Auth::Pass,
        Some(raw::Auth::Word(word)) => match word.as_str() {
            "pass" if has_keys => {
                at.problem(
                    "would hand the clients' keys to the backends",
                    "leave it out, which is none with keys, or name a credential of its own",
                );
                Auth::None
            }
            "pass" => Auth::Pass,
            "none" => Auth::None,
            // It may be the secret itself, and is not repeated.
            _ => {
                let fix = format!("write pass or none, or {}", FORMS.trim_start_matches("write "));
                at.problem("neither pass nor none; a secret does not belong into this file", fix);
                Auth::None
            }
        },
        // The default matters only beside a problem, which stops the start.
        Some(raw::Auth::Source(source)) => own(source, at, environment).map_or(Auth::None, Auth::Own),
    }
}

/// The gateway's own credential. `None` has been told.
fn own(raw: &raw::AuthSource, at: &At<'_>, environment: &Environment) -> Option<Credential> {
    let written = [&raw.bearer_env, &raw.bearer_file, &raw.header, &raw.env, &raw.file];
    let [bearer_env, bearer_file, own_header, env, file] = written.map(|field| !field.is_absent());
    let (header, source) = match [bearer_env || bearer_file, own_header, env, file] {
        [true, false, false, false] if bearer_env != bearer_file => {
            let (field, key) =
                if bearer_env { (&raw.bearer_env, "bearer_env") } else { (&raw.bearer_file, "bearer_file") };
            (http::header::AUTHORIZATION, found(field, &at.key(key), bearer_env, environment))
        }
        [false, true, env, file] if env != file => {
            let name = header(raw.header.get()?, &at.key("header"))?;
            let (field, key) = if env { (&raw.env, "env") } else { (&raw.file, "file") };
            (name, found(field, &at.key(key), env, environment))
        }
        _ => {
            at.problem("a credential comes from one place", FORMS);
            return None;
        }
    };
    let (text, source, at) = source?;
    let value = if own_header { Secret::header(&text) } else { Secret::bearer(&text) };
    let value = value.map_err(|bad| at.problem_as_is(format!("{source} holds no credential: {bad}"), ""));
    Some(Credential { header, value: value.ok()? })
}

/// A text, what to call its source, and where the file says so.
type Found<'t> = Option<(String, String, At<'t>)>;

fn found<'t>(field: &Field<String>, at: &At<'t>, is_variable: bool, environment: &Environment) -> Found<'t> {
    let name = field.get()?;
    let (text, source) =
        if is_variable { variable(name, at, environment) } else { file(name, at, environment) }?;
    Some((text, source, at.clone()))
}

/// Whether the header means something else on the way to a backend. A proxy's credential is one.
fn is_taken(name: &str) -> bool {
    (HOP_BY_HOP.contains(&name) && name != "proxy-authorization")
        || OURS.contains(&name)
        || OF_THE_BODY.contains(&name)
}

fn header(name: &str, at: &At<'_>) -> Option<HeaderName> {
    match HeaderName::from_bytes(name.as_bytes()) {
        Ok(header) if is_taken(header.as_str()) => {
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

/// The value of a variable, and what to call it.
pub(super) fn variable(name: &str, at: &At<'_>, environment: &Environment) -> Option<(String, String)> {
    // Whoever writes the token itself here by mistake must not find it in the log.
    if !expand::is_name(name) {
        at.problem("no name of an environment variable", "write a name of letters, digits and \"_\"");
        return None;
    }
    let source = format!("the environment variable {}", shown(name));
    let reason = match (environment.variable)(name) {
        Ok(value) => return Some((value, source)),
        Err(std::env::VarError::NotPresent) => "is not set",
        Err(std::env::VarError::NotUnicode(_)) => "is no text",
    };
    at.problem(format!("{source} {reason}"), "set it in the environment of the gateway, and of check");
    None
}

/// The token of the admin listener, from its file.
pub(super) fn token(path: &str, at: &At<'_>, environment: &Environment) -> Option<Secret> {
    let (text, source) = file(path, at, environment)?;
    let token = Secret::bearer(&text);
    token.map_err(|bad| at.problem_as_is(format!("{source} holds no token: {bad}"), "")).ok()
}

/// The text of a file, and what to call it.
pub(super) fn file(path: &str, at: &At<'_>, environment: &Environment) -> Option<(String, String)> {
    let source = format!("the file {}", shown(path));
    let text = (environment.file)(Path::new(path)).and_then(text_of);
    let text = text.map_err(|reason| at.problem(format!("{source} {reason}"), "")).ok()?;
    Some((text, source))
}
