//! Backend faults of framing, row S6: an answer that could be read in two ways is read in one or refused,
//! and what is left of it is never taken for the answer to another request.

use crate::support::wire::{self, Request};
use crate::support::{Answer, End, Gateway, Upstream, as_is, checks, one_engine};

/// What smuggled bytes say, wherever they hide. No client may ever see it.
const EVIL: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nX-Evil: yes\r\n\r\nevil";

/// What becomes of an answer at the client.
enum Seen {
    /// This body, and a sound end.
    Whole(u16, &'static str),
    /// The head passed; the body is cut.
    Cut,
    /// 502.
    Refused,
}

use Seen::{Cut, Refused, Whole};

fn assert_no_evil(what: &str, answer: &Answer) {
    let head = format!("{:?}", answer.head.headers).to_lowercase();
    assert!(!head.contains("evil"), "{what}: {head}");
    assert!(!answer.text().contains("HTTP/1.1"), "{what}: {}", answer.text());
    assert!(
        !answer.head.headers.iter().any(|(_, value)| value.contains(['\r', '\n', '\0'])),
        "{what}: {head}"
    );
}

/// The engine gives `answer`, and `late` when the client has its own; whoever comes next gets what is
/// theirs, on this client connection and on another.
async fn pollutes_nobody(what: &str, request: &Request, answer: &[u8], late: &[u8], seen: Seen) {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let mut client = gateway.send(request).await;
    if request.head().starts_with(b"HEAD") {
        client.expect_no_body();
    }
    let mut call = upstream.call().await;
    crate::support::score::struck(1, what);
    // The gateway may have seen enough before it has seen all.
    drop(call.try_send(answer).await);
    let got = client.answer().await;
    assert_no_evil(what, &got);
    match seen {
        Whole(status, body) => {
            assert_eq!((got.status(), &*got.text(), got.end), (status, body, End::Clean), "{what}");
        }
        Cut => assert_eq!((got.status(), got.end), (200, End::Broken), "{what}"),
        Refused => checks::rejected(&got, 502, "upstream_error"),
    }
    drop(call.try_send(late).await);
    call.keep();
    gateway.all_access(1).await;
    for round in 0..3 {
        next_is_sound(what, round, &gateway, &mut upstream).await;
        gateway.all_access(2 + round).await;
    }
    checks::at_rest(&gateway).await;
}

async fn next_is_sound(what: &str, round: usize, gateway: &Gateway, upstream: &mut Upstream) {
    let body = format!("{{\"round\":{round}}}");
    let mut client = gateway.send(&Request::unary()).await;
    upstream.call().await.answer(wire::json_answer(&body)).await;
    let answer = client.answer().await;
    assert_no_evil(what, &answer);
    assert_eq!((answer.status(), answer.text()), (200, body), "{what}");
}

/// The same for each of these answers to a unary request.
async fn each(cases: Vec<(&str, String, Seen)>) {
    for (what, answer, seen) in cases {
        pollutes_nobody(what, &Request::unary(), answer.as_bytes(), b"", seen).await;
    }
}

fn with(headers: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{headers}\r\n{body}")
}

/// S6: header lines that end where one reader sees an end and another does not.
#[tokio::test]
async fn s6_split_heads_reach_nobody() {
    each(vec![
        ("a bare CR in a value", with("X-A: a\rX-Evil: yes\r\nContent-Length: 2\r\n", "{}"), Refused),
        ("a NUL in a value", with("X-A: a\0\r\nContent-Length: 2\r\n", "{}"), Refused),
        // One line, with a blank for the fold (RFC 9112, 5.2).
        ("a folded line", with("X-A: a\r\n X-B: b\r\nContent-Length: 2\r\n", "{}"), Whole(200, "{}")),
        // Taken away, as a proxy must (RFC 9112, 5.1).
        (
            "a blank before the colon",
            with("Content-Length : 2\r\n", &format!("{{}}{EVIL}")),
            Whole(200, "{}"),
        ),
        ("a name with a blank", with("X Evil: yes\r\nContent-Length: 2\r\n", "{}"), Refused),
        ("no name", with(": X-Evil\r\nContent-Length: 2\r\n", "{}"), Refused),
        ("no colon", with("X-Evil\r\nContent-Length: 2\r\n", "{}"), Refused),
        ("a bare CR in the status line", format!("HTTP/1.1 200 OK\rX-Evil: yes\r\n\r\n{EVIL}"), Refused),
        ("another version", "HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\n{}".into(), Refused),
        ("four digits", "HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\n{}".into(), Refused),
    ])
    .await;
}

/// S6: a whole second answer behind the first.
#[tokio::test]
async fn s6_a_second_answer_is_nobodys() {
    each(vec![
        ("behind a length", with("Content-Length: 2\r\n", &format!("{{}}{EVIL}")), Whole(200, "{}")),
        ("behind nothing", with("Content-Length: 0\r\n", EVIL), Whole(200, "")),
        (
            "behind the last chunk",
            with("Transfer-Encoding: chunked\r\n", &format!("2\r\n{{}}\r\n0\r\n\r\n{EVIL}")),
            Whole(200, "{}"),
        ),
    ])
    .await;
    let first = with("Content-Length: 2\r\n", "{}");
    pollutes_nobody("late", &Request::unary(), first.as_bytes(), EVIL.as_bytes(), Whole(200, "{}")).await;
}

/// S6: lengths that say two things.
#[tokio::test]
async fn s6_doubtful_lengths_are_refused() {
    let two = |first: &str, second: &str| {
        with(&format!("Content-Length: {first}\r\nContent-Length: {second}\r\n"), &format!("{{}}{EVIL}"))
    };
    let one = |value: &str| with(&format!("Content-Length: {value}\r\n"), &format!("{{}}{EVIL}"));
    each(vec![
        ("two lengths", two("2", "64"), Refused),
        ("two in one line", one("2, 64"), Refused),
        ("a sign", one("+2"), Refused),
        ("less than nothing", one("-1"), Refused),
        ("hexadecimal", one("0x2"), Refused),
        ("two numbers", one("2 2"), Refused),
        ("nothing", one(""), Refused),
        ("beyond 64 bits", one("18446744073709551618"), Refused),
    ])
    .await;
}

/// S6: a length and a coding. The coding is what counts (RFC 9112, 6.3), for us and for the client.
#[tokio::test]
async fn s6_a_length_beside_chunks_is_dropped() {
    let both = |length: usize| {
        with(
            &format!("Content-Length: {length}\r\nTransfer-Encoding: chunked\r\n"),
            &format!("2\r\n{{}}\r\n0\r\n\r\n{EVIL}"),
        )
    };
    for length in [0, 2, 12, 12 + EVIL.len()] {
        each(vec![("a length beside chunks", both(length), Whole(200, "{}"))]).await;
    }
}

/// S6: codings that are not plainly "chunked" end with the connection, which then serves nobody else.
#[tokio::test]
async fn s6_other_codings_end_with_the_connection() {
    for coding in ["xchunked", "identity", "chunked, identity", "chunked\r\nTransfer-Encoding: identity"] {
        let (gateway, mut upstream) = one_engine(as_is).await;
        let mut client = gateway.send(&Request::unary()).await;
        let mut call = upstream.call().await;
        call.send(with(&format!("Content-Length: 2\r\nTransfer-Encoding: {coding}\r\n"), "{}")).await;
        assert_eq!(client.head().await.status(), 200, "{coding}");
        call.send("[]").await;
        call.close();
        assert_eq!(client.end().await, End::Clean, "{coding}");
        assert_eq!(client.body(), b"{}[]", "{coding}");
        gateway.all_access(1).await;
        next_is_sound(coding, 0, &gateway, &mut upstream).await;
        assert_eq!(upstream.connections(), 2, "{coding}");
    }
}

/// S6: chunks whose size is no size, or whose end is no end.
#[tokio::test]
async fn s6_broken_chunks_cut_the_answer() {
    let chunked = |body: &str| with("Transfer-Encoding: chunked\r\n", &format!("2\r\n{{}}\r\n{body}"));
    each(vec![
        ("a sign", chunked(&format!("-1\r\n{EVIL}")), Cut),
        ("a prefix", chunked(&format!("0x4\r\nevil\r\n0\r\n\r\n{EVIL}")), Cut),
        ("no number", chunked(&format!("zz\r\n{EVIL}")), Cut),
        ("beyond 64 bits", chunked(&format!("10000000000000004\r\n{EVIL}")), Cut),
        ("no line end behind the data", chunked(&format!("4\r\nlongXX0\r\n\r\n{EVIL}")), Cut),
    ])
    .await;
}

/// S6: trailers end the answer and go nowhere.
#[tokio::test]
async fn s6_trailers_stop_here() {
    let trailers = "2\r\n{}\r\n0\r\nContent-Length: 64\r\nX-Evil: yes\r\n\r\n";
    each(vec![(
        "trailers",
        with("Transfer-Encoding: chunked\r\nTrailer: X-Other\r\n", trailers),
        Whole(200, "{}"),
    )])
    .await;
}

/// S6: interim answers have no body (RFC 9110, 15.2), whatever they say.
#[tokio::test]
async fn s6_interim_answers_have_no_body() {
    let sound = with("Content-Length: 2\r\n", "{}");
    each(vec![
        (
            "a length of nothing",
            format!("HTTP/1.1 103 Early Hints\r\nX-Evil: yes\r\nContent-Length: 0\r\n\r\n{sound}"),
            Whole(200, "{}"),
        ),
        (
            "a length that would eat the answer",
            format!("HTTP/1.1 100 Continue\r\nContent-Length: {}\r\n\r\n{sound}", sound.len()),
            Whole(200, "{}"),
        ),
        (
            "a coding",
            format!("HTTP/1.1 102 Processing\r\nTransfer-Encoding: chunked\r\n\r\n{sound}"),
            Whole(200, "{}"),
        ),
        ("a body", format!("HTTP/1.1 103 Early Hints\r\nContent-Length: 4\r\n\r\nevil{sound}"), Refused),
        (
            "one behind the answer",
            format!("{sound}HTTP/1.1 103 Early Hints\r\nX-Evil: yes\r\n\r\n"),
            Whole(200, "{}"),
        ),
    ])
    .await;
}

/// S6: answers that have no body by definition, and bring one: at once, or later.
#[tokio::test]
async fn s6_bodies_where_none_may_be_are_nobodys() {
    let head = Request::bare("HEAD", "/v1/embeddings");
    for length in [0, 4, EVIL.len()] {
        for (request, status) in [
            (&head, "200 OK"),
            (&Request::unary(), "204 No Content"),
            (&Request::unary(), "304 Not Modified"),
        ] {
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n");
            let code = status[..3].parse().expect("a number");
            let at_once = answer.clone() + EVIL;
            pollutes_nobody(status, request, at_once.as_bytes(), b"", Whole(code, "")).await;
            pollutes_nobody(status, request, answer.as_bytes(), EVIL.as_bytes(), Whole(code, "")).await;
        }
    }
    let chunked = "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n";
    let late = format!("4\r\nevil\r\n0\r\n\r\n{EVIL}");
    pollutes_nobody("204 in chunks", &Request::unary(), chunked.as_bytes(), late.as_bytes(), Whole(204, ""))
        .await;
}

/// S6: a 204 that speaks of a body is not followed by another request on its connection: the body could
/// come after that request.
#[tokio::test]
async fn s6_a_204_that_speaks_of_a_body_ends_its_connection() {
    for (headers, connections) in [
        ("", 1),
        ("Content-Length: 0\r\n", 1),
        ("Content-Length: 4\r\n", 2),
        ("Transfer-Encoding: chunked\r\n", 2),
    ] {
        let (gateway, mut upstream) = one_engine(as_is).await;
        let mut client = gateway.send(&Request::unary()).await;
        upstream.call().await.answer(format!("HTTP/1.1 204 No Content\r\n{headers}\r\n")).await;
        client.expect_no_body();
        assert_eq!(client.answer().await.status(), 204);
        gateway.all_access(1).await;
        next_is_sound(headers, 0, &gateway, &mut upstream).await;
        assert_eq!(upstream.connections(), connections, "{headers}");
    }
}

/// S6: HTTP/1.0 knows no chunks; a connection that mixes them is closed (RFC 9112, 6.1).
#[tokio::test]
async fn s6_chunks_over_http_1_0_end_their_connection() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let mut client = gateway.send(&Request::unary()).await;
    let mut call = upstream.call().await;
    call.send(
        "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    )
    .await;
    call.keep();
    let answer = client.answer().await;
    assert_eq!((answer.status(), &*answer.text()), (200, "{}"));
    gateway.all_access(1).await;
    next_is_sound("1.0", 0, &gateway, &mut upstream).await;
    assert_eq!(upstream.connections(), 2);
}
