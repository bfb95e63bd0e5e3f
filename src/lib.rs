//! streamgate: the edge gateway for self-hosted LLM inference.
//!
//! Read ARCHITECTURE.md for the map; `proxy` for the life of a request.
//!
//! # A gateway of one's own
//!
//! The command `streamgate` is a thin shell around this crate. A program of your own can be the same gateway, from the same
//! file, with a say in three places: [`hooks::ChooseBackend`] chooses the backend of an attempt, [`hooks::Admit`] lets
//! exchanges in, and [`hooks::Observe`] sees whole events (and whole JSON answers) and may change them.
//!
//! ```no_run
//! use streamgate::Gateway;
//! use streamgate::config::{self, Environment};
//! use streamgate::hooks::{Admit, Candidate, Change, ChooseBackend, Facts, Observe, Unseen};
//! use streamgate::rejection::{Class, Refusal};
//! use streamgate::sse::Event;
//!
//! /// Sends the requests of one team to the nodes that it has paid for.
//! struct Reserved;
//!
//! impl ChooseBackend for Reserved {
//!     fn choose(&self, request: &Facts<'_>, candidates: &[Candidate<'_>]) -> Option<usize> {
//!         request.key.filter(|key| key.starts_with("team-a"))?;
//!         candidates.iter().position(|backend| backend.name.starts_with("reserved-"))
//!     }
//! }
//!
//! /// Lets nobody in without a header.
//! struct Labelled;
//!
//! impl Admit for Labelled {
//!     fn admit(&self, request: &Facts<'_>) -> Result<(), Refusal> {
//!         match request.headers.get("x-cost-centre") {
//!             Some(_) => Ok(()),
//!             None => Err(Refusal::new(Class::Invalid, "send the header x-cost-centre").code("no_cost_centre")),
//!         }
//!     }
//! }
//!
//! /// Counts the events of an answer, and takes its comments out.
//! #[derive(Default)]
//! struct Count(u64);
//!
//! impl Observe for Count {
//!     fn event(&mut self, event: &Event<'_>) -> Change {
//!         self.0 += 1;
//!         if event.data().is_some() { Change::Pass } else { Change::Drop }
//!     }
//!
//!     fn unseen(&self) -> Unseen {
//!         Unseen::Pass
//!     }
//! }
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let file = std::path::Path::new("streamgate.yaml");
//!     Gateway::builder(config::load(file, &Environment::detect())?)
//!         .file(file)
//!         .choose(Reserved)
//!         .admit(Labelled)
//!         .observe(|request| request.streaming.then(|| Box::new(Count::default()) as Box<dyn Observe>))
//!         .build()?
//!         .run()?;
//!     Ok(())
//! }
//! ```
//!
//! [`Gateway::run`] serves on this thread until SIGTERM has drained it; [`Gateway::start`] serves on another one and gives
//! something to ask for the addresses and to stop it by, which is what a test wants:
//!
//! ```
//! use streamgate::Gateway;
//! use streamgate::config::{Config, Environment};
//!
//! let file = r#"
//! server: { listen: [{ address: "127.0.0.1:0" }], admin: { listen: "127.0.0.1:0" } }
//! clusters: { c: { backends: [{ name: one, url: "http://127.0.0.1:9" }] } }
//! routes: [{ match: { path: /v1/chat/completions }, cluster: c }]
//! "#;
//! let gateway = Gateway::builder(Config::parse(file, &Environment::detect())?).build()?.start()?;
//! assert!(gateway.listening().clients[0].starts_with("http://127.0.0.1:"));
//! gateway.stop()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `examples/redact` is a whole program: it redacts a pattern, also where that is split over events. What hooks see and do
//! not see, and what they cost, is in docs/embedding.md.

pub use embed::Gateway;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

pub mod access_log;
pub mod admin;
pub mod admission;
mod bench;
pub mod cli;
pub mod cluster;
pub mod config;
pub mod cors;
pub mod deadline;
pub mod discovery;
pub mod drain;
pub mod edge;
pub mod embed;
pub mod failure;
pub mod forwarded;
pub mod guard;
pub mod handover;
pub mod header_rules;
pub mod hooks;
pub mod keys;
pub mod ledger;
pub mod live;
pub mod log_file;
pub mod memory;
pub mod metrics;
pub mod openai;
pub mod outcome;
pub mod outlet;
pub mod prober;
pub mod proxy;
pub mod recent;
pub mod rejection;
pub mod reload;
pub mod request_id;
mod reset;
pub mod retry;
pub mod route;
pub mod secret;
pub mod server;
pub mod session_map;
mod signals;
pub mod sim;
pub mod snapshot;
pub mod spread;
pub mod sse;
pub mod store;
mod supervisor;
pub mod tls;
pub mod told;
mod top;
pub mod trace;
pub mod upstream;
pub mod usage;
pub mod usage_log;
