//! A long list, row by row, while the daemon is still writing it.
//!
//! Keeps a row and what came with that row, however long the list is. Knows nothing of what a row says.

use tokio::time::timeout;

use crate::ask::Ask;
use crate::connection::Reply;
use crate::problem::Problem;

/// Gives each line of the answer to `take`. The daemon may be silent between two pieces for as long as `ask` allows.
pub async fn each(
    ask: &Ask,
    mut reply: Reply,
    mut take: impl FnMut(&[u8]) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let mut pending: Vec<u8> = Vec::new();
    let cut_short = || Problem::unreachable("the list was cut short");
    while let Some(bytes) = timeout(ask.patience, reply.more()).await.map_err(|_| cut_short())? {
        pending.extend_from_slice(&bytes.map_err(|_| cut_short())?);
        let whole = pending.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        for line in pending[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            take(line)?;
        }
        pending.drain(..whole);
    }
    Ok(())
}
