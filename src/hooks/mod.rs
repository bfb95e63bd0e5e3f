//! Where a program that embeds the gateway has a say: which backend, who is let in, what becomes of events.
//!
//! Three traits, each of which leaves everything as it is where it says nothing. They are plain functions over facts:
//! no hook is given a socket, and none is waited for. They run on the threads that serve streams, so one that
//! blocks holds up all streams of its thread; what takes long is to be prepared elsewhere and looked up here. A panic
//! in one of them is an error of its exchange alone, as one of our own is.
//!
//! The one hard idea: a hook that changes answers must know what it does not get to see. [`Observe::unseen`] has no
//! default, because the right answer differs: who counts wants such an answer to pass, who redacts wants it broken.

mod change;
mod choose;
mod facts;

use std::fmt;
use std::sync::Arc;

pub(crate) use change::as_lines;
pub use change::{Change, Unseen};
pub use choose::{Candidate, Chooser};
pub use facts::{Facts, OwnedFacts};

use crate::rejection::Refusal;
use crate::sse::Event;

/// Longest JSON answer that [`Observe::answer`] gets to see, in bytes.
pub const ANSWER_MAX: usize = 1024 * 1024;

/// Chooses the backend of an attempt.
pub trait ChooseBackend: Send + Sync {
    /// The place in `candidates` of the backend to use, or `None` for no opinion: then the cluster's own affinity and
    /// balance decide. A place that is not there counts as none.
    ///
    /// Candidates are the backends of one cluster that are usable at this moment: well, not full, not resting, not
    /// draining, and not tried by this exchange before. So nothing can be chosen that is out or full. A chosen
    /// backend whose last slot another request takes meanwhile is no candidate any more, and it is asked again.
    ///
    /// It is not asked where there is no choice: which request tries a backend that comes back, and what is used
    /// where none is well, is the cluster's business. What is chosen here is not remembered as the home of a
    /// session or prompt.
    fn choose(&self, request: &Facts<'_>, candidates: &[Candidate<'_>]) -> Option<usize> {
        let (_, _) = (request, candidates);
        None
    }
}

/// Admits exchanges.
pub trait Admit: Send + Sync {
    /// Lets an exchange in, or says what its client is told.
    ///
    /// It is asked once for each request that a route sends to a cluster: when its key, its route and the guard of its
    /// body have let it in, and before its tokens are charged, a queue is joined or an engine is touched.
    ///
    /// # Errors
    /// The exchange is refused.
    fn admit(&self, request: &Facts<'_>) -> Result<(), Refusal> {
        let _ = request;
        Ok(())
    }
}

/// Sees the answer of one exchange, and may change it. It belongs to that exchange, so it may keep state.
///
/// It sees what the engine sends, and nothing that the gateway says itself: heartbeats, error events and rejections.
/// Everything that is counted (tokens, usage, the first token) is counted as the engine sent it, whatever becomes of it
/// here.
pub trait Observe: Send + Sync {
    /// Sees an event of a stream: whole, never a part, and as soon as its end is there. [`Event::raw`] is always there,
    /// and holds the lines of the event without the blank line behind them. Bytes behind the last blank line of a
    /// stream that has ended well are shown as an event too.
    fn event(&mut self, event: &Event<'_>) -> Change {
        let _ = event;
        Change::Pass
    }

    /// Sees the body of a JSON answer that is no stream, of any status, whole and up to [`ANSWER_MAX`] bytes. It is held
    /// until its end, and goes out without `Content-Length`. A hook that does not implement this has not seen it.
    fn answer(&mut self, body: &[u8]) -> Change {
        let _ = body;
        match self.unseen() {
            Unseen::Pass => Change::Pass,
            Unseen::Break => Change::Break,
        }
    }

    /// What is to become of an answer that this hook cannot see: an event larger than the route's `stream.event_hold`
    /// (which passes in parts), a JSON answer that is larger than [`ANSWER_MAX`] or finds no room in
    /// `server.request.buffered_bytes`, and a body that is neither JSON nor an event stream, or has a content coding.
    fn unseen(&self) -> Unseen;
}

/// Gives each exchange whose answer begins its observer, or none.
pub(crate) type Begin = dyn Fn(&Facts<'_>) -> Option<Box<dyn Observe>> + Send + Sync;

/// The hooks of a gateway. Without any it does exactly what it does without this module.
#[derive(Clone, Default)]
pub struct Hooks {
    pub(crate) choose: Option<Arc<dyn ChooseBackend>>,
    pub(crate) admit: Option<Arc<dyn Admit>>,
    pub(crate) observe: Option<Arc<Begin>>,
}

impl Hooks {
    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.choose.is_none() && self.admit.is_none() && self.observe.is_none()
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = [self.choose.is_some(), self.admit.is_some(), self.observe.is_some()];
        to.debug_struct("Hooks").field("choose_admit_observe", &shown).finish_non_exhaustive()
    }
}
