//! `server.trusted_proxies`: who is believed when he says for whom he asks.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::config::place::{At, shown};
use crate::config::raw::List;
use crate::forwarded::Trusted;

/// Most entries: each is looked at for every request of a proxy.
const ENTRIES_MAX: usize = 256;

/// What stands for the processes that connect to a unix socket.
const LOCAL: &str = "unix:";

pub(super) fn proxies(raw: &List<String>, at: &At<'_>) -> Trusted {
    let mut trusted = Trusted::default();
    let entries = raw.get().map_or(&[][..], Vec::as_slice);
    if entries.len() > ENTRIES_MAX {
        at.problem(
            format!("{} networks are too many", entries.len()),
            format!("write at most {ENTRIES_MAX}; wider networks need fewer"),
        );
    }
    for (i, entry) in entries.iter().enumerate() {
        let at = at.index(i);
        match entry.get().map(String::as_str) {
            None => {}
            Some(LOCAL) => trusted.local = true,
            Some(text) => trusted.networks.extend(network(text, &at)),
        }
    }
    trusted
}

/// A network in CIDR form, or a single address.
fn network(text: &str, at: &At<'_>) -> Option<IpNet> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(address.to_canonical().into());
    }
    let Ok(network) = text.parse::<IpNet>() else {
        at.problem(
            format!("{} is no network", shown(text)),
            format!("write it as in 10.0.0.0/8 or 2001:db8::/32, or {LOCAL} for unix sockets"),
        );
        return None;
    };
    if network.addr() != network.network() {
        at.problem(
            format!("{network} names an address inside of a network"),
            format!("write {} for the network", network.trunc()),
        );
    }
    if network.prefix_len() == 0 {
        at.warning(
            "everybody is believed, whatever address he claims",
            "name the networks of the proxies in front of this gateway",
        );
    }
    Some(network)
}
