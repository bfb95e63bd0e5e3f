//! A socket that is read slowly.
//!
//! The one hard idea: bytes that are not read stay in the kernel, whose buffer is kept small, so that the other side
//! feels a slow reader, not one that buffers. What one read takes is a small part of a second's worth, and the next
//! one waits until that time has passed.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// Reads of a second, where the rate allows for as many.
const READS_PER_SECOND: u32 = 10;
/// Most that one read takes.
const READ_MAX: usize = 4 << 10;

/// What is seen only when it is whole: a record of TLS, a frame of HTTP/2, most heads.
const WHOLE_MAX: usize = 16 << 10;

/// How much longer than others a reader of this rate has to wait for anything at all.
pub(super) fn delay(rate: u32) -> Duration {
    worth(WHOLE_MAX, rate.max(1))
}

/// A stream whose reader takes its time. Writes go through.
#[derive(Debug)]
pub(super) struct Paced<S> {
    stream: S,
    /// Bytes a second, at least 1.
    rate: u32,
    rest: Pin<Box<Sleep>>,
}

impl<S> Paced<S> {
    /// Reads from `stream` so many bytes a second.
    pub(super) fn new(stream: S, rate: u32) -> Self {
        Self { stream, rate: rate.max(1), rest: Box::pin(sleep_until(Instant::now())) }
    }
}

/// What one read may take.
fn portion(rate: u32) -> usize {
    usize::try_from(rate / READS_PER_SECOND).unwrap_or(READ_MAX).clamp(1, READ_MAX)
}

/// How long so many bytes take.
fn worth(bytes: usize, rate: u32) -> Duration {
    Duration::from_secs_f64(bytes as f64 / f64::from(rate))
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.rest.as_mut().poll(cx));
        let mut space = [0; READ_MAX];
        let mut part = ReadBuf::new(&mut space[..portion(self.rate).min(into.remaining())]);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut part))?;
        into.put_slice(part.filled());
        let next = Instant::now() + worth(part.filled().len(), self.rate);
        self.rest.as_mut().reset(next);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_takes_a_part_of_a_second() {
        assert_eq!([1, 9, 10, 2_000, 1_000_000].map(portion), [1, 1, 1, 200, READ_MAX]);
        assert_eq!(worth(200, 2_000), Duration::from_millis(100));
        assert_eq!(worth(1, 1), Duration::from_secs(1));
        assert_eq!(delay(1 << 10), Duration::from_secs(16));
    }
}
