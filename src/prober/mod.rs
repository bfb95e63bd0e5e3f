//! What is asked of backends beside their work: whether they are well, how loaded they are, for one token.
//!
//! One task a backend and kind of question, each on its own clock, started and ended by one supervisor that
//! follows the configuration in force. The same supervisor looks at what is under way on each backend, which
//! is how a silence is noticed. What answers mean is decided in `cluster`; a failed or slow scrape means
//! nothing at all.

mod check;
mod question;
mod tasks;
mod token;

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cluster::{Backend, Cluster};
use crate::proxy::Shared;
use crate::snapshot::Snapshot;
use crate::upstream::Asker;
use tasks::Tasks;

/// Longest time between two looks at what is under way.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Shortest time between two.
const LOOK_LEAST: Duration = Duration::from_millis(20);
/// Looks per `wedged.after`: a wedge is noticed at most so much later.
const LOOKS: u32 = 4;

/// All that a question needs.
#[derive(Clone)]
struct Prober {
    shared: Arc<Shared>,
    asker: Asker,
}

/// One backend, and the cluster that says how it is asked.
#[derive(Clone)]
struct Target {
    cluster: Arc<Cluster>,
    backend: Arc<Backend>,
}

/// When each backend is asked for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum First {
    /// At some moment of its interval, so that backends are not asked in step.
    InTurn,
    /// At once: somebody waits for the answers.
    Soon,
}

/// Watches the backends of whatever configuration is in force, until it is dropped.
pub async fn run(shared: Arc<Shared>, asker: Asker, first: First) {
    let prober = Prober { shared, asker };
    let mut tasks = Tasks::new(prober.clone(), first);
    loop {
        let snapshot = prober.shared.snapshot.load_full();
        tasks.follow(&snapshot);
        for target in targets(&snapshot) {
            look(&prober, &target, &mut tasks);
        }
        // Those that have left may have failed since their last line.
        for backend in &snapshot.leaving {
            prober.shared.health_told(backend, Instant::now());
        }
        tokio::time::sleep(look_every(&snapshot)).await;
    }
}

fn look(prober: &Prober, target: &Target, tasks: &mut Tasks) {
    let now = Instant::now();
    let Target { cluster, backend } = target;
    if let Some(change) = cluster.look(backend, now, fastrand::u64(..)) {
        prober.shared.health_changed(backend, &change, None, now);
    }
    prober.shared.health_told(backend, now);
    if let Some(trial) = backend.state.probe(now) {
        tasks.once(token::probe(prober.clone(), target.clone(), trial));
    }
}

fn targets(snapshot: &Snapshot) -> impl Iterator<Item = Target> {
    snapshot.clusters.iter().flat_map(|cluster| {
        let target = |backend| Target { cluster: Arc::clone(cluster), backend: Arc::clone(backend) };
        cluster.backends.iter().map(target)
    })
}

fn look_every(snapshot: &Snapshot) -> Duration {
    let shortest = snapshot.clusters.iter().map(|cluster| cluster.config.health.wedged_after / LOOKS).min();
    shortest.unwrap_or(LOOK_EVERY).clamp(LOOK_LEAST, LOOK_EVERY)
}
