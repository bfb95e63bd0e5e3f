//! The proxies that others have made, as data: what each is started with (the files of bench/), and what it can take.
//!
//! A contender that may fail runs only where scripts/contenders.sh has left it, below target/contenders.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use crate::error::Error;
use crate::process::{PROXY_CORE, Ports, Proxy, Start};
use crate::scenario::Scenario;
use crate::target::Target;

/// Where scripts/contenders.sh puts what it installs.
const HOME: &str = "target/contenders";
/// How long one may take to start: those in Python read a good part of their libraries first.
const START: Duration = Duration::from_secs(90);

/// One of them.
#[derive(Debug)]
pub(crate) struct Contender {
    pub(crate) target: Target,
    /// Its start line in bench/: words, and remarks behind `#`.
    args: &'static str,
    /// Its configuration in bench/: the file's name, and what is in it.
    config: Option<(&'static str, &'static str)>,
    environment: &'static [(&'static str, &'static str)],
    /// It is set up for TLS and HTTP/2.
    pub(crate) takes_tls: bool,
    /// It parses events and writes them anew, so that only the tokens in them are held against it.
    pub(crate) rewrites: bool,
    /// Of so many clients that others get it is given one.
    pub(crate) one_of: u32,
    /// What it does not take part in, and why.
    leaves_out: &'static [(Scenario, &'static str)],
    /// What makes it read its configuration again.
    pub(crate) reloads_by: Option<Signal>,
}

const NO_RELOAD: &str = "it reads its configuration only when it starts";
/// The usual kind.
const PLAIN: Contender = Contender {
    target: Target::Nginx,
    args: "",
    config: None,
    environment: &[],
    takes_tls: false,
    rewrites: false,
    one_of: 1,
    leaves_out: &[(Scenario::Reload, NO_RELOAD)],
    reloads_by: None,
};

static ALL: [Contender; 6] = [
    Contender {
        target: Target::Nginx,
        args: include_str!("../../bench/nginx.args"),
        config: Some(("nginx.conf", include_str!("../../bench/nginx.conf"))),
        takes_tls: true,
        leaves_out: &[],
        reloads_by: Some(Signal::HUP),
        ..PLAIN
    },
    Contender {
        target: Target::Haproxy,
        args: include_str!("../../bench/haproxy.args"),
        config: Some(("haproxy.cfg", include_str!("../../bench/haproxy.cfg"))),
        takes_tls: true,
        leaves_out: &[],
        reloads_by: Some(Signal::USR2),
        ..PLAIN
    },
    Contender {
        target: Target::Envoy,
        leaves_out: &[(
            Scenario::Reload,
            "it is fed changes by a control plane, or restarted; it rereads no file",
        )],
        args: include_str!("../../bench/envoy.args"),
        config: Some(("envoy.yaml", include_str!("../../bench/envoy.yaml"))),
        takes_tls: true,
        ..PLAIN
    },
    Contender { target: Target::Smg, args: include_str!("../../bench/smg.args"), ..PLAIN },
    Contender { target: Target::VllmRouter, args: include_str!("../../bench/vllm-router.args"), ..PLAIN },
    Contender {
        target: Target::Litellm,
        args: include_str!("../../bench/litellm.args"),
        config: Some(("litellm.yaml", include_str!("../../bench/litellm.yaml"))),
        // Or it fetches a list of prices when it starts, and writes a line for each request.
        environment: &[("LITELLM_LOCAL_MODEL_COST_MAP", "True"), ("LITELLM_LOG", "ERROR")],
        rewrites: true,
        one_of: 20,
        leaves_out: &[
            (Scenario::Reload, NO_RELOAD),
            (Scenario::Idle, "5,000 first requests alone would take it minutes"),
            (Scenario::Large, "one core serves some fifty of its streams"),
        ],
        ..PLAIN
    },
];

