//! Notices that the configuration file has other content.
//!
//! What counts is the content, not who wrote it or how: editors write a new file and rename it, others
//! truncate and write in pieces, Kubernetes swaps a link in the path (`..data`). So the folder is watched
//! and not the file, an event only means *look*, and a look compares bytes. A look waits until it has been
//! quiet for a moment and nobody is seen writing, so that half a file is not read. Where the system tells
//! nothing (a network file system, no watches left), a look every few seconds does.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

use super::{Cause, Reloader};
use crate::config;

/// Silence after an event before the file is read.
const QUIET: Duration = Duration::from_millis(150);

/// The same while somebody has been seen writing and not closing: a slow writer is waited for.
const WRITING: Duration = Duration::from_secs(1);

/// Longest wait for silence: a file that is written all the time is read all the same.
const RESTLESS_MAX: Duration = Duration::from_secs(5);

/// How often the file is looked at where no event comes.
const POLL: Duration = Duration::from_secs(5);

/// Events that may wait; one is enough for a look.
const EVENTS_MAX: usize = 256;

/// The name that Kubernetes swaps below a mounted ConfigMap.
const DATA_LINK: &str = "..data";

/// What an event says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// Somebody is writing into the file.
    Writing,
    /// Anything else that may have changed it; a writer has closed it, or it was replaced.
    Changed,
}

/// A file that is watched.
pub struct Watch {
    folders: Folders,
    look: Look,
}

impl Watch {
    /// Watches a file from now on. `text` is what was last read of it.
    pub fn begin(file: PathBuf, text: String) -> Self {
        let (signs, told) = mpsc::channel(EVENTS_MAX);
        let mut folders = Folders::new(&file, signs);
        folders.follow();
        Self { folders, look: Look { file, last: text.into_bytes(), trouble: None, told } }
    }

    /// Tells of each change, for ever.
    pub async fn tell(mut self, reloader: Reloader) {
        loop {
            self.look.wait().await;
            if self.look.differs().await {
                reloader.poke(Cause::File);
            }
            self.folders.follow();
        }
    }
}

/// The file, what it was, and what tells that it may have changed.
struct Look {
    file: PathBuf,
    last: Vec<u8>,
    /// Why it could not be read, if it could not.
    trouble: Option<String>,
    told: mpsc::Receiver<Sign>,
}

impl Look {
    /// Waits for an event and the silence behind it, or for the next look without one.
    async fn wait(&mut self) {
        let Ok(Some(mut sign)) = timeout(POLL, self.told.recv()).await else {
            // Without a watcher the channel is closed, and would be so at once.
            if self.told.is_closed() {
                tokio::time::sleep(POLL).await;
            }
            return;
        };
        let latest = Instant::now() + RESTLESS_MAX;
        loop {
            let patience = if sign == Sign::Writing { WRITING } else { QUIET };
            match timeout_at(latest.min(Instant::now() + patience), self.told.recv()).await {
                Ok(Some(next)) => sign = next,
                Ok(None) | Err(_) => return,
            }
        }
    }

    /// Whether the file has other content than at the last look, and some: one that is gone or cannot be
    /// read is told once, and what is in force stays.
    async fn differs(&mut self) -> bool {
        let file = self.file.clone();
        let read = tokio::task::spawn_blocking(move || config::read(&file)).await;
        let now = read.unwrap_or_else(|_| Err("cannot be read: a fault of streamgate's own".into()));
        match now {
            // One that comes back as it was is no change.
            Ok(now) => {
                self.trouble = None;
                let differs = now != self.last;
                self.last = now;
                differs
            }
            Err(what) => {
                if self.trouble.as_ref() != Some(&what) {
                    log::warn!("{}: {what}; the configuration in force stays", self.file.display());
                    self.trouble = Some(what);
                }
                false
            }
        }
    }
}

/// The folders whose events may concern the file.
struct Folders {
    file: PathBuf,
    watcher: Option<RecommendedWatcher>,
    watched: HashSet<PathBuf>,
}

impl Folders {
    fn new(file: &Path, signs: mpsc::Sender<Sign>) -> Self {
        let names: HashSet<OsString> = [Some(file), file.canonicalize().ok().as_deref()]
            .into_iter()
            .flatten()
            .filter_map(|path| Some(path.file_name()?.to_owned()))
            .collect();
        let tell = move |event: notify::Result<Event>| {
            if let Some(sign) = event.map_or(Some(Sign::Changed), |event| sign(&event, &names)) {
                // Full: a look is due anyway.
                let _is_told = signs.try_send(sign).is_ok();
            }
        };
        let watcher = notify::recommended_watcher(tell).inspect_err(|error| without(file, error)).ok();
        Self { file: file.to_owned(), watcher, watched: HashSet::new() }
    }

