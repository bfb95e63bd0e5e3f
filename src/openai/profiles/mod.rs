//! What an engine does on the wire that the others do not: one small file a vendor.
//!
//! The forms that engines use (of errors, of reasoning, of keep-alives) are understood from every one of
//! them, since versions move and proxies stand in between. A profile decides only where doing the same
//! for all would be wrong.

mod deepseek;
mod llamacpp;
mod openai;
mod sglang;
mod vllm;

use crate::config::Profile;

/// The particulars of one vendor.
#[derive(Debug, PartialEq, Eq)]
pub struct Particulars {
    /// Its name in traces (`gen_ai.provider.name`).
    pub name: &'static str,
    /// When a stream of chat/completions or completions tells its usage.
    pub usage: UsageFrame,
    /// Whether it knows `stream_options.continuous_usage_stats`.
    pub has_running_usage: bool,
    /// Finish reasons that say that the engine gave up rather than finished.
    stopped_short: &'static [&'static str],
}

/// When a stream tells its usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageFrame {
    /// Only where `stream_options.include_usage` asks for it.
    Asked,
    /// In any case; asking would only change what the client sees.
    Always,
}

/// The particulars that belong to a cluster's `profile`.
pub fn of(profile: Profile) -> &'static Particulars {
    match profile {
        Profile::Vllm => &vllm::PARTICULARS,
        Profile::Deepseek => &deepseek::PARTICULARS,
        Profile::Sglang => &sglang::PARTICULARS,
        Profile::Llamacpp => &llamacpp::PARTICULARS,
        Profile::Openai => &openai::PARTICULARS,
    }
}

const ALL: [&Particulars; 5] = [
    &vllm::PARTICULARS,
    &deepseek::PARTICULARS,
    &sglang::PARTICULARS,
    &llamacpp::PARTICULARS,
    &openai::PARTICULARS,
];

/// Whether the engine gave up rather than finished, so that a clean end is no success. A vendor's word
/// for it counts whoever says it: no engine uses one for anything else.
pub fn stopped_short(finish_reason: &str) -> bool {
    ALL.iter().any(|profile| profile.stopped_short.contains(&finish_reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_deepseek_tells_usage_unasked() {
        let unasked = |profile| of(profile).usage == UsageFrame::Always;
        assert!(unasked(Profile::Deepseek));
        for profile in [Profile::Vllm, Profile::Sglang, Profile::Llamacpp, Profile::Openai] {
            assert!(!unasked(profile), "{profile:?}");
        }
    }

    #[test]
    fn giving_up_is_no_finish() {
        for (reason, short) in [
            ("insufficient_system_resource", true),
            ("abort", true),
            ("error", true),
            ("stop", false),
            ("length", false),
            ("content_filter", false),
            ("max_tokens", false),
            ("refusal", false),
        ] {
            assert_eq!(stopped_short(reason), short, "{reason}");
        }
    }
}
