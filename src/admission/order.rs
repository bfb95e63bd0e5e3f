//! Which answers of a shared bucket are news.
//!
//! A bucket numbers what happens to it, and a gateway has many questions under way at once, whose answers may be
//! taken up in another order than they were given in. The one hard idea: a number alone cannot be trusted for ever,
//! since a bucket that was forgotten, or came back from an older copy, counts from a lower one again. So an answer is also
//! news where nothing was learnt since it was asked for: no other can have overtaken it.

/// What was learnt so far of one shared bucket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Order {
    /// Number of the newest answer.
    sequence: u64,
    /// Answers that were news.
    learnt: u64,
}

/// A moment in what a gateway learns of a shared bucket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moment(u64);

impl Order {
    /// The moment at which something is asked.
    pub(super) fn now(&self) -> Moment {
        Moment(self.learnt)
    }

    /// Whether an answer of this number, asked for at that moment, is the newest; then it is remembered.
    pub(super) fn is_news(&mut self, sequence: u64, asked: Moment) -> bool {
        let is_news = sequence > self.sequence || asked == self.now();
        if is_news {
            *self = Self { sequence, learnt: self.learnt + 1 };
        }
        is_news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_was_overtaken_is_no_news() {
        let mut order = Order::default();
        let asked = order.now();
        assert!(order.is_news(2, asked));
        assert!(!order.is_news(1, asked));
        assert!(order.is_news(3, asked));
    }

    #[test]
    fn a_bucket_that_counts_anew_is_believed_again() {
        let mut order = Order::default();
        assert!(order.is_news(1_000, order.now()));
        let asked = order.now();
        assert!(order.is_news(2, asked), "nothing was learnt in between");
        assert!(!order.is_news(1, asked));
        assert!(order.is_news(3, asked));
    }
}
