//! The nginx of docs/from-nginx.md, without TLS and on ports of the kernel's choice.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::support::wait::{SOON, wait_until};

/// A running nginx.
pub(crate) struct Nginx {
    process: Child,
    /// Where its API is.
    pub(crate) addr: SocketAddr,
    /// Where it only redirects.
    pub(crate) plain: SocketAddr,
    _dir: TempDir,
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // It may be gone already.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

impl Nginx {
    /// Starts it in front of `engine`; `None` where there is none.
    pub(crate) async fn start(engine: SocketAddr) -> Option<Self> {
        let dir = tempfile::tempdir().expect("temporary directory");
        // It cannot tell which ports the kernel gave it, so two are taken that were free just now.
        let [addr, plain] = [free(), free()];
        let file = dir.path().join("nginx.conf");
        std::fs::write(&file, configuration(dir.path().to_str().expect("UTF-8"), engine, addr, plain))
            .expect("write");
        let process = Command::new("nginx")
            .args(["-e", "stderr", "-g", "daemon off; master_process off;"])
            .arg("-p")
            .arg(dir.path())
            .arg("-c")
            .arg(&file)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let nginx = Self { process, addr, plain, _dir: dir };
        wait_until("nginx listens", SOON, || TcpStream::connect(addr).is_ok()).await;
        Some(nginx)
    }
}

fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").expect("bind").local_addr().expect("bound")
}

/// The page's own file, but for what this machine does not have.
fn configuration(dir: &str, engine: SocketAddr, addr: SocketAddr, plain: SocketAddr) -> String {
    let ours = |line: &&str| {
        let is_second = line.contains("10.0.0.12");
        !is_second
            && !["user ", "ssl_", "worker_rlimit"].iter().any(|word| line.trim_start().starts_with(word))
    };
    let lines: Vec<&str> = include_str!("nginx.conf").lines().filter(ours).collect();
    let folders = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let folders: String =
        folders.iter().map(|name| format!("    {name}_temp_path {dir}/{name};\n")).collect();
    lines
        .join("\n")
        .replace("http {\n", &format!("http {{\n{folders}"))
        .replace("/run/", &format!("{dir}/"))
        .replace("/var/log/nginx/", &format!("{dir}/"))
        .replace("10.0.0.11:8000", &engine.to_string())
        .replace("listen 443 ssl http2", &format!("listen {addr}"))
        .replace("listen 80", &format!("listen {plain}"))
}
