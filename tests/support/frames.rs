//! HTTP/2 frames as bytes, for clients that do what no library would (RFC 9113, 4.1; RFC 7541).

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::wait::{SOON, within};
use super::wire::{CHAT, CHAT_PATH};

/// What a client says first.
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

pub(crate) const PROTOCOL_ERROR: u32 = 1;
pub(crate) const ENHANCE_YOUR_CALM: u32 = 11;

/// A frame that was read.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

/// A frame to send.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a payload fits");
    let mut out = length.to_be_bytes()[1..].to_vec();
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend_from_slice(payload);
    out
}

/// A setting to send in a SETTINGS frame.
pub(crate) fn setting(id: u16, value: u32) -> Vec<u8> {
    [&id.to_be_bytes()[..], &value.to_be_bytes()].concat()
}

/// A header in HPACK: literal, not indexed, not compressed.
pub(crate) fn literal(name: &str, value: &str) -> Vec<u8> {
    literal_bytes(name.as_bytes(), value.as_bytes())
}

/// The same of bytes that no header may hold.
pub(crate) fn literal_bytes(name: &[u8], value: &[u8]) -> Vec<u8> {
    [&[0][..], &text(name), &text(value)].concat()
}

/// A length and its text; lengths from 127 on take more bytes (RFC 7541, 5.1).
pub(crate) fn text(text: impl AsRef<[u8]>) -> Vec<u8> {
    let text = text.as_ref();
    let mut out = Vec::new();
    match text.len() {
        length @ ..127 => out.push(length as u8),
        length => {
            out.push(127);
            let mut rest = length - 127;
            while rest >= 128 {
                out.push((rest % 128) as u8 | 128);
                rest /= 128;
            }
            out.push(rest as u8);
        }
    }
    out.extend_from_slice(text);
    out
}

/// The head of a request.
pub(crate) fn request(method: &str, path: &str) -> Vec<u8> {
    [(":method", method), (":scheme", "http"), (":path", path), (":authority", "gateway.test")]
        .map(|(name, value)| literal(name, value))
        .concat()
}

/// All that a client sends for one stream whose windows are as large as windows can be.
pub(crate) fn chat_with_open_windows() -> Vec<u8> {
    let most = i32::MAX as u32;
    let head = [request("POST", CHAT_PATH), literal("content-type", "application/json")].concat();
    [
        PREFACE.to_vec(),
        frame(SETTINGS, 0, 0, &setting(4, most)),
        frame(WINDOW_UPDATE, 0, 0, &(most - 65_535).to_be_bytes()),
        frame(HEADERS, END_HEADERS, 1, &head),
        frame(DATA, END_STREAM, 1, CHAT.as_bytes()),
    ]
    .concat()
}

/// A connection that speaks frames.
#[derive(Debug)]
pub(crate) struct Raw(TcpStream);

impl Raw {
    /// Connects and sends the preface with these settings.
    pub(crate) async fn connect(addr: SocketAddr, settings: &[u8]) -> Self {
        let mut raw = Self(within("connect", SOON, TcpStream::connect(addr)).await.expect("connect"));
        raw.send(PREFACE).await.expect("send");
        raw.send(&frame(SETTINGS, 0, 0, settings)).await.expect("send");
        raw
    }

    /// Sends bytes that the gateway may not take.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.0.write_all(bytes).await
    }

    /// The next frame; `None` when the gateway has closed.
    pub(crate) async fn frame(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        self.0.read_exact(&mut head).await.ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        self.0.read_exact(&mut payload).await.ok()?;
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        Some(Frame { kind: head[3], flags: head[4], stream, payload })
    }

    /// Reads until a frame of this kind comes for this stream.
    pub(crate) async fn until(&mut self, kind: u8, stream: u32) -> Frame {
        within("the frame comes", SOON, async {
            loop {
                let frame = self.frame().await.expect("the gateway goes on");
                if (frame.kind, frame.stream) == (kind, stream) {
                    return frame;
                }
            }
        })
        .await
    }

    /// Reads until the gateway closes; the error code of its GOAWAY, if it sent one.
    pub(crate) async fn ended(&mut self) -> Option<u32> {
        within("the gateway ends the connection", SOON, async {
            let mut code = None;
            while let Some(frame) = self.frame().await {
                if frame.kind == GOAWAY {
                    let bytes: [u8; 4] = frame.payload[4..8].try_into().expect("four bytes");
                    code = Some(u32::from_be_bytes(bytes));
                }
            }
            code
        })
        .await
    }
}
