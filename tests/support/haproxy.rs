//! HAProxy as a process in front of the gateway, on sockets that it is handed.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::process::{Child, Command, Stdio};

use socket2::{Domain, Socket, Type};
use tempfile::TempDir;

/// A running HAProxy, and where it listens: for each server one port.
#[derive(Debug)]
pub(crate) struct Haproxy {
    child: Child,
    pub(crate) ports: Vec<SocketAddr>,
    _dir: TempDir,
}

impl Haproxy {
    /// Starts it with these lines among its defaults, and one frontend for each of these servers, in this mode.
    /// `None` where there is none.
    pub(crate) fn start(defaults: &[String], servers: &[(&str, String)]) -> Option<Self> {
        let dir = tempfile::tempdir().expect("temporary directory");
        let defaults = defaults.iter().map(|line| format!("  {line}\n")).collect::<String>();
        let mut config = format!("defaults\n  timeout connect 5s\n  timeout server 30s\n{defaults}");
        let (mut sockets, mut ports) = (Vec::new(), Vec::new());
        for (n, (mode, server)) in servers.iter().enumerate() {
            let socket = listening();
            let fd = socket.as_raw_fd();
            writeln!(config, "listen l{n}\n  mode {mode}\n  bind fd@{fd}\n  server s {server}")
                .expect("write");
            if *mode == "http" {
                config += "  option forwardfor\n";
            }
            ports.push(socket.local_addr().expect("an address").as_socket().expect("of IP"));
            sockets.push(socket);
        }
        let file = dir.path().join("haproxy.cfg");
        std::fs::write(&file, config).expect("write");
        let mut command = Command::new("haproxy");
        command.arg("-db").arg("-f").arg(&file).stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.spawn().ok()?;
        Some(Self { child, ports, _dir: dir })
    }
}

impl Drop for Haproxy {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A socket that listens, on a port of the kernel's choice, and that a child takes over.
fn listening() -> Socket {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("bind");
    socket.listen(128).expect("listen");
    socket.set_cloexec(false).expect("handed over");
    socket
}
