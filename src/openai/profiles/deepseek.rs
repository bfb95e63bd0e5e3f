//! The DeepSeek API (api-docs.deepseek.com).
//!
//! While a request is queued a stream gets comments (`: keep-alive`) and a whole answer blank lines before
//! its JSON. The last chunk, which has a choice and its finish reason, carries the usage whether or not it
//! was asked for; asking would add `"usage": null` to every chunk before it. Reasoning is
//! `reasoning_content`. An empty account is 402, which no other node can mend.

use super::{Particulars, UsageFrame};

/// `insufficient_system_resource` ends an answer that the API broke off (API reference, `finish_reason`).
pub(super) const PARTICULARS: Particulars = Particulars {
    name: "deepseek",
    usage: UsageFrame::Always,
    has_running_usage: false,
    stopped_short: &["insufficient_system_resource"],
};
