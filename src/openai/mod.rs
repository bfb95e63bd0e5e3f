//! What OpenAI-shaped requests and answers say, without taking them apart.
//!
//! * [`request`]: the few fields of a request body that the gateway acts on;
//! * [`Wanted`]: more fields, which the configuration names: by [`Pointers`], or by [`Names`] at any depth;
//! * [`patch`]: changing one of them in place;
//! * [`Observer`] and [`Unary`]: first token, usage, finish reason and errors of a stream, of a whole answer;
//! * [`prompt`]: the text that an engine's prefix cache knows a request by;
//! * [`Dialect`]: the form of an endpoint's events, and in which its clients expect an error;
//! * [`profiles`]: what an engine does on the wire that the others do not.
//!
//! The one hard idea: JSON is looked at, never parsed into a tree and written again. Number
//! spelling, key order and white space of both sides survive because nobody touches them.

mod answer;
mod brings;
mod choices;
mod dialects;
mod elements;
mod figures;
mod lax;
mod lexical;
mod members;
mod needles;
mod observe;
pub mod patch;
mod places;
mod pointers;
pub mod profiles;
mod prompt;
pub mod request;
pub mod running;
mod seen;
mod tail;
mod unary;
mod walk;
mod wanted;

pub use answer::observe_unary;
pub use dialects::{About, Dialect, Progress, Told};
pub use elements::Elements;
pub use lax::whole_number;
pub use observe::{Noted, Observer, UsagePlace};
pub use places::{Found, Places};
pub use pointers::{Pointer, Pointers};
pub use prompt::prompt;
pub use seen::{Failure, Seen};
pub use tail::is_whole;
pub use unary::Unary;
pub use wanted::{Names, Wanted};
