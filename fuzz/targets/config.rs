//! Configuration files: each is loaded, or refused with at least one problem.
use streamgate::config::{Config, Environment};

const MACHINE: Environment = Environment::bare(2, 1 << 30);

/// Loads one input.
pub(crate) fn run(text: &[u8]) {
    if let Err(problems) = Config::parse_bytes(text, &MACHINE) {
        assert!(problems.iter().len() > 0);
        assert!(problems.to_string().len() < 1 << 20, "more is said than anybody reads");
    }
}
