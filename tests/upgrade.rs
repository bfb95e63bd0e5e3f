//! A gateway is replaced while it runs: nobody is refused, no stream is cut, and a successor that fails
//! changes nothing.

mod support;

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use socket2::{Domain, SockAddr, Socket, Type};
use support::gateway::output;
use support::wait::{SOON, wait_until, wait_until_async};
use support::wire::{ANSWER, DONE, Request, event, json_answer};
use support::{Call, Client, End, Gateway, Settings, Upstream, checks, streaming, times};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

/// A gateway that can be succeeded, in front of an engine.
struct Reign {
    gateway: Gateway,
    upstream: Upstream,
    dir: TempDir,
}

impl Reign {
    async fn start(adjust: impl FnOnce(Settings) -> Settings) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let upstream = Upstream::start().await;
        let settings = Settings::new(&[upstream.addr]).set("server.upgrade_socket", at(&dir));
        Self { gateway: Gateway::start(adjust(settings)).await, upstream, dir }
    }

    /// The text of its file with these settings, as a file of its own.
    fn other_file(&self, adjust: impl FnOnce(Settings) -> Settings) -> PathBuf {
        let settings = Settings::new(&[self.upstream.addr]).set("server.upgrade_socket", at(&self.dir));
        let file = self.dir.path().join("other.yaml");
        std::fs::write(&file, adjust(settings).text(&self.dir.path().join("access.log"))).expect("write");
        file
    }

    /// It serves as it did, and says why nobody has taken over.
    async fn goes_on(&mut self, failures: usize, why: &str) {
        support::score::struck(1, why);
        self.gateway.wait_log(why).await;
        assert!(self.gateway.log().contains("no successor"), "{}", self.gateway.log());
        let failures = failures as f64;
        self.gateway.wait_metric("upgrades_total", &[("result", "failed")], failures).await;
        assert_eq!(self.gateway.admin_get("/readyz").await.status(), 200);
        let mut client = self.gateway.send(&Request::unary()).await;
        self.upstream.call().await.answer(json_answer(ANSWER)).await;
        assert_eq!(client.answer().await.status(), 200);
    }
}

fn at(dir: &TempDir) -> String {
    dir.path().join("upgrade.sock").display().to_string()
}

/// A process that nobody started but the gateway; ended by its id.
struct Adopted(u32);

impl Drop for Adopted {
    fn drop(&mut self) {
        drop(Command::new("kill").args(["-KILL", &self.0.to_string()]).status());
    }
}

/// The process that a gateway says it has handed over to.
async fn heir_of(gateway: &Gateway) -> Adopted {
    gateway.wait_log("handed over to process").await;
    let log = gateway.log();
    let pid = log.split("handed over to process ").nth(1).and_then(|rest| rest.split(':').next());
    Adopted(pid.and_then(|pid| pid.parse().ok()).expect("a process id"))
}

async fn ends_whole(mut client: Client, mut call: Call) {
    call.chunk(event("2")).await;
    call.chunk(DONE).await;
    call.finish().await;
    assert_eq!(client.end().await, End::Clean);
    checks::same(client.body(), [&event("1"), &event("2"), DONE].concat().as_bytes());
}

/// G4: a stream stays with the old process until it ends, all that is new goes to the new one.
#[tokio::test]
async fn a_stream_lives_through_an_upgrade() {
    let mut reign = Reign::start(|settings| settings.set("server.shutdown.drain", "10m")).await;
    let (client, call) = streaming(&reign.gateway, &mut reign.upstream, &["1"]).await;
    let mut idle = reign.gateway.send(&Request::unary()).await;
    reign.upstream.call().await.answer(json_answer(ANSWER)).await;
    assert_eq!(idle.answer().await.status(), 200);

    let heir = reign.gateway.upgraded().await;
    assert_eq!((heir.addr, heir.admin), (reign.gateway.addr, reign.gateway.admin));
    idle.closed().await;
    assert_eq!(idle.raw(), b"", "an idle connection is closed, not answered");
    // Who asks for the state of things is told of the new process.
    assert_eq!(heir.admin_get("/readyz").await.status(), 200);
    let (newer, newer_call) = streaming(&heir, &mut reign.upstream, &["1"]).await;
    heir.wait_metric("streams_active", &[], 1.0).await;
    assert!(reign.gateway.log().contains(&format!("handed over to process {}", heir.pid())));

    ends_whole(client, call).await;
    assert_eq!(reign.gateway.exit(SOON).await.code(), Some(0));
    ends_whole(newer, newer_call).await;
    let outcomes: Vec<_> = heir.all_access(3).await.iter().map(|line| line["outcome"].clone()).collect();
    assert_eq!(outcomes, ["completed"; 3], "both write to one file");
}

