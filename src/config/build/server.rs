//! The `server` and `log` parts.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use super::{auth, trusted, value};
use crate::config::environment::Environment;
use crate::config::place::At;
use crate::config::raw;
use crate::config::units::{Count, OrAuto, OrNever};
use crate::config::{Address, Admin, AdminListen, Listen, RequestLimits, Server, Shutdown, Transport};

/// Most worker threads: more than any machine has use for.
const THREADS_MAX: u64 = 1024;
/// Most client connections: more than a process has descriptors for.
const CONNECTIONS_MAX: u64 = 1_000_000;
/// Most idle connections: more than a process has descriptors for.
const IDLE_MAX: u64 = 1_000_000;
/// Largest request body that can be allowed. It is held whole in memory.
pub(super) const BODY_BYTES_MAX: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

/// The part that is fixed from start to exit.
pub(super) fn server(raw: &raw::Server, at: &At<'_>, environment: &Environment) -> Server {
    let (request, pool) = (raw::Request::default(), raw::Pool::default());
    let pool = raw.pool.get().unwrap_or(&pool);
    let max_idle = pool.max_idle.get().map_or(1024, |count| count.0);
    let memory_bytes = memory_bytes(raw, &at.key("memory"), environment);
    Server {
        listen: super::listen::listen(raw, &at.key("listen")),
        admin: admin(raw, &at.key("admin"), environment),
        threads: threads(raw, &at.key("threads"), environment),
        memory_bytes,
        connections_max: connections_max(raw, &at.key("connections").key("max")),
        connections_per_ip: connections_per_ip(raw, &at.key("connections").key("per_ip")),
        trusted_proxies: trusted::proxies(&raw.trusted_proxies, &at.key("trusted_proxies")),
        request: limits(raw.request.get().unwrap_or(&request), &at.key("request"), memory_bytes),
        shutdown: shutdown(raw),
        upgrade_socket: super::listen::upgrade_socket(&raw.upgrade_socket, &at.key("upgrade_socket")),
        pool_max_idle: whole(value::within(max_idle, &at.key("pool").key("max_idle"), 1..=IDLE_MAX)),
    }
}

fn connections_max(raw: &raw::Server, at: &At<'_>) -> Option<usize> {
    let max = raw.connections.get().and_then(|connections| connections.max.get());
    let max = match max {
        Some(OrNever::Never) => return None,
        Some(OrNever::Set(count)) => count.0,
        None => 20_000,
    };
    Some(whole(value::within(max, at, 1..=CONNECTIONS_MAX)))
}

fn connections_per_ip(raw: &raw::Server, at: &At<'_>) -> Option<usize> {
    match raw.connections.get().and_then(|connections| connections.per_ip.get()) {
        None | Some(OrNever::Never) => None,
        Some(OrNever::Set(count)) => Some(whole(value::within(count.0, at, 1..=CONNECTIONS_MAX))),
    }
}

fn whole(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn admin(raw: &raw::Server, at: &At<'_>, environment: &Environment) -> Admin {
    let empty = raw::Admin::default();
    let raw = raw.admin.get().unwrap_or(&empty);
    let file = raw.token_file.get();
    let at_file = at.key("token_file");
    let token = file.and_then(|path| auth::token(path, &at_file, environment));
    let listen = raw.listen.get().map(|text| admin_listen(text, file.is_some(), &at.key("listen")));
    let default = AdminListen::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 9090)));
    Admin { listen: listen.flatten().unwrap_or(default), token_file: file.map(Into::into), token }
}

fn admin_listen(text: &str, has_token: bool, at: &At<'_>) -> Option<AdminListen> {
    if let Some(path) = text.strip_prefix("unix:") {
        if !path.starts_with('/') {
            at.problem("a unix socket has a path from the root", "write unix:/run/streamgate/admin.sock");
        }
        return Some(AdminListen::Unix(path.into()));
    }
    let address = value::address(text, at)?;
    if !address.ip().is_loopback() && !has_token {
        at.problem(
            format!("{address} is not a loopback address: whoever reaches it could drain backends"),
            format!("write 127.0.0.1:{}, or name a file with a token in token_file", address.port()),
        );
    }
    Some(AdminListen::Tcp(address))
}

fn threads(raw: &raw::Server, at: &At<'_>, environment: &Environment) -> usize {
    match raw.threads.get() {
        None | Some(OrAuto::Auto) => environment.cores.max(1),
        Some(OrAuto::Set(Count(threads))) => whole(value::within(*threads, at, 1..=THREADS_MAX)),
    }
}

/// Least memory that can be set: what the process itself has, and a few clients.
const MEMORY_MIN: u64 = 64 * MIB;

