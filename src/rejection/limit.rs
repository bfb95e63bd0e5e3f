//! Which limit refused, by the name that the access log gives it. The client is told in words.

use std::borrow::Cow;

use super::Rejection;
use crate::admission::Limit;

impl Rejection {
    /// The limit, or the rule of a guard, that this is the refusal of; `None` where it is that of none.
    pub fn limit(&self) -> Option<Cow<'static, str>> {
        let name = match self {
            Self::RateLimited { denial, .. } if denial.limit == Limit::PerIp => "per_ip.requests",
            Self::RateLimited { denial, .. } => {
                return Some(Cow::Owned(format!("key.{}", denial.limit.as_str())));
            }
            Self::InvalidRequest { rule, .. } => return rule.map(Cow::Borrowed),
            Self::WrongKeys { .. } => "wrong_keys",
            Self::ConnectionsFull => "connections.max",
            Self::ConnectionsOfAddress => "connections.per_ip",
            Self::Overloaded => "request.buffered_bytes",
            Self::QueueFull => "queue.max",
            Self::Refused(_) => "admit",
            _ => return None,
        };
        Some(Cow::Borrowed(name))
    }
}
