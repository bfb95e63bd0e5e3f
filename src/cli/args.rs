//! The commands and their arguments, as the help and the manual pages tell them.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use clap_complete::Shell;

use super::{health, key};
use crate::{bench, sim, top};

/// What the long help and the manual page say at their end.
const AFTER_HELP: &str = "Exit codes: 0 done; 64 bad usage or configuration; 70 internal; 75 could not start, or the gateway \
     is not there. diff: 0 the same, 1 differs, 2 trouble. health: 1 not ready.";

/// The edge gateway for self-hosted LLM inference.
#[derive(Debug, Parser)]
#[command(version, about, arg_required_else_help = true, after_long_help = AFTER_HELP)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run the gateway.
    Run {
        /// The configuration file.
        #[arg(short, long)]
        config: PathBuf,
    },
    /// Run the gateway in place of one that runs: take over its sockets when all is ready, and let it end its
    /// streams.
    Upgrade {
        /// The configuration file. Its server.upgrade_socket says from whom to take over.
        #[arg(short, long)]
        config: PathBuf,
    },
    /// Check a configuration file: every problem with its line, its path and the fix.
    Check {
        /// The configuration file.
        #[arg(short, long)]
        config: PathBuf,
    },
    /// Run the gateway with three simulated engines, to look around.
    Demo,
    /// Run a simulated engine on its own.
    Sim(sim::Args),
    /// Print what a reload from one file to the other would change. Exit code 0: nothing; 1: what is printed;
    /// 2: one of them cannot be used.
    Diff {
        /// The file that runs.
        old: PathBuf,
        /// The file that is to run.
        new: PathBuf,
    },
    /// Watch a running gateway: what is wrong, its clusters and backends, its figures, each second.
    Top(top::Args),
    /// Put an OpenAI-compatible endpoint under load and check every answer.
    Bench(Box<bench::Args>),
    /// Ask a gateway whether it is ready. Exit code 0: it is; 1: it is not, as in a drain; 75: nobody answers.
    Health(health::Args),
    /// API keys of clients.
    #[command(subcommand)]
    Key(key::Command),
    /// Print the JSON Schema of the configuration, for editors.
    Schema,
    /// Print what completes these commands in a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Write the manual pages, one for each command.
    Man {
        /// The folder that they are written to; it is made where it is missing. Pages that are there are replaced.
        folder: PathBuf,
    },
}
