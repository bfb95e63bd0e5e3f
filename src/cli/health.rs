//! `streamgate health`: whether a gateway is ready, for containers and scripts that have nothing else to ask with.

use super::{EX_SOFTWARE, EX_TEMPFAIL, EX_USAGE, Failed, show};
use crate::admin::place::{NoPlace, Place, words};

/// Exit code for a gateway that answers, and is not ready.
const NOT_READY: u8 = 1;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The admin listener: http://ADDRESS or unix:/PATH. It is asked for /readyz, which needs no token.
    #[arg(value_name = "URL", default_value = "http://127.0.0.1:9090")]
    admin: String,
}

/// Prints what the gateway says of itself.
///
/// # Errors
/// It says that it is not ready, or nothing.
pub(super) fn ask(args: &Args) -> Result<(), Failed> {
    let place: Place =
        args.admin.parse().map_err(|error: NoPlace| Failed(EX_USAGE, format!("URL {error}")))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failed(EX_SOFTWARE, error.to_string()))?;
    runtime.block_on(async {
        let asked = place.ask("/readyz", None).await;
        let mut session = asked.map_err(|away| Failed(EX_TEMPFAIL, away.to_string()))?;
        let status = session.get_status().map_or(0, |status| status.as_u16());
        let said = words(&mut session).await;
        match status {
            200 => show(&said),
            _ => Err(Failed(NOT_READY, format!("{place}: not ready: {status} {said}"))),
        }
    })
}
