//! The rows of the fault matrix about more than one backend, or one for longer.

#[path = "../support/mod.rs"]
mod support;

mod checks;
mod circuit;
mod down;
mod field;
mod headline;
mod sick;
mod soak;
mod wedged;
