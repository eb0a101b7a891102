//! What a shim leaves on disk, and what it means to the engine: the twin of the daemon's `records`.

use outlast_engine::{
    Custody, End, EndCause, Exit, NeverStarted, Report, Started, Step, Survivor, Time, TreeNews,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Record {
    Starting,
    Started { at: Time, pid: u32, start: u64 },
    NeverStarted { at: Time, code: NeverStarted },
    Ending { cause: EndCause },
    Exited { at: Time, exit: Exit, survivors: Vec<Survivor> },
    StopIncomplete { survivors: Vec<Survivor> },
    TreeEmpty,
}

pub(crate) fn is_begun(records: &[Record]) -> bool {
    !records.is_empty()
}

/// True if no process of this attempt can be left.
pub(crate) fn is_over(records: &[Record]) -> bool {
    records.iter().any(|record| matches!(record, Record::TreeEmpty | Record::NeverStarted { .. }))
}

/// True if whether this attempt starts is decided.
pub(crate) fn is_settled(records: &[Record]) -> bool {
    records.iter().any(|record| matches!(record, Record::Starting | Record::NeverStarted { .. }))
}

pub(crate) fn has_exited(records: &[Record]) -> bool {
    records.iter().any(|record| matches!(record, Record::Exited { .. }))
}

pub(crate) fn started(records: &[Record]) -> Option<Started> {
    records.iter().find_map(|record| match record {
        Record::Started { at, pid, start } => Some(Started { at: *at, pid: *pid, start: *start }),
        _ => None,
    })
}

/// Why the shim was ending the tree, if it was.
pub(crate) fn ending(records: &[Record]) -> Option<EndCause> {
    records.iter().find_map(|record| match record {
        Record::Ending { cause } => Some(*cause),
        _ => None,
    })
}

pub(crate) fn failed_stops(records: &[Record]) -> usize {
    records.iter().filter(|record| matches!(record, Record::StopIncomplete { .. })).count()
}

pub(crate) fn report(
    step: Step,
    custody: Custody,
    records: &[Record],
    stops_before: usize,
) -> Report {
    Report {
        started: started(records),
        end: end(records),
        tree: tree(records, stops_before),
        ..Report::of(step, custody)
    }
}

fn end(records: &[Record]) -> Option<End> {
    let never = records.iter().find_map(|record| match record {
        Record::NeverStarted { at, code } => {
            Some(End::NeverStarted { at: *at, code: *code, why: "simulated".to_owned() })
        }
        _ => None,
    });
    let ending = records.iter().enumerate().find_map(|(index, record)| match record {
        Record::Ending { cause } => Some((index, *cause)),
        _ => None,
    });
    let exited = records.iter().enumerate().find_map(|(index, record)| match record {
        Record::Exited { at, exit, .. } => {
            // Ended after the main process was gone by itself is not how the attempt ended.
            let cause = ending.filter(|(ending, _)| *ending < index).map(|(_, cause)| cause);
            Some(End::Exited { at: *at, exit: *exit, cause })
        }
        _ => None,
    });
    never.or(exited)
}

fn tree(records: &[Record], stops_before: usize) -> TreeNews {
    let last = records.iter().rev().find_map(|record| match record {
        Record::TreeEmpty | Record::NeverStarted { .. } => Some(TreeNews::Empty),
        Record::StopIncomplete { survivors } => Some(TreeNews::Left {
            survivors: survivors.clone(),
            stop_failed: failed_stops(records) > stops_before,
        }),
        Record::Exited { survivors, .. } if !survivors.is_empty() => {
            Some(TreeNews::Left { survivors: survivors.clone(), stop_failed: false })
        }
        Record::Exited { .. }
        | Record::Starting
        | Record::Started { .. }
        | Record::Ending { .. } => None,
    });
    last.unwrap_or(TreeNews::Unknown)
}
