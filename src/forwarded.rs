//! Whose request it is when a proxy hands it on.
//!
//! Anybody may write `X-Forwarded-For`. The one hard idea: its addresses are believed from the right, as far as
//! those who wrote them are. The peer of the connection wrote the last one; if the file trusts the peer, that
//! one is true; if the file trusts that address too, so is the one before it, and so on. The first address that
//! nobody vouches further for is the client. What stands left of it is the client's own word and goes nowhere.

use std::net::{IpAddr, Ipv6Addr};

use http::header::{HeaderMap, HeaderValue};
use ipnet::IpNet;

/// Longest `X-Forwarded-Host` that is handed on: a name of 253 bytes (RFC 1035, 2.3.4) and a port.
const HOST_MAX: usize = 260;

/// Who is at the other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// Somebody with an address.
    Address(IpAddr),
    /// A process of this machine, on a unix socket.
    Local,
    /// The system does not say; it has left already.
    Unknown,
}

impl Peer {
    /// Its address, if it has one.
    pub fn address(self) -> Option<IpAddr> {
        match self {
            Self::Address(address) => Some(address),
            Self::Local | Self::Unknown => None,
        }
    }
}

/// Who is believed when he says for whom he asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trusted {
    /// The networks of proxies.
    pub networks: Vec<IpNet>,
    /// Whoever may connect to a unix socket.
    pub local: bool,
}

/// What a trusted proxy says of the request that it hands on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handed {
    /// The client; `None` where it is not said.
    pub client: Option<IpAddr>,
    /// `X-Forwarded-For` for the engine: the client and the proxies behind it, each vouched for.
    pub chain: String,
    /// The client came over TLS; `None` where it is not said.
    pub is_https: Option<bool>,
    /// The host that the client asked for.
    pub host: Option<HeaderValue>,
}

impl Trusted {
    /// Whether `peer` is believed.
    pub fn trusts(&self, peer: Peer) -> bool {
        match peer {
            Peer::Address(address) => {
                let address = address.to_canonical();
                self.networks.iter().any(|network| network.contains(&address))
            }
            Peer::Local => self.local,
            Peer::Unknown => false,
        }
    }

    /// What `peer` says of the request with these headers; `None` if it is not believed.
    pub fn read(&self, peer: Peer, headers: &HeaderMap) -> Option<Handed> {
        if !self.trusts(peer) {
            return None;
        }
        let mut hops: Vec<IpAddr> = peer.address().into_iter().collect();
        for written in values(headers, "x-forwarded-for") {
            let Some(address) = address(written) else { break };
            hops.push(address);
            if !self.trusts(Peer::Address(address)) {
                break;
            }
        }
        let chain: Vec<String> = hops.iter().rev().map(ToString::to_string).collect();
        Some(Handed {
            client: hops.last().copied(),
            chain: chain.join(", "),
            is_https: values(headers, "x-forwarded-proto").next().and_then(is_https),
            host: values(headers, "x-forwarded-host").next().and_then(host),
        })
    }
}

/// The members of a list header, the last one first. An empty one stands for itself, though a list might skip it
/// (RFC 9110, 5.6.1): it is what a proxy writes that does not know for whom it asks, and what stands left of it is no
/// word of that proxy's.
fn values<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a str> {
    let lines: Vec<&HeaderValue> = headers.get_all(name).iter().collect();
    lines.into_iter().rev().flat_map(|line| line.to_str().unwrap_or("-").rsplit(',')).map(str::trim)
}

/// An address as proxies write it: bare, or with a port, IPv6 in brackets then.
fn address(text: &str) -> Option<IpAddr> {
    let bare = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0,
        None if text.matches(':').count() == 1 => text.split_once(':')?.0,
        None => text,
    };
    bare.parse().ok().map(|address: IpAddr| address.to_canonical())
}

fn is_https(scheme: &str) -> Option<bool> {
    match scheme {
        _ if scheme.eq_ignore_ascii_case("https") => Some(true),
        _ if scheme.eq_ignore_ascii_case("http") => Some(false),
        _ => None,
    }
}

fn host(text: &str) -> Option<HeaderValue> {
    let is_host = (1..=HOST_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte));
    is_host.then(|| HeaderValue::from_str(text).ok()).flatten()
}