impl Contender {
    /// The one behind a target; `None` for the engine, bare Pingora and ours.
    pub(crate) fn of(target: Target) -> Option<&'static Self> {
        ALL.iter().find(|contender| contender.target == target)
    }

    /// Its version, as it says itself or as it was installed.
    ///
    /// # Errors
    /// Why it cannot run.
    pub(crate) fn version(&self) -> Result<String, String> {
        if !self.target.may_fail() {
            let told = Command::new(self.program()).arg("-v").output().map_err(|error| error.to_string())?;
            let told = String::from_utf8_lossy(&told.stderr).trim().to_owned();
            return Ok(told.rsplit('/').next().unwrap_or_default().to_owned());
        }
        let file = |kind: &str| std::fs::read_to_string(self.home().with_extension(kind));
        match (file("version"), file("missing")) {
            (Ok(version), _) => Ok(version.trim().to_owned()),
            (_, Ok(reason)) => Err(reason.trim().to_owned()),
            _ => Err("scripts/contenders.sh has not installed it".to_owned()),
        }
    }

    /// Why it takes no part in a scenario.
    pub(crate) fn leaves_out(&self, scenario: Scenario) -> Option<&'static str> {
        self.leaves_out.iter().find(|(left, _)| *left == scenario).map(|(_, reason)| *reason)
    }

    /// Its start line, as it stands in bench/.
    pub(crate) fn command(&self) -> Vec<String> {
        let words = self.args.lines().filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace);
        [self.program()].into_iter().chain(words.map(str::to_owned)).collect()
    }

    /// Starts it in front of `engine`, with its files in `dir`, which has the certificate.
    pub(crate) async fn start(&self, engine: SocketAddr, dir: &Path) -> Result<Proxy, Error> {
        let ports = Ports::reserve()?;
        let config = self.config.map_or_else(|| dir.to_owned(), |(file, _)| dir.join(file));
        let places = places(&ports, engine, dir, &config);
        if let Some((_, text)) = self.config {
            let failed = |error| Error::io(format!("write {}", config.display()), error);
            std::fs::write(&config, filled_in(text, &places)).map_err(failed)?;
        }
        let mut words = self.command().into_iter().map(|word| filled_in(&word, &places));
        let fixed = self.environment.iter().map(|(name, value)| (*name, (*value).to_owned()));
        let start = Start {
            name: self.target.name(),
            core: PROXY_CORE,
            program: words.next().unwrap_or_default(),
            args: words.collect(),
            // Nothing that whoever runs this has set for himself, such as a proxy, reaches it.
            environment: Some(fixed.chain([("HOME", dir.display().to_string())]).collect()),
            within: START,
        };
        Proxy::start(&start, ports).await
    }

    fn program(&self) -> String {
        let name = self.target.name();
        if !self.target.may_fail() {
            return name.to_owned();
        }
        Path::new(HOME).join("bin").join(name).display().to_string()
    }

    /// Beside it lie NAME.version or NAME.missing.
    fn home(&self) -> PathBuf {
        Path::new(HOME).join(self.target.name())
    }
}

/// What stands for the words in capitals.
fn places(ports: &Ports, engine: SocketAddr, dir: &Path, config: &Path) -> [(&'static str, String); 9] {
    [
        ("@LISTEN@", ports.addr().to_string()),
        ("@PORT@", ports.addr().port().to_string()),
        ("@TLS@", ports.secure().to_string()),
        ("@TLS_PORT@", ports.secure().port().to_string()),
        ("@SPARE_PORT@", ports.spare().port().to_string()),
        ("@ENGINE@", engine.to_string()),
        ("@ENGINE_PORT@", engine.port().to_string()),
        ("@DIR@", dir.display().to_string()),
        ("@CONFIG@", config.display().to_string()),
    ]
}

/// A file of bench/, or a word of one.
pub(crate) fn filled_in(text: &str, places: &[(&str, String)]) -> String {
    places.iter().fold(text.to_owned(), |text, (word, value)| text.replace(word, value))
}
