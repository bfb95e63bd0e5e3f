//! The client listeners: `server.listen`.

use super::value;
use crate::config::place::At;
use crate::config::raw::{self, Field};
use crate::config::{Certificate, Listen, Transport};

pub(super) fn listen(raw: &raw::Server, at: &At<'_>) -> Vec<Listen> {
    let listeners = match &raw.listen {
        Field::Set(listeners) if !listeners.is_empty() => listeners,
        Field::Wrong => return Vec::new(),
        Field::Set(_) | Field::Absent => {
            at.problem("no address to serve clients on", "write [ { address: 127.0.0.1:8080 } ]");
            return Vec::new();
        }
    };
    let mut listens = Vec::new();
    for (i, listener) in listeners.iter().enumerate() {
        let at = at.index(i);
        let Some(listener) = listener.get() else { continue };
        let transport = transport(listener, &at);
        match &listener.address {
            Field::Set(text) => {
                let address = value::address(text, &at.key("address"));
                listens.extend(address.map(|address| Listen { address, transport }));
            }
            Field::Absent => at.key("address").problem("missing", "write { address: 127.0.0.1:8080 }"),
            Field::Wrong => {}
        }
    }
    listens
}

fn transport(raw: &raw::Listen, at: &At<'_>) -> Transport {
    let h2c = raw.h2c.get() == Some(&true);
    let Some(tls) = raw.tls.get() else {
        return if h2c { Transport::PlainH2 } else { Transport::Plain };
    };
    if h2c {
        at.key("h2c").problem("HTTP/2 without TLS, and TLS", "leave it out: with tls HTTP/2 comes by ALPN");
    }
    Transport::Tls(certificates(tls, &at.key("tls").key("certificates")))
}

fn certificates(raw: &raw::ListenTls, at: &At<'_>) -> Vec<Certificate> {
    let certificates = match &raw.certificates {
        Field::Set(certificates) if !certificates.is_empty() => certificates,
        Field::Wrong => return Vec::new(),
        Field::Set(_) | Field::Absent => {
            at.problem("TLS without a certificate", "write [ { cert: server.crt, key: server.key } ]");
            return Vec::new();
        }
    };
    let mut files = Vec::new();
    for (i, certificate) in certificates.iter().enumerate() {
        let Some(certificate) = certificate.get() else { continue };
        let at = at.index(i);
        let cert = file(&certificate.cert, &at.key("cert"), "certificate chain");
        let key = file(&certificate.key, &at.key("key"), "private key");
        if let (Some(cert), Some(key)) = (cert, key) {
            files.push(Certificate { cert: cert.into(), key: key.into() });
        }
    }
    files
}

fn file<'t>(text: &'t Field<String>, at: &At<'_>, what: &str) -> Option<&'t str> {
    match text {
        Field::Set(path) if path.is_empty() => {
            at.problem("an empty path", format!("name the PEM file of the {what}"))
        }
        Field::Set(path) => return Some(path),
        Field::Absent => at.problem("missing", format!("name the PEM file of the {what}")),
        Field::Wrong => {}
    }
    None
}
