//! Connections of HTTP/1.1: the same requests however the bytes are cut, and each of them one to a plain parser, too.
use streamgate::edge::Limits;
use streamgate::edge::trial::connection;

const LIMITS: Limits = Limits { uri_bytes: 128, header_bytes: 2048, header_count: 16 };

/// Reads one input; its first byte is the size of the pieces.
pub(crate) fn run(input: &[u8]) {
    let Some((&piece, bytes)) = input.split_first() else { return };
    let whole = connection(bytes, bytes.len(), &LIMITS);
    assert_eq!(connection(bytes, usize::from(piece) + 1, &LIMITS), whole);
    for request in &whole.requests {
        let end = request.windows(4).position(|window| window == b"\r\n\r\n").expect("a head ends") + 4;
        assert!(end <= LIMITS.header_bytes);
        let head = String::from_utf8_lossy(&request[..end]).to_lowercase();
        let lines = |name: &str| head.lines().filter(|line| line.starts_with(name)).count();
        assert!(lines("content-length:") + lines("transfer-encoding:") <= 1, "{head:?}");
        assert!(lines("host:") <= 1, "{head:?}");
        assert!(!head.replace("\r\n", "").contains(['\r', '\n', '\0']), "{head:?}");
    }
}
