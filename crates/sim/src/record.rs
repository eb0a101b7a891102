//! Records of shims, as production writes them, and how this world's shims make them.

use outlast_wire::shim::Identity;
pub(crate) use outlast_wire::shim::{EndCause, NeverStarted, Record};

use crate::tree::Who;

pub(crate) fn starting(at_ms: u64, epoch: u64) -> Record {
    Record::Starting { at_ms, epoch, booted_at_ms: None }
}

pub(crate) fn started(at_ms: u64, boot: &str, who: Who) -> Record {
    let identity = Identity { boot: boot.to_owned(), pid: who.pid, start: who.start };
    Record::Started { at_ms, identity }
}

/// True if whether this attempt starts is decided.
pub(crate) fn is_settled(records: &[Record]) -> bool {
    let settles =
        |record: &Record| matches!(record, Record::Starting { .. } | Record::NeverStarted { .. });
    records.iter().any(settles)
}

pub(crate) fn has_exited(records: &[Record]) -> bool {
    records.iter().any(|record| matches!(record, Record::Exited { .. }))
}
