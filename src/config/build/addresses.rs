//! Addresses that two listeners of one file want.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;

use crate::config::place::At;
use crate::config::{Address, AdminListen, Server};
use crate::sim;

/// An address that something listens on, and where the file says so.
struct Wanted<'t> {
    address: SocketAddr,
    /// `[::]` stands for the addresses of IPv4 as well, as it does on Linux unless one asks for less.
    both_families: bool,
    at: At<'t>,
}

/// Notes addresses that two listeners want.
pub(super) fn addresses(server: &Server, sims: &[sim::Settings], root: &At<'_>) {
    let (part, engines) = (root.key("server"), root.key("sim"));
    let clients = part.key("listen");
    let of_ours = |address, at| Wanted { address, both_families: false, at };
    let mut all: Vec<Wanted<'_>> = server
        .listen
        .iter()
        .enumerate()
        .filter_map(|(i, listen)| match listen.address {
            Address::Tcp(address) => Some(of_ours(address, clients.index(i).key("address"))),
            Address::Unix { .. } => None,
        })
        .collect();
    if let AdminListen::Tcp(address) = server.admin.listen {
        all.push(of_ours(address, part.key("admin").key("listen")));
    }
    all.extend(sims.iter().enumerate().map(|(i, sim)| Wanted {
        address: sim.listen,
        both_families: true,
        at: engines.index(i).key("listen"),
    }));
    let mut taken: HashMap<u16, Vec<&Wanted<'_>>> = HashMap::new();
    for wanted in &all {
        let address = wanted.address;
        let same_port = taken.entry(address.port()).or_default();
        if address.port() != 0
            && let Some(first) = same_port.iter().find(|other| collide(wanted, other))
        {
            let first = first.at.path();
            wanted.at.problem(format!("{address} is taken already: {first}"), "choose another port");
        }
        same_port.push(wanted);
    }
    paths(server, &clients);
}

/// The same for unix sockets.
fn paths(server: &Server, at: &At<'_>) {
    let mut taken: HashMap<&Path, usize> = HashMap::new();
    for (i, listen) in server.listen.iter().enumerate() {
        let Address::Unix { path, .. } = &listen.address else { continue };
        if let Some(first) = taken.insert(path, i) {
            let first = at.index(first).key("address").path();
            at.index(i)
                .key("address")
                .problem(format!("{} is taken already: {first}", listen.address), "choose another path");
        }
    }
}

/// Whether two listeners on one port would get in each other's way: the unspecified address stands
/// for all of its family.
fn collide(a: &Wanted<'_>, b: &Wanted<'_>) -> bool {
    let covers = |wide: &Wanted<'_>, narrow: &Wanted<'_>| {
        let is_same_family = wide.address.is_ipv6() == narrow.address.is_ipv6();
        wide.address.ip().is_unspecified()
            && (is_same_family || (wide.address.is_ipv6() && wide.both_families))
    };
    a.address.ip() == b.address.ip() || covers(a, b) || covers(b, a)
}
