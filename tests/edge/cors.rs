//! Pages of other origins: what a browser is told, and what one does with it.

use std::collections::HashMap;
use std::net::SocketAddr;

use crate::support;
use crate::support::browser::Browser;
use crate::support::framing::Head;
use crate::support::wait::{SOON, within};
use crate::support::wire::{ANSWER, CHAT_PATH, DONE, Request, answer, event, json_answer};
use crate::support::{End, Gateway, Settings, Upstream, checks, one_engine, sse};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

const ORIGIN: &str = "https://chat.example.com";

/// Headers of a page that may read an answer.
const MAY_READ: [(&str, &str); 2] =
    [("access-control-allow-origin", ORIGIN), ("access-control-allow-credentials", "true")];

fn open_to(origin: &str) -> impl FnOnce(Settings) -> Settings {
    move |settings| settings.set("cors", json!({ "origins": ["https://other.example.com", origin] }))
}

fn preflight(path: &str, origin: &str) -> Request {
    Request::bare("OPTIONS", path).lines(&[
        &format!("Origin: {origin}"),
        "Access-Control-Request-Method: POST",
        "Access-Control-Request-Headers: authorization,content-type,x-api-key,x-request-id,x-stainless-lang",
    ])
}

/// The page may read the answer, and what it says beside its body.
fn readable(head: &Head) {
    for (name, value) in MAY_READ {
        assert_eq!(head.all(name), [value], "{name}: {:?}", head);
    }
    let exposed = head.get("access-control-expose-headers").expect("exposed headers");
    for name in ["x-request-id", "retry-after", "x-ratelimit-remaining-tokens"] {
        assert!(exposed.split(", ").any(|one| one == name), "{name}: {exposed}");
    }
    assert!(varies(head), "{:?}", head);
}

/// No page may read the answer.
fn unreadable(head: &Head) {
    let said: Vec<_> = head.headers.iter().filter(|(name, _)| name.starts_with("access-control-")).collect();
    assert!(said.is_empty(), "{said:?}");
}

fn varies(head: &Head) -> bool {
    head.all("vary").iter().any(|line| line.split(", ").any(|one| one == "Origin"))
}

/// A preflight is answered by us, without a key and without anybody asked; it grants what clients send.
#[tokio::test]
async fn a_preflight_is_granted_without_a_key() {
    let (gateway, mut upstream) = one_engine(open_to(ORIGIN)).await;
    for path in [CHAT_PATH, "/v1/models", "/no/such/path"] {
        let answer = gateway.ask(&preflight(path, ORIGIN)).await;
        assert_eq!((answer.status(), answer.body.len()), (204, 0), "{path}");
        readable(&answer.head);
        let granted = |name: &str| answer.head.get(name).unwrap_or_default().to_owned();
        let headers = granted("access-control-allow-headers");
        for name in ["authorization", "content-type", "x-api-key", "x-request-id", "x-stainless-lang"] {
            assert!(headers.split(", ").any(|one| one == name), "{name}: {headers}");
        }
        assert_eq!(granted("access-control-allow-methods"), "GET, HEAD, POST");
        assert_eq!(granted("access-control-max-age"), "7200");
    }
    upstream.assert_not_asked();
    gateway.wait_metric("requests_total", &[("outcome", "completed")], 3.0).await;
}

/// An origin that the file does not have is told nothing, nor is anybody where there is none.
#[tokio::test]
async fn other_origins_are_told_nothing() {
    let (gateway, mut upstream) = one_engine(open_to(ORIGIN)).await;
    let strangers = ["https://chat.example.com.evil.test", "http://chat.example.com", "null", "*"];
    for origin in strangers {
        let answer = gateway.ask(&preflight(CHAT_PATH, origin)).await;
        unreadable(&answer.head);
        assert!(varies(&answer.head), "{:?}", answer.head);
        // The page learns nothing; the request itself is one like any other.
        let mut client = gateway.send(&Request::unary().header(&format!("Origin: {origin}"))).await;
        upstream.call().await.answer(json_answer(ANSWER)).await;
        let answer = client.answer().await;
        assert_eq!(answer.status(), 200);
        unreadable(&answer.head);
        assert!(varies(&answer.head), "{:?}", answer.head);
    }
    let (gateway, mut upstream) = one_engine(support::as_is).await;
    unreadable(&gateway.ask(&preflight(CHAT_PATH, ORIGIN)).await.head);
    let mut client = gateway.send(&Request::unary().header(&format!("Origin: {ORIGIN}"))).await;
    // An engine does not know who reaches it: what it allows stops here.
    let open = ["Content-Type: application/json", "Access-Control-Allow-Origin: *", "Vary: Accept"];
    upstream.call().await.answer(answer("200 OK", &open, ANSWER)).await;
    let answer = client.answer().await;
    unreadable(&answer.head);
    assert_eq!(answer.head.all("vary"), ["Accept"], "nothing varies by origin here");
}