/// What counts as one client where addresses are counted: an IPv4 address, or the /64 network of an IPv6 one,
/// which is the least that a subscriber is given (RFC 6177).
pub fn subscriber(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trusted() -> Trusted {
        let networks = ["10.0.0.0/8", "2001:db8:1::/48"].map(|network| network.parse().unwrap());
        Trusted { networks: networks.into(), local: false }
    }

    fn peer(text: &str) -> Peer {
        Peer::Address(text.parse().unwrap())
    }

    fn said(lines: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn the_first_address_from_the_right_that_is_not_trusted_is_the_client() {
        let table: [(&str, &[&str], &str, &str); 16] = [
            ("10.0.0.1", &["192.0.2.7"], "192.0.2.7", "192.0.2.7, 10.0.0.1"),
            ("10.0.0.1", &["6.6.6.6, 192.0.2.7"], "192.0.2.7", "192.0.2.7, 10.0.0.1"),
            ("10.0.0.1", &["6.6.6.6", "192.0.2.7, 10.9.9.9"], "192.0.2.7", "192.0.2.7, 10.9.9.9, 10.0.0.1"),
            ("10.0.0.1", &["192.0.2.7:4711"], "192.0.2.7", "192.0.2.7, 10.0.0.1"),
            ("10.0.0.1", &["[2001:db8::7]:4711"], "2001:db8::7", "2001:db8::7, 10.0.0.1"),
            ("2001:db8:1::9", &["2001:db8::7"], "2001:db8::7", "2001:db8::7, 2001:db8:1::9"),
            ("::ffff:10.0.0.1", &["192.0.2.7"], "192.0.2.7", "192.0.2.7, ::ffff:10.0.0.1"),
            ("10.0.0.1", &["192.0.2.7, unknown"], "10.0.0.1", "10.0.0.1"),
            ("10.0.0.1", &["192.0.2.7, evil\", 10.0.0.2"], "10.0.0.2", "10.0.0.2, 10.0.0.1"),
            ("10.0.0.1", &["10.0.0.3, 10.0.0.2"], "10.0.0.3", "10.0.0.3, 10.0.0.2, 10.0.0.1"),
            ("10.0.0.1", &["192.0.2.7, "], "10.0.0.1", "10.0.0.1"),
            ("10.0.0.1", &["192.0.2.7, , 10.0.0.2"], "10.0.0.2", "10.0.0.2, 10.0.0.1"),
            ("10.0.0.1", &["192.0.2.7", ""], "10.0.0.1", "10.0.0.1"),
            ("10.0.0.1", &["6.6.6.6,, 192.0.2.7"], "192.0.2.7", "192.0.2.7, 10.0.0.1"),
            ("10.0.0.1", &[",192.0.2.7"], "192.0.2.7", "192.0.2.7, 10.0.0.1"),
            ("10.0.0.1", &[], "10.0.0.1", "10.0.0.1"),
        ];
        for (from, lines, client, chain) in table {
            let lines: Vec<_> = lines.iter().map(|line| ("x-forwarded-for", *line)).collect();
            let handed = trusted().read(peer(from), &said(&lines)).unwrap();
            assert_eq!((handed.client, &*handed.chain), (Some(client.parse().unwrap()), chain), "{lines:?}");
        }
    }

    #[test]
    fn whoever_is_not_trusted_is_not_heard() {
        let headers = said(&[("x-forwarded-for", "10.0.0.1"), ("x-forwarded-proto", "https")]);
        for from in [peer("192.0.2.7"), peer("2001:db8:2::1"), Peer::Local, Peer::Unknown] {
            assert_eq!(trusted().read(from, &headers), None, "{from:?}");
        }
        let local = Trusted { networks: Vec::new(), local: true };
        let handed = local.read(Peer::Local, &said(&[("x-forwarded-for", "192.0.2.7")])).unwrap();
        assert_eq!((handed.client, &*handed.chain), (Some([192, 0, 2, 7].into()), "192.0.2.7"));
        assert_eq!(local.read(Peer::Unknown, &headers), None);
    }

    #[test]
    fn scheme_and_host_are_what_the_nearest_proxy_wrote() {
        let read = |lines: &[(&'static str, &str)]| trusted().read(peer("10.0.0.1"), &said(lines)).unwrap();
        let handed = read(&[("x-forwarded-proto", "http, HTTPS"), ("x-forwarded-host", "llm.example:8443")]);
        assert_eq!(handed.is_https, Some(true));
        assert_eq!(handed.host.unwrap(), "llm.example:8443");
        let handed = read(&[("x-forwarded-proto", "gopher"), ("x-forwarded-host", "a/b")]);
        assert_eq!((handed.is_https, handed.host), (None, None));
        let handed = read(&[("x-forwarded-proto", "https,"), ("x-forwarded-host", "llm.example, ")]);
        assert_eq!((handed.is_https, handed.host), (None, None), "the nearest one wrote nothing");
    }

    #[test]
    fn a_subscriber_has_one_ipv4_address_or_a_whole_network() {
        let of = |text: &str| subscriber(text.parse().unwrap()).to_string();
        assert_eq!((of("192.0.2.7"), of("::ffff:192.0.2.7")), ("192.0.2.7".into(), "192.0.2.7".into()));
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), of("2001:db8:1:2::1"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
    }
}
