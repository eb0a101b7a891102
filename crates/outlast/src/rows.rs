//! A long list, row by row, while the daemon is still writing it.
//!
//! Holds a row and what came with it, however long the list is. Knows nothing of what a row says.

use http_body_util::BodyExt;
use hyper::Response;
use hyper::body::Incoming;
use tokio::time::timeout;

use crate::ask::Ask;
use crate::problem::Problem;

/// Has each line of the answer taken. The daemon may be silent between two pieces for as long as `ask` allows.
pub(crate) async fn each(
    ask: &Ask,
    response: Response<Incoming>,
    mut take: impl FnMut(&[u8]) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let mut body = response.into_body();
    let mut pending: Vec<u8> = Vec::new();
    let cut_short = || Problem::unreachable("the list was cut short");
    while let Some(frame) = timeout(ask.patience, body.frame()).await.map_err(|_| cut_short())? {
        let frame = frame.map_err(|_| cut_short())?;
        pending.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
        let whole = pending.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        for line in pending[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            take(line)?;
        }
        pending.drain(..whole);
    }
    Ok(())
}
