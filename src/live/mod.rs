//! The live view of the gateway: what an operator on call has to see, made of two readings of its counters.
//!
//! * [`view`]: the view itself, as the page and `streamgate top` get it;
//! * [`Sample`]: what the counters said at one moment; [`Window`]: the samples of the last minute, and what they
//!   come to;
//! * [`problems`]: what is wrong, in words, worst first;
//! * [`Failures`]: the exchanges that failed of late, and why; [`Saved`]: tokens that nobody had to generate.
//!
//! The one hard idea: nothing here is counted for the view alone. Rates are differences of the counters that
//! Prometheus reads too, so a view costs nothing while nobody watches.

mod failures;
pub mod problems;
mod sample;
mod saved;
pub mod view;
mod window;

pub use failures::{Failed, Failures};
pub use sample::{BackendCounts, ClusterCounts, RouteCounts, Sample};
pub use saved::{Pace, Saved, Spared};
pub use window::{LENGTH, Window};
