//! Answers to HTTP/1.0 clients.
//!
//! They know no chunks: a body of unknown length ends with their connection, and one that breaks off must
//! not end like one that is whole (see `Client::ends_with_connection`). Their connections are not kept: a
//! proxy of that age passes `Connection: keep-alive` on without knowing it (RFC 9112, C.2.2). The status
//! line says HTTP/1.1, the version of the server, as RFC 9110, 2.5 asks.
//!
//! Pingora adds chunked coding behind `response_filter`, whatever the client speaks. What runs still later
//! is a downstream module, so one takes it away again; it is there for these clients only.

use std::any::Any;

use async_trait::async_trait;
use http::Version;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use pingora::Result;
use pingora::modules::http::{HttpModule, HttpModuleBuilder, HttpModules, Module};
use pingora_http::ResponseHeader;
use pingora_proxy::Session;

use super::exchange::Exchange;

/// What adapts answers to HTTP/1.0.
pub(super) struct Http10(HttpModules);

impl Http10 {
    pub(super) fn new() -> Self {
        let mut modules = HttpModules::new();
        modules.add_module(Box::new(Unchunk));
        Self(modules)
    }

    /// Prepares for the answer to a client that speaks HTTP/1.0; does nothing for others.
    pub(super) fn adapt(&self, session: &mut Session) {
        if is_spoken(session) {
            session.set_keepalive(None);
            session.downstream_modules_ctx = self.0.build_ctx();
        }
    }
}

/// Notes that this answer ends with the connection, if it does.
pub(super) fn note_open_end(session: &Session, head: &ResponseHeader, exchange: &Exchange) {
    if is_spoken(session)
        && !head.headers.contains_key(CONTENT_LENGTH)
        && let Some(client) = &exchange.client
    {
        client.ends_with_connection();
    }
}

fn is_spoken(session: &Session) -> bool {
    session.req_header().version == Version::HTTP_10
}

struct Unchunk;

impl HttpModuleBuilder for Unchunk {
    fn init(&self) -> Module {
        Box::new(Self)
    }
}

#[async_trait]
impl HttpModule for Unchunk {
    async fn response_header_filter(&mut self, head: &mut ResponseHeader, _end: bool) -> Result<()> {
        head.remove_header(&TRANSFER_ENCODING);
        Ok(())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
