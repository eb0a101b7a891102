//! What the records of a shim mean to the engine.

use outlast_engine::{Custody, End, EndCause, Report, Started, Step, Time, TreeNews};
use outlast_wire::shim::{self, Record};

/// True if a shim was told to start this step.
pub fn is_begun(records: &[Record]) -> bool {
    !records.is_empty()
}

/// True if no process of this attempt can be left.
pub fn is_over(records: &[Record]) -> bool {
    records
        .iter()
        .any(|record| matches!(record, Record::TreeEmpty { .. } | Record::NeverStarted { .. }))
}

/// True if the main process is known to be gone, or never to have run.
pub fn has_ended(records: &[Record]) -> bool {
    end(records).is_some()
}

pub fn identity(records: &[Record]) -> Option<&shim::Identity> {
    records.iter().find_map(|record| match record {
        Record::Started { identity, .. } => Some(identity),
        _ => None,
    })
}

/// Why the shim was ending the tree, if it was.
pub fn ending(records: &[Record]) -> Option<EndCause> {
    records.iter().find_map(|record| match record {
        Record::Ending { cause, .. } => Some(*cause),
        _ => None,
    })
}

/// How often a stop is known to have failed.
pub fn failed_stops(records: &[Record]) -> usize {
    records.iter().filter(|record| matches!(record, Record::StopIncomplete { .. })).count()
}

/// The records as a report. `stops_before` is how many failed stops were there before the latest was asked for.
pub fn report(step: Step, custody: Custody, records: &[Record], stops_before: usize) -> Report {
    let output_bytes = records.iter().find_map(|record| match record {
        Record::Exited { output_bytes, .. } => Some(*output_bytes),
        _ => None,
    });
    Report {
        started: records.iter().find_map(started),
        end: end(records),
        tree: tree(records, stops_before),
        output_bytes: output_bytes.unwrap_or(0),
        ..Report::of(step, custody)
    }
}

/// On which line of time these are, if the shim knew.
pub fn line(records: &[Record]) -> Option<i64> {
    records.iter().find_map(|record| match record {
        Record::Starting { booted_at_ms, .. } => *booted_at_ms,
        _ => None,
    })
}

fn started(record: &Record) -> Option<Started> {
    match record {
        Record::Started { at_ms, identity } => {
            Some(Started { at: Time(*at_ms), pid: identity.pid, start: identity.start })
        }
        _ => None,
    }
}

fn end(records: &[Record]) -> Option<End> {
    let never = records.iter().find_map(|record| match record {
        Record::NeverStarted { at_ms, code, why } => {
            Some(End::NeverStarted { at: Time(*at_ms), code: *code, why: why.clone() })
        }
        _ => None,
    });
    let cause = ending(records);
    // Ended after the main process was gone by itself is not how the attempt ended.
    let asked = records.iter().position(|record| matches!(record, Record::Ending { .. }));
    let exited = records.iter().enumerate().find_map(|(index, record)| match record {
        Record::Exited { at_ms, exit, .. } => {
            let cause = cause.filter(|_| asked.is_some_and(|asked| asked < index));
            Some(End::Exited { at: Time(*at_ms), exit: *exit, cause })
        }
        _ => None,
    });
    never.or(exited)
}

fn tree(records: &[Record], stops_before: usize) -> TreeNews {
    let last = records.iter().rev().find_map(|record| match record {
        Record::TreeEmpty { .. } | Record::NeverStarted { .. } => Some(TreeNews::Empty),
        Record::StopIncomplete { survivors, .. } => Some(TreeNews::Left {
            survivors: survivors.clone(),
            stop_failed: failed_stops(records) > stops_before,
        }),
        Record::Exited { survivors, .. } if !survivors.is_empty() => {
            Some(TreeNews::Left { survivors: survivors.clone(), stop_failed: false })
        }
        Record::Exited { .. }
        | Record::Starting { .. }
        | Record::Started { .. }
        | Record::Ending { .. } => None,
    });
    last.unwrap_or(TreeNews::Unknown)
}
