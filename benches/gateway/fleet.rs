//! The processes of one scenario: the engine, and the proxies in front of it.
//!
//! Each scenario starts its own, so that no scenario inherits the memory or the connections of another. What goes
//! wrong with one that may fail is noted (`ledger`) and leaves it out of the rest of the scenario.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::client::{self, Ask};
use crate::contender::{Contender, filled_in};
use crate::control::Control;
use crate::error::{self, Error};
use crate::judge::Tokens;
use crate::ledger::Ledger;
use crate::load::Finished;
use crate::options::Options;
use crate::process::{LOAD_CORE, PROXY_CORE, Process, Proxy, Start};
use crate::scenario::{Outcome, Scenario};
use crate::sheet::Figure;
use crate::target::Target;
use crate::way::Way;
use crate::{bare, certificate};

/// How long the engine and ours may take to start.
const START: Duration = Duration::from_secs(5);
/// What a contender that failed has left the engine to do must be over by then: the longest prefill, and its answer.
const SETTLED_WITHIN: Duration = Duration::from_secs(90);
const CONFIGURATION: &str = include_str!("../../bench/streamgate.yaml");

/// The running processes.
#[derive(Debug)]
pub(crate) struct Fleet {
    scenario: Scenario,
    proxies: BTreeMap<Target, Proxy>,
    ledger: Ledger,
    _engine: Process,
    pub(crate) engine_addr: SocketAddr,
    dir: TempDir,
}

impl Fleet {
    /// Starts all that the options ask for, the engine with these arguments of `streamgate sim`.
    pub(crate) async fn start(
        options: &Options,
        scenario: Scenario,
        engine_args: &[&str],
    ) -> Result<Self, Error> {
        let dir = tempfile::tempdir().map_err(|error| Error::io("make a directory", error))?;
        let mut engine = Process::start(&ours(
            "the engine",
            LOAD_CORE,
            options,
            &[&["sim", "--listen", "127.0.0.1:0"], engine_args].concat(),
        ))?;
        let [engine_addr] = engine.addresses("simulated engine sim").await?;
        certificate::write(dir.path())?;
        let (proxies, ledger) = (BTreeMap::new(), Ledger::default());
        let mut fleet = Self { scenario, proxies, ledger, _engine: engine, engine_addr, dir };
        for target in options.proxies() {
            fleet.add(options, target).await?;
        }
        Ok(fleet)
    }

