//! What OpenAI-shaped requests and answers say, without taking them apart.
//!
//! * [`request`]: the few fields of a request body that the gateway acts on;
//! * [`Pointers`]: more fields, which the configuration names;
//! * [`patch`]: changing one of them in place;
//! * [`Observer`]: first token, usage, finish reason and errors of an answer;
//! * [`Dialect`]: the form in which an endpoint's clients expect an error.
//!
//! The one hard idea: JSON is looked at, never parsed into a tree and written again. Number
//! spelling, key order and white space of both sides survive because nobody touches them.

mod answer;
mod dialects;
mod lax;
mod members;
mod needles;
mod observe;
pub mod patch;
mod places;
mod pointers;
pub mod request;

pub use answer::{Failure, Seen, observe_unary, stopped_short};
pub use dialects::Dialect;
pub use observe::{Noted, Observer};
pub use places::{Found, Places};
pub use pointers::{Pointer, Pointers};
