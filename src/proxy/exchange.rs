//! One client request and its answer: everything the phases pass to each other.
//!
//! All that is counted is held by guards in here, so it goes back with the exchange, however that
//! ends: completed, cancelled, or with a panic that Pingora swallowed.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use super::admit::Admitted;
use super::answer::Answer;
use super::attempt::Attempt;
use super::edit::Draft;
use super::ending::Ending;
use super::request::Request;
use super::shared::Shared;
use crate::cluster::{self, Ask, Backend, Cluster, Second};
use crate::config::{Key, Route, Timeouts};
use crate::drain::Working;
use crate::edge::Client;
use crate::hooks::{Chooser, OwnedFacts};
use crate::openai::About;
use crate::outcome::{Outcome, Phase};
use crate::rejection::Rejection;
use crate::snapshot::Snapshot;
use crate::trace::Trace;
use crate::upstream::Plan;

/// One client request and its answer.
pub struct Exchange {
    pub(super) shared: Arc<Shared>,
    _working: Working,
    /// When it began.
    pub(super) arrived: Instant,
    /// The same on the calendar.
    pub(super) arrived_at: SystemTime,
    /// Its request id.
    pub(super) id: String,
    /// The configuration it lives by.
    pub(super) snapshot: Arc<Snapshot>,
    /// The client's connection.
    pub(super) client: Option<Arc<Client>>,
    /// Whose it is, once known; `None` also where nobody needs a key.
    pub(super) key: Option<Arc<Key>>,
    /// What it was let in by, where its key has limits.
    pub(super) admitted: Option<Admitted>,
    /// What the client asked.
    pub(super) request: Request,
    /// The only route that its head leaves to it, by name: that of one that is refused before its route is known.
    pub(super) likely_route: Option<Arc<str>>,
    /// The route it takes, once known.
    pub(super) route: Option<Arc<Route>>,
    /// The cluster it goes to, once known.
    pub(super) cluster: Option<Arc<Cluster>>,
    /// Which cluster of its route that is; 0 is the first.
    pub(super) hop: usize,
    /// Its body as it came, where its clusters want it edited in different ways.
    pub(super) draft: Option<Box<Draft>>,
    /// It waits for a free slot.
    pub(super) waiting: bool,
    /// Time that it has waited for one.
    pub(super) queued: Option<Duration>,
    /// When it may wait no longer, once it has begun to.
    queue_until: Option<Instant>,
    /// The second attempt that has been decided and not yet begun.
    pub(super) second: Option<Second>,
    /// When its request was complete.
    pub(super) ready_at: Instant,
    /// A dead pooled connection has been replaced, which happens once.
    pub(super) resent: bool,
    /// Backends it was tried on.
    pub(super) tried: Vec<Arc<Backend>>,
    /// The current attempt.
    pub(super) attempt: Option<Attempt>,
    /// What the current attempt's session is to do; taken by it.
    pub(super) plan: Option<Arc<Plan>>,
    /// What the client is to be told when the phases fail.
    pub(super) rejection: Option<Rejection>,
    /// The answer on its way.
    pub(super) answer: Answer,
    /// What hooks are told of it, where there are any.
    pub(super) facts: Option<Box<OwnedFacts>>,
    /// Its trace, if it is traced.
    pub(super) trace: Option<Box<Trace>>,
    /// How it ended.
    pub(super) ending: Ending,
    /// It has been counted and logged.
    pub(super) settled: bool,
}

impl Exchange {
    /// An exchange that has just begun.
    pub(super) fn begin(shared: &Arc<Shared>, now: Instant, wall: SystemTime) -> Self {
        Self {
            shared: Arc::clone(shared),
            _working: shared.drain.begin(),
            arrived: now,
            arrived_at: wall,
            id: String::new(),
            snapshot: shared.snapshot.load_full(),
            client: None,
            key: None,
            admitted: None,
            request: Request::default(),
            likely_route: None,
            route: None,
            cluster: None,
            hop: 0,
            draft: None,
            waiting: false,
            queued: None,
            queue_until: None,
            second: None,
            ready_at: now,
            resent: false,
            tried: Vec::new(),
            attempt: None,
            plan: None,
            rejection: None,
            answer: Answer::default(),
            facts: None,
            trace: None,
            ending: Ending::default(),
            settled: false,
        }
    }

