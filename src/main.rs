//! The `streamgate` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    streamgate::cli::main()
}
