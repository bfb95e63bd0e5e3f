//! What an exchange used, in tokens, and how we know.
//!
//! Reading usage from answers is [`crate::openai`]'s work; this is only the figure.

/// Token counts, each absent where nobody told it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the prompt, the cached ones included.
    pub prompt: Option<u64>,
    /// Tokens generated, the reasoning ones included.
    pub completion: Option<u64>,
    /// Prompt and completion together, as reported.
    pub total: Option<u64>,
    /// Prompt tokens that came from the engine's prefix cache.
    pub cached: Option<u64>,
    /// Completion tokens spent on reasoning.
    pub reasoning: Option<u64>,
}

impl Usage {
    /// Takes over every figure that the newer report has; the others stay.
    pub fn update(&mut self, newer: &Self) {
        self.prompt = newer.prompt.or(self.prompt);
        self.completion = newer.completion.or(self.completion);
        self.total = newer.total.or(self.total);
        self.cached = newer.cached.or(self.cached);
        self.reasoning = newer.reasoning.or(self.reasoning);
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Prompt and completion together: the reported total, else the sum of what is known.
    pub fn sum(&self) -> u64 {
        self.total.unwrap_or_else(|| self.prompt.unwrap_or(0).saturating_add(self.completion.unwrap_or(0)))
    }
}

/// How a [`Usage`] came to be known; the `source` label of the token counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The engine's final figure.
    Reported,
    /// The engine's last figure of a stream that went no further.
    Running,
    /// Counted by the gateway from what passed.
    Estimated,
}

impl Source {
    /// Its name in metrics and logs.
    pub fn label(self) -> &'static str {
        match self {
            Self::Reported => "reported",
            Self::Running => "running",
            Self::Estimated => "estimated",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_figure_wins_and_a_missing_one_does_not() {
        let mut usage = Usage { prompt: Some(7), completion: Some(1), cached: Some(4), ..Usage::default() };
        usage.update(&Usage { completion: Some(3), total: Some(10), ..Usage::default() });
        let want =
            Usage { prompt: Some(7), completion: Some(3), total: Some(10), cached: Some(4), reasoning: None };
        assert_eq!((usage, usage.sum()), (want, 10));
    }

    #[test]
    fn the_sum_needs_no_total() {
        let usage = Usage { prompt: Some(7), completion: Some(3), ..Usage::default() };
        assert_eq!(usage.sum(), 10);
        assert!(Usage::default().is_empty());
    }
}
