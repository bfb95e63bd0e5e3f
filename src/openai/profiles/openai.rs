//! OpenAI's own API (platform.openai.com, API reference), and any server that keeps to it: the default.
//!
//! Usage stands on a frame of its own with empty `choices`, where asked for; a stream that breaks off
//! before its end brings none. A server that refuses `stream_options` needs `include_usage: false` on its
//! routes.

use super::{Particulars, UsageFrame};

/// Its finish reasons all tell of an answer that is whole as far as it goes.
pub(super) const PARTICULARS: Particulars =
    Particulars { name: "openai", usage: UsageFrame::Asked, has_running_usage: false, stopped_short: &[] };
