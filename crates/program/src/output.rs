//! One output of a program, read up to a bound.

use futures_util::FutureExt;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::Printed;

/// What a pipe can hold at most, unless its owner is privileged.
const PIPE_MAX: usize = 1 << 20;

pub(crate) struct Heard<R> {
    /// `None` once the output has ended.
    pipe: Option<R>,
    most: usize,
    pub(crate) printed: Printed,
    /// Bytes, with those that were dropped.
    read: usize,
}

impl<R: AsyncRead + Unpin> Heard<R> {
    pub(crate) fn new(pipe: Option<R>, most: usize) -> Self {
        Self { pipe, most, printed: Printed::default(), read: 0 }
    }

    /// Reads the next piece; waits for ever if there is no more.
    pub(crate) async fn hear(&mut self) {
        let Some(pipe) = &mut self.pipe else { return std::future::pending().await };
        let mut piece = [0; 16 * 1024];
        match pipe.read(&mut piece).await {
            Ok(0) | Err(_) => self.pipe = None,
            Ok(read) => {
                let room = self.most - self.printed.bytes.len();
                self.printed.is_cut |= read > room;
                self.printed.bytes.extend_from_slice(&piece[..read.min(room)]);
                self.read += read;
            }
        }
    }

    /// Reads what is in the pipe already, and not what another process goes on to write.
    pub(crate) fn drain(&mut self) {
        let most = self.read + PIPE_MAX;
        let is_open = |heard: &Self| heard.pipe.is_some() && heard.read < most;
        // The runtime would have us yield in the middle of it.
        while is_open(self) && tokio::task::unconstrained(self.hear()).now_or_never().is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn a_pipe_is_read_up_to_a_bound_and_its_writer_is_not_held_up() {
        let (mut ours, theirs) = tokio::io::duplex(100);
        let mut heard = Heard::new(Some(theirs), 150);
        let write = async move { ours.write_all(&[b'x'; 1000]).await };
        let hear = async {
            while heard.pipe.is_some() {
                heard.hear().await;
            }
        };
        let (written, ()) = tokio::join!(write, hear);
        written.expect("all of it is taken");
        assert_eq!((heard.printed.bytes.len(), heard.printed.is_cut), (150, true));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn what_is_left_in_a_pipe_is_read_whole_however_much_was_read_before() {
        let (mut ours, theirs) = tokio::io::duplex(PIPE_MAX);
        ours.write_all(&vec![b'x'; PIPE_MAX]).await.expect("it has room");
        let mut heard = Heard::new(Some(theirs), PIPE_MAX);
        heard.drain();
        assert_eq!((heard.printed.bytes.len(), heard.printed.is_cut), (PIPE_MAX, false));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_process_that_goes_on_writing_is_not_read_for_ever() {
        let mut heard = Heard::new(Some(tokio::io::repeat(b'y')), 10);
        heard.drain();
        assert_eq!((heard.printed.bytes.len(), heard.printed.is_cut), (10, true));
    }
}
