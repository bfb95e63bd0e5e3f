//! nginx as a careful operator would set it up for event streams, with one worker.
//!
//! The port is the kernel's choice: a socket that is bound and never listens keeps it for us, and
//! `reuseport` lets nginx listen beside it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};
use tokio::net::TcpStream;

use crate::error::Error;
use crate::process::{PROXY_CORE, Process};

/// How long it may take to start.
const START: Duration = Duration::from_secs(5);

/// A running nginx.
#[derive(Debug)]
pub(crate) struct Nginx {
    pub(crate) process: Process,
    pub(crate) addr: SocketAddr,
    /// Keeps the port.
    _reserved: Socket,
}

impl Nginx {
    /// Starts it in front of `engine`, with its files in `dir`.
    pub(crate) async fn start(engine: SocketAddr, dir: &Path) -> Result<Self, Error> {
        let (reserved, addr) = reserve().map_err(|error| Error::io("reserve a port for nginx", error))?;
        let file = dir.join("nginx.conf");
        std::fs::write(&file, configuration(addr, engine, dir))
            .map_err(|error| Error::io("write nginx's configuration", error))?;
        let arg = |path: &Path| path.display().to_string();
        let args = ["-e".into(), "stderr".into(), "-p".into(), arg(dir), "-c".into(), arg(&file)];
        let mut process = Process::start("nginx", PROXY_CORE, "nginx", &args)?;
        let deadline = Instant::now() + START;
        while TcpStream::connect(addr).await.is_err() {
            if process.has_ended() || Instant::now() > deadline {
                return Err(Error::NotReady("nginx"));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(Self { process, addr, _reserved: reserved })
    }
}

fn reserve() -> std::io::Result<(Socket, SocketAddr)> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_port(true)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
    let addr = socket.local_addr()?.as_socket();
    Ok((socket, addr.ok_or(std::io::ErrorKind::AddrNotAvailable)?))
}

/// `master_process off` makes the one worker the process that we start, measure and end; it serves
/// in the same way. Idle upstream connections are closed before the engine (5 s) would.
fn configuration(addr: SocketAddr, engine: SocketAddr, dir: &Path) -> String {
    let dir = dir.display();
    format!(
        "daemon off;
master_process off;
pid {dir}/nginx.pid;
error_log stderr error;
events {{ worker_connections 65536; }}
http {{
    access_log off;
    client_body_temp_path {dir}/body;
    proxy_temp_path {dir}/proxy;
    fastcgi_temp_path {dir}/fastcgi;
    uwsgi_temp_path {dir}/uwsgi;
    scgi_temp_path {dir}/scgi;
    client_max_body_size 64m;
    upstream engine {{
        server {engine};
        keepalive 1024;
        keepalive_timeout 4s;
    }}
    server {{
        listen {addr} reuseport backlog=4096;
        location / {{
            proxy_pass http://engine;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_buffering off;
            proxy_read_timeout 1h;
            send_timeout 10m;
        }}
    }}
}}
"
    )
}
