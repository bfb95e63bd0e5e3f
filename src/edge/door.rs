//! How a connection comes in: who is there, and whether there is a place for it.

use std::future::ready;
use std::net::IpAddr;
use std::sync::Arc;

use pingora::apps::HttpServerApp;
use pingora::connectors::http::custom;
use pingora::protocols::l4;
use pingora::protocols::{GetSocketDigest, Stream};
use pingora::server::ShutdownWatch;
use pingora_proxy::{HttpProxy, ProcessCustomSession, ProxyHttp};

use super::conn::Conn;
use super::connections::{Place, TurnedAway};
use super::crowd::AddressPlace;
use super::preface::last_call;
use super::proxy_header;
use super::serve::{Below, Edge};
use crate::forwarded::Peer;
use crate::memory::Level;
use crate::rejection::Rejection;

/// One listener, as those who come to it meet it.
#[derive(Clone)]
pub struct Door {
    /// What it speaks below HTTP.
    pub below: Below,
    /// It is a unix socket.
    pub is_local: bool,
    /// Connections begin with a PROXY header.
    pub takes_proxy: bool,
    /// Everybody is sent to this https port.
    pub redirect_https: Option<u16>,
}

/// How a connection came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Who is at its other end, or whom a PROXY header names.
    pub peer: Peer,
    /// Its listener sends everybody to this https port.
    pub redirect_https: Option<u16>,
}

/// What Pingora calls for each connection of a listener.
///
/// The connection goes on in a task of its own. Pingora's would hold, for as long as the connection lasts, what it
/// needed to accept it: 7 KiB of futures, more than all else of an idle one.
pub fn on_connection<SV, C>(edge: Arc<Edge>, door: Door) -> ProcessCustomSession<SV, C>
where
    SV: ProxyHttp + Send + Sync + 'static,
    SV::CTX: Send + Sync,
    C: custom::Connector,
{
    let door = Arc::new(door);
    Arc::new(move |proxy: Arc<HttpProxy<SV, C>>, stream: Stream, shutdown: &ShutdownWatch| {
        let (edge, door, shutdown) = (Arc::clone(&edge), Arc::clone(&door), shutdown.clone());
        tokio::spawn(async move {
            // Another turn: tokio lets three tasks in a row wake each other, and these two would be among them. Pingora's
            // pool wants the next ones for itself: it gives up an idle connection whose watcher is not quicker than we.
            tokio::task::yield_now().await;
            edge.receive(&proxy, &door, stream, shutdown).await;
        });
        Box::pin(ready(None))
    })
}

impl Edge {
    /// Lets a connection in, if there is a place for it, and serves it to its end.
    async fn receive<A>(&self, app: &Arc<A>, door: &Door, stream: Stream, mut shutdown: ShutdownWatch)
    where
        A: HttpServerApp + Send + Sync + 'static,
    {
        let mut entry = Entry { peer: door.peer(&*stream), redirect_https: door.redirect_https };
        let place = match self.admit() {
            Ok(place) => place,
            Err(why) => return Box::pin(self.turn_away(door, stream, entry, why)).await,
        };
        let mut stream = stream;
        if door.takes_proxy {
            let introduced = Box::pin(self.introduce(stream, &mut entry, &mut shutdown)).await;
            let Some(introduced) = introduced else { return };
            stream = introduced;
        }
        let _place_of_address = match self.place_of_address(entry.peer) {
            Ok(place) => place,
            Err(why) => {
                // Who is told takes a place of another kind.
                drop(place);
                return Box::pin(self.turn_away(door, stream, entry, why)).await;
            }
        };
        self.converse(app, &door.below, stream, entry, shutdown).await;
    }

    /// A place for a new connection, while there are places and memory.
    fn admit(&self) -> Result<Place, TurnedAway> {
        if self.memory.level() >= Level::Refuse {
            return Err(TurnedAway::Memory);
        }
        self.connections.admit()
    }

    /// Reads the PROXY header, within the time of a head. `None` ends the connection.
    async fn introduce(
        &self,
        stream: Stream,
        entry: &mut Entry,
        shutdown: &mut ShutdownWatch,
    ) -> Option<Stream> {
        if !self.trusted.trusts(entry.peer) {
            self.turned_away(TurnedAway::NotTrusted, *entry);
            return None;
        }
        // What Pingora has accepted on a listener without TLS of its own is nothing else.
        let mut socket = stream.into_any().downcast::<l4::stream::Stream>().ok()?;
        let read = tokio::select! {
            read = self.memory.within(self.header_timeout, proxy_header::read(&mut socket)) => read,
            () = last_call(shutdown) => return None,
        };
        match read {
            Some(Ok(client)) => {
                entry.peer = client.unwrap_or(entry.peer);
                Some(socket)
            }
            // A port that is only tried out says nothing.
            Some(Err(proxy_header::NoHeader::Silent)) => None,
            Some(Err(proxy_header::NoHeader::Malformed)) | None => {
                self.turned_away(TurnedAway::NoProxyHeader, *entry);
                None
            }
        }
    }

    /// A place among those of its address. A proxy brings connections of many, and is not counted by its own.
    fn place_of_address(&self, peer: Peer) -> Result<Option<AddressPlace>, TurnedAway> {
        let address: Option<IpAddr> = peer.address().filter(|_| !self.trusted.trusts(peer));
        self.connections.admit_from(address)
    }

    /// Tells a client that there are too many, unless too many are being told already. One that waits for a
    /// TLS handshake could not read it.
    async fn turn_away(&self, door: &Door, stream: Stream, entry: Entry, why: TurnedAway) {
        self.turned_away(why, entry);
        if !matches!(door.below, Below::Tls(_)) {
            let rejection = match why {
                TurnedAway::FullForAddress => Rejection::ConnectionsOfAddress,
                TurnedAway::Memory => Rejection::Overloaded,
                _ => Rejection::ConnectionsFull,
            };
            self.refuse_if_room(&mut Conn::new(stream, entry), &rejection).await;
        }
    }
}

impl Door {
    /// Who is at the other end of a socket.
    fn peer(&self, stream: &(impl GetSocketDigest + ?Sized)) -> Peer {
        if self.is_local {
            return Peer::Local;
        }
        let address = stream.get_socket_digest().and_then(|socket| Some(socket.peer_addr()?.as_inet()?.ip()));
        address.map_or(Peer::Unknown, |address| Peer::Address(address.to_canonical()))
    }
}
