//! The task that owns the configuration in force.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep_until;

use super::build::{Builder, Found, Read, tls};
use super::departures::Departures;
use super::hosts::Hosts;
use super::{Ask, Book, Cause, InForce, Last, Outcome, Reloader, tell};
use crate::config::Problems;
use crate::discovery::Lookouts;
use crate::proxy::Shared;
use crate::server::certificates;
use crate::snapshot::Snapshot;
use crate::supervisor;

/// How often snapshots that nobody needs any more are looked for.
const SWEEP: Duration = Duration::from_secs(1);

/// Owns the configuration in force.
pub struct Keeper {
    shared: Arc<Shared>,
    builder: Builder,
    book: Arc<Book>,
    asks: mpsc::Receiver<Ask>,
    running: InForce,
    found: Found,
    lookouts: Lookouts,
    departures: Departures,
    /// Snapshots that some exchange may still live by. The last one to let go of a large one would drop it
    /// on a thread that serves.
    old: Vec<Arc<Snapshot>>,
}

/// What has been asked at once.
#[derive(Default)]
struct Batch {
    cause: Option<Cause>,
    answers: Vec<oneshot::Sender<Outcome>>,
    has_found: bool,
}

impl Keeper {
    /// A keeper of what has just been put in force.
    pub fn new(
        shared: Arc<Shared>,
        builder: Builder,
        (reloader, asks): (Reloader, mpsc::Receiver<Ask>),
        running: InForce,
        found: Found,
    ) -> Self {
        let book = Arc::clone(&reloader.book);
        let mut lookouts = Lookouts::new(reloader);
        lookouts.follow(&running.config.clusters);
        let (departures, old) = (Departures::default(), Vec::new());
        Self { shared, builder, book, asks, running, found, lookouts, departures, old }
    }

