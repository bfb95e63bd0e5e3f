//! `limits.store` and the settings beside it. What is written may hold a password and is never repeated.

use std::path::PathBuf;

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo};

use super::{auth, tls};
use crate::config::environment::Environment;
use crate::config::place::At;
use crate::config::raw;
use crate::config::{Password, Redis, Store};
use crate::secret::Secret;

const FORM: &str = "write memory, or redis://HOST:PORT, or rediss://HOST:PORT with TLS";
const WITH_PASSWORD: &str =
    "name where it is, as in store_password_env: REDIS_PASSWORD, or store_password_file: PATH";

/// The schemes, and whether they mean TLS.
const SCHEMES: [(&str, bool); 4] =
    [("redis://", false), ("valkey://", false), ("rediss://", true), ("valkeys://", true)];

/// Where limits are kept.
pub(super) fn store(raw: &raw::Limits, at: &At<'_>, environment: &Environment) -> Store {
    match raw.store.get().map(String::as_str) {
        None | Some("memory") => {
            let written = [
                ("store_password_env", &raw.store_password_env),
                ("store_password_file", &raw.store_password_file),
                ("store_ca", &raw.store_ca),
            ];
            for (key, _) in written.into_iter().filter(|(_, field)| !field.is_absent()) {
                at.key(key).problem("there is no Redis that it could be for", "leave it out, or write store");
            }
            Store::Memory
        }
        // The default matters only beside a problem, which stops the start.
        Some(url) => redis(url, raw, at, environment).map_or(Store::Memory, Store::Redis),
    }
}

/// `None` has been told.
fn redis(url: &str, raw: &raw::Limits, at: &At<'_>, environment: &Environment) -> Option<Redis> {
    let here = at.key("store");
    let written = here.node().and_then(|node| node.given()).map_or(url, |given| given.written.as_str());
    if password_in(written).is_some_and(|password| !password.starts_with("${")) {
        here.problem_as_is("a password stands in the file", WITH_PASSWORD);
        return None;
    }
    let Some((host, port, there, has_tls)) = parts(url) else {
        let fix = if password_in(written).is_some() {
            "encode in the password what a URL cannot hold, or write store_password_env"
        } else {
            FORM
        };
        here.problem_as_is("is no place to keep limits in", fix);
        return None;
    };
    let ca = raw.store_ca.get().map(PathBuf::from);
    if let Some(path) = raw.store_ca.get() {
        let at = at.key("store_ca");
        if !has_tls {
            at.problem("the store is not reached over TLS", "leave it out, or write rediss:// in store");
        } else {
            tls::authorities(path, &at, environment);
        }
    }
    let password = password(there.password(), raw, at, environment)?;
    let user = there.username().map(str::to_owned);
    if user.is_some() && password == Password::None {
        here.problem_as_is("a user comes with a password", WITH_PASSWORD);
        return None;
    }
    let tls = has_tls.then(|| tls::server_name(&host));
    Some(Redis { tls, host, port, database: there.db(), user, password, ca })
}

/// What a URL says: host, port, who we are there, and whether TLS is spoken.
fn parts(url: &str) -> Option<(String, u16, RedisConnectionInfo, bool)> {
    let (rest, has_tls) =
        SCHEMES.iter().find_map(|(scheme, has_tls)| Some((url.strip_prefix(scheme)?, *has_tls)))?;
    // Some clients take "#insecure" there, and nothing that we know may stand there.
    if rest.contains(['?', '#']) {
        return None;
    }
    let info: ConnectionInfo = format!("redis://{rest}").into_connection_info().ok()?;
    match info.addr() {
        ConnectionAddr::Tcp(host, port) => {
            Some((host.clone(), *port, info.redis_settings().clone(), has_tls))
        }
        _ => None,
    }
}

/// The one place that the password comes from. `None` has been told.
fn password(
    in_url: Option<&str>,
    raw: &raw::Limits,
    at: &At<'_>,
    environment: &Environment,
) -> Option<Password> {
    let (text, source, at, found) =
        match (in_url, raw.store_password_env.get(), raw.store_password_file.get()) {
            (None, None, None) => return Some(Password::None),
            (Some(text), None, None) => (text.to_owned(), "the URL".to_owned(), at.key("store"), None),
            (None, Some(name), None) => {
                let at = at.key("store_password_env");
                let (text, source) = auth::variable(name, &at, environment)?;
                (text, source, at, None)
            }
            (None, None, Some(path)) => {
                let at = at.key("store_password_file");
                let (text, source) = auth::file(path, &at, environment)?;
                (text, source, at, Some(Password::File(path.into())))
            }
            _ => {
                at.key("store").problem_as_is("a password comes from one place", WITH_PASSWORD);
                return None;
            }
        };
    let secret = Secret::header(&text);
    let secret =
        secret.map_err(|bad| at.problem_as_is(format!("{source} holds no password: {bad}"), "")).ok()?;
    Some(found.unwrap_or(Password::Given(secret)))
}

/// The password of a URL.
fn password_in(url: &str) -> Option<&str> {
    let authority = url.split_once("://")?.1.split('/').next()?;
    let (user, _) = authority.rsplit_once('@')?;
    Some(user.split_once(':').map_or("", |(_, password)| password)).filter(|password| !password.is_empty())
}
