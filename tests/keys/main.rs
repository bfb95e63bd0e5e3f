//! Who is let in, how much of it, and that nobody learns a secret.

#[path = "../support/mod.rs"]
mod support;

mod access;
mod apart;
mod credentials;
mod limits;
mod limits_shared;
mod limits_store;
mod refusals;
mod secrets;
