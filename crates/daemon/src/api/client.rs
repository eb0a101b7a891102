//! A client's connection: one that does not read is dropped.
//!
//! Whatever is being sent, a list, events, output or a terminal, a write that makes no progress for a while
//! fails, and everything that was kept for the client goes with it. A client that has nothing to read may stay.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Sleep;

/// How long a client may leave what was sent to it unread.
pub(super) const READS_WITHIN: Duration = Duration::from_secs(30);

pub(super) struct Client<S> {
    stream: S,
    reads_within: Duration,
    /// Set while the client does not take what it is sent.
    stuck: Option<Pin<Box<Sleep>>>,
    /// Its place among the connections that may be open at once.
    _place: OwnedSemaphorePermit,
}

impl<S> Client<S> {
    pub(super) fn new(stream: S, reads_within: Duration, place: OwnedSemaphorePermit) -> Self {
        Self { stream, reads_within, stuck: None, _place: place }
    }

    pub(super) fn stream(&self) -> &S {
        &self.stream
    }

    fn within<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stuck = None;
            return written;
        }
        let reads_within = self.reads_within;
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(tokio::time::sleep(reads_within)));
        ready!(stuck.as_mut().poll(context));
        tracing::info!("a client was dropped that does not read");
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Client<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Client<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.within(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.within(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.within(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(context);
        self.within(context, shut)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test]
    async fn a_client_that_reads_slowly_stays_and_one_that_does_not_read_is_dropped() {
        let room = Arc::new(Semaphore::new(1));
        let place = room.clone().acquire_owned().await.expect("there is room");
        let (ours, mut theirs) = tokio::io::duplex(16);
        let mut client = Client::new(ours, Duration::from_millis(50), place);
        let sending = async {
            client.write_all(&[1; 64]).await.expect("it reads, if slowly");
            client.write_all(&[2; 64]).await.expect_err("it does not read")
        };
        let reading = async {
            let mut taken = [0; 64];
            theirs.read_exact(&mut taken).await.expect("it is sent");
            std::future::pending::<()>().await;
        };
        let error = tokio::select! {
            error = sending => error,
            () = reading => unreachable!("it stays and does not read"),
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(room.available_permits(), 0);
        drop(client);
        assert_eq!(room.available_permits(), 1, "its place is free again");
    }
}
