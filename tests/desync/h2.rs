//! The cases of HTTP/2: what would be two requests, or another one, once it is written out as HTTP/1.1 (S4).

use std::net::SocketAddr;

use crate::corpus::{self, Case};
use crate::h1::{gateway, only_routed};
use crate::origin::Origin;
use crate::support::frames::{DATA, END_HEADERS, END_STREAM, HEADERS, RST_STREAM, Raw, frame, literal_bytes};
use crate::support::not_run;
use crate::support::protocol::{Protocol, speak};
use crate::support::wait::SOON;

/// The frames of a case, on stream 1.
pub(crate) fn frames(case: &Case) -> Vec<u8> {
    let lines: Vec<&[u8]> =
        case.lines.iter().map(|line| line.strip_suffix(b"\r\n").unwrap_or(line)).collect();
    let end = lines.iter().position(|line| line.is_empty()).unwrap_or(lines.len());
    let head: Vec<u8> = lines[..end].iter().flat_map(|line| header(line)).collect();
    match lines.get(end + 1..) {
        Some(body) if !body.is_empty() => {
            [frame(HEADERS, END_HEADERS, 1, &head), frame(DATA, END_STREAM, 1, &body.concat())].concat()
        }
        _ => frame(HEADERS, END_HEADERS | END_STREAM, 1, &head),
    }
}

/// `name: value`; a pseudo header begins with a colon, and a name may have one.
fn header(line: &[u8]) -> Vec<u8> {
    let split = line.windows(2).rposition(|pair| pair == b": ").expect("a header is NAME: VALUE");
    let split =
        line[..split].windows(2).position(|pair| pair == b": ").filter(|_| line[0] == b':').unwrap_or(split);
    literal_bytes(&line[..split], &line[split + 2..])
}

/// What becomes of stream 1, in the words of the corpus.
async fn seen(addr: SocketAddr, case: &Case) -> String {
    let mut raw = Raw::connect(addr, &[]).await;
    // The gateway may have ended the connection.
    drop(raw.send(&frames(case)).await);
    let watching = async {
        loop {
            match raw.frame().await {
                None => return "goaway".to_owned(),
                Some(frame) if frame.stream == 1 && frame.kind == RST_STREAM => return "reset".to_owned(),
                Some(frame) if frame.stream == 1 && frame.kind == HEADERS => return status(&frame.payload),
                Some(_) => {}
            }
        }
    };
    tokio::time::timeout(SOON, watching).await.unwrap_or_else(|_| "nothing".to_owned())
}

/// The status in the first field of a head: one of the static table (RFC 7541, A), or literal.
fn status(head: &[u8]) -> String {
    match head {
        [indexed @ 0x88..=0x8e, ..] => {
            ["200", "204", "206", "304", "400", "404", "500"][usize::from(indexed - 0x88)].to_owned()
        }
        [0x48 | 0x08, length, rest @ ..] if length & 0x80 != 0 => {
            huffman(&rest[..usize::from(length & 0x7f)])
        }
        [0x48 | 0x08, length, rest @ ..] => {
            String::from_utf8_lossy(&rest[..usize::from(*length)]).into_owned()
        }
        other => panic!("no status: {other:?}"),
    }
}

/// Three digits in the code of RFC 7541, B: 0 to 2 have five bits, 3 to 9 have six.
fn huffman(bytes: &[u8]) -> String {
    let bits: Vec<u8> = bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).collect();
    let number = |bits: &[u8]| bits.iter().fold(0, |number, bit| number << 1 | bit);
    let (mut digits, mut at) = (String::new(), 0);
    while digits.len() < 3 {
        let short = number(&bits[at..at + 5]);
        let (digit, length) =
            if short <= 2 { (short, 5) } else { (number(&bits[at..at + 6]) - 0b01_1001 + 3, 6) };
        digits.push(char::from(b'0' + digit));
        at += length;
    }
    digits
}

async fn run(origin: Origin) {
    speak(Protocol::H2c);
    let gateway = gateway(&origin).await;
    let cases = corpus::read("h2.txt");
    assert!(cases.len() >= 100, "only {} cases", cases.len());
    let mut differing = Vec::new();
    for case in &cases {
        let seen = seen(gateway.addr, case).await;
        if seen != case.wanted[0] {
            differing.push(format!("{}: {seen} instead of {}", case.name, case.wanted[0]));
        }
    }
    crate::support::score::struck(cases.len(), "a request that can be read in two ways");
    assert!(differing.is_empty(), "{} cases differ:\n{}", differing.len(), differing.join("\n"));
    only_routed(&gateway, &origin, cases.iter().filter(|case| case.wanted[0] == "200").count()).await;
}

/// S4: against the engine of these tests.
#[tokio::test]
async fn s4_nothing_is_smuggled_out_of_http2_to_our_engine() {
    run(Origin::ours().await).await;
}

/// S4: against Python's `http.server`.
#[tokio::test]
async fn s4_nothing_is_smuggled_out_of_http2_to_python() {
    match Origin::python() {
        Some(origin) => run(origin).await,
        None => not_run("s4_nothing_is_smuggled_out_of_http2_to_python", "no python3"),
    }
}

/// S4: against nginx.
#[tokio::test]
async fn s4_nothing_is_smuggled_out_of_http2_to_nginx() {
    match Origin::nginx().await {
        Some(origin) => run(origin).await,
        None => not_run("s4_nothing_is_smuggled_out_of_http2_to_nginx", "no nginx"),
    }
}

/// S4: against h11.
#[tokio::test]
async fn s4_nothing_is_smuggled_out_of_http2_to_h11() {
    match Origin::h11() {
        Some(origin) => run(origin).await,
        None => not_run("s4_nothing_is_smuggled_out_of_http2_to_h11", "no python3-h11"),
    }
}
