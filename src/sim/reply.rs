//! Sends answers of known length, and the head of any answer, with the faults that strike there.

use std::time::Duration;

use super::answer::{Answer, Framing, Refusal};
use super::connection::Request;
use super::plan::{Cut, CutAt, Instead, Script};
use super::wire::{Over, Wire};

/// Pause between two bytes of a head that trickles.
const TRICKLE: Duration = Duration::from_millis(100);
/// Lines of a big head, and the bytes of the value of each: some 10 MB in all.
const BIG_HEAD_LINES: u32 = 10_000;
const BIG_HEAD_VALUE_BYTES: usize = 1_030;
/// Bytes that are collected before they are sent.
const WRITE_BYTES: usize = 16 << 10;

/// Sends the whole of `answer`; the connection may then be used again.
pub(super) async fn whole(
    wire: &mut Wire<'_>,
    request: &Request<'_>,
    script: &Script,
    mut answer: Answer,
) -> Result<(), Over> {
    let length = if script.short_content_length { answer.body.len() / 2 } else { answer.body.len() };
    let head = request.head_bytes(&answer, Framing::Length(length));
    let mut out = Vec::new();
    begin(wire, script, head, &mut out).await?;
    if request.head.method == "HEAD" {
        answer.body.clear();
    }
    let cut = script.cut.and_then(|(at, cut)| place(at, cut, answer.body.len()));
    out.extend_from_slice(&answer.body[..cut.map_or(answer.body.len(), |(at, _)| at)]);
    if script.extra_bytes && cut.is_none() {
        out.extend_from_slice(b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\npolluted");
    }
    wire.send(&out).await?;
    match cut {
        Some((_, cut)) => Err(cut_off(wire, cut).await),
        None => Ok(()),
    }
}

/// Where in a body of so many bytes it is cut. Error events are for streams.
fn place(at: CutAt, cut: Cut, length: usize) -> Option<(usize, Cut)> {
    match (at, cut) {
        (CutAt::Head, _) | (_, Cut::Error { .. }) => None,
        (CutAt::Count(at), cut) => Some((at as usize, cut)).filter(|(at, _)| *at < length),
    }
}

/// Does what comes in the place of an answer.
pub(super) async fn instead(
    wire: &mut Wire<'_>,
    request: &Request<'_>,
    instead: Instead,
) -> Result<(), Over> {
    match instead {
        Instead::Status { code, retry_after } => {
            let answer = Answer::from(Refusal::new(code, "a fault that was asked for"));
            let answer = match retry_after {
                Some(seconds) => answer.header("retry-after", seconds),
                None => answer,
            };
            whole(wire, request, &Script::default(), answer).await
        }
        Instead::TooLarge => Err(Over::CloseUnread),
        Instead::Stall => Err(wire.until_gone().await),
        Instead::Reset => Err(Over::Reset),
        Instead::Fin => Err(Over::Close),
        Instead::Garbage => {
            wire.send(b"\x16\x03\x01\x02\x00 this is not HTTP\r\n\r\n").await?;
            Err(Over::Close)
        }
        Instead::Switch => {
            let head = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: sim\r\n\r\n";
            wire.send(head).await?;
            Err(wire.until_gone().await)
        }
    }
}

/// Begins an answer: leaves its head in `out`, or sends it where a fault is in the head.
pub(super) async fn begin(
    wire: &mut Wire<'_>,
    script: &Script,
    mut head: Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<(), Over> {
    for _ in 0..script.interim {
        out.extend_from_slice(b"HTTP/1.1 103 Early Hints\r\nlink: </>; rel=preload\r\n\r\n");
        if out.len() > WRITE_BYTES {
            flush(wire, out).await?;
        }
    }
    if script.big_head {
        head.truncate(head.len() - 2);
        out.append(&mut head);
        swell(wire, out).await?;
        head.extend_from_slice(b"\r\n");
    }
    if script.head_trickle {
        flush(wire, out).await?;
        for byte in head {
            wire.send(&[byte]).await?;
            wire.pause(TRICKLE).await?;
        }
    } else {
        out.append(&mut head);
    }
    match script.cut_after_head() {
        None => Ok(()),
        Some(cut) => {
            flush(wire, out).await?;
            Err(cut_off(wire, cut).await)
        }
    }
}

async fn swell(wire: &mut Wire<'_>, out: &mut Vec<u8>) -> Result<(), Over> {
    let value = "v".repeat(BIG_HEAD_VALUE_BYTES);
    for n in 0..BIG_HEAD_LINES {
        out.extend_from_slice(format!("x-filler-{n}: {value}\r\n").as_bytes());
        if out.len() > WRITE_BYTES {
            flush(wire, out).await?;
        }
    }
    Ok(())
}

/// Sends what has been collected.
pub(super) async fn flush(wire: &mut Wire<'_>, out: &mut Vec<u8>) -> Result<(), Over> {
    wire.send(out).await?;
    out.clear();
    Ok(())
}

/// Cuts an answer off: says how the connection ends.
pub(super) async fn cut_off(wire: &mut Wire<'_>, cut: Cut) -> Over {
    wire.strike();
    match cut {
        Cut::Stall => wire.until_gone().await,
        Cut::Reset => Over::Reset,
        Cut::Fin | Cut::TruncatedChunk | Cut::Error { .. } => Over::Close,
    }
}
