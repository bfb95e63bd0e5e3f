//! `clusters.*.tls`: whom an https backend must be.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::Arc;

use super::url;
use crate::config::environment::Environment;
use crate::config::place::{At, shown};
use crate::config::raw;
use crate::config::{Authorities, ServerName, Tls, Trust};

/// What a cluster says of all its https backends.
pub(super) struct Toward {
    trust: Trust,
    sni: Option<String>,
}

/// Reads the settings, and the file of authorities if one is named.
pub(super) fn toward(raw: &raw::Cluster, at: &At<'_>, environment: &Environment) -> Toward {
    let empty = raw::ClusterTls::default();
    let raw = raw.tls.get().unwrap_or(&empty);
    let authorities = raw.ca.get().map(|path| authorities(path, &at.key("ca"), environment));
    let trust = match (raw.verify.get(), authorities) {
        (Some(false), None) => Trust::Anyone,
        (Some(false), Some(_)) => {
            at.key("ca")
                .problem("a certificate that is not checked needs no authority", "drop ca, or verify: false");
            Trust::Anyone
        }
        (_, Some(authorities)) => authorities.map_or(Trust::System, Trust::Authorities),
        (_, None) => Trust::System,
    };
    let sni = raw.sni.get().filter(|name| is_name(name, &at.key("sni"))).cloned();
    Toward { trust, sni }
}

/// Warns of what the file of authorities and names cannot keep: nobody is checked, or nobody is asked.
pub(super) fn warn(toward: &Toward, raw: &raw::Cluster, has_https: bool, at: &At<'_>) {
    if has_https && matches!(toward.trust, Trust::Anyone) {
        at.key("verify").warning(
            "certificates of the backends are not checked: whoever stands between reads prompts and credentials",
            "name the backends' own authority: tls: { ca: PATH }",
        );
    }
    let says = |tls: &raw::ClusterTls| {
        tls.verify.get() == Some(&false) || tls.ca.get().is_some() || tls.sni.get().is_some()
    };
    if !has_https && raw.tls.get().is_some_and(says) {
        at.warning("no backend of the cluster is reached over TLS", "write https:// in its url");
    }
}

impl Toward {
    /// For a backend with this host.
    pub(super) fn backend(&self, host: &str) -> Arc<Tls> {
        let name = self.sni.as_ref().map_or_else(|| server_name(host), |sni| ServerName::Dns(absolute(sni)));
        let trust_key = key(&self.trust);
        Arc::new(Tls { key: key(&(trust_key, &name)), trust_key, trust: self.trust.clone(), name })
    }
}

/// Who a server must be that is reached at this host.
pub(super) fn server_name(host: &str) -> ServerName {
    host.parse().map_or_else(|_| ServerName::Dns(absolute(host)), ServerName::Ip)
}

/// A certificate names a host without the dot that ends an absolute name.
fn absolute(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

/// Never 0, which stands for a connection without TLS.
fn key(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish().max(1)
}

fn is_name(name: &str, at: &At<'_>) -> bool {
    if name.parse::<std::net::IpAddr>().is_ok() {
        at.problem("an address is no server name", "leave sni out: the URL's address is checked as it is");
        return false;
    }
    match url::check_host(name, "") {
        Ok(()) => true,
        Err(_) => {
            at.problem(format!("{} is no server name", shown(name)), "as in llm.example.com");
            false
        }
    }
}

/// `None` has been told.
pub(super) fn authorities(path: &str, at: &At<'_>, environment: &Environment) -> Option<Authorities> {
    let read = (environment.file)(Path::new(path));
    let read = read.and_then(|pem| Authorities::from_pem(&pem).map_err(str::to_owned));
    read.map_err(|reason| at.problem(format!("the file {} {reason}", shown(path)), "")).ok()
}
