//! The corpus through another proxy in front of the gateway (S7): what that proxy passes on, and how it writes it
//! anew, is not for us to say, so that no status is expected here.
//!
//! The hard idea: each client comes from an address of its own, which the proxy in front names, and the origin puts
//! into its answer to whom it answers, and a number. Whatever the two proxies made of a case, what a client is
//! answered by the origin must be what the origin was asked in its name, in the same order; but for the last of it,
//! where the proxy in front gave the client up while that was under way. A request too many, or an answer that goes
//! to the next one on a shared connection, cannot be explained so. Among the cases are clients who send nothing
//! odd: each must have its own answer.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio::task::JoinSet;

use crate::corpus::{self, Case};
use crate::h1::FILES;
use crate::h2::frames;
use crate::support::frames::{PREFACE, SETTINGS, frame};
use crate::support::front::{Front, Kind};
use crate::support::wait::{SOON, within};
use crate::support::wire::{Request, answer};
use crate::support::{Gateway, Settings, Upstream, not_run};

/// After which the proxies in front end a connection that says nothing more.
const PATIENCE: Duration = Duration::from_secs(1);
/// Clients at the same time.
const AT_ONCE: usize = 96;
/// What the gateway sends to the origin.
const ROUTED: [&str; 4] = ["/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses/"];
/// Every so many cases, somebody who sends nothing odd.
const HONEST: usize = 6;

/// Somebody who sends bytes.
struct Client {
    name: String,
    bytes: Vec<u8>,
    /// Nothing odd, so that one answer of the origin comes back.
    is_honest: bool,
}

/// A request as the origin saw it; its number is its place.
struct Asked {
    target: String,
    client: String,
}

/// All that the origin was asked.
type Seen = Mutex<Vec<Asked>>;

/// An origin whose answers say to whom they are, and their number.
async fn origin() -> (SocketAddr, Arc<Seen>) {
    let seen: Arc<Seen> = Arc::default();
    let noting = Arc::clone(&seen);
    let addr = Upstream::answering(move |asked| {
        let mut seen = noting.lock().expect("lock");
        let told = asked.head.get("x-forwarded-for").unwrap_or("nobody");
        // Behind the client stands the proxy in front, as the gateway saw it.
        let client = told.strip_suffix(", 127.0.0.1").unwrap_or(told).to_owned();
        let body = format!("{{\"answer\":{},\"to\":\"{client}\"}}", seen.len());
        seen.push(Asked { target: asked.head.line.split(' ').nth(1).unwrap_or_default().to_owned(), client });
        answer("200 OK", &["Content-Type: application/json"], body)
    })
    .await;
    (addr, seen)
}

/// The numbers of the origin's answers among what a client has read, in their order, and to whom they are.
fn answers(read: &[u8]) -> Vec<(usize, String)> {
    let text = String::from_utf8_lossy(read);
    let told = text.split("{\"answer\":").skip(1).map(|rest| {
        let (number, rest) = rest.split_once(",\"to\":\"").expect("an answer is whole");
        let (client, _) = rest.split_once('"').expect("an answer is whole");
        (number.parse().expect("a number"), client.to_owned())
    });
    told.collect()
}

/// Sends and reads until the proxy in front closes.
async fn exchange(front: SocketAddr, from: Ipv4Addr, bytes: Vec<u8>) -> Vec<(usize, String)> {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(SocketAddr::from((from, 0))).expect("bind");
    let stream = within("connect", SOON, socket.connect(front)).await.expect("connect");
    let (mut reading, mut writing) = stream.into_split();
    let mut read = Vec::new();
    let all = async {
        // It may close before it has taken all, and by a reset.
        tokio::join!(writing.write_all(&bytes), reading.read_to_end(&mut read))
    };
    drop(within("the proxy in front closes", 3 * SOON, all).await);
    answers(&read)
}

/// The cases, and those who send nothing odd.
fn clients(cases: Vec<Case>, bytes: impl Fn(&Case) -> Vec<u8>, honest: &[u8]) -> Vec<Client> {
    let odd =
        cases.iter().map(|case| Client { name: case.name.clone(), bytes: bytes(case), is_honest: false });
    let mut clients = Vec::new();
    for (n, client) in odd.enumerate() {
        clients.push(client);
        if n % HONEST == 0 {
            let name = format!("nothing odd {n}");
            clients.push(Client { name, bytes: honest.to_vec(), is_honest: true });
        }
    }
    clients
}

