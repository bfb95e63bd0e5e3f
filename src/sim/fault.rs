//! What can go wrong with an engine, by name. The table of names is in the module above.
//!
//! How lists of them are written is in `read`; what a fault does is decided in `plan` and done where it strikes.

mod read;

use std::num::NonZeroU32;

pub use read::FaultError;

/// One fault and how often it strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// What happens.
    pub kind: FaultKind,
    /// It strikes every so many requests (`p=N`); 1 is every request.
    pub period: NonZeroU32,
}

/// What happens. N of the `..At` faults counts tokens already sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// RST right after accept.
    Refuse,
    /// A JSON error answer.
    Status {
        /// 400 to 599.
        code: u16,
        /// Seconds for Retry-After.
        retry_after: Option<u32>,
    },
    /// `/health` answers this status.
    Health(u16),
    /// Silence instead of an answer.
    StallBeforeHead,
    /// RST instead of an answer.
    ResetBeforeHead,
    /// FIN instead of an answer.
    FinBeforeHead,
    /// The head, then silence.
    StallAfterHead,
    /// The head, then RST.
    ResetAfterHead,
    /// The head, then FIN.
    FinAfterHead,
    /// Silence in mid-answer.
    StallAt(u32),
    /// RST in mid-answer.
    ResetAt(u32),
    /// FIN in mid-answer, without the final chunk.
    FinAt(u32),
    /// FIN within a chunk.
    TruncatedChunkAt(u32),
    /// An error event, then a clean end without `[DONE]`.
    ErrorAt(u32),
    /// An error event, then `[DONE]`, as vLLM does when its engine process dies.
    ErrorThenDone(u32),
    /// A stream without `[DONE]`.
    NoDone,
    /// Only comments after the head.
    CommentsOnly,
    /// Blank lines before the JSON, as DeepSeek's API sends while a request is queued.
    BlankLines,
    /// CRLF line ends in the stream.
    Crlf,
    /// Content-Length names half the body.
    ShortContentLength,
    /// A second answer behind the first.
    ExtraBytes,
    /// Not HTTP.
    Garbage,
    /// 413 before the body is read.
    Early413,
    /// The head byte by byte.
    HeadTrickle,
    /// So many answers 103 before the real one.
    Interim(u32),
    /// 101 that nobody asked for.
    Unsolicited101,
    /// 10 MB of headers.
    BigHead,
    /// Goes on generating for a client that has left.
    IgnoreCancel,
}

/// The faults and their arguments, for help texts.
pub(super) const HELP: &str = "\
refuse, status=NNN[;retry_after=S], health=NNN, stall_before_head, reset_before_head, fin_before_head, \
stall_after_head, reset_after_head, fin_after_head, stall_at=N, reset_at=N, fin_at=N, \
truncated_chunk_at=N, error_at=N, error_then_done=N, no_done, comments_only, blank_lines, crlf, \
short_content_length, extra_bytes, garbage, early_413, head_trickle, interim=N, unsolicited_101, \
big_head, ignore_cancel; each with ;p=N to strike every Nth request only";

impl Fault {
    /// Reads a list separated by commas. An empty one is no fault.
    pub(super) fn list(text: &str) -> Result<Vec<Self>, FaultError> {
        text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::parse).collect()
    }

    /// It strikes the `number`th request, counted from 1; 0 is spared by all faults.
    pub(super) fn strikes(self, number: u64) -> bool {
        number != 0 && number.is_multiple_of(u64::from(self.period.get()))
    }
}

impl From<FaultKind> for Fault {
    fn from(kind: FaultKind) -> Self {
        Self { kind, period: NonZeroU32::MIN }
    }
}
