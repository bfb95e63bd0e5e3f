//! The PROXY header: the client's address, told by a proxy before the first byte of the client
//! (proxy-protocol.txt of HAProxy, versions 1 and 2).
//!
//! It is read from the socket itself, below TLS. What came behind it is put back. Only the end of the header is
//! found here; what it says is read by the `ppp` crate once all of it is there.

use std::net::IpAddr;

use bytes::BytesMut;
use pingora::protocols::l4::stream::Stream;
use ppp::{v1, v2};

use super::reader::more;
use crate::forwarded::Peer;

/// Longest header of version 1, its line end included (proxy-protocol.txt, 2.1).
const LINE_MAX: usize = 107;

/// Longest header of version 2 that is taken: addresses and a few hundred bytes of what else proxies tell.
const BINARY_MAX: usize = 4096;

/// What version 2 begins with, up to the length of the rest.
const BINARY_HEAD: usize = 16;

/// How a header could not be had.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoHeader {
    /// The connection ended before a byte of it.
    Silent,
    /// Something else came.
    Malformed,
}

/// What a header says.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    /// The client; `None` for the proxy itself, as in its health checks.
    client: Option<Peer>,
    /// Bytes of the header.
    length: usize,
}

/// Reads the header and leaves what is behind it to be read. Gives the client, where the proxy names one.
pub(super) async fn read(stream: &mut Stream) -> Result<Option<Peer>, NoHeader> {
    let mut bytes = BytesMut::new();
    loop {
        if !more(stream, &mut bytes).await.is_ok_and(|count| count > 0) {
            return Err(if bytes.is_empty() { NoHeader::Silent } else { NoHeader::Malformed });
        }
        if let Some(said) = parse(&bytes).ok_or(NoHeader::Malformed)? {
            stream.rewind(&bytes[said.length..]);
            return Ok(said.client);
        }
    }
}

/// `None` for what is no header, `Some(None)` for one that is not whole.
fn parse(bytes: &[u8]) -> Option<Option<Said>> {
    let begins_like = |prefix: &[u8]| prefix.iter().zip(bytes).all(|(wanted, byte)| wanted == byte);
    if begins_like(v1::PROTOCOL_PREFIX.as_bytes()) {
        line(bytes)
    } else if begins_like(v2::PROTOCOL_PREFIX) {
        binary(bytes)
    } else {
        None
    }
}

fn line(bytes: &[u8]) -> Option<Option<Said>> {
    let Some(end) = memchr::memchr(b'\n', &bytes[..bytes.len().min(LINE_MAX)]) else {
        return (bytes.len() < LINE_MAX).then_some(None);
    };
    let header = v1::Header::try_from(&bytes[..=end]).ok()?;
    let client = match header.addresses {
        v1::Addresses::Unknown => Peer::Unknown,
        v1::Addresses::Tcp4(tcp) => named(tcp.source_address.into()),
        v1::Addresses::Tcp6(tcp) => named(tcp.source_address.into()),
    };
    Some(Some(Said { client: Some(client), length: end + 1 }))
}

fn binary(bytes: &[u8]) -> Option<Option<Said>> {
    let Some(head) = bytes.get(..BINARY_HEAD) else { return Some(None) };
    let length = BINARY_HEAD + usize::from(u16::from_be_bytes([head[14], head[15]]));
    if length > BINARY_MAX {
        return None;
    }
    let Some(header) = bytes.get(..length) else { return Some(None) };
    let header = v2::Header::try_from(header).ok()?;
    let client = match (header.command, header.addresses) {
        (v2::Command::Local, _) => None,
        (v2::Command::Proxy, _) if header.protocol == v2::Protocol::Datagram => return None,
        (v2::Command::Proxy, v2::Addresses::IPv4(ip)) => Some(named(ip.source_address.into())),
        (v2::Command::Proxy, v2::Addresses::IPv6(ip)) => Some(named(ip.source_address.into())),
        // Somebody whom the proxy does not vouch for.
        (v2::Command::Proxy, v2::Addresses::Unspecified | v2::Addresses::Unix(_)) => Some(Peer::Unknown),
    };
    Some(Some(Said { client, length }))
}

