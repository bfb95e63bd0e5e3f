//! The gateway as its operator has it: the admin listener, and the file that is read again.

use std::path::PathBuf;

use serde_json::Value;

use super::client::{Answer, Client};
use super::gateway::Gateway;
use super::protocol::Protocol;
use super::score;
use super::settings::Settings;
use super::wire::Request;

impl Gateway {
    /// A GET on the admin listener.
    pub(crate) async fn admin_get(&self, path: &str) -> Answer {
        let mut client = Client::connect(self.admin).await;
        let request = Request::bare("GET", path).without("host").header(&format!("Host: {}", self.admin));
        client.send(request.header("Connection: close").bytes()).await;
        client.answer().await
    }

    /// A POST on the admin listener.
    pub(crate) async fn admin_post(&self, path: &str) -> Answer {
        let request = Request::bare("POST", path).without("host").header(&format!("Host: {}", self.admin));
        self.admin_ask(&request).await
    }

    /// Any request to the admin listener.
    pub(crate) async fn admin_ask(&self, request: &Request) -> Answer {
        let mut client = Client::connect(self.admin).await;
        client.send(request.clone().header("Connection: close").bytes()).await;
        client.answer().await
    }

    /// The configuration file.
    pub(crate) fn file(&self) -> PathBuf {
        self.dir.path().join("streamgate.yaml")
    }

    /// The text of its file with these settings.
    pub(crate) fn text_of(&self, settings: Settings) -> String {
        let settings = match self.protocol {
            Protocol::Http1 => settings,
            Protocol::H2c => settings.set("server.listen.0.h2c", true),
        };
        settings.text(&self.dir.path().join("access.log"))
    }

    /// Writes the configuration file anew, under its name from one moment to the next.
    pub(crate) fn rewrite(&self, settings: Settings) {
        self.rewrite_text(self.text_of(settings));
    }

    /// The same with any text.
    pub(crate) fn rewrite_text(&self, text: impl AsRef<[u8]>) {
        let fresh = self.dir.path().join("fresh");
        std::fs::write(&fresh, text).expect("write");
        std::fs::rename(fresh, self.file()).expect("rename");
        score::struck(1, "the file is written anew");
    }

    /// Writes the configuration and waits until it is in force; gives its generation.
    pub(crate) async fn reload(&self, settings: Settings) -> u64 {
        self.rewrite(settings);
        let answer = self.admin_post("/reload").await;
        assert_eq!(answer.status(), 200, "{}", answer.text());
        answer.json()["generation"].as_u64().expect("a number")
    }

    /// Times the file was read again, with this result.
    pub(crate) async fn reloads(&self, result: &str) -> f64 {
        self.metric("config_reloads_total", &[("result", result)]).await
    }

    /// GET /status.
    pub(crate) async fn status(&self) -> Value {
        self.admin_get("/status").await.json()
    }
}
