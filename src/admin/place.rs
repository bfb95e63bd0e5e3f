//! Where an admin listener is, for those commands of this binary that ask one from outside.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use http::Uri;
use http::header::{AUTHORIZATION, HOST};
use pingora::protocols::http::v1::client::HttpSession;
use pingora::protocols::l4::stream::Stream;
use pingora_http::RequestHeader;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use crate::secret::Secret;

/// How long the listener may take to be connected to, to answer, and from one piece of an answer to the next.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// Most that is read of an answer in words.
const WORDS_MAX: usize = 4 * 1024;

/// The text leads to no admin listener.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither http://ADDRESS:PORT nor unix:/PATH")]
pub(crate) struct NoPlace(String);

/// The listener cannot be reached, or has gone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {why}")]
pub(crate) struct Away {
    /// Where it was looked for.
    place: String,
    /// What the system says.
    why: String,
}

/// Where an admin listener is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// `HOST:PORT`.
    Tcp(String),
    /// The path of a socket.
    Unix(PathBuf),
}

impl FromStr for Place {
    type Err = NoPlace;

    fn from_str(text: &str) -> Result<Self, NoPlace> {
        let odd = || NoPlace(text.to_owned());
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() { Err(odd()) } else { Ok(Self::Unix(path.into())) };
        }
        let uri: Uri = text.parse().map_err(|_| odd())?;
        let authority = uri.authority().filter(|_| uri.scheme_str() == Some("http")).ok_or_else(odd)?;
        if !matches!(uri.path(), "" | "/") || authority.as_str().contains('@') {
            return Err(odd());
        }
        // What is no port would be taken for none.
        let port = match authority.as_str().strip_prefix(authority.host()) {
            Some("") => 80,
            _ => authority.port_u16().ok_or_else(odd)?,
        };
        Ok(Self::Tcp(format!("{}:{port}", authority.host())))
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(address) => write!(to, "http://{address}"),
            Self::Unix(path) => write!(to, "unix:{}", path.display()),
        }
    }
}

impl Place {
    /// Asks for a path: the session has read the head of the answer.
    ///
    /// # Errors
    /// The listener cannot be reached, or says nothing.
    pub(crate) async fn ask(&self, path: &str, token: Option<&Secret>) -> Result<HttpSession, Away> {
        let stream = timeout(PATIENCE, self.open()).await.map_err(|_| self.away("no connection in time"))?;
        let stream = stream.map_err(|error| self.away(error))?;
        let head = self.head(path, token).map_err(|error| self.away(error))?;
        let mut session = HttpSession::new(Box::new(stream));
        let asked = async {
            session.write_request_header(Box::new(head)).await?;
            session.read_response().await
        };
        let answered = timeout(PATIENCE, asked).await.map_err(|_| self.away("no answer in time"))?;
        answered.map_err(|error| self.away(error))?;
        Ok(session)
    }

    /// That the listener here is away, and why.
    pub(crate) fn away(&self, why: impl ToString) -> Away {
        Away { place: self.to_string(), why: why.to_string() }
    }

    async fn open(&self) -> std::io::Result<Stream> {
        Ok(match self {
            Self::Tcp(address) => TcpStream::connect(address).await?.into(),
            Self::Unix(path) => UnixStream::connect(path).await?.into(),
        })
    }

    fn head(&self, path: &str, token: Option<&Secret>) -> pingora::Result<RequestHeader> {
        let host = match self {
            Self::Tcp(address) => address,
            Self::Unix(_) => "localhost",
        };
        let mut head = RequestHeader::build("GET", path.as_bytes(), Some(2))?;
        head.insert_header(HOST, host)?;
        if let Some(token) = token {
            head.insert_header(AUTHORIZATION, token.header_value())?;
        }
        Ok(head)
    }
}

/// The first line of an answer, as far as it comes.
pub(crate) async fn words(session: &mut HttpSession) -> String {
    let mut said = Vec::new();
    while said.len() < WORDS_MAX
        && let Ok(Ok(Some(chunk))) = timeout(PATIENCE, session.read_body_bytes()).await
    {
        said.extend_from_slice(&chunk);
    }
    String::from_utf8_lossy(&said).lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_what_a_gateway_prints_at_its_start() {
        let tcp = |address: &str| Ok(Place::Tcp(address.to_owned()));
        assert_eq!("http://127.0.0.1:9090".parse(), tcp("127.0.0.1:9090"));
        assert_eq!("http://[::1]:9090/".parse(), tcp("[::1]:9090"));
        assert_eq!("http://gateway".parse(), tcp("gateway:80"));
        assert_eq!("unix:/run/admin.sock".parse(), Ok(Place::Unix("/run/admin.sock".into())));
        for odd in [
            "http://a:99999",
            "http://a:",
            "",
            "127.0.0.1:9090",
            "https://a:1",
            "http://a:1/status",
            "unix:",
            "http://u:p@a:1",
            "http://",
        ] {
            assert_eq!(odd.parse::<Place>(), Err(NoPlace(odd.to_owned())), "{odd}");
        }
    }
}