/// Every client through the proxy in front, of whose last requests so many may be unanswered; gives how many cases
/// of the corpus were answered by the origin.
async fn run(front: SocketAddr, clients: Vec<Client>, unanswered: usize, seen: &Seen) -> usize {
    let (mut wrong, mut answered, mut reached) = (Vec::new(), 0, 0);
    let mut waiting = clients.into_iter().zip(1_u16..);
    loop {
        let mut running = JoinSet::new();
        for (client, n) in waiting.by_ref().take(AT_ONCE) {
            let [high, low] = n.to_be_bytes();
            let from = Ipv4Addr::new(127, 1, high, low);
            running.spawn(async move { (exchange(front, from, client.bytes.clone()).await, client, from) });
        }
        if running.is_empty() {
            break;
        }
        while let Some(done) = running.join_next().await {
            let (answers, client, from) = done.expect("a client does not panic");
            let missing = missing(&answers, &from.to_string(), &seen.lock().expect("lock"));
            let is_right = match client.is_honest {
                true => (answers.len(), missing) == (1, Some(0)),
                false => missing.is_some_and(|missing| missing <= unanswered),
            };
            if !is_right {
                wrong.push(format!("{} from {from}: {answers:?}", client.name));
            }
            answered += answers.len();
            reached += usize::from(!client.is_honest && !answers.is_empty());
        }
    }
    assert!(wrong.is_empty(), "{} clients were answered wrongly:\n{}", wrong.len(), wrong.join("\n"));
    for asked in std::mem::take(&mut *seen.lock().expect("lock")) {
        let is_routed = ROUTED.iter().any(|path| asked.target.starts_with(path));
        assert!(is_routed, "the origin saw {:?}", asked.target);
        assert!(asked.client.starts_with("127.1."), "the origin was asked for {}", asked.client);
    }
    assert!(answered > reached, "nobody who sent nothing odd was there");
    reached
}

/// How many of the last requests in a client's name were not answered to it; `None` where its answers are not those
/// that the others had, in their order.
fn missing(answers: &[(usize, String)], from: &str, seen: &[Asked]) -> Option<usize> {
    let asked: Vec<usize> = (0..seen.len()).filter(|number| seen[*number].client == from).collect();
    let told: Vec<usize> = answers.iter().map(|(number, _)| *number).collect();
    let is_its_own = answers.iter().all(|(_, client)| client == from);
    (is_its_own && asked.starts_with(&told)).then(|| asked.len() - told.len())
}

/// A gateway that believes the proxy in front, which comes from 127.0.0.1.
async fn behind(origin: SocketAddr) -> Gateway {
    let responses = json!({ "match": { "path": "/v1/responses/*" }, "cluster": "c", "include_usage": false });
    let settings = Settings::new(&[origin])
        .set("server.listen.0.h2c", true)
        .set("server.request.body_timeout", "1s")
        .set("server.trusted_proxies", json!(["127.0.0.1"]))
        .route(responses);
    Gateway::start(settings).await
}

/// Both parts of the corpus through one proxy.
async fn chain(test: &str, kind: Kind) {
    let (origin, seen) = origin().await;
    let gateway = behind(origin).await;
    let Some(front) = Front::start(kind, gateway.addr, PATIENCE).await else {
        return not_run(test, "this machine has no such proxy");
    };
    let cases = FILES.iter().flat_map(|file| corpus::read(file)).collect();
    let reached = run(front.addr, clients(cases, Case::bytes, &Request::unary().bytes()), 0, &seen).await;
    crate::support::score::struck(reached, "a request that can be read in two ways");
    assert!(reached >= 100, "only {reached} cases of HTTP/1.1 came through");

    let cases = corpus::read("h2.txt");
    let opening = [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat();
    let bytes = |case: &Case| [&opening[..], &frames(case)].concat();
    let honest = bytes(&cases[0]);
    let reached = run(front.h2, clients(cases, bytes, &honest), 1, &seen).await;
    assert!(reached >= 12, "only {reached} cases of HTTP/2 came through");
    assert!(!gateway.log().contains("panicked"), "{}", gateway.log());
}

#[tokio::test]
async fn s7_no_request_is_smuggled_through_nginx() {
    chain("s7_no_request_is_smuggled_through_nginx", Kind::Nginx).await;
}

#[tokio::test]
async fn s7_no_request_is_smuggled_through_haproxy() {
    chain("s7_no_request_is_smuggled_through_haproxy", Kind::Haproxy).await;
}

#[tokio::test]
async fn s7_no_request_is_smuggled_through_haproxy_over_http2() {
    chain("s7_no_request_is_smuggled_through_haproxy_over_http2", Kind::HaproxyOverH2).await;
}

#[tokio::test]
async fn s7_no_request_is_smuggled_through_another_gateway() {
    chain("s7_no_request_is_smuggled_through_another_gateway", Kind::Ours).await;
}
