//! From what is written to what is meant: defaults, overrides and every cross check.
//!
//! A setting that is wrong is noted and replaced by its default, so that reading goes on and finds
//! the rest. The result only counts if nothing was noted.

mod auth;
mod cluster;
mod headers;
mod listen;
mod names;
mod route;
mod server;
mod session;
mod sim;
mod stream;
mod tls;
mod url;
mod value;

use super::environment::Environment;
use super::place::At;
use super::{Config, raw};

/// Builds the typed configuration. Problems and warnings go to the report behind `at`.
pub(super) fn config(file: &raw::File, at: &At<'_>, environment: &Environment) -> Config {
    let empty = raw::Server::default();
    let server = server::server(file.server.get().unwrap_or(&empty), &at.key("server"), environment);
    let stream = stream::stream(file.stream.get(), &at.key("stream"), &stream::DEFAULT);
    stream::warn_silent_finish(&stream, &at.key("stream"));
    let timeouts = stream::timeouts(file.timeouts.get(), &at.key("timeouts"), &stream::TIMEOUTS);
    let clusters = cluster::clusters(file, &at.key("clusters"), &timeouts, environment);
    let above = route::Above { server: &server, stream: &stream, timeouts: &timeouts, clusters: &clusters };
    let routes = route::routes(file, &at.key("routes"), &above);
    route::warn_unused(&routes, &clusters, &at.key("clusters"));
    route::warn_doubled(&routes, &clusters, &at.key("clusters"));
    let session = session::session_map(file.session.get(), &at.key("session"));
    let clusters = clusters.into_iter().map(|resolved| resolved.cluster).collect();
    let sim = sim::engines(file, &at.key("sim"));
    server::addresses(&server, &sim, at);
    if file.keys.is_absent() || file.keys.get().is_some_and(Vec::is_empty) {
        server::warn_open(&server, at);
    }
    Config { log: server::log(file.log.get(), &at.key("log")), server, clusters, routes, session, sim }
}
