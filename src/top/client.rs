//! The events of an admin listener, read one by one.

use memchr::memmem;
use pingora::protocols::http::v1::client::HttpSession;
use tokio::time::timeout;

use crate::admin::place::{Away, NoPlace, PATIENCE, Place, words};
use crate::live::view::View;
use crate::secret::Secret;
use crate::sse::decode;

/// Largest event that is read: the view of 512 backends has some 300 KiB.
const EVENT_MAX: usize = 8 * 1024 * 1024;

/// Why there is nothing to show.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    /// The URL leads to no admin listener.
    #[error("--admin {0}")]
    Place(#[from] NoPlace),
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
    #[error(transparent)]
    Away(#[from] Away),
    /// What comes is not what this version reads.
    #[error("what the gateway sends cannot be read, is it of another version? {0}")]
    Odd(String),
    /// The terminal cannot be used.
    #[error("the terminal cannot be used: {0}")]
    Terminal(String),
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
        let mut session = place.ask("/live/events", token).await?;
        let status = session.get_status().map_or(0, |status| status.as_u16());
        if status != 200 {
            return Err(Error::Refused { status, why: words(&mut session).await });
        }
        Ok(Self { place: place.clone(), session, begun: Vec::new() })
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
            self.read().await?;
        }
    }

    /// Reads on.
    async fn read(&mut self) -> Result<(), Away> {
        let read = timeout(PATIENCE, self.session.read_body_bytes()).await;
        match read {
            Err(_) => Err(self.place.away("no event in time")),
            Ok(Err(error)) => Err(self.place.away(error)),
            Ok(Ok(None)) => Err(self.place.away("the gateway has ended the events")),
            Ok(Ok(Some(chunk))) => {
                self.begun.extend_from_slice(&chunk);
                Ok(())
            }
        }
    }
}
