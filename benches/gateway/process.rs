//! A process on a core of its own, which ends with its guard, and with all that it has started.

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use socket2::{Domain, Socket, Type};
use tokio::net::TcpStream;

use crate::error::Error;

/// Between two looks whether one is ready.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// The core of the proxies.
pub(crate) const PROXY_CORE: u32 = 0;
/// The core of the engine and of the clients.
pub(crate) const LOAD_CORE: u32 = 1;
/// Where each process writes, for whoever wants to know why it ended.
const OUTPUTS: &str = "target/bench";

/// What to start.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) name: &'static str,
    pub(crate) core: u32,
    pub(crate) program: String,
    pub(crate) args: Vec<String>,
    /// All it sees of the environment besides `PATH`; `None`: all of ours.
    pub(crate) environment: Option<Vec<(&'static str, String)>>,
    /// It may take so long to be ready.
    pub(crate) within: Duration,
}

/// A running process, the first of a group of its own. The group is killed when this drops: nothing here has anything
/// to save.
#[derive(Debug)]
pub(crate) struct Process {
    name: &'static str,
    child: Child,
    output: PathBuf,
    deadline: Instant,
}

impl Process {
    pub(crate) fn start(start: &Start) -> Result<Self, Error> {
        let Start { name, core, program, args, environment, within } = start;
        let failed = |error| Error::io(format!("start {name} with taskset"), error);
        let output = Path::new(OUTPUTS).join(format!("{}.log", name.replace(' ', "-")));
        fs::create_dir_all(OUTPUTS).map_err(failed)?;
        // A file, as a process that writes into a pipe nobody empties would come to a halt.
        let file = File::create(&output).map_err(failed)?;
        let mut command = Command::new("taskset");
        // taskset replaces itself with the program, so the child's id is the program's.
        command.args(["-c", &core.to_string(), program]).args(args).process_group(0);
        if let Some(environment) = environment {
            let path = std::env::var_os("PATH").unwrap_or_default();
            command.env_clear().env("PATH", path).envs(environment.iter().map(|(name, value)| (name, value)));
        }
        let same = file.try_clone().map_err(failed)?;
        let child = command.stdin(Stdio::null()).stdout(file).stderr(same).spawn().map_err(failed)?;
        Ok(Self { name, child, output, deadline: Instant::now() + *within })
    }

    /// Its id, which is that of its group, too.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks it for something.
    pub(crate) fn signal(&self, signal: Signal) -> Result<(), Error> {
        let sent = self.id().map_or(Err(rustix::io::Errno::SRCH), |pid| kill_process(pid, signal));
        sent.map_err(|error| Error::io(format!("send a signal to {}", self.name), error.into()))
    }

    fn id(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.child.id()).ok()?)
    }

    /// Sleeps a little, unless it has ended or takes too long to be ready.
    pub(crate) async fn wait_more(&mut self) -> Result<(), Error> {
        let has_ended = !matches!(self.child.try_wait(), Ok(None));
        if has_ended || Instant::now() > self.deadline {
            return Err(Error::NotReady { name: self.name, output: self.output.display().to_string() });
        }
        tokio::time::sleep(LOOK_EVERY).await;
        Ok(())
    }

    /// Waits until it takes connections on `addr`.
    async fn wait_for(&mut self, addr: SocketAddr) -> Result<(), Error> {
        while TcpStream::connect(addr).await.is_err() {
            self.wait_more().await?;
        }
        Ok(())
    }

    /// Waits until it prints that it is ready; gives the addresses behind `label`, of which there must be `N`.
    pub(crate) async fn addresses<const N: usize>(&mut self, label: &str) -> Result<[SocketAddr; N], Error> {
        loop {
            let failed = |error: io::Error| Error::io(format!("read what {} prints", self.name), error);
            let text = fs::read_to_string(&self.output).map_err(failed)?;
            if text.lines().any(|line| line == "ready") {
                let address = |line: &str| {
                    let (before, url) = line.trim_end().split_once(" on ")?;
                    url.split_once("://").filter(|_| before == label)?.1.parse().ok()
                };
                let found: Vec<SocketAddr> = text.lines().filter_map(address).collect();
                let output = self.output.display().to_string();
                return found.try_into().map_err(|_| Error::NotReady { name: self.name, output });
            }
            self.wait_more().await?;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Ok(Some(status)) = self.child.try_wait() {
            eprintln!("bench: {} had ended before its time: {status}", self.name);
        }
        // Before the child is waited for: only until then is the group's id surely its own. Errors say that all have
        // ended already.
        if let Some(group) = self.id() {
            kill_process_group(group, Signal::KILL).ok();
        }
        drop(self.child.wait());
    }
}

/// A proxy, and where it listens.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) process: Process,
    pub(crate) addr: SocketAddr,
    /// Where it takes TLS, if it does.
    pub(crate) secure: SocketAddr,
    /// Keeps the ports that were reserved for it.
    _reserved: Option<Ports>,
}

impl Proxy {
    /// Starts one that was told these ports, and waits until it listens on the first.
    pub(crate) async fn start(start: &Start, ports: Ports) -> Result<Self, Error> {
        let mut process = Process::start(start)?;
        let [addr, secure] = [ports.addr(), ports.secure()];
        process.wait_for(addr).await?;
        Ok(Self { process, addr, secure, _reserved: Some(ports) })
    }

    /// One that chose its ports itself.
    pub(crate) fn standing(process: Process, [addr, secure]: [SocketAddr; 2]) -> Self {
        Self { process, addr, secure, _reserved: None }
    }
}

/// Ports for a proxy: for clients in the clear, for clients with TLS, and one to spare, for what it serves besides.
#[derive(Debug)]
pub(crate) struct Ports([Reserved; 3]);

impl Ports {
    pub(crate) fn reserve() -> Result<Self, Error> {
        let one = || Reserved::new().map_err(|error| Error::io("reserve a port", error));
        Ok(Self([one()?, one()?, one()?]))
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.0[0].addr
    }

    pub(crate) fn secure(&self) -> SocketAddr {
        self.0[1].addr
    }

    pub(crate) fn spare(&self) -> SocketAddr {
        self.0[2].addr
    }
}

/// A port that is the kernel's choice: a socket that is bound and never listens keeps it, and a process
/// that listens with `SO_REUSEPORT` can stand beside it, or with `SO_REUSEADDR`, as it is the only one that listens.
#[derive(Debug)]
struct Reserved {
    addr: SocketAddr,
    _socket: Socket,
}

impl Reserved {
    fn new() -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.set_reuse_port(true)?;
        socket.set_reuse_address(true)?;
        socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
        let addr = socket.local_addr()?.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Self { addr, _socket: socket })
    }
}
