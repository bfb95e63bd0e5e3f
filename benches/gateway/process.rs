//! A process on a core of its own, which ends with its guard.

use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};
use tokio::net::TcpStream;

use crate::error::Error;

/// How long a proxy may take to start.
const START: Duration = Duration::from_secs(5);
/// The core of the proxies.
pub(crate) const PROXY_CORE: u32 = 0;
/// The core of the engine and of the clients.
pub(crate) const LOAD_CORE: u32 = 1;

/// A running process. It is killed when this drops: nothing here has anything to save.
#[derive(Debug)]
pub(crate) struct Process {
    name: &'static str,
    child: Child,
    /// Kept open, since a process that writes into a closed pipe would end.
    stdout: BufReader<ChildStdout>,
}

impl Process {
    /// Starts `program` on `core`.
    pub(crate) fn start(
        name: &'static str,
        core: u32,
        program: &str,
        args: &[String],
    ) -> Result<Self, Error> {
        let failed = |error| Error::io(format!("start {name} with taskset"), error);
        let mut command = Command::new("taskset");
        // taskset replaces itself with the program, so the child's id is the program's.
        command.args(["-c", &core.to_string(), program]).args(args);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(failed)?;
        let stdout = child.stdout.take().ok_or(Error::NotReady(name))?;
        Ok(Self { name, child, stdout: BufReader::new(stdout) })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it takes connections on `addr`.
    async fn wait_for(&mut self, addr: SocketAddr, deadline: Instant) -> Result<(), Error> {
        while TcpStream::connect(addr).await.is_err() {
            let has_ended = !matches!(self.child.try_wait(), Ok(None));
            if has_ended || Instant::now() > deadline {
                return Err(Error::NotReady(self.name));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    /// Reads what it prints until it is ready; gives the addresses behind `label`, of which there must be `N`.
    pub(crate) fn addresses<const N: usize>(&mut self, label: &str) -> Result<[SocketAddr; N], Error> {
        let mut addresses = Vec::new();
        loop {
            let mut line = String::new();
            let read = self.stdout.read_line(&mut line);
            let read = read.map_err(|error| Error::io(format!("read what {} prints", self.name), error))?;
            if read == 0 {
                return Err(Error::NotReady(self.name));
            }
            if let Some((before, url)) = line.trim_end().split_once(" on ")
                && let Some((_, address)) = url.split_once("://").filter(|_| before == label)
            {
                addresses.extend(address.parse::<SocketAddr>());
            }
            if line == "ready\n" {
                return addresses.try_into().map_err(|_| Error::NotReady(self.name));
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Ok(Some(status)) = self.child.try_wait() {
            eprintln!("bench: {} had ended before its time: {status}", self.name);
        }
        // An error says that it has ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A proxy that listens on a port that is reserved for it.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) process: Process,
    pub(crate) addr: SocketAddr,
    /// Where it takes TLS, if it does.
    pub(crate) secure: SocketAddr,
    /// Keeps the ports.
    _reserved: [Reserved; 2],
}

impl Proxy {
    /// Starts `program` on the core of the proxies, with the arguments for its ports, and waits until it listens on the
    /// first; the second is for TLS.
    pub(crate) async fn start(
        name: &'static str,
        program: &str,
        args: impl FnOnce([SocketAddr; 2]) -> Result<Vec<String>, Error>,
    ) -> Result<Self, Error> {
        let reserve = || Reserved::new().map_err(|error| Error::io("reserve a port", error));
        let reserved = [reserve()?, reserve()?];
        let [addr, secure] = [reserved[0].addr, reserved[1].addr];
        let mut process = Process::start(name, PROXY_CORE, program, &args([addr, secure])?)?;
        process.wait_for(addr, Instant::now() + START).await?;
        Ok(Self { process, addr, secure, _reserved: reserved })
    }
}

/// A port that is the kernel's choice: a socket that is bound and never listens keeps it, and a process
/// that listens with `SO_REUSEPORT` can stand beside it.
#[derive(Debug)]
struct Reserved {
    addr: SocketAddr,
    _socket: Socket,
}

impl Reserved {
    fn new() -> std::io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.set_reuse_port(true)?;
        socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
        let addr = socket.local_addr()?.as_socket().ok_or(std::io::ErrorKind::AddrNotAvailable)?;
        Ok(Self { addr, _socket: socket })
    }
}
