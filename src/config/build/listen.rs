//! The client listeners: `server.listen`.

use super::value;
use crate::config::place::At;
use crate::config::raw::{self, Field};
use crate::config::{Certificate, Listen, Transport};

pub(super) fn listen(raw: &raw::Server, at: &At<'_>) -> Vec<Listen> {
    let fix = "write [ { address: 127.0.0.1:8080 } ]";
    let listeners = value::filled(&raw.listen, at, "no address to serve clients on", fix);
    let mut listens = Vec::new();
    for (i, listener) in listeners.iter().enumerate() {
        let at = at.index(i);
        let Some(listener) = listener.get() else { continue };
        let transport = transport(listener, &at);
        let text = value::required(&listener.address, "address", &at, "write { address: 127.0.0.1:8080 }");
        let address = text.and_then(|text| value::address(text, &at.key("address")));
        listens.extend(address.map(|address| Listen { address, transport }));
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
    let fix = "write [ { cert: server.crt, key: server.key } ]";
    let certificates = value::filled(&raw.certificates, at, "TLS without a certificate", fix);
    let mut files = Vec::new();
    for (i, certificate) in certificates.iter().enumerate() {
        let Some(certificate) = certificate.get() else { continue };
        let at = at.index(i);
        let cert = file(&certificate.cert, &at.key("cert"), "certificate chain");
        let key = file(&certificate.key, &at.key("key"), "private key");
        if let (Some(cert), Some(key)) = (cert, key) {
            files.push(Certificate { cert: cert.into(), key: key.into(), line: at.line() });
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
