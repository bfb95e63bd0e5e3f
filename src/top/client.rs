//! The events of an admin listener, read one by one.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use http::Uri;
use http::header::{ACCEPT, AUTHORIZATION, HOST};
use memchr::memmem;
use pingora::protocols::http::v1::client::HttpSession;
use pingora::protocols::l4::stream::Stream;
use pingora_http::RequestHeader;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use crate::live::view::View;
use crate::secret::Secret;
use crate::sse::decode;

/// How long the listener may take to be connected to, and from one event to the next: they come once a second.
const PATIENCE: Duration = Duration::from_secs(10);
/// Largest event that is read: the view of 512 backends has some 300 KiB.
const EVENT_MAX: usize = 8 * 1024 * 1024;
/// Most that is read of a refusal.
const REFUSAL_MAX: usize = 4 * 1024;

/// Why there is nothing to show.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    /// The URL leads to no admin listener.
    #[error("--admin {0:?} is neither http://ADDRESS:PORT nor unix:/PATH")]
    Place(String),
    /// There is no token where it is said to be.
    #[error("--token-env {0}: there is no such environment variable, or it holds no token")]
    Token(String),
    /// The gateway refuses.
    #[error("the gateway says {status}: {why}{}", if *.status == 401 { " (see --token-env)" } else { "" })]
    Refused {
        /// The status.
        status: u16,
        /// What it says.
        why: String,
    },
    /// It cannot be reached, or has gone.
    #[error("{place}: {why}")]
    Away {
        /// Where it was looked for.
        place: String,
        /// What the system says.
        why: String,
    },
    /// What comes is not what this version reads.
    #[error("what the gateway sends cannot be read, is it of another version? {0}")]
    Odd(String),
    /// The terminal cannot be used.
    #[error("the terminal cannot be used: {0}")]
    Terminal(String),
}

/// Where an admin listener is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// `HOST:PORT`.
    Tcp(String),
    Unix(PathBuf),
}

impl FromStr for Place {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let odd = || Error::Place(text.to_owned());
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() { Err(odd()) } else { Ok(Self::Unix(path.into())) };
        }
        let uri: Uri = text.parse().map_err(|_| odd())?;
        let authority = uri.authority().filter(|_| uri.scheme_str() == Some("http")).ok_or_else(odd)?;
        if !matches!(uri.path(), "" | "/") || authority.as_str().contains('@') {
            return Err(odd());
        }
        Ok(Self::Tcp(format!("{}:{}", authority.host(), authority.port_u16().unwrap_or(80))))
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
    async fn open(&self) -> std::io::Result<Stream> {
        Ok(match self {
            Self::Tcp(address) => TcpStream::connect(address).await?.into(),
            Self::Unix(path) => UnixStream::connect(path).await?.into(),
        })
    }

    fn host(&self) -> &str {
        match self {
            Self::Tcp(address) => address,
            Self::Unix(_) => "localhost",
        }
    }
}

/// One who watches.
pub(super) struct Client {
    place: Place,
    session: HttpSession,
    /// What has come of the next event.
    begun: Vec<u8>,
}

impl Client {
    /// Asks for the events.
    ///
    /// # Errors
    /// The listener is away, or refuses.
    pub(super) async fn connect(place: &Place, token: Option<&Secret>) -> Result<Self, Error> {
        let away = |why: String| Error::Away { place: place.to_string(), why };
        let stream =
            timeout(PATIENCE, place.open()).await.map_err(|_| away("no connection in time".into()))?;
        let stream = stream.map_err(|error| away(error.to_string()))?;
        let head = head(place, token).map_err(|error| away(error.to_string()))?;
        let mut session = HttpSession::new(Box::new(stream));
        let asked = async {
            session.write_request_header(Box::new(head)).await?;
            session.read_response().await
        };
        let answered = timeout(PATIENCE, asked).await.map_err(|_| away("no answer in time".into()))?;
        answered.map_err(|error| away(error.to_string()))?;
        let status = session.get_status().map_or(0, |status| status.as_u16());
        let mut client = Self { place: place.clone(), session, begun: Vec::new() };
        if status == 200 { Ok(client) } else { Err(client.refusal(status).await) }
    }

    /// The next view.
    ///
    /// # Errors
    /// The listener has gone, or sends what is no view.
    pub(super) async fn next(&mut self) -> Result<View, Error> {
        loop {
            if let Some(end) = memmem::find(&self.begun, b"\n\n") {
                let event: Vec<u8> = self.begun.drain(..end + 2).collect();
                let Some(data) = decode::data(&event) else { continue };
                return serde_json::from_slice(&data).map_err(|error| Error::Odd(error.to_string()));
            }
            if self.begun.len() > EVENT_MAX {
                return Err(Error::Odd(format!("an event of more than {EVENT_MAX} bytes")));
            }
            if !self.read().await? {
                return Err(self.away("the gateway has ended the events"));
            }
        }
    }

    /// Reads on; false at the end.
    async fn read(&mut self) -> Result<bool, Error> {
        let read = timeout(PATIENCE, self.session.read_body_bytes()).await;
        match read {
            Err(_) => Err(self.away("no event in time")),
            Ok(Err(error)) => Err(self.away(&error.to_string())),
            Ok(Ok(None)) => Ok(false),
            Ok(Ok(Some(chunk))) => {
                self.begun.extend_from_slice(&chunk);
                Ok(true)
            }
        }
    }

    fn away(&self, why: &str) -> Error {
        Error::Away { place: self.place.to_string(), why: why.to_owned() }
    }

    async fn refusal(&mut self, status: u16) -> Error {
        while self.begun.len() < REFUSAL_MAX && matches!(self.read().await, Ok(true)) {}
        let why = String::from_utf8_lossy(&self.begun);
        Error::Refused { status, why: why.lines().next().unwrap_or_default().to_owned() }
    }
}

fn head(place: &Place, token: Option<&Secret>) -> pingora::Result<RequestHeader> {
    let mut head = RequestHeader::build("GET", b"/live/events", Some(3))?;
    head.insert_header(HOST, place.host())?;
    head.insert_header(ACCEPT, "text/event-stream")?;
    if let Some(token) = token {
        head.insert_header(AUTHORIZATION, token.header_value())?;
    }
    Ok(head)
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
        for odd in
            ["", "127.0.0.1:9090", "https://a:1", "http://a:1/status", "unix:", "http://u:p@a:1", "http://"]
        {
            assert_eq!(odd.parse::<Place>(), Err(Error::Place(odd.to_owned())), "{odd}");
        }
    }
}
