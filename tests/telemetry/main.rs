//! What an operator sees: the admin listener, metrics, traces, the live page and `top`.

#[path = "../support/mod.rs"]
mod support;

mod admin;
mod health;
mod live;
mod live_page;
mod metrics;
mod top;
mod traces;
