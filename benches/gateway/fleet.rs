//! The processes of one scenario: the engine, and the two proxies in front of it.
//!
//! Each scenario starts its own, so that no scenario inherits the memory or the connections of another.

use std::net::SocketAddr;
use std::path::Path;

use tempfile::TempDir;

use crate::control::Control;
use crate::error::Error;
use crate::nginx::Nginx;
use crate::process::{LOAD_CORE, PROXY_CORE, Process};

/// Where the clients connect to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// The engine itself: what the machine costs without a proxy.
    Direct,
    Nginx,
    Gateway,
}

impl Target {
    pub(crate) const ALL: [Self; 3] = [Self::Direct, Self::Nginx, Self::Gateway];
    pub(crate) const PROXIES: [Self; 2] = [Self::Nginx, Self::Gateway];
}

/// The running processes.
#[derive(Debug)]
pub(crate) struct Fleet {
    gateway: Process,
    gateway_addr: SocketAddr,
    nginx: Nginx,
    _engine: Process,
    pub(crate) engine_addr: SocketAddr,
    _dir: TempDir,
}

impl Fleet {
    /// Starts all of them with this streamgate, the engine with these arguments of `streamgate sim`.
    pub(crate) async fn start(binary: &str, engine_args: &[&str]) -> Result<Self, Error> {
        let dir = tempfile::tempdir().map_err(|error| Error::io("make a directory", error))?;
        let args = [&["sim", "--listen", "127.0.0.1:0"], engine_args].concat();
        let args: Vec<String> = args.into_iter().map(str::to_owned).collect();
        let mut engine = Process::start("the engine", LOAD_CORE, binary, &args)?;
        let engine_addr = engine.address("simulated engine sim")?;
        let nginx = Nginx::start(engine_addr, dir.path()).await?;
        let (gateway, gateway_addr) = start_gateway(binary, engine_addr, dir.path())?;
        Ok(Self { gateway, gateway_addr, nginx, _engine: engine, engine_addr, _dir: dir })
    }

    pub(crate) fn addr(&self, target: Target) -> SocketAddr {
        match target {
            Target::Direct => self.engine_addr,
            Target::Nginx => self.nginx.addr,
            Target::Gateway => self.gateway_addr,
        }
    }

    /// The process of a proxy.
    pub(crate) fn pid(&self, target: Target) -> Option<u32> {
        match target {
            Target::Direct => None,
            Target::Nginx => Some(self.nginx.process.pid()),
            Target::Gateway => Some(self.gateway.pid()),
        }
    }

    /// The engine's own endpoints.
    pub(crate) fn control(&self) -> Control {
        Control::new(self.engine_addr)
    }
}

fn start_gateway(binary: &str, engine: SocketAddr, dir: &Path) -> Result<(Process, SocketAddr), Error> {
    let file = dir.join("streamgate.yaml");
    std::fs::write(&file, configuration(engine))
        .map_err(|error| Error::io("write the gateway's configuration", error))?;
    let args = ["run".to_owned(), "-c".to_owned(), file.display().to_string()];
    let mut gateway = Process::start("streamgate", PROXY_CORE, binary, &args)?;
    let addr = gateway.address("streamgate listening")?;
    Ok((gateway, addr))
}

/// Defaults, but for one core, no access log, and the patience with stalled clients that nginx has
/// here too.
fn configuration(engine: SocketAddr) -> String {
    format!(
        "server:
  listen: [ {{ address: \"127.0.0.1:0\" }} ]
  admin: {{ listen: \"127.0.0.1:0\" }}
  threads: 1
log: {{ level: error, access: none }}
stream: {{ write_stall: 10m }}
clusters:
  engine:
    profile: vllm
    backends: [ {{ name: engine, url: \"http://{engine}\" }} ]
routes:
  - match: {{ path: /v1/chat/completions }}
    cluster: engine
"
    )
}
