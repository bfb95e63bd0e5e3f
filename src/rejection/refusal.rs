//! The refusal of a hook: what it may tell a client, in the forms that clients know already.

use std::time::Duration;

/// Why a hook refuses; it decides the status and `error.type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// 400: the request is wrong.
    Invalid,
    /// 401: it is not known whose it is.
    Unauthorized,
    /// 403: this client may not.
    Forbidden,
    /// 429: not so much, or not now.
    TooMany,
    /// 503: not here, or not now.
    Unavailable,
}

/// What a client is told that a hook does not let in.
///
/// ```
/// use std::time::Duration;
/// use streamgate::rejection::{Class, Refusal};
///
/// let refusal = Refusal::new(Class::TooMany, "the budget of this team is spent")
///     .code("budget_spent")
///     .retry_after(Duration::from_secs(3600));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub(super) class: Class,
    pub(super) code: Option<&'static str>,
    pub(super) message: String,
    pub(super) retry_after: Option<String>,
}

impl Refusal {
    /// A refusal. The client reads `message`; it should say what would do instead.
    pub fn new(class: Class, message: impl Into<String>) -> Self {
        Self { class, code: None, message: message.into(), retry_after: None }
    }

    /// Sets `error.code`, the stable word that programs read; otherwise it is the one of its class. The access log has
    /// it too.
    #[must_use]
    pub fn code(mut self, code: &'static str) -> Self {
        self.code = Some(code);
        self
    }

    /// Says when to come back, in `Retry-After`: in whole seconds, at least one.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait.as_secs_f64().ceil().max(1.0).to_string());
        self
    }
}
