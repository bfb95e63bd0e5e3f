//! `streamgate sim`: the settings of an engine as command line arguments.

use std::net::SocketAddr;
use std::time::Duration;

use super::fault::{self, Fault};
use super::{Settings, units};

/// Run a simulated engine: an OpenAI-compatible fake vLLM.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = format!("Faults: {}.", fault::HELP))]
pub struct Args {
    /// Name in its answers (header x-sim-engine) and statistics.
    #[arg(long, default_value = "sim", value_parser = name)]
    name: String,
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1:9101")]
    listen: SocketAddr,
    /// Model to serve.
    #[arg(long, default_value = "sim-model")]
    model: String,
    /// Time from a request to its first event, as 200ms.
    #[arg(long, default_value = "200ms", value_parser = units::duration)]
    first_event: Duration,
    /// Time between two tokens; 0ms is as fast as the client reads.
    #[arg(long, default_value = "20ms", value_parser = units::duration)]
    inter_token: Duration,
    /// Tokens of an answer; a smaller max_tokens cuts it.
    #[arg(long, default_value_t = 120)]
    tokens: u32,
    /// Size of one content event on the wire.
    #[arg(long, default_value = "230B", value_parser = units::bytes)]
    event_bytes: usize,
    /// Send the 200 before the prefill, as vLLM does.
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set)]
    early_200: bool,
    /// Close an idle connection after this time.
    #[arg(long, default_value = "5s", value_parser = units::duration)]
    keepalive: Duration,
    /// Content events per write.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    batch: u32,
    /// Requests that run at once, the others wait; 0 is no bound.
    #[arg(long, default_value_t = 0)]
    slots: u32,
    /// Let each token prove its place: it carries a hash of its request and of all tokens before it.
    #[arg(long)]
    proof: bool,
    /// What goes wrong, as NAME[=ARGUMENT][;OPTION=VALUE]; may be given several times.
    #[arg(long = "fault", value_name = "FAULT", value_delimiter = ',')]
    faults: Vec<Fault>,
}

impl From<Args> for Settings {
    fn from(args: Args) -> Self {
        Self {
            name: args.name,
            listen: args.listen,
            model: args.model,
            first_event: args.first_event,
            inter_token: args.inter_token,
            tokens: args.tokens,
            event_bytes: args.event_bytes,
            early_200: args.early_200,
            keepalive: args.keepalive,
            batch: args.batch,
            slots: args.slots,
            proof: args.proof,
            faults: args.faults,
        }
    }
}

/// A name goes into a header.
fn name(text: &str) -> Result<String, String> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(text.to_owned());
    }
    Err("a name is visible ASCII without spaces".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::FaultKind;
    use super::*;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    fn parse(args: &[&str]) -> Result<Settings, String> {
        let cli = Cli::try_parse_from([&["sim"], args].concat()).map_err(|error| error.to_string())?;
        Ok(cli.args.into())
    }

    #[test]
    fn no_arguments_give_the_default_settings() {
        assert_eq!(parse(&[]), Ok(Settings::default()));
    }

    #[test]
    fn arguments_become_settings() {
        let args =
            ["--first-event", "1s", "--event-bytes", "1KiB", "--early-200", "false", "--fault", "reset_at=3"];
        let expected = Settings {
            first_event: Duration::from_secs(1),
            event_bytes: 1_024,
            early_200: false,
            faults: vec![FaultKind::ResetAt(3).into()],
            ..Settings::default()
        };
        assert_eq!(parse(&args), Ok(expected));
    }

    #[test]
    fn the_help_names_the_faults() {
        let help = Cli::try_parse_from(["sim", "--help"]).unwrap_err().to_string();
        assert!(help.contains("truncated_chunk_at=N"), "{help}");
    }

    #[test]
    fn wrong_arguments_say_what_is_wrong() {
        let wrong = |args: &[&str]| parse(args).unwrap_err();
        assert!(wrong(&["--first-event", "200"]).contains("`200` has no unit"));
        assert!(wrong(&["--fault", "nope"]).contains("unknown fault `nope`"));
        assert!(wrong(&["--name", "a b"]).contains("visible ASCII"));
        assert!(wrong(&["--batch", "0"]).contains("0 is not in"));
    }
}
