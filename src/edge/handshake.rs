//! How a TLS handshake with a client ended, for those who count.

use pingora::protocols::tls::SslStream;
use pingora::protocols::{ALPN, Ssl, l4};

/// How a TLS handshake with a client ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handshake {
    /// It is made.
    Done {
        /// The version of TLS, as OpenSSL writes it: `TLSv1.3`.
        version: &'static str,
        /// What is spoken on it, as ALPN writes it.
        protocol: &'static str,
    },
    /// The client went away or could not agree.
    Failed,
    /// The client did not end it in its time.
    TimedOut,
    /// The client spoke HTTP in the clear.
    PlainHttp,
}

impl Handshake {
    /// That of a stream that has one.
    pub(super) fn of(stream: &SslStream<l4::stream::Stream>) -> Self {
        let protocol = if is_h2(stream) { "h2" } else { "http/1.1" };
        Self::Done { version: stream.ssl().version_str(), protocol }
    }
}

/// Whether HTTP/2 is spoken; without ALPN it is HTTP/1.1.
pub(super) fn is_h2(stream: &SslStream<l4::stream::Stream>) -> bool {
    matches!(stream.selected_alpn_proto(), Some(ALPN::H2))
}