/// Streams, errors of ours and of the engine, before and in a stream: a page can read them all.
#[tokio::test]
async fn a_page_can_read_every_answer() {
    let (gateway, mut upstream) = one_engine(open_to(ORIGIN)).await;
    let from_page = |request: Request| request.header(&format!("Origin: {ORIGIN}"));
    let mut client = gateway.send(&from_page(Request::chat())).await;
    let mut call = upstream.call().await;
    call.open().await;
    call.chunk(event("a")).await;
    let head = client.until_body_holds(event("a").as_bytes()).await;
    readable(&head);
    call.reset();
    assert_eq!(client.end().await, End::Clean);
    let events = sse::data(client.body());
    assert!(events.last().is_some_and(|last| last.contains("upstream_disconnected")), "{events:?}");

    let mut client = gateway.send(&from_page(Request::unary())).await;
    upstream.call().await.close();
    let failed = client.answer().await;
    checks::rejected(&failed, 502, "upstream_disconnected");
    readable(&failed.head);

    let mut client = gateway.send(&from_page(Request::unary())).await;
    let open = ["Content-Type: application/json", "Access-Control-Allow-Origin: *", "Retry-After: 7"];
    upstream.call().await.answer(answer("429 Too Many Requests", &open, ANSWER)).await;
    let limited = client.answer().await;
    assert_eq!((limited.status(), limited.head.get("retry-after")), (429, Some("7")));
    readable(&limited.head);

    let bad = from_page(Request::post(CHAT_PATH, "{"));
    for (request, status) in [(from_page(Request::bare("GET", "/nowhere")), 404), (bad, 400)] {
        let refused = gateway.ask(&request).await;
        assert_eq!(refused.status(), status);
        readable(&refused.head);
    }
}

crate::over_h2!(a_preflight_is_granted_without_a_key, a_page_can_read_every_answer);

/// Another list of origins is taken on reload.
#[tokio::test]
async fn origins_change_on_reload() {
    let engine = Upstream::start().await;
    let settings = |origin: &str| open_to(origin)(Settings::new(&[engine.addr]));
    let gateway = Gateway::start(settings(ORIGIN)).await;
    readable(&gateway.ask(&preflight(CHAT_PATH, ORIGIN)).await.head);
    gateway.reload(settings("https://new.example.com")).await;
    unreadable(&gateway.ask(&preflight(CHAT_PATH, ORIGIN)).await.head);
    let answer = gateway.ask(&preflight(CHAT_PATH, "https://new.example.com")).await;
    assert_eq!(answer.head.get("access-control-allow-origin"), Some("https://new.example.com"));
}

/// A server of one page, to which the page tells what it sees.
struct Page {
    addr: SocketAddr,
    told: mpsc::UnboundedReceiver<(String, String)>,
}

impl Page {
    async fn serve() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
        let addr = listener.local_addr().expect("an address");
        let (tell, told) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(page_connection(stream, tell.clone()));
            }
        });
        Self { addr, told }
    }

    /// What the page tells next.
    async fn next(&mut self) -> (String, String) {
        within("the page tells something", 5 * SOON, self.told.recv()).await.expect("the page lives")
    }

    /// The page tells this next.
    async fn tells(&mut self, step: &str, what: &str) {
        assert_eq!(self.next().await, (step.to_owned(), what.to_owned()));
    }
}

