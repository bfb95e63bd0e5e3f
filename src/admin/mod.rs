//! The admin listener: for operators and their tools, never for clients.

use std::sync::Arc;

use async_trait::async_trait;
use http::Response;
use pingora::apps::http_app::ServeHttp;
use pingora::protocols::http::ServerSession;

use crate::proxy::Shared;

/// Answers `/livez`, `/readyz` and `/metrics`.
pub struct Admin {
    shared: Arc<Shared>,
}

impl Admin {
    /// An admin page over what all exchanges share.
    pub fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    fn answer(&self, method: &str, path: &str) -> Response<Vec<u8>> {
        if !matches!(method, "GET" | "HEAD") {
            return reply(405, "text/plain", b"GET only\n".to_vec());
        }
        match path {
            "/livez" => reply(200, "text/plain", b"ok\n".to_vec()),
            "/readyz" if self.shared.drain.is_leaving() => reply(503, "text/plain", b"draining\n".to_vec()),
            "/readyz" => reply(200, "text/plain", b"ready\n".to_vec()),
            "/metrics" => reply(200, "text/plain; version=0.0.4", self.shared.metrics.render(&self.shared)),
            _ => reply(404, "text/plain", b"/livez /readyz /metrics\n".to_vec()),
        }
    }
}

#[async_trait]
impl ServeHttp for Admin {
    async fn response(&self, session: &mut ServerSession) -> Response<Vec<u8>> {
        let head = session.req_header();
        self.answer(head.method.as_str(), head.uri.path())
    }
}

fn reply(status: u16, content_type: &str, body: Vec<u8>) -> Response<Vec<u8>> {
    Response::builder()
        .status(status)
        .header(http::header::CONTENT_TYPE, content_type)
        .header(http::header::CONTENT_LENGTH, body.len())
        .body(body)
        .expect("a known status and plain headers")
}
