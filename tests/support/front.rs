//! Another proxy in front of the gateway: nginx, HAProxy, or a second gateway.
//!
//! Each passes on as much as it can be talked into, on connections that its clients share: what two readers of
//! one connection take for different requests would show there.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use super::gateway::Gateway;
use super::haproxy::Haproxy;
use super::settings::Settings;
use super::wait::{SOON, wait_until};

/// Which proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Nginx,
    Haproxy,
    /// It speaks HTTP/2 to the gateway, which then has to take it. Each of its clients has a connection of its own,
    /// since what a client can make it write may end one (docs/edge.md).
    HaproxyOverH2,
    Ours,
}

/// A proxy that runs in front of a gateway, and says in X-Forwarded-For who its client is.
#[derive(Debug)]
pub(crate) struct Front {
    /// Where it takes HTTP/1.1.
    pub(crate) addr: SocketAddr,
    /// Where it takes HTTP/2 without TLS.
    pub(crate) h2: SocketAddr,
    _running: Running,
}

#[derive(Debug)]
enum Running {
    Nginx(Nginx),
    Haproxy(Haproxy),
    Ours(Gateway),
}

#[derive(Debug)]
struct Nginx(Child, TempDir);

impl Drop for Nginx {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Front {
    /// Starts it in front of this gateway. It waits for `patience` at most for what its clients do not send, and
    /// for their next request. `None` where this machine has no such proxy.
    pub(crate) async fn start(kind: Kind, gateway: SocketAddr, patience: Duration) -> Option<Self> {
        match kind {
            Kind::Nginx => nginx(gateway, patience).await,
            Kind::Haproxy => haproxy("always", format!("{gateway}"), patience),
            Kind::HaproxyOverH2 => haproxy("never", format!("{gateway} proto h2"), patience),
            Kind::Ours => Some(ours(gateway, patience).await),
        }
    }
}

async fn nginx(gateway: SocketAddr, patience: Duration) -> Option<Front> {
    let dir = tempfile::tempdir().expect("temporary directory");
    // It cannot tell which ports the kernel gave it, so two are taken that were free just now.
    let free = || TcpListener::bind("127.0.0.1:0").expect("bind").local_addr().expect("bound");
    let [addr, h2] = [free(), free()];
    let file = dir.path().join("nginx.conf");
    let text = include_str!("front.conf")
        .replace("DIR", dir.path().to_str().expect("UTF-8"))
        .replace("HTTP1", &addr.to_string())
        .replace("HTTP2", &h2.to_string())
        .replace("GATEWAY", &gateway.to_string())
        .replace("PATIENCE", &format!("{}ms", patience.as_millis()));
    std::fs::write(&file, text).expect("write");
    let mut command = Command::new("nginx");
    command.args(["-e", "stderr", "-c"]).arg(&file).arg("-p").arg(dir.path());
    let child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
    let running = Running::Nginx(Nginx(child, dir));
    wait_until("nginx listens", SOON, || TcpStream::connect(h2).is_ok()).await;
    Some(Front { addr, h2, _running: running })
}

fn haproxy(reuse: &str, server: String, patience: Duration) -> Option<Front> {
    let patient = |timer: &str| format!("timeout {timer} {}ms", patience.as_millis());
    // Without abortonclose it goes on waiting for an answer whose client has left (docs/edge.md).
    let mut defaults = ["client", "http-request", "http-keep-alive"].map(patient).to_vec();
    defaults.extend([
        format!("http-reuse {reuse}"),
        "option abortonclose".to_owned(),
        "option accept-invalid-http-request".to_owned(),
    ]);
    let haproxy = Haproxy::start(&defaults, &[("http", server)])?;
    // It tells the two protocols apart by the preface.
    let [addr, h2] = [haproxy.ports[0]; 2];
    Some(Front { addr, h2, _running: Running::Haproxy(haproxy) })
}

async fn ours(gateway: SocketAddr, patience: Duration) -> Front {
    let patience = format!("{}ms", patience.as_millis());
    let everything =
        json!({ "match": { "path": ["/v1/responses/*"] }, "cluster": "c", "include_usage": false });
    let request = json!({ "header_timeout": patience, "body_timeout": patience, "keepalive": patience });
    let settings = Settings::new(&[gateway])
        .set("server.listen.0.h2c", true)
        .set("server.request", request)
        .route(everything);
    let gateway = Gateway::start(settings).await;
    let [addr, h2] = [gateway.addr; 2];
    Front { addr, h2, _running: Running::Ours(gateway) }
}
