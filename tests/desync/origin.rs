//! Origins with parsers of their own, which keep the request lines that they saw.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use tempfile::TempDir;

use crate::support::Upstream;
use crate::support::wait::{SOON, wait_until};
use crate::support::wire::{ANSWER, json_answer};

/// An origin that runs.
pub(crate) struct Origin {
    pub(crate) addr: SocketAddr,
    seen: Seen,
    _process: Option<Process>,
}

enum Seen {
    Here(Arc<Mutex<Vec<String>>>),
    InFile(PathBuf),
}

/// Ended when dropped.
struct Process(Child, Option<TempDir>);

impl Drop for Process {
    fn drop(&mut self) {
        // It may be gone already.
        drop(self.0.kill());
        drop(self.0.wait());
        drop(self.1.take());
    }
}

impl Origin {
    /// The engine of these tests.
    pub(crate) async fn ours() -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let lines = Arc::clone(&seen);
        let addr = Upstream::answering(move |asked| {
            lines.lock().expect("lock").push(asked.head.line.clone());
            json_answer(ANSWER)
        })
        .await;
        Self { addr, seen: Seen::Here(seen), _process: None }
    }

    /// Python's `http.server`; `None` without a Python.
    pub(crate) fn python() -> Option<Self> {
        Self::script("python3", include_str!("origin.py"))
    }

    /// h11, as Debian has it for its own Python; `None` without it.
    pub(crate) fn h11() -> Option<Self> {
        Self::script("/usr/bin/python3", include_str!("origin_h11.py"))
    }

    /// A script that prints its port, then the request lines that it sees.
    fn script(python: &str, text: &str) -> Option<Self> {
        let mut child = Command::new(python)
            .args(["-u", "-c", text])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let process = Process(child, None);
        let port = lines.next()?.ok()?.parse().ok()?;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&seen);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                kept.lock().expect("lock").push(line);
            }
        });
        let addr = SocketAddr::from(([127, 0, 0, 1], port));
        Some(Self { addr, seen: Seen::Here(seen), _process: Some(process) })
    }

    /// nginx, as Debian has it; `None` without one.
    pub(crate) async fn nginx() -> Option<Self> {
        let dir = tempfile::tempdir().expect("temporary directory");
        let (conf, log) = (dir.path().join("nginx.conf"), dir.path().join("access.log"));
        // It cannot tell which port the kernel gave it, so one is taken that was free just now.
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("bind").local_addr().expect("bound");
        let text = include_str!("nginx.conf")
            .replace("DIR", dir.path().to_str().expect("UTF-8"))
            .replace("PORT", &free.port().to_string());
        std::fs::write(&conf, text).expect("write");
        let mut nginx = Command::new("nginx");
        nginx.arg("-c").arg(&conf).arg("-p").arg(dir.path()).stdin(Stdio::null()).stderr(Stdio::null());
        let process = Process(nginx.spawn().ok()?, Some(dir));
        wait_until("nginx listens", SOON, || std::net::TcpStream::connect(free).is_ok()).await;
        Some(Self { addr: free, seen: Seen::InFile(log), _process: Some(process) })
    }

    /// The request lines that it saw.
    pub(crate) fn seen(&self) -> Vec<String> {
        match &self.seen {
            Seen::Here(lines) => lines.lock().expect("lock").clone(),
            Seen::InFile(file) => {
                let text = std::fs::read_to_string(file).unwrap_or_default();
                text.lines().map(str::to_owned).collect()
            }
        }
    }
}
