//! What GET /status tells of the process itself: where it listens, what it holds, and what it is bound by.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::config::{Address, Listen, Store, Transport};
use crate::metrics::resident_bytes;
use crate::proxy::Shared;

/// A listener of clients as it is bound.
pub(super) fn listener((listen, address): (&Listen, &Address)) -> Value {
    let (protocols, is_tls): (&[&str], bool) = match listen.transport {
        Transport::Plain => (&["http/1.1"], false),
        Transport::PlainH2 => (&["http/1.1", "h2"], false),
        Transport::Tls(_) => (&["http/1.1", "h2"], true),
    };
    json!({
        "address": address.to_string(),
        "protocols": protocols,
        "tls": is_tls,
        "proxy_protocol": listen.proxy_protocol,
        "redirect_https": listen.redirect_https,
    })
}

/// Client connections: how many are open, and how many may be; `null` is any number.
pub(super) fn connections(shared: &Shared) -> Value {
    let connections = &shared.connections;
    json!({ "open": connections.open(), "max": connections.max(), "per_ip": connections.per_ip() })
}

/// Bytes: of the whole process, and of what clients and engines have sent and nobody has taken yet.
pub(super) fn memory(shared: &Arc<Shared>) -> Value {
    json!({
        "resident_bytes": resident_bytes(),
        "held_body_bytes": shared.ledger.used(),
        "held_body_bytes_max": shared.snapshot.load().server.request.buffered_bytes,
        "held_stream_bytes": shared.memory.streams().load(Ordering::Relaxed),
        "held_head_bytes": shared.memory.heads(),
        "level": shared.memory.level() as u8,
        "limit_bytes": shared.memory.reading().limit,
        "is_read": shared.memory.is_seen(),
    })
}

/// Where limits are shared with other gateways; `null` where they are this one's own.
pub(super) fn store(shared: &Shared) -> Value {
    match &shared.snapshot.load().limits.store {
        Store::Memory => Value::Null,
        Store::Redis(redis) => json!({ "redis": redis.to_string(), "up": shared.metrics.store_answers() }),
    }
}