fn named(client: IpAddr) -> Peer {
    Peer::Address(client.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `?` is somebody without an address.
    fn said(client: Option<&str>, length: usize) -> Option<Option<Said>> {
        let peer = |client: &str| client.parse().map_or(Peer::Unknown, Peer::Address);
        Some(Some(Said { client: client.map(peer), length }))
    }

    fn binary_of(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = u16::try_from(rest.len()).unwrap().to_be_bytes();
        [v2::PROTOCOL_PREFIX, &[command, family], &length, rest].concat()
    }

    #[test]
    fn a_whole_header_names_the_client_and_its_own_end() {
        let four = [192, 0, 2, 7, 10, 0, 0, 1, 0, 80, 1, 187];
        let six = [&[0x20, 1, 0x0d, 0xb8][..], &[0; 32]].concat();
        let with_more = [&four[..], &[0x20, 0, 2, 7, 7]].concat();
        let table = [
            (b"PROXY TCP4 192.0.2.7 10.0.0.1 4711 80\r\n".to_vec(), Some("192.0.2.7")),
            (b"PROXY TCP6 2001:db8::7 ::1 4711 80\r\n".to_vec(), Some("2001:db8::7")),
            (b"PROXY UNKNOWN\r\n".to_vec(), Some("?")),
            (b"PROXY UNKNOWN whatever it says\r\n".to_vec(), Some("?")),
            (binary_of(0x21, 0x11, &four), Some("192.0.2.7")),
            (binary_of(0x21, 0x11, &with_more), Some("192.0.2.7")),
            (binary_of(0x21, 0x21, &six), Some("2001:db8::")),
            (binary_of(0x20, 0x11, &four), None),
            (binary_of(0x20, 0x00, &[]), None),
            (binary_of(0x21, 0x00, &[]), Some("?")),
            (binary_of(0x21, 0x31, &[0; 216]), Some("?")),
        ];
        for (header, client) in table {
            let followed = [&header[..], b"GET / HTTP/1.1\r\n"].concat();
            assert_eq!(parse(&followed), said(client, header.len()), "{header:?}");
            for end in 1..header.len() {
                assert_eq!(parse(&header[..end]), Some(None), "{end} bytes of {header:?}");
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn whatever_comes_is_judged_the_same_in_one_piece_and_in_two(
            begin in proptest::sample::select(vec![&b""[..], b"PROXY TCP4 ", b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c"]),
            rest in proptest::collection::vec(proptest::num::u8::ANY, 0..64),
            cut in 0..64usize,
        ) {
            let bytes = [begin, &rest].concat();
            let whole = parse(&bytes);
            if let Some(Some(said)) = &whole {
                proptest::prop_assert!(said.length <= bytes.len());
            }
            // What has been judged stays as it is, however much more comes.
            if let judged @ (None | Some(Some(_))) = parse(&bytes[..cut.min(bytes.len())])
                && cut > 0
            {
                proptest::prop_assert_eq!(judged, whole);
            }
        }
    }

    #[test]
    fn what_is_no_header_is_known_at_once() {
        let long = format!("PROXY UNKNOWN {}\r\n", "x".repeat(LINE_MAX));
        let table: [&[u8]; 12] = [
            b"GET / HTTP/1.1\r\n\r\n",
            b"proxy TCP4 1.2.3.4 1.2.3.4 1 1\r\n",
            b"PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n",
            b"PROXY TCP4 1.2.3 1.2.3.4 1 1\r\n",
            b"PROXY TCP4 2001:db8::7 ::1 1 1\r\n",
            b"PROXY TCP4 1.2.3.4 1.2.3.4 1 1\n",
            b"PROXY TCP5 1.2.3.4 1.2.3.4 1 1\r\n",
            b"\x16\x03\x01",
            long.as_bytes(),
            &binary_of(0x11, 0x11, &[0; 12]),
            &binary_of(0x21, 0x11, &[0; 11]),
            &binary_of(0x21, 0x12, &[0; 12]),
        ];
        for bytes in table {
            assert_eq!(parse(bytes), None, "{:?}", String::from_utf8_lossy(bytes));
        }
        assert_eq!(parse(&[v2::PROTOCOL_PREFIX, &[0x21, 0x11, 0xff, 0xff]].concat()), None, "too long");
    }
}
