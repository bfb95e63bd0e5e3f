//! Which protocol the clients of a test speak, so that one case can be run over several.
//!
//! A case asks its [`Gateway`](super::Gateway) for clients and never says what they speak. The macro
//! `over_h2!` lists the cases of a file that run over HTTP/2 as well: each becomes a second test, which
//! says so for its thread before it starts the very same case.

use std::cell::Cell;
use std::net::SocketAddr;

use super::client::Client;

/// What clients speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// HTTP/1.1 on a plain connection.
    Http1,
    /// HTTP/2 on a plain connection, begun with its preface.
    H2c,
}

thread_local! {
    static SPOKEN: Cell<Protocol> = const { Cell::new(Protocol::Http1) };
}

/// The clients of this test speak so from now on.
pub(crate) fn speak(protocol: Protocol) {
    SPOKEN.set(protocol);
}

/// What the clients of this test speak.
pub(crate) fn spoken() -> Protocol {
    SPOKEN.get()
}

/// Where to connect, and what to speak there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dialer {
    /// Where.
    pub(crate) addr: SocketAddr,
    /// What.
    pub(crate) protocol: Protocol,
}

impl Dialer {
    /// A connected client.
    pub(crate) async fn client(self) -> Client {
        match self.protocol {
            Protocol::Http1 => Client::connect(self.addr).await,
            Protocol::H2c => Client::connect_h2(self.addr).await,
        }
    }
}

/// Runs cases of this file over HTTP/2, too.
#[macro_export]
macro_rules! over_h2 {
    ($($case:ident),+ $(,)?) => {
        mod over_h2 {
            use $crate::support::protocol::{Protocol, speak};
            $(
                #[test]
                fn $case() {
                    speak(Protocol::H2c);
                    super::$case();
                }
            )+
        }
    };
}
