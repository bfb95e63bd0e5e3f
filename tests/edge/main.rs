//! Connections: how they come in, what is believed of them, and TLS on both sides.

#[path = "../support/mod.rs"]
mod support;

mod certificates;
mod cors;
mod haproxy;
mod listeners;
mod proxies;
mod upstream_tls;
