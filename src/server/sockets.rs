//! The listening sockets: handed over by a predecessor, passed by systemd, or bound.

use std::os::fd::OwnedFd;

use listenfd::ListenFd;
use socket2::{SockAddr, SockRef};

use super::StartError;
use super::admin::AdminSocket;
use crate::config::{Address, Server};
use crate::edge::{self, Bound};
use crate::handover::{Handed, Role};

/// Sockets that listen already, each for one address of the file.
#[derive(Default)]
pub(super) struct Given(Vec<Handed>);

impl Given {
    /// Those of a predecessor.
    pub(super) fn by_predecessor(sockets: Vec<Handed>) -> Self {
        Self(sockets)
    }

    /// Those that systemd has passed (sd_listen_fds(3)). It changes the environment, so that no process of
    /// ours takes them for its own: call it before there are threads that look there.
    pub(super) fn by_systemd() -> Self {
        let mut passed = ListenFd::from_env();
        let mut sockets = Vec::new();
        for i in 0..passed.len() {
            match take(&mut passed, i) {
                Some(handed) => sockets.push(handed),
                None => {
                    log::warn!("systemd passes descriptor {i}, which is no socket to accept from: not used")
                }
            }
        }
        Self(sockets)
    }

    fn take(&mut self, role: Role, address: &Address) -> Option<OwnedFd> {
        let text = address.to_string();
        // Port 0 is any port, and says nothing of what it is for.
        let is_any = matches!(address, Address::Tcp(tcp) if tcp.port() == 0);
        let fits = |handed: &Handed| {
            handed.address == text && (!is_any || handed.role.is_none_or(|known| known == role))
        };
        let at = self.0.iter().position(fits)?;
        Some(self.0.remove(at).socket)
    }
}

fn take(passed: &mut ListenFd, i: usize) -> Option<Handed> {
    let socket = match passed.take_tcp_listener(i) {
        Ok(listener) => OwnedFd::from(listener?),
        Err(_) => OwnedFd::from(passed.take_unix_listener(i).ok()??),
    };
    let address = text(&SockRef::from(&socket).local_addr().ok()?)?;
    Some(Handed { role: None, address, socket })
}

/// As a file writes it.
fn text(address: &SockAddr) -> Option<String> {
    match address.as_socket() {
        Some(tcp) => Some(tcp.to_string()),
        None => Some(format!("unix:{}", address.as_pathname()?.display())),
    }
}

/// All that the process listens on.
pub(super) struct Sockets {
    pub(super) clients: Bound,
    pub(super) operators: AdminSocket,
}

impl Sockets {
    /// Listens on every address of the file; what is given and not wanted is given up.
    pub(super) fn open(server: &Server, mut given: Given) -> Result<Self, StartError> {
        let addresses = server.listen.iter().map(|listen| &listen.address);
        let clients = bind(addresses, "server.listen", |address| given.take(Role::Clients, address))?;
        let operators =
            AdminSocket::bind(&server.admin.listen, |address| given.take(Role::Operators, address))?;
        for handed in given.0 {
            log::warn!("{} is not in the file: nobody listens there any more", handed.address);
        }
        Ok(Self { clients, operators })
    }

    /// The sockets once more, for a successor.
    pub(super) fn copies(&mut self, server: &Server) -> Vec<Handed> {
        let copies = std::mem::take(&mut self.clients.copies);
        let mut handed: Vec<Handed> = server
            .listen
            .iter()
            .zip(copies)
            .map(|(listen, socket)| handed(Role::Clients, listen.address.to_string(), socket))
            .collect();
        let copy = self.operators.copy();
        handed.extend(
            copy.map(|socket| self::handed(Role::Operators, server.admin.listen.to_string(), socket)),
        );
        handed
    }
}

fn handed(role: Role, address: String, socket: OwnedFd) -> Handed {
    Handed { role: Some(role), address, socket }
}

/// Listens on these addresses of the setting.
pub(super) fn bind<'a>(
    addresses: impl IntoIterator<Item = &'a Address>,
    setting: &'static str,
    given: impl FnMut(&Address) -> Option<OwnedFd>,
) -> Result<Bound, StartError> {
    edge::bind(addresses, given).map_err(|(address, source)| StartError::Listen {
        addr: address.to_string(),
        setting,
        source,
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_socket_goes_where_it_was_and_any_port_to_its_own_kind() {
        let socket = || OwnedFd::from(TcpListener::bind("127.0.0.1:0").unwrap());
        let any = Address::Tcp("127.0.0.1:0".parse().unwrap());
        let fixed = Address::Tcp("127.0.0.1:8080".parse().unwrap());
        let mut given = Given(vec![
            handed(Role::Clients, "127.0.0.1:0".into(), socket()),
            handed(Role::Clients, "127.0.0.1:8080".into(), socket()),
            Handed { role: None, address: "127.0.0.1:0".into(), socket: socket() },
        ]);
        assert!(given.take(Role::Operators, &fixed).is_some(), "a port that is named may change its use");
        assert!(given.take(Role::Operators, &any).is_some(), "the one that is anybody's");
        assert!(given.take(Role::Operators, &any).is_none(), "the other one is for clients");
        assert!(given.take(Role::Clients, &any).is_some());
        assert!(given.0.is_empty());
    }
}
