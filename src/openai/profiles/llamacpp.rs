//! llama.cpp's server.
//!
//! The first delta has `"content": null`. Usage stands on a frame of its own with empty `choices`, where
//! asked for, with `timings` beside it; older versions put it on the last chunk, asked or not. Reasoning
//! is `reasoning_content`. Older versions tell an error in the middle of a stream in a field of its own
//! (`error: {...}`, no `data:` line), which clients skip in silence and the gateway counts as the failure
//! that it is.

use super::{Particulars, UsageFrame};

/// It has no word for giving up: a stream that fails ends without a finish reason.
pub(super) const PARTICULARS: Particulars =
    Particulars { name: "llama.cpp", usage: UsageFrame::Asked, has_running_usage: false, stopped_short: &[] };
