//! The processes of one scenario: the engine, and the proxies in front of it.
//!
//! Each scenario starts its own, so that no scenario inherits the memory or the connections of another.

use std::net::SocketAddr;
use std::path::Path;

use tempfile::TempDir;

use crate::bare;
use crate::certificate;
use crate::control::Control;
use crate::error::Error;
use crate::nginx;
use crate::process::{LOAD_CORE, PROXY_CORE, Process, Proxy};
use crate::way::Way;

/// Where the clients connect to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// The engine itself: what the machine costs without a proxy.
    Direct,
    Nginx,
    /// Pingora with nothing on top.
    Bare,
    Gateway,
}

impl Target {
    pub(crate) const ALL: [Self; 4] = [Self::Direct, Self::Nginx, Self::Bare, Self::Gateway];
    pub(crate) const PROXIES: [Self; 3] = [Self::Nginx, Self::Bare, Self::Gateway];
}

/// The running processes.
#[derive(Debug)]
pub(crate) struct Fleet {
    gateway: Process,
    gateway_addrs: [SocketAddr; 2],
    nginx: Proxy,
    bare: Proxy,
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
        let [engine_addr] = engine.addresses("simulated engine sim")?;
        certificate::write(dir.path())?;
        let nginx = nginx::start(engine_addr, dir.path()).await?;
        let bare = bare::start(engine_addr).await?;
        let (gateway, gateway_addrs) = start_gateway(binary, engine_addr, dir.path())?;
        Ok(Self { gateway, gateway_addrs, nginx, bare, _engine: engine, engine_addr, _dir: dir })
    }

    pub(crate) fn addr(&self, target: Target) -> SocketAddr {
        match target {
            Target::Direct => self.engine_addr,
            Target::Nginx => self.nginx.addr,
            Target::Bare => self.bare.addr,
            Target::Gateway => self.gateway_addrs[0],
        }
    }

    /// Where clients come to a target in this way.
    pub(crate) fn door(&self, way: Way, target: Target) -> SocketAddr {
        match (way.to(target), target) {
            (Way::Tls | Way::H2, Target::Nginx) => self.nginx.secure,
            (Way::Tls | Way::H2, Target::Gateway) => self.gateway_addrs[1],
            _ => self.addr(target),
        }
    }

    /// The process of a proxy.
    pub(crate) fn pid(&self, target: Target) -> Option<u32> {
        match target {
            Target::Direct => None,
            Target::Nginx => Some(self.nginx.process.pid()),
            Target::Bare => Some(self.bare.process.pid()),
            Target::Gateway => Some(self.gateway.pid()),
        }
    }

    /// The engine's own endpoints.
    pub(crate) fn control(&self) -> Control {
        Control::new(self.engine_addr)
    }
}

fn start_gateway(binary: &str, engine: SocketAddr, dir: &Path) -> Result<(Process, [SocketAddr; 2]), Error> {
    let file = dir.join("streamgate.yaml");
    std::fs::write(&file, configuration(engine, dir))
        .map_err(|error| Error::io("write the gateway's configuration", error))?;
    let args = ["run".to_owned(), "-c".to_owned(), file.display().to_string()];
    let mut gateway = Process::start("streamgate", PROXY_CORE, binary, &args)?;
    let addrs = gateway.addresses("streamgate listening")?;
    Ok((gateway, addrs))
}

/// Defaults, but for one core, no access log, and the patience with stalled clients that nginx has
/// here too.
fn configuration(engine: SocketAddr, dir: &Path) -> String {
    let dir = dir.display();
    format!(
        "server:
  listen:
    - {{ address: \"127.0.0.1:0\" }}
    - address: \"127.0.0.1:0\"
      tls: {{ certificates: [ {{ cert: \"{dir}/server.crt\", key: \"{dir}/server.key\" }} ] }}
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
