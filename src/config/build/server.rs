//! The `server` and `log` parts.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use super::value;
use crate::config::environment::Environment;
use crate::config::place::At;
use crate::config::raw;
use crate::config::units::{Count, OrAuto, OrNever};
use crate::config::{AccessTarget, Log, LogFormat, RequestLimits, Server, Shutdown};
use crate::sim;

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
    Server {
        listen: super::listen::listen(raw, &at.key("listen")),
        admin: admin(raw, &at.key("admin").key("listen")),
        threads: threads(raw, &at.key("threads"), environment),
        connections_max: connections_max(raw, &at.key("connections").key("max")),
        request: limits(raw.request.get().unwrap_or(&request), &at.key("request"), environment),
        shutdown: shutdown(raw),
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

fn whole(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn admin(raw: &raw::Server, at: &At<'_>) -> SocketAddr {
    let default = SocketAddr::from((Ipv4Addr::LOCALHOST, 9090));
    let Some(text) = raw.admin.get().and_then(|admin| admin.listen.get()) else { return default };
    let address = value::address(text, at).unwrap_or(default);
    if !address.ip().is_loopback() {
        at.problem(
            format!("{address} is not a loopback address: whoever reaches it could drain backends"),
            format!("write 127.0.0.1:{}; a token for other addresses is not available yet", address.port()),
        );
    }
    address
}

fn threads(raw: &raw::Server, at: &At<'_>, environment: &Environment) -> usize {
    match raw.threads.get() {
        None | Some(OrAuto::Auto) => environment.cores.max(1),
        Some(OrAuto::Set(Count(threads))) => whole(value::within(*threads, at, 1..=THREADS_MAX)),
    }
}

/// Largest head that can be allowed: Pingora refuses more (1 MiB).
const HEADER_BYTES_MAX: u64 = 1 << 20;

/// Most header lines that can be allowed: Pingora refuses more.
const HEADER_COUNT_MAX: u64 = 256;

fn limits(raw: &raw::Request, at: &At<'_>, environment: &Environment) -> RequestLimits {
    let body_bytes = value::size(&raw.body_bytes, &at.key("body_bytes"), 32 * MIB, 1..=BODY_BYTES_MAX);
    let buffered_bytes = match raw.buffered_bytes.get() {
        None | Some(OrAuto::Auto) => environment.memory_bytes / 4,
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

/// Where log lines go.
pub(super) fn log(raw: Option<&raw::Log>, at: &At<'_>) -> Log {
    let empty = raw::Log::default();
    let raw = raw.unwrap_or(&empty);
    let level = match raw.level.get() {
        None | Some(raw::Level::Info) => log::LevelFilter::Info,
        Some(raw::Level::Off) => log::LevelFilter::Off,
        Some(raw::Level::Error) => log::LevelFilter::Error,
        Some(raw::Level::Warn) => log::LevelFilter::Warn,
        Some(raw::Level::Debug) => log::LevelFilter::Debug,
        Some(raw::Level::Trace) => log::LevelFilter::Trace,
    };
    let format = match raw.format.get() {
        None | Some(raw::Format::Text) => LogFormat::Text,
        Some(raw::Format::Json) => LogFormat::Json,
    };
    let access = match raw.access.get().map(String::as_str) {
        None | Some("stdout") => AccessTarget::Stdout,
        Some("stderr") => AccessTarget::Stderr,
        Some("none") => AccessTarget::None,
        Some(path) => {
            // Without a slash it is more likely a misspelt word than a file in the working directory.
            if !path.contains('/') {
                at.key("access").problem(
                    format!("{} is not known here", crate::config::place::shown(path)),
                    "write stdout, stderr, none, or a path with a \"/\" in it, as in ./access.log",
                );
            }
            AccessTarget::File(path.into())
        }
    };
    Log { level, format, access }
}

/// Notes addresses that two listeners want.
pub(super) fn addresses(server: &Server, sims: &[sim::Settings], root: &At<'_>) {
    let (part, engines) = (root.key("server"), root.key("sim"));
    let clients = part.key("listen");
    let mut all: Vec<(SocketAddr, At<'_>)> = server
        .listen
        .iter()
        .enumerate()
        .map(|(i, listen)| (listen.address, clients.index(i).key("address")))
        .collect();
    all.push((server.admin, part.key("admin").key("listen")));
    all.extend(sims.iter().enumerate().map(|(i, sim)| (sim.listen, engines.index(i).key("listen"))));
    let mut taken: std::collections::HashMap<u16, Vec<(SocketAddr, String)>> =
        std::collections::HashMap::new();
    for (address, at) in all {
        let same_port = taken.entry(address.port()).or_default();
        if address.port() != 0
            && let Some((_, first)) = same_port.iter().find(|(other, _)| collide(address, *other))
        {
            at.problem(format!("{address} is taken already: {first}"), "choose another port");
        }
        same_port.push((address, at.path()));
    }
}

/// Whether two listeners on one port would get in each other's way: the unspecified address stands
/// for all of its family, and Linux's `[::]` for those of IPv4 too.
fn collide(a: SocketAddr, b: SocketAddr) -> bool {
    let covers = |wide: SocketAddr, narrow: SocketAddr| {
        wide.ip().is_unspecified() && (wide.is_ipv6() || narrow.is_ipv4())
    };
    a.ip() == b.ip() || covers(a, b) || covers(b, a)
}

/// Warns of an open gateway: no keys, and others than this machine reach it.
pub(super) fn warn_open(server: &Server, root: &At<'_>) {
    if let Some((i, open)) =
        server.listen.iter().enumerate().find(|(_, listen)| !listen.address.ip().is_loopback())
    {
        let at = root.key("server").key("listen").index(i).key("address");
        let is_given = at.node().is_some_and(|node| node.given().is_some());
        let open = if is_given { at.path() } else { open.address.to_string() };
        root.key("keys").warning(
            format!("no keys: everyone who reaches {open} may use the engines"),
            "listen on a loopback address, or let only trusted networks reach it",
        );
    }
}