/// G4: a request whose first byte has come is the old process's to answer, on a new connection and on a kept one.
#[tokio::test]
async fn a_request_that_has_begun_is_answered() {
    let mut reign = Reign::start(|settings| settings).await;
    let bytes = Request::unary().bytes();
    let (first, rest) = bytes.split_at(20);
    let mut kept = reign.gateway.send(&Request::unary()).await;
    reign.upstream.call().await.answer(json_answer(ANSWER)).await;
    assert_eq!(kept.answer().await.status(), 200);
    let mut clients = [kept, reign.gateway.client().await];
    for client in &mut clients {
        client.send(first).await;
    }
    // A round trip: the old process has seen what came before.
    reign.gateway.wait_metric("connections_active", &[], 2.0).await;

    let heir = reign.gateway.upgraded().await;
    for client in &mut clients {
        client.send(rest).await;
        reign.upstream.call().await.answer(json_answer(ANSWER)).await;
        assert_eq!(client.answer().await.status(), 200);
        client.closed().await;
    }
    assert_eq!(reign.gateway.exit(SOON).await.code(), Some(0));
    assert_eq!(heir.metric("requests_total", &[]).await, 0.0);
}

/// G4: short connections all the time, across several upgrades: none is refused, none goes without its answer.
#[tokio::test]
async fn a_storm_of_connections_notices_no_upgrade() {
    let dir = tempfile::tempdir().unwrap();
    let engine = Upstream::answering(|_| json_answer(ANSWER)).await;
    let settings = Settings::new(&[engine]).set("server.upgrade_socket", at(&dir));
    let mut gateway = Gateway::start(settings).await;
    let (over, served) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let storm: Vec<_> = (0..4)
        .map(|_| {
            let (dialer, over, served) = (gateway.dialer(), Arc::clone(&over), Arc::clone(&served));
            tokio::spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    let mut client = dialer.client().await;
                    client.send(Request::unary().bytes()).await;
                    assert_eq!(client.answer().await.status(), 200);
                    served.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for _ in 0..times(5, 100) {
        let before = served.load(Ordering::Relaxed);
        // R17: the file is read, or not, while somebody takes over.
        gateway.signal("HUP");
        let heir = gateway.upgraded().await;
        assert_eq!(gateway.exit(SOON).await.code(), Some(0));
        gateway = heir;
        wait_until("the storm goes on", SOON, || served.load(Ordering::Relaxed) > before + 20).await;
    }
    over.store(true, Ordering::Relaxed);
    for stormer in storm {
        stormer.await.expect("no connect refused, no answer missing");
    }
}

/// G4: SIGQUIT has the process start its own successor; its streams end as they would have.
#[tokio::test]
async fn sigquit_starts_a_successor() {
    let mut reign = Reign::start(|settings| settings.set("server.shutdown.drain", "10m")).await;
    let (client, call) = streaming(&reign.gateway, &mut reign.upstream, &["1"]).await;
    reign.gateway.signal("QUIT");
    let _heir = heir_of(&reign.gateway).await;
    while reign.gateway.next_line().await != "ready" {}
    ends_whole(client, call).await;
    assert_eq!(reign.gateway.exit(SOON).await.code(), Some(0));
    let mut client = reign.gateway.send(&Request::unary()).await;
    reign.upstream.call().await.answer(json_answer(ANSWER)).await;
    assert_eq!(client.answer().await.status(), 200);
}

/// The drain of a process that has handed over has its end like any other.
#[tokio::test]
async fn a_stream_that_outlives_the_drain_is_told() {
    // The start of a successor is part of the stream's silence.
    let adjust =
        |settings: Settings| settings.set("server.shutdown.drain", "500ms").set("timeouts.idle", "30s");
    let mut reign = Reign::start(adjust).await;
    let (mut client, mut call) = streaming(&reign.gateway, &mut reign.upstream, &["1"]).await;
    let _heir = reign.gateway.upgraded().await;
    checks::broken(&mut client, &event("1"), "shutting_down").await;
    call.gone().await;
    assert_eq!(reign.gateway.exit(SOON).await.code(), Some(0));
}

/// A service that is stopped sends SIGTERM to both: the old one goes on draining, and a second one ends it.
#[tokio::test]
async fn one_sigterm_leaves_an_old_process_to_its_drain() {
    let mut reign = Reign::start(|settings| settings.set("server.shutdown.drain", "10m")).await;
    let (mut client, mut call) = streaming(&reign.gateway, &mut reign.upstream, &["1"]).await;
    let _heir = reign.gateway.upgraded().await;
    reign.gateway.terminate();
    reign.gateway.wait_log("told to end: 1 exchanges").await;
    call.chunk(event("2")).await;
    client.until_body([event("1"), event("2")].concat().as_bytes()).await;
    reign.gateway.terminate();
    assert_eq!(reign.gateway.exit(SOON).await.code(), Some(0));
    call.gone().await;
}

/// Each address that both files have is handed over, also a unix socket; a new one is bound, one that is not
/// wanted any more is given up.
#[tokio::test]
async fn listeners_are_matched_by_address() {
    let sockets = tempfile::tempdir().unwrap();
    let path = sockets.path().join("http.sock");
    let unix = format!("unix:{}", path.display());
    let tcp = json!({ "address": "127.0.0.1:0" });
    let old = json!([{ "address": unix, "mode": "0620" }, tcp, { "address": "127.0.0.2:0" }]);
    let mut reign = Reign::start(|settings| settings.set("server.listen", old)).await;
    let inode = || std::os::unix::fs::MetadataExt::ino(&path.metadata().unwrap());
    let before = inode();
    let (kept, given_up) = (reign.gateway.listener(1), reign.gateway.listener(2));
    let new = json!([tcp, { "address": "127.0.0.3:0" }, { "address": unix, "mode": "0620" }]);
    let file = reign.other_file(|settings| settings.set("server.listen", new));

    let heir = reign.gateway.upgraded_to(&file).await;
    assert_eq!(reign.gateway.exit(SOON).await.code(), Some(0));
    assert_eq!(heir.listener(0), kept);
    assert_eq!(inode(), before, "the socket is the same");
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions()) & 0o777,
        0o620
    );
    assert!(TcpStream::connect(given_up).await.is_err());
    heir.wait_log("127.0.0.2:0 is not in the file").await;
    let mut unix = UnixStream::connect(&path).await.unwrap();
    unix.write_all(&Request::unary().header("Connection: close").bytes()).await.unwrap();
    reign.upstream.call().await.answer(json_answer(ANSWER)).await;
    let mut answer = String::new();
    unix.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    for addr in [kept, heir.listener(1)] {
        let mut client = Client::connect(addr).await;
        client.send(Request::unary().bytes()).await;
        reign.upstream.call().await.answer(json_answer(ANSWER)).await;
        assert_eq!(client.answer().await.status(), 200);
    }
}