    /// What an error may have to name of it.
    pub(super) fn about(&self) -> About<'_> {
        self.request.about(&self.id, self.arrived_at)
    }

    /// What its next attempt asks of a cluster.
    pub(super) fn ask(&self, now: Instant) -> Ask<'_> {
        Ask {
            tried: &self.tried,
            lenient: true,
            sound: false,
            now,
            draw: fastrand::u64(..),
            cost: self.request.cost,
            keys: &self.request.keys,
            chooser: self.chooser(),
        }
    }

    fn chooser(&self) -> Option<Chooser<'_>> {
        let hook = self.shared.hooks.choose.as_deref()?;
        self.facts.as_deref().map(|request| Chooser { hook, request })
    }

    /// Its lane in a queue: that of its key, where there are others to be fair to.
    pub(super) fn lane(&self) -> u64 {
        match &self.key {
            Some(key) if self.snapshot.keys.len() > 1 => key.lane(),
            _ => cluster::EVERYBODY,
        }
    }

    /// A cluster of its route: the first is at 0, then come those it falls back on.
    pub(super) fn cluster_at(&self, hop: usize) -> Option<Arc<Cluster>> {
        let (at, _) = self.route.as_ref()?.clusters().nth(hop)?;
        self.snapshot.clusters.get(at).map(|cluster| self.newest(cluster))
    }

    /// The same cluster with the backends that it has by now: who waits, or has to be tried again, is not to miss one
    /// that has come. All else of the exchange is as it began, so one whose backends are asked in another way by now
    /// keeps those that it had.
    pub(super) fn newest(&self, cluster: &Arc<Cluster>) -> Arc<Cluster> {
        let in_force = self.shared.snapshot.load();
        if Arc::ptr_eq(&in_force, &self.snapshot) {
            return Arc::clone(cluster);
        }
        let newest = in_force.clusters.iter().find(|other| Arc::ptr_eq(&other.state, &cluster.state));
        Arc::clone(newest.filter(|other| other.config.asks_as(&cluster.config)).unwrap_or(cluster))
    }

    /// All of them.
    pub(super) fn clusters(&self) -> impl Iterator<Item = Arc<Cluster>> {
        (0..).map_while(|hop| self.cluster_at(hop))
    }

    /// Its time budgets at its cluster, once it has a route.
    pub(super) fn timeouts(&self) -> Option<&Timeouts> {
        self.route.as_ref()?.clusters().nth(self.hop).map(|(_, timeouts)| timeouts)
    }

    /// When all of it must be over.
    pub(super) fn total_at(&self) -> Instant {
        self.arrived + self.timeouts().map_or(Duration::ZERO, |timeouts| timeouts.total)
    }

    /// When it may wait for a slot no longer: `timeouts.queue` from when it began to, whatever cluster it waits
    /// at, and not beyond its end.
    pub(super) fn queue_until(&mut self, now: Instant) -> Instant {
        let queue = self.timeouts().map_or(Duration::ZERO, |timeouts| timeouts.queue);
        let until = self.queue_until.unwrap_or_else(|| now + queue);
        self.queue_until = Some(until);
        until.min(self.total_at())
    }

    /// Where it is now.
    pub(super) fn phase(&self) -> Phase {
        match &self.attempt {
            Some(attempt) => attempt.link.phase(),
            None if self.waiting => Phase::Queue,
            None => Phase::Upload,
        }
    }

    /// Says how it ended.
    pub(super) fn end(&mut self, outcome: Outcome, code: Option<&'static str>) {
        self.ending.outcome = outcome;
        self.ending.code = code;
        self.ending.phase = self.phase();
    }

    /// Whether the process is on its way out.
    pub(super) fn is_leaving(&self) -> bool {
        self.shared.drain.is_leaving()
    }

    /// Whether it must end now.
    pub(super) fn is_cut(&self) -> bool {
        self.shared.drain.is_cut()
    }

    /// The client was told `rejection`, as a status or as an error event.
    pub(super) fn end_with(&mut self, outcome: Outcome, rejection: &Rejection) {
        self.end(outcome, Some(rejection.code()));
        self.ending.limit = rejection.limit();
        self.ending.why = Some(rejection.message());
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.settle(Instant::now());
    }
}
