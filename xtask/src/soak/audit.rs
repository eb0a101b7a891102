//! What must hold when the killing is over.

use std::collections::BTreeSet;

use anyhow::Result;
use serde_json::Value;

use super::Run;
use super::workload::{Executions, Workload};
use crate::private::Private;
use crate::{interrupt, process};

/// The journals of so many runs are printed with what is wrong with them.
const SHOWN: usize = 5;

pub(super) fn audit(
    outlast: &Private,
    workload: &Workload<'_>,
    runs: &[Run],
) -> Result<Vec<String>> {
    for run in runs {
        workload.await_end(&run.id)?;
    }
    let executions = workload.executions()?;
    let mut problems = existence(outlast, runs)?;
    problems.extend(repeated(&executions));
    let mut shown = 0;
    for run in runs {
        interrupt::check()?;
        let found = outcome(outlast, run, &executions)?;
        if !found.is_empty() && shown < SHOWN {
            shown += 1;
            println!(
                "soak: the journal of {}:\n{}",
                run.id,
                outlast.ask(&["events", &run.id, "--json"])?
            );
        }
        problems.extend(found);
    }
    problems.extend(doctor(outlast)?);
    Ok(problems)
}

/// Every run that was acknowledged is there, and no key made two.
fn existence(outlast: &Private, runs: &[Run]) -> Result<Vec<String>> {
    let listed = outlast.ask_json(&["ps", "-a", "--json"])?;
    let listed: BTreeSet<&str> =
        listed.as_array().into_iter().flatten().filter_map(|row| row["id"].as_str()).collect();
    let known: BTreeSet<&str> = runs.iter().map(|run| run.id.as_str()).collect();
    let missing =
        known.difference(&listed).map(|id| format!("run {id} was acknowledged and is gone"));
    let extra =
        listed.difference(&known).map(|id| format!("run {id} exists and no client was told of it"));
    Ok(missing.chain(extra).collect())
}

fn outcome(outlast: &Private, run: &Run, executions: &Executions) -> Result<Vec<String>> {
    let view = outlast.show(&run.id)?;
    let events = outlast.events(&run.id)?;
    let mut problems = journal(&run.id, &events);
    problems.extend(events.iter().filter_map(|event| untruth(&run.id, event, executions)));
    let state = view["state"].as_str().unwrap_or("unknown");
    match state {
        "completed" | "failed" | "stopped" | "exhausted" => {
            problems.extend(ending(run, state, &view));
        }
        _ if is_truly_live(&view) => {}
        _ => problems.push(format!("run {} is {state}, and no process of it is alive", run.id)),
    }
    Ok(problems)
}

/// A run whose shim we left alone ends as its command does.
fn ending(run: &Run, state: &str, view: &Value) -> Option<String> {
    let is_expected = state == run.kind.expected_state();
    let is_code_right =
        run.kind.expected_code().is_none_or(|code| view["exit"]["code"].as_u64() == Some(code));
    let is_right = is_expected && is_code_right;
    let (id, kind) = (&run.id, run.kind);
    let told = format!("run {id} ({kind:?}) is {state}, {} {}", view["reason_code"], view["exit"]);
    (!run.lost_shim && !is_right).then_some(told)
}

fn is_truly_live(view: &Value) -> bool {
    let pids =
        ["pid", "shim_pid"].into_iter().filter_map(|key| u32::try_from(view[key].as_u64()?).ok());
    pids.into_iter().any(process::is_alive)
}

/// Numbered without a gap, and ended once at most.
fn journal(id: &str, events: &[Value]) -> Vec<String> {
    let is_numbered = events.iter().zip(1..).all(|(event, seq)| event["seq"].as_u64() == Some(seq));
    let ends = events.iter().filter(|event| event["kind"] == "RunEnded").count();
    let gap = (!is_numbered).then(|| format!("the journal of {id} has a gap"));
    let twice = (ends > 1).then(|| format!("run {id} has ended {ends} times"));
    gap.into_iter().chain(twice).collect()
}

fn repeated(executions: &Executions) -> Vec<String> {
    let twice = executions.iter().filter(|(_, times)| **times > 1);
    twice.map(|(attempt, times)| format!("attempt {attempt} was executed {times} times")).collect()
}

/// An attempt that is said to have exited has been executed, and one that never started has not.
fn untruth(id: &str, event: &Value, executions: &Executions) -> Option<String> {
    let outcome = event["outcome"].as_str().filter(|_| event["kind"] == "AttemptEnded")?;
    let attempt = format!("{id}.{}.{}", event["turn"], event["attempt"]);
    let times = executions.get(&attempt).copied().unwrap_or(0);
    let is_true = match outcome {
        "exited" => times > 0,
        "never_started" => times == 0,
        _ => true,
    };
    (!is_true).then(|| {
        format!("attempt {attempt} is said to be {outcome} and was executed {times} times")
    })
}

fn doctor(outlast: &Private) -> Result<Vec<String>> {
    let output = outlast.output(&["doctor", "--json"])?;
    let report: Value = serde_json::from_slice(&output.stdout)?;
    let findings = report["findings"].as_array().cloned().unwrap_or_default();
    let problems = findings.into_iter().filter(|finding| finding["level"] == "problem");
    Ok(problems
        .map(|finding| format!("doctor: {}: {}", finding["subject"], finding["message"]))
        .collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::workload::Kind;
    use super::*;

    fn run(lost_shim: bool) -> Run {
        Run { id: "r".to_owned(), kind: Kind::Failing, lost_shim }
    }

    #[test]
    fn an_outcome_that_the_command_did_not_have_is_a_problem() {
        assert_eq!(ending(&run(false), "failed", &json!({ "exit": { "code": 3 } })), None);
        assert!(ending(&run(false), "failed", &json!({ "exit": { "code": 1 } })).is_some());
        assert!(ending(&run(false), "completed", &json!({ "exit": { "code": 3 } })).is_some());
        assert_eq!(ending(&run(true), "failed", &json!({ "exit": null })), None);
    }

    #[test]
    fn an_attempt_that_is_not_said_to_be_what_it_was_is_a_problem() {
        let executions = Executions::from([("r.1.1".to_owned(), 1)]);
        let event = |attempt: u32, outcome: &str| json!({ "kind": "AttemptEnded", "turn": 1, "attempt": attempt, "outcome": outcome });
        assert_eq!(untruth("r", &event(1, "exited"), &executions), None);
        assert_eq!(untruth("r", &event(2, "never_started"), &executions), None);
        assert!(untruth("r", &event(1, "never_started"), &executions).is_some());
        assert!(untruth("r", &event(2, "exited"), &executions).is_some());
    }

    #[test]
    fn a_gap_and_a_second_end_are_problems() {
        let event = |seq: u64, kind: &str| json!({ "seq": seq, "kind": kind });
        assert_eq!(
            journal("r", &[event(1, "RunCreated"), event(2, "RunEnded")]),
            Vec::<String>::new()
        );
        assert_eq!(journal("r", &[event(1, "RunCreated"), event(3, "RunEnded")]).len(), 1);
        assert_eq!(journal("r", &[event(1, "RunEnded"), event(2, "RunEnded")]).len(), 1);
    }
}