/// A successor knows its backends before it takes over.
#[tokio::test]
async fn backends_are_checked_before_the_sockets_are_taken() {
    let checked = Upstream::answering(|_| json_answer("{}")).await;
    let dir = tempfile::tempdir().unwrap();
    let health =
        json!({ "active": { "path": "/health", "every": "1h", "timeout": "2s", "rise": 1, "fall": 1 } });
    let settings = Settings::new(&[checked]).set("server.upgrade_socket", at(&dir));
    let gateway = Gateway::start(settings.set("clusters.c.health", health)).await;
    assert_eq!(gateway.admin_get("/readyz").await.status(), 503, "an hour has not gone by");
    let heir = gateway.upgraded().await;
    assert_eq!(heir.admin_get("/readyz").await.status(), 200);
}

/// G5: a successor that cannot start says why, as does the process that stays.
#[tokio::test]
async fn a_successor_that_cannot_start_changes_nothing() {
    let mut reign = Reign::start(|settings| settings).await;
    let (client, call) = streaming(&reign.gateway, &mut reign.upstream, &["1"]).await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let listen = json!([{ "address": "127.0.0.1:0" }, { "address": taken }]);
    let file = reign.other_file(|settings| settings.set("server.listen", listen));
    let (code, said) = upgrade(&file).await;
    assert_eq!(code, Some(75), "{said}");
    assert!(said.contains(&format!("cannot listen on {taken}")), "{said}");
    reign.goes_on(1, &format!("cannot listen on {taken}")).await;

    std::fs::write(&file, "server: [").unwrap();
    let (code, said) = upgrade(&file).await;
    assert_eq!(code, Some(64), "{said}");
    ends_whole(client, call).await;
}

