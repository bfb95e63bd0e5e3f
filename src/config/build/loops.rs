//! Backends that are the gateway itself: each request would come back in as a new one, until something runs out.
//!
//! Only what the file itself shows is found: an address, or `localhost`, and the port of a client listener. A name that
//! leads here by other ways, and a loop through another gateway, cannot be seen without asking the network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::cluster::Resolved;
use crate::config::place::At;
use crate::config::{Address, Listen};

/// Warns of each backend that one of the listeners would answer.
pub(super) fn warn(listeners: &[Listen], clusters: &[Resolved], at: &At<'_>) {
    let bound: Vec<SocketAddr> = listeners
        .iter()
        .filter_map(|listen| match listen.address {
            Address::Tcp(address) => Some(address),
            Address::Unix { .. } => None,
        })
        .collect();
    for (resolved, at) in clusters.iter().zip(at.children()) {
        for (i, backend) in resolved.cluster.backends.iter().enumerate() {
            let called = called(&backend.host);
            let is_own = |bound: &SocketAddr| bound.port() == backend.port && answers(bound.ip(), &called);
            if bound.iter().any(is_own) {
                at.key("backends").index(i).key("url").warning(
                    "this is a listener of the gateway itself: a request would come back for ever",
                    "name the address of an engine",
                );
            }
        }
    }
}

/// The addresses that a host surely is. To connect to the unspecified address is to connect to this machine.
fn called(host: &str) -> Vec<IpAddr> {
    let loopback = |is_ipv6| match is_ipv6 {
        true => IpAddr::from(Ipv6Addr::LOCALHOST),
        false => IpAddr::from(Ipv4Addr::LOCALHOST),
    };
    if host.trim_end_matches('.').eq_ignore_ascii_case("localhost") {
        return vec![loopback(false), loopback(true)];
    }
    let address = host.parse::<IpAddr>().ok();
    address.into_iter().map(|ip| if ip.is_unspecified() { loopback(ip.is_ipv6()) } else { ip }).collect()
}

/// Whether who listens on `bound` answers one of these addresses. The unspecified address stands for all of its
/// family, of which only those of the loopback are known to be this machine's.
fn answers(bound: IpAddr, called: &[IpAddr]) -> bool {
    called.iter().any(|ip| {
        bound == *ip || (bound.is_unspecified() && bound.is_ipv6() == ip.is_ipv6() && ip.is_loopback())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_this_machine_is_known_by_what_is_listened_on() {
        let is_own = |bound: &str, host: &str| answers(bound.parse().unwrap(), &called(host));
        for (bound, host) in [
            ("127.0.0.1", "127.0.0.1"),
            ("127.0.0.1", "Localhost."),
            ("127.0.0.1", "0.0.0.0"),
            ("0.0.0.0", "127.0.0.9"),
            ("0.0.0.0", "localhost"),
            ("0.0.0.0", "0.0.0.0"),
            ("10.0.0.5", "10.0.0.5"),
            ("::1", "localhost"),
            ("::", "::1"),
        ] {
            assert!(is_own(bound, host), "{bound} answers {host}");
        }
        for (bound, host) in [
            ("127.0.0.1", "127.0.0.2"),
            ("0.0.0.0", "10.0.0.5"),
            ("0.0.0.0", "::1"),
            ("10.0.0.5", "127.0.0.1"),
            ("127.0.0.1", "gpu-1"),
        ] {
            assert!(!is_own(bound, host), "{bound} may not answer {host}");
        }
    }
}