fn memory_bytes(raw: &raw::Server, at: &At<'_>, environment: &Environment) -> u64 {
    match raw.memory.get() {
        None | Some(OrAuto::Auto) => environment.memory_bytes,
        Some(OrAuto::Set(size)) if size.0 < MEMORY_MIN => {
            at.problem(format!("{size} is less than the gateway needs for itself"), "write 64MiB or more");
            MEMORY_MIN
        }
        Some(OrAuto::Set(size)) => size.0,
    }
}

/// Largest head that can be allowed: Pingora refuses more (1 MiB).
const HEADER_BYTES_MAX: u64 = 1 << 20;

/// Most header lines that can be allowed: Pingora refuses more.
const HEADER_COUNT_MAX: u64 = 256;

fn limits(raw: &raw::Request, at: &At<'_>, memory_bytes: u64) -> RequestLimits {
    let body_bytes = value::size(&raw.body_bytes, &at.key("body_bytes"), 32 * MIB, 1..=BODY_BYTES_MAX);
    let buffered_bytes = match raw.buffered_bytes.get() {
        None | Some(OrAuto::Auto) => memory_bytes / 4,
        Some(OrAuto::Set(size)) => {
            if size.0 < body_bytes {
                at.key("buffered_bytes").problem(
                    format!("{size} is less than one body may have"),
                    "write more, or lower server.request.body_bytes",
                );
            }
            size.0
        }
    };
    let header_bytes =
        value::size(&raw.header_bytes, &at.key("header_bytes"), 32 << 10, 1024..=HEADER_BYTES_MAX);
    let uri_bytes = value::size(&raw.uri_bytes, &at.key("uri_bytes"), 8 << 10, 64..=HEADER_BYTES_MAX);
    let header_count = raw.header_count.get().map_or(100, |count| count.0);
    let header_count = value::within(header_count, &at.key("header_count"), 10..=HEADER_COUNT_MAX);
    RequestLimits {
        uri_bytes: usize::try_from(uri_bytes).unwrap_or(usize::MAX),
        header_bytes: usize::try_from(header_bytes).unwrap_or(usize::MAX),
        header_count: usize::try_from(header_count).unwrap_or(usize::MAX),
        header_timeout: value::positive(
            &raw.header_timeout,
            &at.key("header_timeout"),
            Duration::from_secs(10),
        ),
        body_bytes,
        body_timeout: value::positive(&raw.body_timeout, &at.key("body_timeout"), Duration::from_secs(60)),
        keepalive: value::positive(&raw.keepalive, &at.key("keepalive"), Duration::from_secs(75)),
        buffered_bytes,
    }
}

fn shutdown(raw: &raw::Server) -> Shutdown {
    let empty = raw::Shutdown::default();
    let raw = raw.shutdown.get().unwrap_or(&empty);
    Shutdown {
        lame_duck: value::duration(&raw.lame_duck, Duration::from_secs(5)),
        drain: value::duration(&raw.drain, Duration::from_secs(600)),
    }
}

/// Warns of an open gateway: no keys, and others than this machine reach it.
pub(super) fn warn_open(server: &Server, root: &At<'_>) {
    if let Some((_, open)) = reachable(server, root, |_| true) {
        root.key("keys").warning(
            format!("no keys: everyone who reaches {open} may use the engines"),
            "name the clients in keys, listen on a loopback address, or let only trusted networks reach it",
        );
    }
}

/// Warns of keys that anybody on the way can read: over plain HTTP, from other machines, with no proxy in front that
/// is known to have TLS for us. What is only sent to https has been sent with its key by then, yet only once.
pub(super) fn warn_readable(server: &Server, root: &At<'_>) {
    if !server.trusted_proxies.networks.is_empty() {
        return;
    }
    let is_plain =
        |listen: &Listen| !matches!(listen.transport, Transport::Tls(_)) && listen.redirect_https.is_none();
    if let Some((at, open)) = reachable(server, root, is_plain) {
        at.warning(
            format!("keys can be read on their way: {open} is plain HTTP"),
            "give the listener tls, or put a proxy that has TLS in front and name it in server.trusted_proxies",
        );
    }
}

/// The first listener of a kind that other machines reach: its address in the file, and how it may be called.
fn reachable<'t>(
    server: &Server,
    root: &At<'t>,
    is_kind: impl Fn(&Listen) -> bool,
) -> Option<(At<'t>, String)> {
    let open = |listen: &Listen| match listen.address {
        Address::Tcp(address) if !address.ip().is_loopback() && is_kind(listen) => Some(address),
        Address::Tcp(_) | Address::Unix { .. } => None,
    };
    let (i, address) = server.listen.iter().enumerate().find_map(|(i, listen)| Some((i, open(listen)?)))?;
    let at = root.key("server").key("listen").index(i).key("address");
    let is_given = at.node().is_some_and(|node| node.given().is_some());
    let called = if is_given { at.path() } else { address.to_string() };
    Some((at, called))
}