async fn upgrade(file: &Path) -> (Option<i32>, String) {
    let file = file.display().to_string();
    tokio::task::spawn_blocking(move || output(&["upgrade", "-c", &file], &[])).await.expect("run")
}

/// G5: the same where the process itself has started it.
#[tokio::test]
async fn sigquit_with_a_bad_file_changes_nothing() {
    let mut reign = Reign::start(|settings| settings).await;
    let good = std::fs::read_to_string(reign.gateway.file()).unwrap();
    std::fs::write(reign.gateway.file(), "server: [").unwrap();
    reign.gateway.signal("QUIT");
    reign.goes_on(1, "it has ended (exit status: 64)").await;
    std::fs::write(reign.gateway.file(), good).unwrap();
    reign.gateway.signal("QUIT");
    let _heir = heir_of(&reign.gateway).await;
    assert_eq!(reign.gateway.exit(SOON).await.code(), Some(0));
}

/// What is started is the file that is there now: no program, a failing one, the newer binary.
#[tokio::test]
async fn sigquit_starts_what_is_there_now() {
    let (dir, bin) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = bin.path().join("streamgate");
    let link = |target: &Path| {
        let new = bin.path().join("new");
        std::os::unix::fs::symlink(target, &new).unwrap();
        std::fs::rename(new, &path).unwrap();
    };
    let (mut upstream, binary) = (Upstream::start().await, Path::new(env!("CARGO_BIN_EXE_streamgate")));
    link(binary);
    let settings = Settings::new(&[upstream.addr]).set("server.upgrade_socket", at(&dir));
    let mut gateway = Gateway::start_by(Command::new(&path), settings).await;
    let failures: [(&str, &str); 2] =
        [("/bin/false", "it has ended (exit status: 1)"), ("/nowhere", "cannot be started")];
    for (number, (target, why)) in (1..).zip(failures) {
        link(Path::new(target));
        gateway.signal("QUIT");
        gateway.wait_log(why).await;
        gateway.wait_metric("upgrades_total", &[("result", "failed")], f64::from(number)).await;
    }
    link(binary);
    gateway.signal("QUIT");
    let _heir = heir_of(&gateway).await;
    assert_eq!(gateway.exit(SOON).await.code(), Some(0));
    let mut client = gateway.send(&Request::unary()).await;
    upstream.call().await.answer(json_answer(ANSWER)).await;
    assert_eq!(client.answer().await.status(), 200);
}

