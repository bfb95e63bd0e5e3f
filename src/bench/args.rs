//! `streamgate bench`: its arguments, and the plan that they make.

mod read;

use std::path::{Path, PathBuf};
use std::time::Duration;

use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use read::{header, positive, rate, some_time};

use super::Error;
use super::lot::{Of, Percent, Shares};
use super::target::{Place, Target};
use crate::config::{Authorities, Trust};
use crate::secret::Secret;
use crate::sim::units;

/// Requests that are made where neither --requests nor --duration says how many.
const REQUESTS: u64 = 100;
/// Streams open at once, without --rate and with it: with it the rate decides, and this only bounds the memory.
const CONCURRENCY: usize = 10;
const CONCURRENCY_AT_RATE: usize = 10_000;

/// What stands below the options.
const HELP: &str = "\
Examples:
  streamgate bench http://127.0.0.1:8080/v1
  streamgate bench http://127.0.0.1:8080/v1 -c 200 -d 1m --unary 10 --cancel 20@5 --slow 5@2000
  streamgate bench https://llm.example.com/v1 --key-env LLM_KEY --model llama --rate 20 -d 5m --json run.json

Exit codes: 0 every answer was right, 1 an answer or a reload was wrong, 64 bad arguments, 75 the target cannot be
reached. Ctrl-C ends the run early and reports what was done.";

/// Put an OpenAI-compatible endpoint under load and check every answer.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The endpoint: a base as http://127.0.0.1:8080/v1, or a whole .../chat/completions or .../completions.
    #[arg(value_name = "URL")]
    target: Target,
    /// Model to ask for. Default: the first one that GET /v1/models lists.
    #[arg(long)]
    model: Option<String>,
    /// A header of every request, as 'name: value'; may be given several times.
    #[arg(long = "header", value_name = "HEADER", value_parser = header)]
    headers: Vec<(HeaderName, HeaderValue)>,
    /// The environment variable that holds the API key.
    #[arg(long, value_name = "NAME")]
    key_env: Option<String>,

    /// Requests under way at once. Default: 10; with --rate the bound beyond which arrivals are left out, 10000.
    #[arg(short, long, value_name = "N", value_parser = positive, help_heading = "Load")]
    concurrency: Option<u64>,
    /// Requests in all. Default: 100.
    #[arg(short = 'n', long, value_name = "N", value_parser = positive, conflicts_with = "duration", help_heading = "Load")]
    requests: Option<u64>,
    /// Begin requests for this long, as 30s or 5m.
    #[arg(short, long, value_parser = some_time, help_heading = "Load")]
    duration: Option<Duration>,
    /// Requests that arrive each second, whether or not earlier ones have ended, so that a slow target does not slow
    /// the load. Default: the next one begins when one has ended.
    #[arg(long, value_name = "PER_SECOND", value_parser = rate, help_heading = "Load")]
    rate: Option<f64>,
    /// Tokens that an answer may have.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Load")]
    max_tokens: u32,
    /// Size of each prompt.
    #[arg(long, value_name = "SIZE", default_value = "256", value_parser = units::bytes, help_heading = "Load")]
    prompt_bytes: usize,
    /// Percentage of requests that are no streams.
    #[arg(long, value_name = "PERCENT", default_value = "0", help_heading = "Load")]
    unary: Percent,
    /// Percentage of requests that are streams which the client leaves at a token, as 20@5.
    #[arg(long, value_name = "PERCENT@TOKEN", help_heading = "Load")]
    cancel: Option<Of>,
    /// Percentage of requests that are streams which the client reads so slowly, as 5@2000.
    #[arg(long, value_name = "PERCENT@BYTES_PER_SECOND", help_heading = "Load")]
    slow: Option<Of>,
    /// Do not ask for the usage at the end of streams (for endpoints that refuse stream_options).
    #[arg(long, help_heading = "Load")]
    no_usage: bool,

    /// Speak HTTP/2: at once in the clear, or as TLS agrees.
    #[arg(long, help_heading = "Connections")]
    h2: bool,
    /// Use connections again; over HTTP/2 up to 100 requests share one. Default: a connection for each request.
    #[arg(long, help_heading = "Connections")]
    keepalive: bool,
    /// Trust the authorities of this PEM file instead of the system's.
    #[arg(long, value_name = "FILE", conflicts_with = "insecure", help_heading = "Connections")]
    ca: Option<PathBuf>,
    /// Trust any certificate.
    #[arg(long, help_heading = "Connections")]
    insecure: bool,
    /// Longest time without data that is waited through, before an answer and within it; heartbeats are none.
    #[arg(long, default_value = "60s", value_parser = some_time, help_heading = "Connections")]
    timeout: Duration,

    /// POST there during the load, as http://127.0.0.1:9090/reload, and check that it is done.
    #[arg(long, value_name = "URL", requires = "reload_every", help_heading = "Reloads")]
    reload_url: Option<Place>,
    /// How often.
    #[arg(long, value_name = "DURATION", value_parser = some_time, requires = "reload_url", help_heading = "Reloads")]
    reload_every: Option<Duration>,
    /// The environment variable that holds the token of the admin listener.
    #[arg(long, value_name = "NAME", requires = "reload_url", help_heading = "Reloads")]
    reload_token_env: Option<String>,

    /// A simulated engine behind the target (streamgate sim), as http://127.0.0.1:9101: asked at the end when it saw each
    /// cancelled request leave. May be given several times.
    #[arg(long = "engine", value_name = "URL", help_heading = "Report")]
    engines: Vec<Place>,
    /// Write the figures into this file as JSON.
    #[arg(long, value_name = "FILE", help_heading = "Report")]
    json: Option<PathBuf>,
}

