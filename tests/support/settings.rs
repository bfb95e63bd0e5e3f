//! The configuration file of a test, as JSON (which is YAML), with the settings of the cases.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Value, json};

/// A configuration under construction.
#[derive(Debug, Clone)]
pub(crate) struct Settings(Value);

impl Settings {
    /// One cluster `c` with a backend `u1`, `u2` ... for each address, and routes `chat` and `other`.
    pub(crate) fn new(backends: &[SocketAddr]) -> Self {
        let backends: Vec<Value> = (1..)
            .zip(backends)
            .map(|(n, addr)| json!({ "name": format!("u{n}"), "url": format!("http://{addr}") }))
            .collect();
        Self(json!({
            "server": {
                "listen": [{ "address": "127.0.0.1:0" }],
                "admin": { "listen": "127.0.0.1:0" },
                "threads": 2,
                "shutdown": { "lame_duck": "0s", "drain": "8s" },
            },
            "log": { "level": "info", "format": "json" },
            "stream": { "heartbeat": "never", "hold_headers": "0s", "write_stall": "3s" },
            "timeouts": {
                "connect": "2s", "first_event": "5s", "unary": "5s", "idle": "4s", "total": "30s",
            },
            "clusters": { "c": { "profile": "openai", "backends": backends } },
            "routes": [
                { "name": "chat", "match": { "path": "/v1/chat/completions" }, "cluster": "c",
                  "include_usage": false },
                { "name": "other", "match": { "path": ["/v1/completions", "/v1/embeddings"] }, "cluster": "c",
                  "include_usage": false },
            ],
        }))
    }

    /// Sets one value by its path, such as `stream.idle` or `routes.0.streaming`.
    pub(crate) fn set(mut self, path: &str, value: impl Into<Value>) -> Self {
        let mut place = &mut self.0;
        for key in path.split('.') {
            place = match key.parse::<usize>() {
                Ok(index) => &mut place[index],
                Err(_) => &mut place[key],
            };
        }
        *place = value.into();
        self
    }

    /// Maps session ids from some places to others.
    pub(crate) fn session(self, from: &[&str], to: &[&str]) -> Self {
        self.set("session.from", json!(from)).set("session.to", json!(to))
    }

    /// Reaches the engines over TLS, with these settings of the cluster.
    pub(crate) fn https(mut self, tls: Value) -> Self {
        let cluster = &mut self.0["clusters"]["c"];
        for backend in cluster["backends"].as_array_mut().expect("backends is a list") {
            let url = backend["url"].as_str().expect("a url").replacen("http://", "https://", 1);
            backend["url"] = json!(url);
        }
        cluster["tls"] = tls;
        self
    }

    /// Adds a route in front of the others.
    pub(crate) fn route(mut self, route: Value) -> Self {
        self.0["routes"].as_array_mut().expect("routes is a list").insert(0, route);
        self
    }

    /// The text of the file, with access lines going to `access`.
    pub(crate) fn text(mut self, access: &Path) -> String {
        self.0["log"]["access"] = json!(access.to_str().expect("path is UTF-8"));
        self.0.to_string()
    }
}