/// G5: successors that die, talk nonsense or keep silent.
#[tokio::test]
async fn a_successor_that_is_none_changes_nothing() {
    let mut reign = Reign::start(|settings| settings.set("timeouts.idle", "25s")).await;
    let (client, call) = streaming(&reign.gateway, &mut reign.upstream, &["1"]).await;
    let connect = || {
        let socket = Socket::new(Domain::UNIX, Type::SEQPACKET, None).unwrap();
        socket.connect(&SockAddr::unix(at(&reign.dir)).unwrap()).unwrap();
        socket
    };
    let mut nonsense = connect();
    nonsense.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    drop(nonsense);
    let mut dies = connect();
    dies.write_all(br#"{"hello":{"protocol":1}}"#).unwrap();
    drop(dies);
    let mut older = connect();
    older.write_all(br#"{"hello":{"protocol":0}}"#).unwrap();
    let mut silent = connect();
    silent.write_all(br#"{"hello":{"protocol":1}}"#).unwrap();
    for why in ["expected value", "gone before it was ready", "hands over by protocol 0"] {
        reign.gateway.wait_log(why).await;
    }
    let mut told = String::new();
    silent.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let reading = tokio::task::spawn_blocking(move || {
        let mut bytes = [0; 1024];
        while !told.contains("refused") {
            let read = silent.read(&mut bytes).unwrap();
            assert!(read > 0, "it closes with a word");
            told.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
        told
    });
    assert!(reading.await.unwrap().contains("has not said that it is ready"));
    drop(older);
    reign.goes_on(4, "has not said that it is ready within 10s").await;
    ends_whole(client, call).await;
}

/// Who may speak at the private socket, and where it should stand.
#[tokio::test]
async fn the_private_socket_is_private() {
    let reign = Reign::start(|settings| settings).await;
    let mode = |path: &Path| {
        std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions()) & 0o777
    };
    assert_eq!(mode(Path::new(&at(&reign.dir))), 0o600);
    assert!(!reign.gateway.log().contains("everybody may write"));
    let open = tempfile::tempdir().unwrap();
    std::fs::set_permissions(open.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let loud = Reign::start(|settings| settings.set("server.upgrade_socket", at(&open))).await;
    loud.gateway.wait_log("everybody may write").await;
}

/// A socket that a killed process has left is replaced, one that is in use is not.
#[tokio::test]
async fn a_left_over_socket_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let settings = || Settings::new(&["127.0.0.1:1".parse().unwrap()]).set("server.upgrade_socket", at(&dir));
    let mut killed = Gateway::start(settings()).await;
    killed.signal("KILL");
    killed.exit(SOON).await;
    assert!(Path::new(&at(&dir)).exists());
    let gateway = Gateway::start(settings()).await;
    let heir = gateway.upgraded().await;
    let second = Gateway::start(settings()).await;
    second.wait_log("nobody can take over from this process").await;
    assert_eq!(heir.admin_get("/readyz").await.status(), 200);
}

/// G5: nobody to take over from, or not allowed to: a line and an exit code.
#[tokio::test]
async fn what_cannot_be_handed_over_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings::new(&["127.0.0.1:1".parse().unwrap()]);
    let file = dir.path().join("streamgate.yaml");
    let with = async |settings: Settings| {
        std::fs::write(&file, settings.text(Path::new("/dev/null"))).unwrap();
        upgrade(&file).await
    };
    let (code, said) = with(settings.clone()).await;
    assert_eq!(code, Some(64), "{said}");
    assert!(said.contains("server.upgrade_socket is not set"), "{said}");
    let settings = settings.set("server.upgrade_socket", at(&dir));
    let (code, said) = with(settings.clone()).await;
    assert_eq!(code, Some(75), "{said}");
    assert!(said.contains("nobody to take over from"), "{said}");
    let (code, said) = with(settings.set("sim", json!([{ "name": "s", "listen": "127.0.0.1:0" }]))).await;
    assert_eq!(code, Some(64), "{said}");
    assert!(said.contains("simulated engines"), "{said}");
}

/// A successor that still gets to know its backends can be told to end; the gateway never hears of it.
#[tokio::test]
async fn a_successor_can_be_told_to_end() {
    let mut reign = Reign::start(|settings| settings).await;
    let health = json!({ "active": { "path": "/health", "every": "1h", "timeout": "15s" } });
    let file = reign.other_file(|settings| settings.set("clusters.c.health", health));
    let mut heir =
        Command::new(env!("CARGO_BIN_EXE_streamgate")).args(["upgrade", "-c"]).arg(&file).spawn().unwrap();
    let check = reign.upstream.call().await;
    assert!(Command::new("kill").args(["-TERM", &heir.id().to_string()]).status().unwrap().success());
    wait_until("it ends", SOON, || heir.try_wait().unwrap().is_some()).await;
    assert_eq!(heir.wait().unwrap().code(), Some(75));
    drop(check);
    assert!(!reign.gateway.log().contains("successor"), "{}", reign.gateway.log());
    assert_eq!(reign.gateway.admin_get("/readyz").await.status(), 200);
}

/// R17: SIGTERM ends the process as ever while a successor is on its way, and that finds nobody.
#[tokio::test]
async fn sigterm_comes_before_a_successor() {
    let mut reign = Reign::start(|settings| settings.set("server.shutdown.lame_duck", "10m")).await;
    reign.gateway.terminate();
    wait_until_async("not ready", SOON, || async {
        reign.gateway.admin_get("/readyz").await.status() == 503
    })
    .await;
    let (code, said) = upgrade(&reign.gateway.file()).await;
    assert_eq!(code, Some(75), "{said}");
    assert!(!Path::new(&at(&reign.dir)).exists());
    reign.gateway.signal("QUIT");
    reign.gateway.terminate();
    assert_eq!(reign.gateway.exit(SOON).await.code(), Some(0));
}

over_h2! {
    a_stream_lives_through_an_upgrade,
    a_storm_of_connections_notices_no_upgrade,
    a_stream_that_outlives_the_drain_is_told,
}
