//! Connections to backends: from the pool or fresh, plain or over TLS.
//!
//! The pool and the sockets are Pingora's; it sees each of them as plain, and TLS is put on top here
//! (see `tls`). So what tells connections apart that must not be shared is the peer's group key: the
//! same only for the same trust and the same name.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use pingora::connectors::{ConnectorOptions, TransportConnector};
use pingora::protocols::Stream;
use pingora::upstreams::peer::{HttpPeer, Peer};
use pingora::{Error, ErrorType};
use rustix::io::Errno;

use super::opening::{cause, of_system};
use super::plan::Plan;
use super::tls::{Contexts, TlsFailure};
use crate::config::Tls;
use crate::failure::Failure;
use crate::outcome::Phase;

/// Makes connections and keeps idle ones.
pub(super) struct Dialer {
    transport: TransportConnector,
    contexts: Contexts,
}

impl Dialer {
    /// A dialer with a pool as `options` say.
    pub(super) fn new(options: ConnectorOptions) -> Self {
        Self { transport: TransportConnector::new(Some(options)), contexts: Contexts::default() }
    }

    /// Builds what connections with these settings need, so that the first of them does not wait for it.
    pub(super) fn prepare(&self, tls: &Tls) -> Result<(), String> {
        let built = self.contexts.of(tls);
        built.map(drop).map_err(|error| format!("TLS with {} cannot be set up: {error}", tls.name))
    }

    /// Forgets contexts for other trust than this.
    pub(super) fn keep_only(&self, trust_keys: &HashSet<u64>) {
        self.contexts.keep_only(trust_keys);
    }

    /// An idle connection to the plan's backend.
    pub(super) async fn pooled(&self, plan: &Plan) -> Option<Stream> {
        self.transport.reused_stream(&plan.peer).await
    }

    /// Takes an idle connection back.
    pub(super) fn release(&self, stream: Stream, peer: &impl Peer, idle_timeout: Option<Duration>) {
        self.transport.release_stream(stream, peer.reuse_hash(), idle_timeout);
    }

    /// A fresh connection, ready to be written to.
    pub(super) async fn connect(&self, plan: &Plan) -> Result<Stream, Failure> {
        plan.link.enter(Phase::Connect);
        let patience = plan.timeouts.connect;
        let connected = tokio::time::timeout(patience, self.open(&plan.peer, plan.tls.as_deref())).await;
        let failure = match connected {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err((failure, cause))) => {
                cause.into_iter().for_each(|cause| plan.link.explain(cause));
                failure
            }
            Err(_) => Failure::ConnectTimeout,
        };
        if failure == Failure::ConnectTimeout {
            let what = if plan.tls.is_some() { "TLS connection" } else { "connection" };
            plan.link.explain(format!("no {what} in {patience:?}"));
        }
        Err(failure)
    }

    /// A fresh connection; the failure comes with what the system or the TLS library says of it.
    pub(super) async fn open(
        &self,
        peer: &HttpPeer,
        tls: Option<&Tls>,
    ) -> Result<Stream, (Failure, Option<String>)> {
        let stream = self.transport.new_stream(peer).await.map_err(|error| match error.etype() {
            ErrorType::ConnectTimedout => (Failure::ConnectTimeout, None),
            _ => (refused(&error, peer), cause(&error)),
        })?;
        let Some(tls) = tls else { return Ok(stream) };
        let spoken = self.contexts.handshake(stream, tls).await;
        spoken.map_err(|error: TlsFailure| (Failure::Connect, Some(error.to_string())))
    }
}

/// What it means that there is no connection: that the backend takes none, or that we have none to give.
fn refused(error: &Error, peer: &HttpPeer) -> Failure {
    let errno = of_system(error).and_then(Errno::from_io_error);
    of_errno(errno, || peer.address().as_inet().is_some_and(|addr| has_way(*addr)))
}

/// The same by the system's number. Want of a port has the same number as want of an address of our own to reach the
/// backend from (`[::1]` where there is no IPv6), and that is no passing want of ours: `has_way` tells them apart.
fn of_errno(errno: Option<Errno>, has_way: impl FnOnce() -> bool) -> Failure {
    match errno {
        Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => Failure::Starved,
        Some(Errno::ADDRNOTAVAIL) if has_way() => Failure::NoPort,
        _ => Failure::Connect,
    }
}

/// Whether there is a way from here to an address. Nothing is sent: the ports of UDP are others than those of TCP, and
/// to connect is only to look up the way.
fn has_way(addr: SocketAddr) -> bool {
    let any: IpAddr =
        if addr.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    UdpSocket::bind((any, 0)).and_then(|socket| socket.connect(addr)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_we_lack_is_no_failing_of_the_backend() {
        for errno in [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM] {
            assert_eq!(of_errno(Some(errno), || true), Failure::Starved, "{errno:?}");
        }
        assert_eq!(of_errno(Some(Errno::ADDRNOTAVAIL), || true), Failure::NoPort);
        assert_eq!(
            of_errno(Some(Errno::ADDRNOTAVAIL), || false),
            Failure::Connect,
            "no address to come from"
        );
        for errno in [Errno::CONNREFUSED, Errno::HOSTUNREACH, Errno::CONNRESET] {
            assert_eq!(of_errno(Some(errno), || true), Failure::Connect, "{errno:?}");
        }
        assert_eq!(of_errno(None, || true), Failure::Connect);
    }

    #[test]
    fn the_number_is_found_behind_an_error_of_pingora() {
        let peer = HttpPeer::new("127.0.0.1:9", false, String::new());
        let error = |errno: Errno| {
            let inner = Error::because(ErrorType::SocketError, "socket", std::io::Error::from(errno));
            Error::because(ErrorType::InternalError, "Fail to connect", inner)
        };
        assert_eq!(refused(&error(Errno::MFILE), &peer), Failure::Starved);
        assert_eq!(
            refused(&error(Errno::ADDRNOTAVAIL), &peer),
            Failure::NoPort,
            "there is a way to 127.0.0.1"
        );
        assert_eq!(refused(&error(Errno::CONNREFUSED), &peer), Failure::Connect);
    }
}
