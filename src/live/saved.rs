//! Tokens that nobody had to generate, because their client left and the engine was told.
//!
//! Nobody can know how long an answer would have become, so it is estimated, and rather too low: what the completed
//! answers of its route have had of late, on average, and at most what the request allowed, less what had been
//! generated already. Where no answer of the route has been completed nothing is counted. The time that an engine
//! would have had for them is as many times what a token took on average in those of them that were streams.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

/// The part that one answer has in the average: the last 32 or so make it.
const WEIGHT: f64 = 1.0 / 32.0;

/// How fast one stream came: the time for each token after its first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace(f64);

impl Pace {
    /// The pace of so many tokens in the time from the first to the last. `None` where nothing can be said: of a single
    /// token, or of many that came together.
    pub fn of(tokens: u64, time: Duration) -> Option<Self> {
        let after_first = tokens.checked_sub(1).filter(|count| *count > 0)?;
        (!time.is_zero()).then(|| Self(time.as_secs_f64() / after_first as f64))
    }

    /// Seconds for a token.
    pub fn seconds(self) -> f64 {
        self.0
    }

    /// Tokens a second.
    pub fn per_second(self) -> f64 {
        1.0 / self.0
    }
}

/// What was not generated.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spared {
    /// Tokens.
    pub tokens: u64,
    /// Seconds of one sequence on an engine; 0 while no pace is known.
    pub seconds: f64,
}

/// The answers of one route, on average.
#[derive(Debug)]
struct Typical {
    tokens: f64,
    /// Seconds for a token.
    pace: Option<f64>,
}

/// How long the answers of each route are. Its lock is taken at the end of an exchange.
#[derive(Debug, Default)]
pub struct Saved(Mutex<HashMap<Arc<str>, Typical>>);

impl Saved {
    /// Learns from a completed answer of so many tokens, which came at that pace if it was a stream.
    pub fn learn(&self, route: &Arc<str>, tokens: u64, pace: Option<Pace>) {
        let (tokens, pace) = (tokens as f64, pace.map(Pace::seconds));
        let mut known = self.0.lock();
        let Some(typical) = known.get_mut(route) else {
            known.insert(Arc::clone(route), Typical { tokens, pace });
            return;
        };
        typical.tokens = toward(typical.tokens, tokens);
        if let Some(pace) = pace {
            typical.pace = Some(typical.pace.map_or(pace, |average| toward(average, pace)));
        }
    }

    /// What was saved by an answer that was given up at so many tokens, of a request that allowed `most`.
    pub fn by_leaving(&self, route: &str, at: u64, most: Option<u64>) -> Spared {
        let known = self.0.lock();
        let Some(typical) = known.get(route) else { return Spared::default() };
        let tokens = (typical.tokens as u64).min(most.unwrap_or(u64::MAX)).saturating_sub(at);
        Spared { tokens, seconds: tokens as f64 * typical.pace.unwrap_or(0.0) }
    }
}

fn toward(average: f64, value: f64) -> f64 {
    average + (value - average) * WEIGHT
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(saved: &Saved, route: &str, at: u64, most: Option<u64>) -> u64 {
        saved.by_leaving(route, at, most).tokens
    }

    #[test]
    fn an_answer_given_up_saves_what_others_have_had() {
        let (saved, route) = (Saved::default(), Arc::from("chat"));
        assert_eq!(tokens(&saved, "chat", 0, None), 0, "nothing is known");
        saved.learn(&route, 100, None);
        assert_eq!(tokens(&saved, "chat", 30, None), 70);
        assert_eq!(tokens(&saved, "chat", 30, Some(40)), 10, "no more than was allowed");
        assert_eq!(tokens(&saved, "chat", 130, None), 0, "longer than most");
        assert_eq!(tokens(&saved, "other", 0, None), 0);
        (0..200).for_each(|_| saved.learn(&route, 20, None));
        assert_eq!(tokens(&saved, "chat", 0, None), 20, "what was long ago is forgotten");
    }

    #[test]
    fn a_pace_is_the_time_after_the_first_token_for_each_of_the_others() {
        let pace = Pace::of(5, Duration::from_secs(1)).unwrap();
        assert_eq!((pace.seconds(), pace.per_second()), (0.25, 4.0));
        assert_eq!(Pace::of(1, Duration::from_secs(1)), None, "a single one");
        assert_eq!(Pace::of(0, Duration::from_secs(1)), None);
        assert_eq!(Pace::of(5, Duration::ZERO), None, "all together");
    }

    #[test]
    fn an_engine_is_spared_the_time_of_the_tokens() {
        let (saved, route) = (Saved::default(), Arc::from("chat"));
        let seconds = |at| saved.by_leaving("chat", at, None).seconds;
        saved.learn(&route, 100, None);
        assert_eq!(seconds(60), 0.0, "no stream has been seen yet");
        saved.learn(&route, 100, Pace::of(5, Duration::from_secs(1)));
        assert_eq!(seconds(60), 40.0 * 0.25);
        assert_eq!(seconds(200), 0.0);
        saved.learn(&route, 100, None);
        assert_eq!(seconds(60), 10.0, "an answer that is no stream says nothing of the pace");
        (0..500).for_each(|_| saved.learn(&route, 100, Pace::of(11, Duration::from_secs(1))));
        assert!((seconds(60) - 4.0).abs() < 0.01, "what was long ago is forgotten: {}", seconds(60));
    }
}
