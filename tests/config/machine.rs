//! A machine for configuration files: its variables, and the files that those name.
//!
//! What must never be seen in a message or a log begins with "canary".

use std::env::VarError;
use std::path::Path;
use std::sync::LazyLock;

use streamgate::config::Environment;

use super::support::certificates::Authority;

/// The machine.
pub(crate) const ENVIRONMENT: Environment = Environment { variable, file, ..Environment::bare(4, 8 << 30) };

/// The environment of the files.
fn variable(name: &str) -> Result<String, VarError> {
    let value = match name {
        "PORT" => "0",
        "COUNT" => "2",
        "SIZE" => "128KiB",
        "SPAN" => "7s",
        "NEVER" => "never",
        "BOOL" => "true",
        "FLOAT" => "1.25",
        "WORD" => "gpu-1",
        "REQUIRED" => "required",
        "ODD" => "${WORD} \"}]",
        "NUMBER" => "31415",
        "TEXT" => "canary value",
        "DIGEST" => "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
        "TOKEN" | "DEEPSEEK_API_KEY" | "VLLM_API_KEY" => "canary-token",
        "LINES" => "canary-one\ncanary-two",
        "EMPTY" => "",
        "LATIN1" => return Err(VarError::NotUnicode("canary".into())),
        _ => return Err(VarError::NotPresent),
    };
    Ok(value.to_owned())
}

/// The files that the files name.
fn file(path: &Path) -> Result<Vec<u8>, String> {
    static AUTHORITY: LazyLock<String> = LazyLock::new(|| Authority::new().pem());
    let text = match path.to_str().expect("paths are UTF-8") {
        "/run/ca.pem" | "/etc/streamgate/llm-ca.pem" => &**AUTHORITY,
        "/run/half.pem" => &AUTHORITY[..AUTHORITY.len() / 2],
        "/run/token" | "/run/secrets/vllm-key" => "canary-token\r\n",
        "/run/two-lines" => "canary-one\ncanary-two\n",
        "/run/empty" => "\n",
        "/run/binary" => return Ok(b"canary\xff".to_vec()),
        _ => return Err("cannot be read: No such file".to_owned()),
    };
    Ok(text.as_bytes().to_vec())
}
