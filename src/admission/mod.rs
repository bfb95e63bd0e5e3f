//! Who may come in, and when those who may not are to come back.
//!
//! Each key has an [`Account`], which the next snapshot takes over by the key's name. An exchange is let in
//! by a [`Permit`], in three steps, each as soon as it can be decided: by its head (requests, concurrency,
//! early cancels), by its body (tokens, an estimate is reserved), and at its end (the estimate is settled
//! against what it used, see [`charge`]). Who is refused gets a [`Denial`] that knows when to come back.
//!
//! The one hard idea: what a request costs is known only when it is over, and a client can leave before.
//! So the estimate is taken first, and given back only as far as something proves that it was not used.

mod account;
mod accounts;
mod bucket;
pub mod charge;
mod denial;
mod order;
mod per_ip;
mod permit;
#[cfg(test)]
mod tests;

pub use account::{Account, Connected};
pub use accounts::Accounts;
pub use bucket::{Bucket, Level};
pub use denial::{Denial, HEADERS, Limit, Standing};
pub use order::Moment;
pub use per_ip::{ADDRESSES_MAX, PerIp};
pub use permit::{Metered, Permit, Shared, Wanted};
