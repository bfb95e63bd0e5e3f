//! What holds after every row of the fault matrix, whatever its fault: the invariants I1 to I8.
//!
//! | | |
//! |---|---|
//! | I1 | every token that a client had is one that an engine sent to this request, at its place: both ends have the same hash |
//! | I2 | whoever had a token is on the engine that sent it: no other was asked after that |
//! | I3 | at most two attempts a request, each second one counted with its reason, no engine asked behind the books' back |
//! | I4 | nothing is held, queued or running |
//! | I5 | descriptors are given back, memory is (it is never given back to the last byte) |
//! | I6 | what ended as a whole answer is one that its engine has ended as whole |
//! | I7 | one access line an exchange, and each counted under the outcome that its line says |
//! | I8 | a secret in keys and prompts is in no output |
//!
//! And it has struck: a row without a fault proves nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::checks;
use super::engine::{accounts, strikes};
use super::row::Row;
use super::score::{self, Proof, Score, tally};
use super::told::Told;
use super::wait::{SOON, wait_until};
use super::wire::CANARY;

/// For the pool to give its idle connections back, too, and for the allocator its pages.
const IDLE: Duration = SOON.saturating_mul(3);
/// Resident memory that a row may leave behind, in KiB: what bodies of 8 MiB and the allocator's arenas keep.
const GROWTH_KB: u64 = 64 * 1024;

impl Row {
    /// What holds after every row, of which this many exchanges were part.
    pub(crate) async fn settled(self, exchanges: usize) {
        let lines = self.lines(exchanges).await;
        checks::at_rest(&self.gateway).await;
        self.asked_by_the_books(&lines).await;
        self.counted_as_told(&lines).await;
        let (tokens, faults) = (self.both_ends().await, self.strikes(&lines).await);
        for engine in &self.engines {
            engine.faults("").await;
        }
        assert_eq!(self.streams(1).await, [Told::whole()], "the next request is served");
        self.lines(exchanges + 1).await;
        // A look at the metrics may be open still.
        wait_until("descriptors are given back", IDLE, || self.gateway.fd_count() <= self.fds + 1).await;
        // The allocator keeps freed pages for ten seconds, lest they be wanted again.
        let grown_kb = || self.gateway.rss_kb().saturating_sub(self.rss_kb);
        wait_until("memory is given back, but for 64 MiB", IDLE, || grown_kb() < GROWTH_KB).await;
        let grown_kb = grown_kb();
        assert!(!self.gateway.log().contains("panicked"), "{}", self.gateway.log());
        self.keeps_secrets().await;
        score::note(format!(
            "settled: {faults} times an engine's fault struck or a request was refused; {}",
            outcomes(&lines)
        ));
        score::write(&Score { settled: true, exchanges, faults, tokens, grown_kb });
    }

    /// I3: the engines are idle, and have seen no request that the access lines do not own up to.
    async fn asked_by_the_books(&self, lines: &[Value]) {
        assert!(lines.iter().all(|line| line["attempts"].as_u64() <= Some(2)), "{lines:?}");
        let mut asked = 0;
        for engine in &self.engines {
            engine.wait_count("running", 0).await;
            engine.wait_count("waiting", 0).await;
            asked += engine.count("requests").await;
        }
        let resent = lines.iter().filter(|line| line["resent"] == true).count() as u64;
        let attempts: u64 = lines.iter().filter_map(|line| line["attempts"].as_u64()).sum();
        let probes = self.gateway.metric("health_checks_total", &[("kind", "probe")]).await as u64;
        let owned = attempts + resent + probes;
        assert!(asked <= owned, "{asked} requests for {attempts} attempts, {probes} probes: {lines:?}");
        let second = lines.iter().filter(|line| line["attempts"] == 2).count();
        self.gateway.wait_metric("retries_total", &[], second as f64).await;
    }

    /// I7: the metrics say of as many exchanges as the access lines that they ended so.
    async fn counted_as_told(&self, lines: &[Value]) {
        for (outcome, count) in outcomes_of(lines) {
            self.gateway.wait_metric("requests_total", &[("outcome", &outcome)], count as f64).await;
        }
        self.gateway.wait_metric("requests_total", &[], lines.len() as f64).await;
        let left = lines.iter().filter(|line| line["outcome"] == "client_closed").count();
        self.gateway.wait_metric("cancels_total", &[], left as f64).await;
    }

    /// I1, I2, I6: what clients were told is what engines say that they sent. Gives the tokens that are proven so.
    pub(crate) async fn both_ends(&self) -> u64 {
        let (proofs, engines, lost) =
            tally(|tally| (std::mem::take(&mut tally.proofs), tally.engines.clone(), tally.lost));
        let mut sent: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for engine in engines {
            for account in accounts(engine).await.as_array().expect("a list") {
                let id = account["request_id"].as_str().expect("an id").to_owned();
                sent.entry(id).or_default().push(account.clone());
            }
        }
        for (id, accounts) in &sent {
            let with_tokens = accounts.iter().filter(|account| account["tokens"] != 0).count();
            assert!(with_tokens <= 1, "{id} was asked for again when it had tokens: {accounts:?}");
        }
        proofs.iter().map(|proof| proven(proof, sent.get(&proof.request_id), lost)).sum()
    }

    /// How often a fault has struck. A row that is named after one must have been struck.
    async fn strikes(&self, lines: &[Value]) -> u64 {
        let mut faults = 0;
        for engine in tally(|tally| tally.engines.clone()) {
            faults += strikes(engine).await;
        }
        faults += score::refused(lines);
        let all = faults + tally(|tally| tally.deeds);
        assert!(all > 0 || score::row_of(&score::test()).is_none(), "the fault never struck");
        faults
    }

    /// I8: nothing that the gateway writes or shows has the secret.
    pub(crate) async fn keeps_secrets(&self) {
        let (log, access) = (self.gateway.log(), self.gateway.access_text());
        let metrics = self.gateway.admin_get("/metrics").await.text();
        let status = self.gateway.admin_get("/status").await.text();
        for (output, text) in [("log", log), ("access log", access), ("metrics", metrics), ("status", status)]
        {
            assert!(!text.contains(CANARY), "a secret is in the {output}: {text}");
        }
    }
}

/// The tokens of this client that an engine owns up to.
fn proven(proof: &Proof, accounts: Option<&Vec<Value>>, lost: bool) -> u64 {
    let Some(accounts) = accounts else {
        assert!(lost, "no engine knows of {proof:?}");
        return 0;
    };
    let sent = accounts.iter().max_by_key(|account| account["tokens"].as_u64()).expect("one at least");
    let count = sent["tokens"].as_u64().expect("a count");
    if lost && count < proof.tokens {
        return 0;
    }
    assert!(proof.tokens <= count, "tokens that were never sent: {proof:?}, {sent}");
    if proof.tokens == count {
        assert_eq!(sent["hash"], proof.hash, "{proof:?}");
    }
    let is_whole = sent["finished"] == true && proof.tokens == count;
    assert!(!proof.whole || is_whole, "it looks whole and is not: {proof:?}, {sent}");
    proof.tokens
}

fn outcomes_of(lines: &[Value]) -> BTreeMap<String, usize> {
    let mut outcomes = BTreeMap::new();
    for line in lines {
        *outcomes.entry(line["outcome"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
    }
    outcomes
}

fn outcomes(lines: &[Value]) -> String {
    let all = outcomes_of(lines).into_iter().map(|(outcome, count)| format!("{count} {outcome}"));
    all.collect::<Vec<_>>().join(", ")
}