    /// Watches the folder of the file and that of what it links to, as they are now.
    fn follow(&mut self) {
        let Some(watcher) = &mut self.watcher else { return };
        let target = self.file.canonicalize().ok();
        let wanted: HashSet<PathBuf> =
            [Some(self.file.as_path()), target.as_deref()].into_iter().flatten().map(folder).collect();
        // One that was removed and is there again has lost its watch in silence: it is set anew.
        for folder in self.watched.extract_if(|folder| !wanted.contains(folder)) {
            // One that is gone has no watch any more.
            drop(watcher.unwatch(&folder));
        }
        for folder in wanted {
            match watcher.watch(&folder, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    self.watched.insert(folder);
                }
                Err(error) if self.watched.insert(folder) => without(&self.file, &error),
                Err(_) => {}
            }
        }
    }
}

fn without(file: &Path, error: &notify::Error) {
    log::warn!("{} is looked at every {POLL:?} only, as it cannot be watched: {error}", file.display());
}

fn folder(file: &Path) -> PathBuf {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// What an event says of a file with one of these names; `None` if nothing. Reading is no event: it would
/// be our own.
fn sign(event: &Event, names: &HashSet<OsString>) -> Option<Sign> {
    let concerns = |name: &OsStr| names.contains(name) || name == DATA_LINK;
    let mut paths = event.paths.iter().filter_map(|path| path.file_name());
    if !event.paths.is_empty() && !event.need_rescan() && !paths.any(concerns) {
        return None;
    }
    match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => Some(Sign::Changed),
        EventKind::Access(_) => None,
        EventKind::Modify(ModifyKind::Data(_)) => Some(Sign::Writing),
        _ => Some(Sign::Changed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_have_changed_the_file_is_a_sign() {
        let names = HashSet::from([OsString::from("a.yaml")]);
        let told = |kind, path: &str| sign(&Event::new(kind).add_path(path.into()), &names);
        let data = EventKind::Modify(ModifyKind::Data(notify::event::DataChange::Any));
        let closed = EventKind::Access(AccessKind::Close(AccessMode::Write));
        let opened = EventKind::Access(AccessKind::Open(AccessMode::Any));
        assert_eq!(told(data, "/x/a.yaml"), Some(Sign::Writing));
        assert_eq!(told(closed, "/x/a.yaml"), Some(Sign::Changed));
        assert_eq!(told(opened, "/x/a.yaml"), None);
        assert_eq!(told(data, "/x/access.log"), None);
        assert_eq!(told(EventKind::Any, "/x/..data"), Some(Sign::Changed));
        assert_eq!(sign(&Event::new(EventKind::Other), &names), Some(Sign::Changed));
    }

    fn look(file: &Path, text: &str) -> Look {
        // Nobody tells anything: as on a system without watches.
        let (_, told) = mpsc::channel(1);
        Look { file: file.to_owned(), last: text.into(), trouble: None, told }
    }

    /// R12: without any event the file is looked at all the same.
    #[tokio::test(start_paused = true)]
    async fn without_events_the_file_is_looked_at_now_and_then() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.yaml");
        std::fs::write(&file, "old").unwrap();
        let mut look = look(&file, "old");
        let begin = Instant::now();
        look.wait().await;
        assert!(!look.differs().await);
        std::fs::write(&file, "new").unwrap();
        look.wait().await;
        assert!(look.differs().await);
        assert!(begin.elapsed() <= 2 * POLL && POLL <= Duration::from_secs(10));
    }

    /// R11: deleted and back is no change, deleted and other is one.
    #[tokio::test]
    async fn a_file_that_is_gone_is_no_change_until_it_is_back_with_another_text() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.yaml");
        let mut look = look(&file, "old");
        assert!(!look.differs().await);
        std::fs::write(&file, "old").unwrap();
        assert!(!look.differs().await);
        std::fs::remove_file(&file).unwrap();
        assert!(!look.differs().await);
        std::fs::write(&file, "new").unwrap();
        assert!(look.differs().await);
        assert!(!look.differs().await);
    }
}
