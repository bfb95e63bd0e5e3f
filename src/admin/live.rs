//! The live view for those who watch: a frame a second, made once for all of them.
//!
//! No task of its own: who wants a frame makes it where the last one is too old, and takes that one otherwise. So a
//! frame is made at most once a second however many watch, and never where nobody does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use parking_lot::Mutex;

use super::facts;
use crate::live::{Sample, Window};
use crate::proxy::Shared;
use crate::reload::Book;

/// How often a frame is made.
pub(super) const EVERY: Duration = Duration::from_secs(1);
/// Most who watch at a time: each costs a connection, and operators are few.
const WATCHERS_MAX: usize = 32;

/// The live view.
#[derive(Debug)]
pub(super) struct Live {
    began: Instant,
    kept: Mutex<Kept>,
    watchers: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct Kept {
    window: Window,
    frame: Option<Frame>,
}

/// The view at one moment, as an event of a stream.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    /// When it was made.
    pub(super) at: Instant,
    /// The event.
    pub(super) event: Bytes,
}

/// One who watches.
#[derive(Debug)]
pub(super) struct Watching(Arc<AtomicUsize>);

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Live {
    /// That of a process which begins now.
    pub(super) fn new(began: Instant) -> Self {
        let kept = Kept { window: Window::new(Sample::zero(began)), frame: None };
        Self { began, kept: Mutex::new(kept), watchers: Arc::default() }
    }

    /// Counts one who watches; `None` where as many do as may.
    pub(super) fn watch(&self) -> Option<Watching> {
        let fits = |watchers: usize| (watchers < WATCHERS_MAX).then_some(watchers + 1);
        let counted = self.watchers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        counted.is_ok().then(|| Watching(Arc::clone(&self.watchers)))
    }

    /// The newest frame; a new one where that is a second old.
    pub(super) fn frame(&self, shared: &Shared, book: &Book, is_checked: bool) -> Frame {
        let mut kept = self.kept.lock();
        let now = Instant::now();
        let is_fresh = |frame: &&Frame| now.saturating_duration_since(frame.at) < EVERY;
        if let Some(frame) = kept.frame.as_ref().filter(is_fresh) {
            return frame.clone();
        }
        let snapshot = shared.snapshot.load();
        kept.window.add(shared.metrics.sample(&snapshot, now));
        let moment = facts::Moment { now, wall: SystemTime::now(), began: self.began, is_checked };
        let view = kept.window.view(facts::of(shared, &snapshot, book, &moment));
        let text = serde_json::to_string(&view).expect("a view is numbers and texts");
        let frame = Frame { at: now, event: format!("data: {text}\n\n").into() };
        kept.frame = Some(frame.clone());
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_may_watch_and_each_gives_its_place_back() {
        let live = Live::new(Instant::now());
        let mut watching: Vec<_> = (0..WATCHERS_MAX).map(|_| live.watch().expect("a place")).collect();
        assert!(live.watch().is_none());
        watching.pop();
        assert!(live.watch().is_some());
    }
}
