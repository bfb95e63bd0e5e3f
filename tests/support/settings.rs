//! The configuration file of a test, as JSON (which is YAML), with the settings of the cases.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Value, json};

/// No test meets a health check, a probe or an ejection that it is not about.
pub(crate) fn unwatched() -> Value {
    json!({ "active": null, "passive": { "consecutive": 1_000_000 }, "wedged": { "after": "1h" } })
}

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
            // In turns: a case may count on how often each engine is asked.
            "clusters": { "c": { "profile": "openai", "backends": backends, "balance": "round_robin",
                                 "health": unwatched(), "scrape": null } },
            "routes": [
                { "name": "chat", "match": { "path": "/v1/chat/completions" }, "cluster": "c",
                  "include_usage": false },
                { "name": "other", "match": { "path": ["/v1/completions", "/v1/embeddings"] }, "cluster": "c",
                  "include_usage": false },
            ],
        }))
    }

    /// An example that comes with the gateway, on ports of the kernel's choice. A scripted engine hears neither
    /// health checks nor scrapes, which it would take for requests.
    pub(crate) fn example(name: &str) -> Self {
        let file = format!("{}/conf/examples/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(file).expect("an example");
        let value: Value = serde_saphyr::from_str(&text).expect("an example is YAML");
        let clusters: Vec<String> =
            value["clusters"].as_object().expect("clusters").keys().cloned().collect();
        let example = Self(value)
            .set("server.listen.0.address", "127.0.0.1:0")
            .set("server.admin", json!({ "listen": "127.0.0.1:0" }))
            .set("log", json!({ "format": "json" }));
        clusters.iter().fold(example, |settings, name| {
            settings
                .set(&format!("clusters.{name}.health"), unwatched())
                .set(&format!("clusters.{name}.scrape"), Value::Null)
        })
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

    /// Gives a cluster another name, in its routes as well.
    pub(crate) fn rename_cluster(mut self, from: &str, to: &str) -> Self {
        let clusters = self.0["clusters"].as_object_mut().expect("clusters is a map");
        let cluster = clusters.remove(from).expect("a cluster");
        clusters.insert(to.to_owned(), cluster);
        for route in self.0["routes"].as_array_mut().expect("routes is a list") {
            if route["cluster"] == from {
                route["cluster"] = json!(to);
            }
        }
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
