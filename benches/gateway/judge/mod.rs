//! Whether an answer is right: its framing, then its tokens. Pure, and without a target's name: all are judged alike,
//! but for what a proxy changes lawfully (`Tokens::rewritten`).

mod answer;
mod tokens;

use std::io;

pub(crate) use answer::Answer;
pub(crate) use tokens::Tokens;

/// What can be wrong with one exchange.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Wrong {
    #[error("the connection failed")]
    Connection(#[from] io::Error),
    #[error("the connection ended before the answer did")]
    CutOff,
    #[error("status {0}")]
    Status(u16),
    #[error("the answer is not framed as HTTP frames it")]
    Framing,
    #[error("token {got} came where {wanted} was due")]
    Order { got: u64, wanted: u32 },
    #[error("an event of {got} bytes, where {wanted} were sent")]
    Size { got: usize, wanted: usize },
    #[error("an error event: {0}")]
    ErrorEvent(String),
    #[error("the answer ended after {seen} of {wanted} tokens, or without [DONE]")]
    Incomplete { seen: u32, wanted: u32 },
    #[error("the answer holds something else than what was sent")]
    Content,
    #[error("it ended where it should have gone on")]
    TooEarly,
}
