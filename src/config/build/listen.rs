//! The client listeners: `server.listen`.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::value;
use crate::config::place::{At, shown};
use crate::config::raw::{self, Field};
use crate::config::{Address, Certificate, Listen, NamedFile, ServerTls, Transport};

/// Mode of a unix socket that says none: its owner and its group may connect.
const MODE: u32 = 0o660;

/// Longest path of a unix socket: `sun_path` with its end (unix(7)).
const PATH_MAX: usize = 107;

/// The socket for a successor.
pub(super) fn upgrade_socket(raw: &Field<String>, at: &At<'_>) -> Option<PathBuf> {
    let text = raw.get()?;
    let path = PathBuf::from(text.strip_prefix("unix:").unwrap_or(text));
    check_path(&path, at, "write /run/streamgate/upgrade.sock");
    Some(path)
}

/// Notes what is wrong with the path of a unix socket.
fn check_path(path: &Path, at: &At<'_>, fix: &'static str) {
    if !path.is_absolute() {
        at.problem("a unix socket has a path from the root", fix);
    }
    if path.as_os_str().as_bytes().len() > PATH_MAX {
        at.problem("the path of a unix socket is too long", format!("it may have {PATH_MAX} bytes"));
    }
}

pub(super) fn listen(raw: &raw::Server, at: &At<'_>) -> Vec<Listen> {
    let fix = "write [ { address: 127.0.0.1:8080 } ]";
    let listeners = value::filled(&raw.listen, at, "no address to serve clients on", fix);
    let trusts_nobody = raw.trusted_proxies.get().is_none_or(Vec::is_empty);
    let mut listens = Vec::new();
    for (i, listener) in listeners.iter().enumerate() {
        let at = at.index(i);
        let Some(listener) = listener.get() else { continue };
        let transport = transport(listener, &at);
        let proxy_protocol = listener.proxy_protocol.get() == Some(&true);
        if proxy_protocol && trusts_nobody && !matches!(raw.trusted_proxies, Field::Wrong) {
            at.key("proxy_protocol").problem(
                "nobody could connect: only trusted proxies may send a PROXY header, and none is named",
                "name their networks in server.trusted_proxies",
            );
        }
        let redirect_https = redirect(listener, &at);
        let address = address(listener, &at);
        listens.extend(address.map(|address| Listen { address, transport, proxy_protocol, redirect_https }));
    }
    listens
}

fn address(raw: &raw::Listen, at: &At<'_>) -> Option<Address> {
    let mode = mode(&raw.mode, &at.key("mode"));
    let text = value::required(&raw.address, "address", at, "write { address: 127.0.0.1:8080 }")?;
    let Some(path) = text.strip_prefix("unix:") else {
        if mode != MODE {
            at.key("mode").problem("only a unix socket has a mode", "leave it out");
        }
        return value::address(text, &at.key("address")).map(Address::Tcp);
    };
    let path = PathBuf::from(path);
    check_path(&path, &at.key("address"), "write unix:/run/streamgate/http.sock");
    Some(Address::Unix { path, mode })
}

/// As chmod(1) takes it: three octal digits, perhaps with a 0 before them.
fn mode(raw: &Field<String>, at: &At<'_>) -> u32 {
    let Some(text) = raw.get() else { return MODE };
    let digits = text.strip_prefix('0').unwrap_or(text);
    let mode = if digits.len() == 3 { u32::from_str_radix(digits, 8).ok() } else { None };
    mode.unwrap_or_else(|| {
        at.problem(format!("{} is no mode of a file", shown(text)), "write it as in \"0660\"");
        MODE
    })
}

fn redirect(raw: &raw::Listen, at: &At<'_>) -> Option<u16> {
    let port = raw.redirect_https.get()?;
    let at = at.key("redirect_https");
    if raw.tls.get().is_some() {
        at.problem("clients of a listener with tls speak https already", "leave it out");
    }
    u16::try_from(value::within(port.0, &at, 1..=u64::from(u16::MAX))).ok()
}

fn transport(raw: &raw::Listen, at: &At<'_>) -> Transport {
    let h2c = raw.h2c.get() == Some(&true);
    let Some(tls) = raw.tls.get() else {
        return if h2c { Transport::PlainH2 } else { Transport::Plain };
    };
    if h2c {
        at.key("h2c").problem("HTTP/2 without TLS, and TLS", "leave it out: with tls HTTP/2 comes by ALPN");
    }
    let at = at.key("tls");
    let at_ca = at.key("client_ca");
    let client_ca = match &tls.client_ca {
        Field::Absent => None,
        named => file(named, &at_ca, "authorities of clients"),
    };
    Transport::Tls(ServerTls {
        certificates: certificates(tls, &at.key("certificates")),
        client_ca: client_ca.map(|path| NamedFile { path: path.into(), line: at_ca.line() }),
    })
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
