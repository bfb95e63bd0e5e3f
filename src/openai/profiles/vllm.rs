//! vLLM's OpenAI-compatible server; seen with 0.32.
//!
//! Usage stands on a frame of its own with empty `choices`, where asked for. Reasoning is `reasoning`,
//! in older versions `reasoning_content`. Codes in errors are numbers. An engine that dies in the middle
//! of a stream is told by `data: {"error": ...}`, and `data: [DONE]` follows all the same.

use super::{Particulars, UsageFrame};

/// `abort` and `error` are the last two of `FinishReason` in `vllm/v1/engine/__init__.py`.
pub(super) const PARTICULARS: Particulars = Particulars {
    name: "vllm",
    usage: UsageFrame::Asked,
    has_running_usage: true,
    stopped_short: &["abort", "error"],
};