/// One request, one answer, one connection.
async fn page_connection(
    mut stream: tokio::net::TcpStream,
    tell: mpsc::UnboundedSender<(String, String)>,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let target = head.split(' ').nth(1).unwrap_or_default();
    let body = match target.split_once('?') {
        Some(("/told", query)) => {
            let fields: HashMap<&str, String> = query
                .split('&')
                .filter_map(|pair| pair.split_once('='))
                .map(|(name, value)| (name, decoded(value)))
                .collect();
            // The test may be over.
            drop(tell.send((fields["step"].clone(), fields["what"].clone())));
            ""
        }
        _ => include_str!("../browser/page.html"),
    };
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n";
    stream.write_all(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes()).await
}

/// A value of a form (the URL standard, 5.1).
fn decoded(value: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = value.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let code = (first == b'%').then(|| std::str::from_utf8(behind.get(..2)?).ok()).flatten();
        let code = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        bytes.push(code.unwrap_or(if first == b'+' { b' ' } else { first }));
        rest = if code.is_some() { &behind[2..] } else { behind };
    }
    String::from_utf8(bytes).expect("UTF-8")
}

/// A chat page in Chromium: it reads a stream as it comes, its button ends one, and it shows an error that comes
/// in a stream and one that comes instead.
#[tokio::test(flavor = "multi_thread")]
async fn a_chat_page_works_in_a_browser() {
    let mut page = Page::serve().await;
    let (gateway, mut upstream) = one_engine(open_to(&format!("http://{}", page.addr))).await;
    let url = format!("http://{}/?gateway=http://{}", page.addr, gateway.addr);
    let Some(_browser) = Browser::open(&url) else {
        return support::not_run("a_chat_page_works_in_a_browser", "this machine has no Chromium");
    };

    let mut call = upstream.call_within(5 * SOON).await;
    assert_eq!(call.request.head.get("x-stainless-lang"), Some("js"));
    call.open().await;
    page.tells("whole", "200 whole").await;
    // Each event is in the page before the engine writes the next one.
    for content in ["one", "two"] {
        call.chunk(event(content)).await;
        page.tells("whole", sse::data(event(content).as_bytes())[0].as_str()).await;
    }
    call.chunk(DONE).await;
    call.finish().await;
    page.tells("whole", "[DONE]").await;
    page.tells("whole", "ended behind [DONE]").await;

    let mut call = upstream.call().await;
    call.open().await;
    call.chunk(event("three")).await;
    page.tells("stopped", sse::data(event("three").as_bytes())[0].as_str()).await;
    call.gone().await;
    page.tells("stopped", "AbortError").await;
    let line = gateway.wait_access("stopped", |line| line["request_id"] == "stopped").await;
    assert_eq!((&line["outcome"], &line["phase"]), (&json!("client_closed"), &json!("stream")), "{line}");

    let mut call = upstream.call().await;
    call.open().await;
    call.chunk(event("four")).await;
    page.tells("broken", sse::data(event("four").as_bytes())[0].as_str()).await;
    call.reset();
    let (step, error) = page.next().await;
    assert!(step == "broken" && error.contains("upstream_disconnected"), "{step}: {error}");
    page.tells("broken", "shown upstream_disconnected").await;

    let body =
        json!({ "error": { "message": "slow down", "type": "limit", "code": "slow_down" } }).to_string();
    let headers = ["Content-Type: application/json", "Retry-After: 7"];
    upstream.call().await.answer(answer("429 Too Many Requests", &headers, &body)).await;
    page.tells("limited", "429 7 slow_down").await;
}

/// A page of another origin: the browser keeps the answer from it.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_another_origin_is_kept_out_by_the_browser() {
    let mut page = Page::serve().await;
    let (gateway, mut upstream) = one_engine(open_to(ORIGIN)).await;
    let url = format!("http://{}/?gateway=http://{}", page.addr, gateway.addr);
    let Some(_browser) = Browser::open(&url) else {
        let name = "a_page_of_another_origin_is_kept_out_by_the_browser";
        return support::not_run(name, "this machine has no Chromium");
    };
    let (step, what) = page.next().await;
    assert!(step == "failed" && what.contains("TypeError"), "{step}: {what}");
    upstream.assert_not_asked();
    let line = gateway.only_access().await;
    assert_eq!(line["method"], "OPTIONS", "the preflight is all that came: {line}");
}
