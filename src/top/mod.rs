//! `streamgate top`: the live view in a terminal.
//!
//! It watches the same events as the page of the admin listener ([`client`]) and makes the same of them, as lines of
//! text ([`lines`]): those are shown on a screen that follows ([`screen`]), or printed once where nobody looks.

mod client;
pub(crate) mod figures;
mod fleet;
mod lines;
mod screen;
mod table;

use std::io::IsTerminal;

use client::Client;
pub(crate) use client::Error;
use ratatui::text::Line;

use crate::admin::place::Place;
use crate::live::view::View;
use crate::secret::Secret;

/// Settings of `streamgate top`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The admin listener: http://ADDRESS or unix:/PATH.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:9090")]
    admin: String,
    /// The environment variable that holds the token of the admin listener.
    #[arg(long, value_name = "NAME")]
    token_env: Option<String>,
    /// Print what is known once and end; so it does as well where standard output is no terminal.
    #[arg(long)]
    once: bool,
}

/// Shows the view until its reader has seen enough; what is to be printed instead, where it is shown once.
///
/// # Errors
/// The arguments are wrong, or the gateway cannot be asked.
pub(crate) fn run(args: &Args) -> Result<Option<String>, Error> {
    let place: Place = args.admin.parse()?;
    let token = args.token_env.as_deref().map(token).transpose()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::Terminal(error.to_string()))?;
    runtime.block_on(async {
        if args.once || !std::io::stdout().is_terminal() {
            return once(Client::connect(&place, token.as_ref()).await?).await.map(Some);
        }
        screen::show(place, token).await.map(|()| None)
    })
}

fn token(name: &str) -> Result<Secret, Error> {
    let value = std::env::var(name).map_err(|_| Error::Token(name.to_owned()))?;
    Secret::bearer(value.trim()).map_err(|_| Error::Token(name.to_owned()))
}

/// The first view that has rates: the second one, unless somebody has watched before.
async fn once(mut client: Client) -> Result<String, Error> {
    loop {
        let view = client.next().await?;
        if view.totals.tokens_per_second.is_some() {
            return Ok(plain(&view));
        }
    }
}

/// The lines of a view without their colours.
fn plain(view: &View) -> String {
    let lines = lines::of(view);
    let text = |line: &Line<'_>| line.spans.iter().map(|span| &*span.content).collect::<String>();
    lines.iter().map(|line| text(line).trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}
