//! What one who is refused is told, and what one who is let in may know of its limits.

use std::time::Duration;

use super::bucket::Level;
use crate::config::KeyLimits;

/// Shortest and longest time after which a client is told to come back. OpenAI's clients wait as long as they
/// are told up to 60 seconds, and beyond that for a time of their own, which is shorter.
const RETRY: (u64, u64) = (1, 60);

/// A limit, by the setting's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Limit {
    /// Requests of a key.
    Requests,
    /// Tokens of a key.
    Tokens,
    /// Requests of a key at once.
    Concurrent,
    /// Answers that a key gave up before their first token.
    EarlyCancels,
    /// Connections of a key.
    Connections,
    /// Requests of a client address.
    PerIp,
}

impl Limit {
    /// Every limit.
    pub const ALL: [Self; 6] =
        [Self::Requests, Self::Tokens, Self::Concurrent, Self::EarlyCancels, Self::Connections, Self::PerIp];

    /// Those of a key that a request has to pass with its head.
    pub fn of_head(limits: &KeyLimits) -> impl Iterator<Item = Self> + use<> {
        let all = [
            (Self::Requests, limits.requests.is_some()),
            (Self::Concurrent, limits.concurrent.is_some()),
            (Self::EarlyCancels, limits.early_cancels.is_some()),
            (Self::Connections, limits.connections.is_some()),
        ];
        all.into_iter().filter_map(|(limit, is_set)| is_set.then_some(limit))
    }

    /// The word in metrics and log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Tokens => "tokens",
            Self::Concurrent => "concurrent",
            Self::EarlyCancels => "early_cancels",
            Self::Connections => "connections",
            Self::PerIp => "per_ip",
        }
    }
}

/// A refusal that knows when to come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Denial {
    /// The limit that is reached.
    pub limit: Limit,
    /// How long it will be so, if nothing else happens.
    pub wait: Duration,
    /// Where the key stands.
    pub standing: Standing,
}

impl Denial {
    /// The value of `Retry-After`: whole seconds, rounded up, from 1 to 60.
    pub fn retry_after(&self) -> u64 {
        let seconds = self.wait.as_secs().saturating_add(u64::from(self.wait.subsec_nanos() > 0));
        seconds.clamp(RETRY.0, RETRY.1)
    }
}

/// Where a key stands with the limits that clients pace themselves by; `None` where it has no such limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Standing {
    /// Requests.
    pub requests: Option<Level>,
    /// Tokens.
    pub tokens: Option<Level>,
}

/// Names of a limit's three headers: limit, remaining, reset.
pub const HEADERS: [[&str; 3]; 2] = [
    ["x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"],
    ["x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"],
];

impl Standing {
    /// The headers that tell it, in the form of OpenAI's.
    pub fn headers(&self) -> impl Iterator<Item = (&'static str, String)> + use<> {
        let levels = [self.requests, self.tokens];
        levels.into_iter().zip(HEADERS).filter_map(|(level, names)| Some((level?, names))).flat_map(
            |(level, [limit, remaining, reset])| {
                [
                    (limit, level.limit.to_string()),
                    (remaining, level.remaining.to_string()),
                    (reset, span(level.reset)),
                ]
            },
        )
    }
}

/// A duration as OpenAI writes it: `17ms`, `8.64s`, `6m0s`, `1h0m0s`.
fn span(span: Duration) -> String {
    let millis = u64::try_from(span.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
    let (seconds, rest) = (millis / 1_000, millis % 1_000);
    let fraction = format!("{rest:03}");
    let fraction = match fraction.trim_end_matches('0') {
        "" => String::new(),
        digits => format!(".{digits}"),
    };
    match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0) => format!("{rest}ms"),
        (0, 0, s) => format!("{s}{fraction}s"),
        (0, m, s) => format!("{m}m{s}{fraction}s"),
        (h, m, s) => format!("{h}h{m}m{s}{fraction}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_written_as_openai_writes_them() {
        let told = |millis| span(Duration::from_millis(millis));
        assert_eq!(["0ms", "17ms", "1s", "8.64s", "6m0s"], [0, 17, 1_000, 8_640, 360_000].map(told)[..]);
        assert_eq!((&*told(61_500), &*told(3_600_000)), ("1m1.5s", "1h0m0s"));
        assert_eq!(span(Duration::from_nanos(1)), "1ms", "never less than it takes");
    }

    #[test]
    fn to_come_back_is_told_in_whole_seconds_from_1_to_60() {
        let told = |wait| Denial { limit: Limit::Tokens, wait, standing: Standing::default() }.retry_after();
        let millis = [0, 1, 1_000, 1_001, 60_000, 3_600_000].map(Duration::from_millis);
        assert_eq!(millis.map(told), [1, 1, 1, 2, 60, 60]);
        assert_eq!(told(Duration::MAX), 60);
    }

    #[test]
    fn only_what_is_limited_is_told() {
        let level = Level { limit: 60, remaining: 59, reset: Duration::from_secs(1) };
        let told: Vec<_> = Standing { requests: Some(level), tokens: None }.headers().collect();
        let want = [
            ("x-ratelimit-limit-requests", "60"),
            ("x-ratelimit-remaining-requests", "59"),
            ("x-ratelimit-reset-requests", "1s"),
        ];
        assert_eq!(told, want.map(|(name, value)| (name, value.to_owned())));
    }
}
