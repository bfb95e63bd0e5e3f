//! What a request will cost its backend, estimated before one is chosen.
//!
//! The unit is one token to generate. A prompt's tokens are computed together, many in one step of the
//! engine, so each counts for a small part of that. The estimate need not be right; it must be of the right
//! size, the same for the same request, and bounded, so that no client can make a backend look full by
//! what it claims.

/// Bytes of a prompt that cost as much as one generated token: about 4 bytes are a token (English text in the
/// tokenizers of today), and about 16 tokens are prefilled in the time of one that is generated (engines
/// prefill some 10 to 20 times as many tokens a second as they generate in a full batch).
const PROMPT_BYTES: u64 = 64;
/// Longest prompt that counts: what is beyond 128k tokens of text is no text, but images in base64.
const PROMPT_BYTES_MAX: u64 = 512 * 1024;
/// Tokens of an answer whose request names no limit.
pub const TYPICAL: u64 = 512;
/// Most tokens that count of a limit: clients that set it higher hardly ever use it up.
const TOKENS_MAX: u64 = 4_096;
/// Most that a request can cost.
pub const COST_MAX: u64 = 32_768;

/// What is known of a request before its backend is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// Bytes of its body.
    pub body_bytes: u64,
    /// Whether its endpoint generates text; embeddings and scores are prefill only.
    pub generates: bool,
    /// Most tokens that it lets each answer have.
    pub tokens_max: Option<u64>,
    /// Answers that it wants.
    pub answers: Option<u64>,
}

/// The cost of a request in tokens to generate: 1 to [`COST_MAX`].
pub fn cost(work: &Work) -> u64 {
    let prompt = work.body_bytes.min(PROMPT_BYTES_MAX) / PROMPT_BYTES;
    let answer = match (work.generates, work.body_bytes) {
        (false, _) | (_, 0) => 0,
        _ => work.tokens_max.unwrap_or(TYPICAL).min(TOKENS_MAX),
    };
    let answers = answer.saturating_mul(work.answers.unwrap_or(1).max(1));
    prompt.saturating_add(answers).clamp(1, COST_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHAT: Work = Work { body_bytes: 6_400, generates: true, tokens_max: None, answers: None };

    #[test]
    fn a_prompt_counts_little_and_an_answer_by_its_limit() {
        assert_eq!(cost(&CHAT), 100 + TYPICAL);
        assert_eq!(cost(&Work { tokens_max: Some(7), ..CHAT }), 107);
        assert_eq!(cost(&Work { tokens_max: Some(7), answers: Some(4), ..CHAT }), 128);
        assert_eq!(cost(&Work { generates: false, tokens_max: Some(7), ..CHAT }), 100);
    }

    #[test]
    fn what_a_client_claims_is_bounded() {
        let most = u64::MAX;
        assert_eq!(cost(&Work { tokens_max: Some(most), ..CHAT }), 100 + TOKENS_MAX);
        let all = Work { body_bytes: most, generates: true, tokens_max: Some(most), answers: Some(most) };
        assert_eq!(cost(&all), COST_MAX);
        assert_eq!(cost(&Work { answers: Some(0), ..CHAT }), cost(&CHAT));
    }

    #[test]
    fn a_request_without_a_body_costs_something() {
        assert_eq!(cost(&Work { body_bytes: 0, ..CHAT }), 1);
    }
}
