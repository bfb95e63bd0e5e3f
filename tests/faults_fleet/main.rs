//! The rows of the fault matrix about more than one backend, or one for longer.

#[path = "../support/mod.rs"]
mod support;

mod checks;
mod circuit;
mod down;
mod headline;
mod sick;
mod wedged;
