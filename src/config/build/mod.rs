//! From what is written to what is meant: defaults, overrides and every cross check.
//!
//! A setting that is wrong is noted and replaced by its default, so that reading goes on and finds
//! the rest. The result only counts if nothing was noted.

mod addresses;
mod auth;
mod cluster;
mod cors;
mod fleet;
mod guard;
mod headers;
mod keys;
mod listen;
mod log;
mod loops;
mod names;
mod reach;
mod respond;
mod route;
mod server;
mod session;
mod sim;
mod store;
mod stream;
mod telemetry;
mod tls;
mod trusted;
mod url;
mod value;

use super::environment::Environment;
use super::place::At;
use super::{Config, raw};
use crate::openai::Wanted;

/// Builds the typed configuration. Problems and warnings go to the report behind `at`.
pub(super) fn config(file: &raw::File, at: &At<'_>, environment: &Environment) -> Config {
    let empty = raw::Server::default();
    let server = server::server(file.server.get().unwrap_or(&empty), &at.key("server"), environment);
    let stream = stream::stream(file.stream.get(), &at.key("stream"), &stream::DEFAULT);
    stream::warn_silent_finish(&stream, &at.key("stream"));
    let timeouts = stream::timeouts(file.timeouts.get(), &at.key("timeouts"), &stream::TIMEOUTS);
    let has_keys = keys::any(file);
    let clusters = cluster::clusters(file, &at.key("clusters"), &timeouts, has_keys, environment);
    let above = route::Above { server: &server, stream: &stream, timeouts: &timeouts, clusters: &clusters };
    let session = session::session_map(file.session.get(), &at.key("session"));
    // The pointers of the session come first, so that their numbers are the same in both.
    let mut wanted = Wanted::from(session.pointers.clone());
    guard::want_salts(&clusters, &mut wanted);
    let routes = route::routes(file, &at.key("routes"), &above, &mut wanted);
    route::warn_unused(&routes, &clusters, &at.key("clusters"));
    route::warn_doubled(&routes, &clusters, &at.key("clusters"));
    loops::warn(&server.listen, &clusters, &at.key("clusters"));
    let clusters = clusters.into_iter().map(|resolved| resolved.cluster).collect();
    let cors = cors::cors(file.cors.get(), &routes, &at.key("cors"));
    let sim = sim::engines(file, &at.key("sim"));
    addresses::addresses(&server, &sim, at);
    if has_keys {
        server::warn_readable(&server, at);
    } else {
        server::warn_open(&server, at);
    }
    let keys = keys::keys(file, &at.key("keys"));
    let limits = keys::limits(file.limits.get(), &at.key("limits"), environment);
    Config {
        log: log::log(file.log.get(), &at.key("log")),
        telemetry: telemetry::telemetry(file.telemetry.get(), &at.key("telemetry")),
        server,
        clusters,
        routes,
        session,
        cors,
        wanted,
        keys,
        limits,
        sim,
    }
}