    /// Answers what is asked, for as long as the process lives.
    pub async fn keep(mut self) {
        loop {
            let next_cut = self.departures.next();
            let cut = async {
                match next_cut {
                    Some(at) => sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            };
            let has_old = !self.old.is_empty();
            tokio::select! {
                ask = self.asks.recv() => match ask {
                    Some(ask) => self.serve(ask).await,
                    None => return,
                },
                () = cut => self.cut(),
                () = tokio::time::sleep(SWEEP), if has_old => self.sweep().await,
            }
        }
    }

    /// Serves what is asked now, and all that waits behind it, as one.
    async fn serve(&mut self, first: Ask) {
        let mut batch = Batch::default();
        self.take(first, &mut batch);
        while let Ok(ask) = self.asks.try_recv() {
            self.take(ask, &mut batch);
        }
        let mut is_built = false;
        if let Some(cause) = batch.cause {
            let outcome = self.reload(cause).await;
            is_built = matches!(outcome, Outcome::Applied { .. });
            for answer in batch.answers {
                // Who asked may have left.
                drop(answer.send(outcome.clone()));
            }
        }
        if batch.has_found && !is_built && !self.shared.drain.is_leaving() {
            self.rebuild().await;
        }
    }

    fn take(&mut self, ask: Ask, batch: &mut Batch) {
        match ask {
            Ask::Reload(cause, answer) => {
                batch.cause.get_or_insert(cause);
                batch.answers.extend(answer);
            }
            Ask::Found(name, addrs) => {
                batch.has_found |= self.found.get(&name) != Some(&addrs);
                self.found.insert(name, addrs);
            }
        }
    }

    /// Reads the file and puts it in force, or says why not.
    async fn reload(&mut self, cause: Cause) -> Outcome {
        if self.shared.drain.is_leaving() {
            log::warn!("{cause}: the gateway is on its way out, and the configuration stays as it is");
            return Outcome::Leaving;
        }
        supervisor::reloading();
        let outcome = match self.book.file.clone() {
            Some(file) => {
                let outcome = self.reload_from(file).await;
                certificates::tell(&self.builder.below, &self.shared.metrics);
                outcome
            }
            None => Outcome::Refused { problems: "this gateway was started without a file".into() },
        };
        tell::outcome(cause, self.book.file.as_deref(), &outcome);
        supervisor::ready(&tell::status(&outcome));
        self.count(&outcome);
        *self.book.last.lock() = Last { at: SystemTime::now(), cause: Some(cause), outcome: outcome.clone() };
        outcome
    }

    async fn reload_from(&mut self, file: PathBuf) -> Outcome {
        let read = self.read(file).await;
        match read {
            Ok(Read::Same(text)) => {
                self.running.text = text;
                *self.book.text.lock() = self.running.text.clone();
                Outcome::Unchanged { generation: self.shared.snapshot.load().generation }
            }
            Ok(Read::New(new)) => {
                new.warnings.iter().for_each(|warning| log::warn!("{warning}"));
                let generation = new.snapshot.generation;
                let before = std::mem::replace(&mut self.running, new.running);
                self.found = new.found;
                let after = self.running.clone();
                // A large one takes a while to compare and to drop, and nobody waits for that.
                drop(tokio::task::spawn_blocking(move || tell::changes(generation, &before, &after)));
                *self.book.text.lock() = self.running.text.clone();
                log::set_max_level(self.running.config.log.level);
                self.put_in_force(new.snapshot);
                self.lookouts.follow(&self.running.config.clusters);
                Outcome::Applied { generation }
            }
            Err(problems) => Outcome::Refused { problems: problems.to_string() },
        }
    }

    async fn read(&self, file: PathBuf) -> Result<Read, Problems> {
        let (builder, running) = (self.builder.clone(), self.running.clone());
        let (found, before) = (self.found.clone(), self.shared.snapshot.load_full());
        let read = move || builder.reload(&file, &running, found, &before);
        let read = tokio::task::spawn_blocking(read).await;
        read.unwrap_or_else(|_| {
            Err(Problems::here_and_now("reading it failed by a fault of streamgate's own"))
        })
    }

    /// The same configuration with the addresses that names have now.
    async fn rebuild(&mut self) {
        let (builder, config) = (self.builder.clone(), Arc::clone(&self.running.config));
        let (found, before) = (self.found.clone(), self.shared.snapshot.load_full());
        let generation = before.generation;
        let build = move || {
            let hosts = Hosts::of(&config, &before);
            builder.snapshot(&config, &found, Some(&before), |host, port| hosts.stay(host, port))
        };
        match tokio::task::spawn_blocking(build).await {
            // No other configuration: it keeps its number.
            Ok(Ok(snapshot)) => self.put_in_force(Snapshot { generation, ..snapshot }),
            Ok(Err(error)) => log::error!("new addresses are not used: {}", crate::server::chain(&error)),
            Err(_) => log::error!("new addresses are not used: a fault of streamgate's own"),
        }
    }

    fn put_in_force(&mut self, snapshot: Snapshot) {
        let drain = snapshot.server.shutdown.drain;
        snapshot.set_limits(Instant::now());
        let before = self.shared.snapshot.swap(Arc::new(snapshot));
        // Behind the swap: before it an exchange could find every backend of its cluster leaving.
        let snapshot = self.shared.snapshot.load();
        snapshot.set_drains();
        self.departures.note(&snapshot, Instant::now(), drain);
        // There may be slots that no attempt has freed, and queues of clusters that are gone.
        before.clusters.iter().for_each(|cluster| cluster.state.queue.nudge());
        self.old.push(before);
        self.builder.connector.keep_only(tls(&self.running.config));
    }

    fn count(&self, outcome: &Outcome) {
        let (result, is_sound) = match outcome {
            Outcome::Applied { .. } => ("applied", true),
            Outcome::Unchanged { .. } => ("unchanged", true),
            Outcome::Refused { .. } => ("failed", false),
            Outcome::Leaving => return,
        };
        self.shared.metrics.reloaded(result, is_sound);
    }

    /// Ends what backends have open whose time is over.
    fn cut(&mut self) {
        let at_work = self.departures.cut(Instant::now());
        for backend in &at_work {
            log::warn!(
                "{}/{} was removed and its time to drain is over: {} exchanges end with an error",
                backend.cluster,
                backend.name,
                backend.state.in_flight()
            );
        }
        if !at_work.is_empty() {
            self.shared.drain.look();
        }
    }

    /// Drops, aside, the snapshots that nobody lives by any more.
    async fn sweep(&mut self) {
        let (done, needed) =
            std::mem::take(&mut self.old).into_iter().partition(|old| Arc::strong_count(old) == 1);
        self.old = needed;
        let done: Vec<Arc<Snapshot>> = done;
        if !done.is_empty() {
            // It drops them and cannot fail.
            drop(tokio::task::spawn_blocking(move || drop(done)).await);
        }
    }
}
