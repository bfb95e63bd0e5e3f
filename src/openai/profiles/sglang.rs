//! SGLang's OpenAI-compatible server.
//!
//! Usage stands on a frame of its own with empty `choices`, where asked for. Reasoning is
//! `reasoning_content`. An error in the middle of a stream is `data: {"error": ...}` with a number for
//! its code, and `data: [DONE]` follows.

use super::{Particulars, UsageFrame};

/// `abort`: the scheduler gave the request up (`FINISH_ABORT` in `sglang/srt/managers/schedule_batch.py`).
pub(super) const PARTICULARS: Particulars = Particulars {
    name: "sglang",
    usage: UsageFrame::Asked,
    has_running_usage: true,
    stopped_short: &["abort"],
};
