//! What OpenAI-shaped requests and answers say, without taking them apart.
//!
//! * [`request`]: the few fields of a request body that the gateway acts on;
//! * [`Pointers`]: more fields, which the configuration names;
//! * [`patch`]: changing one of them in place;
//! * [`Observer`] and [`Unary`]: first token, usage, finish reason and errors of a stream, of a whole answer;
//! * [`Dialect`]: the form of an endpoint's events, and in which its clients expect an error;
//! * [`profiles`]: what an engine does on the wire that the others do not.
//!
//! The one hard idea: JSON is looked at, never parsed into a tree and written again. Number
//! spelling, key order and white space of both sides survive because nobody touches them.

mod answer;
mod dialects;
mod figures;
mod lax;
mod members;
mod needles;
mod observe;
pub mod patch;
mod places;
mod pointers;
pub mod profiles;
pub mod request;
mod seen;
mod unary;

pub use answer::observe_unary;
pub use dialects::{About, Dialect, Progress, Told};
pub use observe::{Noted, Observer};
pub use places::{Found, Places};
pub use pointers::{Pointer, Pointers};
pub use seen::{Failure, Seen};
pub use unary::Unary;
