//! What is printed once the gateway accepts: where it listens, and a line to try it with.

use super::say;
use crate::config::{Action, Config};
use crate::server::Listening;

/// Says where the gateway listens. Tools read these lines: see docs/operations.md.
pub(super) fn say_where(listening: &Listening, example: Option<&str>, needs_key: bool) {
    let mut lines: Vec<String> = listening
        .engines
        .iter()
        .map(|(name, addr)| format!("simulated engine {name} on http://{addr}"))
        .collect();
    lines.extend(listening.clients.iter().map(|url| format!("streamgate listening on {url}")));
    lines.push(format!("streamgate admin on {}", listening.admin));
    if let (Some(model), Some(url)) = (example, listening.clients.first()) {
        lines.push("try it:".into());
        lines.push(curl(&reachable(url), model, needs_key));
    }
    lines.push("ready".into());
    if say(&lines.join("\n")).is_err() {
        log::warn!("standard output is closed; nobody will read where the gateway listens");
    }
}

/// The unspecified address is no one's to connect to; this machine's own stands for it.
fn reachable(url: &str) -> String {
    url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
}

fn curl(url: &str, model: &str, needs_key: bool) -> String {
    let key = if needs_key { " -H \"authorization: Bearer $KEY\"" } else { "" };
    format!(
        "  curl -N {url}/v1/chat/completions{key} -H 'content-type: application/json' \\\n    -d '{{\"model\": \"{model}\", \"stream\": true, \"messages\": [{{\"role\": \"user\", \"content\": \"hi\"}}]}}'"
    )
}

/// A model to put into the example: the first one a chat route lists.
pub(super) fn example(config: &Config) -> Option<String> {
    let is_chat = |path: &String| path == "/v1/chat/completions";
    let mut routes = config.routes.iter().filter(|route| matches!(route.action, Action::Proxy(_)));
    routes.find(|route| route.paths.iter().any(is_chat))?.models.first().cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_can_be_copied_whatever_the_address() {
        for (listening, asked) in [
            ("http://0.0.0.0:8080", "http://127.0.0.1:8080"),
            ("https://[::]:443", "https://[::1]:443"),
            ("http://10.0.0.1:80", "http://10.0.0.1:80"),
        ] {
            assert_eq!(reachable(listening), asked);
        }
    }
}
