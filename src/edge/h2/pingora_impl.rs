//! The face that Pingora's proxy loop sees of a stream's [`Session`].
//!
//! Custom messages do not exist here, so their reader is empty and their writer does nothing; timeouts are
//! the session's own, and the request body is kept by the exchange.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::HeaderMap;
use pingora::Result;
use pingora::protocols::Digest;
use pingora::protocols::http::HttpTask;
use pingora::protocols::http::custom::{CustomMessageWrite, server};
use pingora::protocols::l4::socket::SocketAddr;
use pingora_http::{RequestHeader, ResponseHeader};

use super::stream::Session;

type Messages = Box<dyn futures::Stream<Item = Result<Bytes>> + Unpin + Send + Sync + 'static>;

#[async_trait]
impl server::Session for Session {
    fn req_header(&self) -> &RequestHeader {
        &self.request
    }

    fn req_header_mut(&mut self) -> &mut RequestHeader {
        &mut self.request
    }

    async fn read_body_bytes(&mut self) -> Result<Option<Bytes>> {
        self.read_body().await
    }

    async fn drain_request_body(&mut self) -> Result<()> {
        while self.read_body().await?.is_some() {}
        Ok(())
    }

    async fn write_response_header(&mut self, head: Box<ResponseHeader>, _end: bool) -> Result<()> {
        self.write_head(head)
    }

    async fn write_response_header_ref(&mut self, head: &ResponseHeader, _end: bool) -> Result<()> {
        self.write_head(Box::new(head.clone()))
    }

    async fn write_body(&mut self, data: Bytes, end: bool) -> Result<()> {
        self.write(data).await?;
        if end { self.end().await } else { Ok(()) }
    }

    async fn write_trailers(&mut self, _trailers: HeaderMap) -> Result<()> {
        self.end().await
    }

    async fn response_duplex_vec(&mut self, tasks: Vec<HttpTask>) -> Result<bool> {
        let mut is_over = false;
        for task in tasks {
            is_over |= match task {
                HttpTask::Header(head, end) => {
                    self.write_head(head)?;
                    end
                }
                HttpTask::Body(data, end) | HttpTask::UpgradedBody(data, end) => {
                    self.write(data.unwrap_or_default()).await?;
                    end
                }
                HttpTask::Trailer(_) | HttpTask::Done => true,
                HttpTask::Failed(error) => return Err(error),
            };
        }
        if is_over {
            self.end().await?;
        }
        Ok(is_over)
    }

    fn set_read_timeout(&mut self, _timeout: Option<Duration>) {}

    fn get_read_timeout(&self) -> Option<Duration> {
        None
    }

    fn set_write_timeout(&mut self, _timeout: Option<Duration>) {}

    fn get_write_timeout(&self) -> Option<Duration> {
        None
    }

    fn set_total_drain_timeout(&mut self, _timeout: Option<Duration>) {}

    fn get_total_drain_timeout(&self) -> Option<Duration> {
        None
    }

    fn request_summary(&self) -> String {
        format!("{} {}", self.request.method, self.request.uri.path())
    }

    fn response_written(&self) -> Option<&ResponseHeader> {
        self.written.as_deref()
    }

    async fn shutdown(&mut self, _code: u32, _ctx: &str) {
        self.break_off().await;
    }

    fn is_body_done(&mut self) -> bool {
        self.is_body_over()
    }

    async fn finish(&mut self) -> Result<()> {
        self.end().await
    }

    fn is_body_empty(&mut self) -> bool {
        self.read == 0 && self.is_body_over()
    }

    async fn read_body_or_idle(&mut self, no_body_expected: bool) -> Result<Option<Bytes>> {
        if no_body_expected || self.is_body_over() { Err(self.left().await) } else { self.read_body().await }
    }

    fn body_bytes_sent(&self) -> usize {
        self.sent
    }

    fn body_bytes_read(&self) -> usize {
        self.read
    }

    fn digest(&self) -> Option<&Digest> {
        Some(&self.digest)
    }

    fn digest_mut(&mut self) -> Option<&mut Digest> {
        Some(&mut self.digest)
    }

    fn client_addr(&self) -> Option<&SocketAddr> {
        self.digest.socket_digest.as_ref()?.peer_addr()
    }

    fn server_addr(&self) -> Option<&SocketAddr> {
        self.digest.socket_digest.as_ref()?.local_addr()
    }

    fn pseudo_raw_h1_request_header(&self) -> Bytes {
        Bytes::new()
    }

    fn enable_retry_buffering(&mut self) {}

    fn retry_buffer_truncated(&self) -> bool {
        false
    }

    fn get_retry_buffer(&self) -> Option<Bytes> {
        None
    }

    async fn finish_custom(&mut self) -> Result<()> {
        Ok(())
    }

    fn take_custom_message_reader(&mut self) -> Option<Messages> {
        Some(Box::new(futures::stream::empty()))
    }

    fn restore_custom_message_reader(&mut self, _reader: Messages) -> Result<()> {
        Ok(())
    }

    fn take_custom_message_writer(&mut self) -> Option<Box<dyn CustomMessageWrite>> {
        Some(Box::new(()))
    }

    fn restore_custom_message_writer(&mut self, _writer: Box<dyn CustomMessageWrite>) -> Result<()> {
        Ok(())
    }
}
