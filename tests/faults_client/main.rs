//! The rows of the fault matrix about what a client does; very many of them at once are in `faults_client_many`.

#[path = "../support/mod.rs"]
mod support;

mod bodies;
mod h2;
mod heads;
mod leaving;
mod slow;
