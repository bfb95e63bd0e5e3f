//! What an operator sees: the admin listener, metrics, traces, the live page, `top` and `bench`.

#[path = "../support/mod.rs"]
mod support;

mod admin;
mod admin_heads;
mod admin_places;
mod bench;
mod bench_wrong;
mod health;
mod live;
mod live_page;
mod metrics;
mod top;
mod traces;