/// What is to be done, all of it checked.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) target: Target,
    pub(super) model: Option<String>,
    /// Of every request, with the key among them.
    pub(super) headers: HeaderMap,
    pub(super) concurrency: usize,
    pub(super) bound: Bound,
    /// Arrivals each second; `None`: as answers end.
    pub(super) rate: Option<f64>,
    pub(super) max_tokens: u32,
    pub(super) prompt_bytes: usize,
    pub(super) shares: Shares,
    pub(super) usage: bool,
    pub(super) way: Way,
    pub(super) reload: Option<Reload>,
    pub(super) engines: Vec<Place>,
    pub(super) json: Option<PathBuf>,
}

/// When no more requests begin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Bound {
    Requests(u64),
    Time(Duration),
}

/// How a place is spoken to.
#[derive(Debug, Clone)]
pub(super) struct Way {
    pub(super) http2: bool,
    pub(super) keepalive: bool,
    pub(super) trust: Trust,
    /// Longest time without data.
    pub(super) patience: Duration,
}

/// Reloads during the load.
#[derive(Debug, Clone)]
pub(super) struct Reload {
    pub(super) place: Place,
    pub(super) every: Duration,
    pub(super) token: Option<Secret>,
}

impl TryFrom<Args> for Plan {
    type Error = Error;

    fn try_from(args: Args) -> Result<Self, Error> {
        let shares = Shares { unary: args.unary, cancel: args.cancel, slow: args.slow };
        if !shares.fit() {
            return Err(Error::Argument(
                "--unary, --cancel and --slow are more than 100 percent together".into(),
            ));
        }
        if let Some(of) = args.cancel.filter(|of| of.number > args.max_tokens) {
            return Err(Error::Argument(format!(
                "--cancel leaves at token {}, but an answer has no more than {}: name an earlier one, or a larger --max-tokens",
                of.number, args.max_tokens
            )));
        }
        let mut headers = HeaderMap::new();
        for (name, value) in args.headers {
            headers.append(name, value);
        }
        if let Some(name) = &args.key_env {
            headers.insert(AUTHORIZATION, secret("--key-env", name)?.header_value().clone());
        }
        let requests = Bound::Requests(args.requests.unwrap_or(REQUESTS));
        let open = if args.rate.is_some() { CONCURRENCY_AT_RATE } else { CONCURRENCY };
        let token = args.reload_token_env.map(|name| secret("--reload-token-env", &name)).transpose()?;
        let reload = args.reload_url.zip(args.reload_every);
        Ok(Self {
            target: args.target,
            model: args.model,
            headers,
            concurrency: args.concurrency.map_or(open, |most| usize::try_from(most).unwrap_or(usize::MAX)),
            bound: args.duration.map_or(requests, Bound::Time),
            rate: args.rate,
            max_tokens: args.max_tokens,
            prompt_bytes: args.prompt_bytes,
            shares,
            usage: !args.no_usage,
            way: Way {
                http2: args.h2,
                keepalive: args.keepalive,
                trust: trust(args.ca.as_deref(), args.insecure)?,
                patience: args.timeout,
            },
            reload: reload.map(|(place, every)| Reload { place, every, token }),
            engines: args.engines,
            json: args.json,
        })
    }
}

fn trust(ca: Option<&Path>, insecure: bool) -> Result<Trust, Error> {
    let Some(file) = ca else { return Ok(if insecure { Trust::Anyone } else { Trust::System }) };
    let wrong = |why: String| Error::Argument(format!("--ca {}: {why}", file.display()));
    let pem = std::fs::read(file).map_err(|error| wrong(error.to_string()))?;
    Authorities::from_pem(&pem).map(Trust::Authorities).map_err(|why| wrong(format!("the file {why}")))
}

fn secret(option: &str, name: &str) -> Result<Secret, Error> {
    let wrong = |why: String| Error::Argument(format!("{option} {name}: {why}"));
    let value = std::env::var(name).map_err(|_| wrong("there is no such environment variable".into()))?;
    Secret::bearer(value.trim()).map_err(|error| wrong(error.to_string()))
}

#[cfg(test)]
mod tests;
