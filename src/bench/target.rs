//! Where requests go: a URL, taken apart. Pure.

use std::str::FromStr;

use http::Uri;
use http::uri::{Authority, PathAndQuery};

use crate::config::ServerName;

/// The endpoints that are known, as their paths end.
const CHAT: &str = "/chat/completions";
const COMPLETIONS: &str = "/completions";

/// Where something is asked over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) tls: bool,
    /// As it stands in `Host`.
    pub(super) authority: Authority,
    pub(super) path: PathAndQuery,
}

/// Which form requests and answers have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Chat,
    Completions,
}

/// The endpoint under load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) place: Place,
    pub(super) dialect: Dialect,
    /// Where the models are listed.
    pub(super) models: Place,
}

impl Place {
    /// The host without the brackets of an IPv6 address.
    pub(super) fn host(&self) -> &str {
        self.authority.host().trim_start_matches('[').trim_end_matches(']')
    }

    pub(super) fn port(&self) -> u16 {
        self.authority.port_u16().unwrap_or(if self.tls { 443 } else { 80 })
    }

    /// Who must be there.
    pub(super) fn server_name(&self) -> ServerName {
        let host = self.host();
        host.parse().map_or_else(|_| ServerName::Dns(host.to_ascii_lowercase()), ServerName::Ip)
    }

    /// Another path at the same host.
    ///
    /// # Errors
    /// It is none.
    pub(super) fn at(&self, path: &str) -> Result<Self, String> {
        let path = PathAndQuery::from_str(path).map_err(|error| format!("the path {path:?}: {error}"))?;
        Ok(Self { path, ..self.clone() })
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let odd = |why: &str| format!("`{text}` {why}, as http://127.0.0.1:8080/v1");
        let uri: Uri = text.parse().map_err(|_| odd("is no URL"))?;
        let tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(odd("does not begin with http:// or https://")),
        };
        let parts = uri.into_parts();
        let authority = parts.authority.ok_or_else(|| odd("has no host"))?;
        if authority.as_str().contains('@') {
            return Err("a URL holds no user and no password here; see --key-env".into());
        }
        // What is no port would be taken for none, and nobody can be at port 0.
        if authority.as_str() != authority.host() && authority.port_u16().is_none_or(|port| port == 0) {
            return Err(odd("has a port that is none"));
        }
        let path = parts.path_and_query.unwrap_or_else(|| PathAndQuery::from_static("/"));
        Ok(Self { tls, authority, path })
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{}://{}{}", if self.tls { "https" } else { "http" }, self.authority, self.path)
    }
}

impl FromStr for Target {
    type Err = String;

    /// A base such as `http://host/v1`, below which chats are asked for, or a whole endpoint.
    fn from_str(text: &str) -> Result<Self, String> {
        let given: Place = text.parse()?;
        let path = given.path.path();
        let (base, dialect) = if let Some(base) = path.strip_suffix(CHAT) {
            (base, Dialect::Chat)
        } else if let Some(base) = path.strip_suffix(COMPLETIONS) {
            (base, Dialect::Completions)
        } else if ["/responses", "/messages", "/embeddings", "/rerank"].iter().any(|end| path.ends_with(end))
        {
            return Err(format!(
                "`{text}` is none of the endpoints that are understood: {CHAT}, {COMPLETIONS}"
            ));
        } else {
            let base = path.trim_end_matches('/');
            let query = given.path.query().map(|query| format!("?{query}")).unwrap_or_default();
            let place = given.at(&format!("{base}{CHAT}{query}"))?;
            return Ok(Self { place, dialect: Dialect::Chat, models: given.at(&format!("{base}/models"))? });
        };
        let models = given.at(&format!("{base}/models"))?;
        Ok(Self { place: given, dialect, models })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> (String, Dialect, String) {
        let target: Target = text.parse().unwrap();
        (target.place.to_string(), target.dialect, target.models.to_string())
    }

    #[test]
    fn a_base_or_a_whole_endpoint_will_do() {
        let chat =
            ("http://h:8080/v1/chat/completions".into(), Dialect::Chat, "http://h:8080/v1/models".into());
        for text in ["http://h:8080/v1", "http://h:8080/v1/", "http://h:8080/v1/chat/completions"] {
            assert_eq!(target(text), chat, "{text}");
        }
        let (place, dialect, models) = target("https://h/openai/v1/completions?v=1");
        assert_eq!(dialect, Dialect::Completions);
        assert_eq!(
            (place.as_str(), models.as_str()),
            ("https://h/openai/v1/completions?v=1", "https://h/openai/v1/models")
        );
        assert_eq!(target("http://h").0, "http://h/chat/completions");
        assert_eq!(target("http://h/v1?v=1").0, "http://h/v1/chat/completions?v=1");
    }

    #[test]
    fn places_know_their_host_and_port() {
        let place: Place = "https://[::1]/v1".parse().unwrap();
        assert_eq!((place.host(), place.port(), place.tls), ("::1", 443, true));
        assert_eq!(place.server_name(), ServerName::Ip("::1".parse().unwrap()));
        let place: Place = "http://Engine:81".parse().unwrap();
        assert_eq!((place.host(), place.port()), ("Engine", 81));
        assert_eq!(place.server_name(), ServerName::Dns("engine".into()));
    }

    #[test]
    fn what_leads_nowhere_is_told() {
        let told = |text: &str| text.parse::<Target>().unwrap_err();
        assert!(told("127.0.0.1:8080").contains("http://"));
        assert!(told("ftp://h").contains("http://"));
        assert!(told("").contains("is no URL"));
        assert!(told("http://u:p@h/v1").contains("--key-env"));
        for port in ["99999", "0", "", "x"] {
            assert!(told(&format!("http://h:{port}/v1")).contains("http://"), "{port}");
        }
        assert!(told("http://h:65536").contains("has a port that is none"));
        assert!(told("http://h/v1/responses").contains("/chat/completions"));
    }
}
