//! The face that Pingora's proxy loop sees of a [`Session`].
//!
//! The request body is ours (see `plan`), so what the loop writes is dropped; custom messages do not
//! exist here, so their reader is empty and their writer does nothing.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use http::HeaderMap;
use pingora::protocols::http::custom::client;
use pingora::protocols::http::custom::{BodyWrite, CustomMessageWrite};
use pingora::protocols::l4::socket::SocketAddr;
use pingora::protocols::{Digest, UniqueIDType};
use pingora::{Error, ErrorType, Result};
use pingora_http::{RequestHeader, ResponseHeader};

use super::session::Session;
use crate::failure::Failure;

/// The failure itself travels in the `Link`; this error only stops Pingora's loop.
fn stop(failure: Failure) -> Box<Error> {
    let mut error = Error::explain(ErrorType::ReadError, failure.to_string());
    error.as_up();
    error.set_retry(false);
    error
}

#[async_trait]
impl client::Session for Session {
    async fn write_request_header(&mut self, head: Box<RequestHeader>, _end: bool) -> Result<()> {
        self.begin(*head, Instant::now()).map_err(stop)
    }

    async fn read_response_header(&mut self) -> Result<()> {
        self.commit().await.map_err(stop)
    }

    async fn read_response_body(&mut self) -> Result<Option<Bytes>> {
        self.next_chunk().await.map_err(stop)
    }

    fn response_header(&self) -> Option<&ResponseHeader> {
        self.early.as_deref().or_else(|| self.real_head())
    }

    fn response_finished(&self) -> bool {
        self.finished
    }

    async fn check_response_end_or_error(&mut self, _headers: bool) -> Result<bool> {
        Ok(self.finished)
    }

    async fn shutdown(&mut self, _code: u32, _ctx: &str) {
        self.close();
    }

    async fn write_request_body(&mut self, _data: Bytes, _end: bool) -> Result<()> {
        Ok(())
    }

    async fn finish_request_body(&mut self) -> Result<()> {
        Ok(())
    }

    fn take_request_body_writer(&mut self) -> Option<Box<dyn BodyWrite>> {
        Some(Box::new(Discard))
    }

    fn set_read_timeout(&mut self, _timeout: Option<Duration>) {}

    fn set_write_timeout(&mut self, _timeout: Option<Duration>) {}

    fn was_upgraded(&self) -> bool {
        false
    }

    fn digest(&self) -> Option<&Digest> {
        None
    }

    fn digest_mut(&mut self) -> Option<&mut Digest> {
        None
    }

    fn server_addr(&self) -> Option<&SocketAddr> {
        None
    }

    fn client_addr(&self) -> Option<&SocketAddr> {
        None
    }

    fn fd(&self) -> UniqueIDType {
        -1
    }

    async fn read_trailers(&mut self) -> Result<Option<HeaderMap>> {
        Ok(None)
    }

    async fn finish_custom(&mut self) -> Result<()> {
        Ok(())
    }

    fn take_custom_message_reader(
        &mut self,
    ) -> Option<Box<dyn futures::Stream<Item = Result<Bytes>> + Unpin + Send + Sync + 'static>> {
        Some(Box::new(futures::stream::empty()))
    }

    async fn drain_custom_messages(&mut self) -> Result<()> {
        Ok(())
    }

    fn take_custom_message_writer(&mut self) -> Option<Box<dyn CustomMessageWrite>> {
        Some(Box::new(()))
    }
}

/// Takes what Pingora's loop would send: our session sends the body itself.
struct Discard;

#[async_trait]
impl BodyWrite for Discard {
    async fn write_all_buf(&mut self, data: &mut Bytes) -> Result<()> {
        data.clear();
        Ok(())
    }

    async fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    async fn cleanup(&mut self) -> Result<()> {
        Ok(())
    }

    fn upgrade_body_writer(&mut self) {}
}
