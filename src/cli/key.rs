//! `streamgate key new`: a key for a client, and the line that makes it one.

use clap::Subcommand;

use super::{EX_SOFTWARE, EX_USAGE, Failed, show};
use crate::config::is_name;
use crate::keys::{Digest, hex};

/// What tells such a key from others, for people and for tools that look for secrets in repositories.
const PREFIX: &str = "sg-";

/// Random bytes of a key: 192 bits, beyond all guessing (OWASP asks for 128).
const BYTES: usize = 24;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make a key: prints it, and the line of the configuration that lets it in. The key is kept nowhere.
    New {
        /// What logs call the key. Default: key- and the first digits of its digest.
        #[arg(short, long)]
        name: Option<String>,
    },
}

pub(super) fn run(command: Command) -> Result<(), Failed> {
    let Command::New { name } = command;
    if name.as_deref().is_some_and(|name| !is_name(name)) {
        return Err(Failed(EX_USAGE, "a name has 1 to 128 bytes without control characters".into()));
    }
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes)
        .map_err(|error| Failed(EX_SOFTWARE, format!("the system gives no random bytes: {error}")))?;
    let key = format!("{PREFIX}{}", hex(&bytes));
    let digest = Digest::of(key.as_bytes()).to_hex();
    let name = name.unwrap_or_else(|| format!("key-{}", &digest[..8]));
    show(&format!("{key}\n  - {{ name: {}, sha256: \"{digest}\" }}", quoted(&name)))?;
    eprintln!(
        "The first line is the key: hand it to its user. It is shown this once and kept nowhere.\n\
         The second line belongs below `keys:` in the configuration; it does not tell the key."
    );
    Ok(())
}

/// The name as a value of the file; `${` would be a variable.
fn quoted(name: &str) -> String {
    serde_json::Value::from(name.replace("${", "$${")).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_quoted_as_the_file_wants_it() {
        assert_eq!(quoted("team-a"), "\"team-a\"");
        assert_eq!(quoted("a \"b\" \\ ${HOME}"), r#""a \"b\" \\ $${HOME}""#);
    }
}
