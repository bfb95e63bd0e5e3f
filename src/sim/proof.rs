//! What lets a token prove its place: a hash of its request and of all tokens before it. Pure.
//!
//! The hard idea: both ends can compute it. Token n of request r reads `tok<n>#<hash> `, where the hash is FNV-1a (64
//! bits) over r and the texts of the tokens 0 to n-1. A token that is lost, doubled, out of order or another request's
//! breaks the chain at its place, and one that was never sent is not in the engine's own account
//! (`GET /sim/proofs`).

use std::collections::VecDeque;

use serde_json::{Value, json};

/// Accounts that are kept: those of the last so many requests.
const ACCOUNTS_MAX: usize = 20_000;

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// A hash over a request's id and the tokens so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chain(u64);

impl Chain {
    /// Where the tokens of this request begin.
    pub(super) fn of(request_id: &str) -> Self {
        Self(OFFSET).and(request_id)
    }

    /// With this text behind it.
    #[must_use]
    pub(super) fn and(self, text: &str) -> Self {
        Self(text.bytes().fold(self.0, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME)))
    }
}

impl std::fmt::Display for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// What one request was sent, by the engine's own count.
#[derive(Debug, Clone)]
pub(super) struct Account {
    pub(super) request_id: String,
    pub(super) tokens: u64,
    /// Over all tokens that were sent.
    pub(super) chain: Chain,
    /// The whole answer has gone.
    pub(super) finished: bool,
}

/// The last accounts, oldest first.
#[derive(Debug, Default)]
pub(super) struct Accounts(VecDeque<Account>);

impl Accounts {
    pub(super) fn add(&mut self, account: Account) {
        if self.0.len() == ACCOUNTS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(account);
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn json(&self) -> Value {
        let one = |account: &Account| {
            json!({"request_id": account.request_id, "tokens": account.tokens,
                "hash": account.chain.to_string(), "finished": account.finished})
        };
        self.0.iter().map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_is_fnv_1a() {
        // The published test vectors of the empty text, of "a" and of "foobar".
        assert_eq!(Chain::of("").to_string(), "cbf29ce484222325");
        assert_eq!(Chain::of("a").to_string(), "af63dc4c8601ec8c");
        assert_eq!(Chain::of("foo").and("bar").to_string(), "85944171f73967e8");
    }

    #[test]
    fn the_oldest_account_makes_room() {
        let mut accounts = Accounts::default();
        for n in 0..=ACCOUNTS_MAX {
            let (request_id, chain) = (n.to_string(), Chain::of("r"));
            accounts.add(Account { request_id, tokens: 1, chain, finished: true });
        }
        let json = accounts.json();
        assert_eq!(
            (json.as_array().map(Vec::len), &json[0]["request_id"]),
            (Some(ACCOUNTS_MAX), &json!("1"))
        );
    }
}