    async fn add(&mut self, options: &Options, target: Target) -> Result<(), Error> {
        let contender = Contender::of(target);
        let over_tls = matches!(self.scenario, Scenario::Tls | Scenario::H2);
        // Of those that are not installed the report has said why.
        let is_out = |one: &Contender| (over_tls && !one.takes_tls) || one.version().is_err();
        if target.may_fail() && contender.is_some_and(is_out) {
            return Ok(());
        }
        if let Some(reason) = contender.and_then(|contender| contender.leaves_out(self.scenario)) {
            self.ledger.remark(target, format!("not run: {reason}"));
            return Ok(());
        }
        let started = match (target, contender) {
            (_, Some(contender)) => contender.start(self.engine_addr, self.dir.path()).await,
            (Target::Bare, None) => bare::start(self.engine_addr).await,
            (_, None) => start_gateway(options, self.engine_addr, self.dir.path()).await,
        };
        let ready = match started {
            Ok(mut proxy) => answers(&mut proxy).await.map(|()| proxy),
            Err(error) => Err(error),
        };
        match ready {
            Ok(proxy) => drop(self.proxies.insert(target, proxy)),
            Err(error) if target.may_fail() => self.ledger.remark(target, error::chain(&error)),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// The proxies that take part.
    pub(crate) fn proxies(&self) -> Vec<Target> {
        self.proxies.keys().copied().filter(|target| !self.ledger.is_out(*target)).collect()
    }

    /// The same, and the engine itself.
    pub(crate) fn targets(&self) -> Vec<Target> {
        [vec![Target::Direct], self.proxies()].concat()
    }

    /// Those to whom clients can come in this way. Bare Pingora would have to be set up for TLS by us, and would be a
    /// gateway of ours then.
    pub(crate) fn targets_of(&self, way: Way) -> Vec<Target> {
        let takes_it = |target: &Target| match (way, target) {
            (Way::Plain, _) | (_, Target::Direct | Target::Gateway) => true,
            (_, target) => Contender::of(*target).is_some_and(|contender| contender.takes_tls),
        };
        self.targets().into_iter().filter(takes_it).collect()
    }

    pub(crate) fn addr(&self, target: Target) -> SocketAddr {
        self.proxies.get(&target).map_or(self.engine_addr, |proxy| proxy.addr)
    }

    /// Where clients come to a target in this way.
    pub(crate) fn door(&self, way: Way, target: Target) -> SocketAddr {
        match (way, self.proxies.get(&target)) {
            (Way::Tls | Way::H2, Some(proxy)) => proxy.secure,
            _ => self.addr(target),
        }
    }

    /// The process of a proxy, and its group.
    pub(crate) fn pid(&self, target: Target) -> Option<u32> {
        self.proxies.get(&target).map(|proxy| proxy.process.pid())
    }

    /// The engine's own endpoints.
    pub(crate) fn control(&self) -> Control {
        Control::new(self.engine_addr)
    }

    /// Of so many clients, those that this one is given.
    pub(crate) fn part(&self, target: Target, clients: u32) -> u32 {
        let one_of = Contender::of(target).map_or(1, |contender| contender.one_of);
        if one_of > 1 {
            self.ledger.remark(target, format!("with one of {one_of} clients of the others"));
        }
        clients.div_ceil(one_of)
    }

    /// What a stream through it must hold.
    pub(crate) fn tokens(target: Target, wanted: u32, event_bytes: usize) -> Tokens {
        match Contender::of(target) {
            Some(contender) if contender.rewrites => Tokens::rewritten(wanted),
            _ => Tokens::new(wanted, event_bytes),
        }
    }

    /// What those saw whose answers were right; see `Ledger::accept`.
    pub(crate) fn accept<T>(&self, finished: Finished<T>) -> Result<Vec<T>, Error> {
        self.ledger.accept(finished)
    }

    pub(crate) fn remark(&self, target: Target, text: impl Into<String>) {
        self.ledger.remark(target, text);
    }

    /// Something that is wrong: of one that may fail it is noted.
    pub(crate) fn fault(&self, target: Target, text: String) -> Result<(), Error> {
        if !target.may_fail() {
            return Err(Error::Fault { target, text });
        }
        self.ledger.remark(target, text);
        Ok(())
    }

    /// What one part of a scenario came to. Where it failed with one that may fail, that is noted, and the engine is
    /// waited for; the rest of the scenario goes on without it.
    pub(crate) async fn bear(&self, target: Target, done: Result<(), Error>) -> Result<(), Error> {
        match done {
            Err(error) if target.may_fail() => {
                self.ledger.remark(target, error::chain(&error));
                self.ledger.leave_out(target);
                self.control().idle(target, SETTLED_WITHIN).await.map(drop)
            }
            done => done,
        }
    }

    /// Has a proxy read its configuration again; ours another one each time, as the same would be no change.
    pub(crate) fn reload(&self, target: Target, number: u32) -> Result<(), Error> {
        let Some(proxy) = self.proxies.get(&target) else { return Ok(()) };
        if target == Target::Gateway {
            let patience = if number.is_multiple_of(2) { "11m" } else { "10m" };
            let text = CONFIGURATION.replace("10m", patience);
            write_configuration(&text, self.engine_addr, self.dir.path())?;
        }
        let signal = Contender::of(target).and_then(|contender| contender.reloads_by).unwrap_or(Signal::HUP);
        proxy.process.signal(signal)
    }

    /// What the scenario came to.
    pub(crate) fn outcome(self, name: &str, mut figures: Vec<Figure>) -> Outcome {
        figures.extend(self.ledger.figure(name));
        Outcome { figures, remarks: self.ledger.remarks(name) }
    }
}

/// Waits until a request is answered: one that listens may not know its engine yet.
async fn answers(proxy: &mut Proxy) -> Result<(), Error> {
    let wishes = "{\"tokens\":1,\"first_event\":\"0ms\"}";
    let ask = Ask { id: "bench-first".to_owned(), stream: false, wishes };
    loop {
        let asked = async {
            let socket = client::connect(proxy.addr).await?;
            client::exchange(&socket, &ask.bytes(), &mut Vec::new()).await
        };
        if asked.await.is_ok() {
            return Ok(());
        }
        proxy.process.wait_more().await?;
    }
}

async fn start_gateway(options: &Options, engine: SocketAddr, dir: &Path) -> Result<Proxy, Error> {
    let file = write_configuration(CONFIGURATION, engine, dir)?;
    let mut gateway = Process::start(&ours("streamgate", PROXY_CORE, options, &["run", "-c", &file]))?;
    let addrs = gateway.addresses("streamgate listening").await?;
    Ok(Proxy::standing(gateway, addrs))
}

fn write_configuration(text: &str, engine: SocketAddr, dir: &Path) -> Result<String, Error> {
    let file = dir.join("streamgate.yaml");
    let text = filled_in(text, &[("@ENGINE@", engine.to_string()), ("@DIR@", dir.display().to_string())]);
    let failed = |error| Error::io("write the gateway's configuration", error);
    std::fs::write(&file, text).map_err(failed)?;
    Ok(file.display().to_string())
}

/// A process of the program that is measured.
fn ours(name: &'static str, core: u32, options: &Options, args: &[&str]) -> Start {
    let args = args.iter().map(|arg| (*arg).to_owned()).collect();
    Start { name, core, program: options.binary.clone(), args, environment: None, within: START }
}
