//! Making a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::OsText;
use crate::shim::{EnvVar, Window};

/// `POST /v1/runs`
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreateRun {
    /// Chosen by the client, so that asking again after a lost answer makes no second run.
    /// 12 characters of `0-9a-z` without `i l o u`; made by the daemon when absent.
    #[serde(default)]
    pub id: Option<String>,
    #[serde(default)]
    pub name: Option<String>,
    /// One run exists per key, however often it is asked for.
    #[serde(default)]
    pub key: Option<String>,
    #[serde(default)]
    pub task: Option<String>,
    /// The loop file that says what the run is.
    #[serde(default)]
    pub workflow: Option<WorkflowFile>,
    /// The kind of agent; the file's, or `exec`, when absent.
    #[serde(default)]
    pub agent: Option<String>,
    /// `inplace`, `dir` or `worktree`; the file's, or `inplace`, when absent.
    #[serde(default)]
    pub workspace: Option<String>,
    /// Higher goes first among runs that wait for a slot; the file's, or 0, when absent.
    #[serde(default)]
    pub priority: Option<i32>,
    /// May be empty when there is a loop file.
    #[serde(default)]
    pub command: Vec<String>,
    /// The client's directory, or the one it named: an absolute path.
    pub dir: String,
    /// The environment of the command, whole.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Object>))]
    pub env: Vec<EnvVar>,
    /// What of it was set with `--env`. A loop file's agent gets all of this, and of the rest only what is
    /// allowed.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Object>))]
    pub env_set: Vec<EnvVar>,
    #[serde(default)]
    pub umask: Option<u32>,
    /// Present for a terminal run: its first window.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<super::schemas::Window>))]
    pub tty: Option<Window>,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    pub parent: Option<String>,
    #[serde(default)]
    pub limits: AskedLimits,
    /// How many times a failed attempt is tried again; the file's, or 0, when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<u32>,
    /// The first delay between attempts; it doubles up to five minutes.
    #[serde(default)]
    pub backoff_ms: Option<u64>,
    /// Where notices go: names of sinks in the config, or `cmd:COMMAND`, `webhook:URL`, `run:RUN`, ….
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notify: Vec<String>,
    /// Patterns; a line of output that one of them matches is told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watch: Vec<String>,
    /// How often new output is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_ms: Option<u64>,
    /// For an agent that is driven, in place of what the file says.
    #[serde(default, skip_serializing_if = "AskedDriving::is_nothing")]
    pub driving: AskedDriving,
    /// When it may start; at once when absent.
    #[serde(default, skip_serializing_if = "AskedStart::is_nothing")]
    pub start: AskedStart,
    /// The queue that it waits in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<AskedQueue>,
    /// What the command reads from its standard input, up to 16 MiB: a text, or `{"hex": "…"}` for bytes that are not
    /// UTF-8. Each attempt reads it from the first byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub stdin: Option<OsText>,
    /// What holds for the run and those below it, and what its key stands for below its parent.
    #[serde(default, skip_serializing_if = "AskedTree::is_nothing")]
    pub tree: AskedTree,
}

/// What a run and those below it may have together; its tokens and its money are those of `limits`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AskedTree {
    /// Turns of all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u64>,
    /// Runs below it, however deep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_runs: Option<u64>,
    /// Levels of runs below it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_depth: Option<u64>,
    /// Children of one run that go on at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_width: Option<u64>,
    /// What becomes of its children when it ends: `leave`, `stop` or `wait`; the file's, or `leave`, when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub children: Option<String>,
    /// How many runs are made under its key if they fail; 3 when absent. Only of a child with a key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tries: Option<u32>,
    /// What is done if the end of the run under its key was not observed: `doubt` refuses with `in_doubt`, `again` makes
    /// another, `keep` takes that end as the result. Only of a child with a key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
}

impl AskedTree {
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// The most that a run is given as its standard input, in bytes.
pub const LARGEST_STDIN: usize = 16 << 20;

/// What a run waits for before its first step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AskedStart {
    /// So long after it was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// At this time: RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Until this run has completed: its id, the start of it, or its name. If it ends otherwise, the new run fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// However the run of `after` ends.
    #[serde(skip_serializing_if = "is_false")]
    pub after_any: bool,
}

impl AskedStart {
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

fn is_false(value: &bool) -> bool {
    !*value
}

/// A queue, by its name: of its runs, so many work at once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AskedQueue {
    pub name: String,
    /// As many as a run of the queue has last asked for when absent, or 1, or what `concurrency.per_label` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
}

/// `POST /v1/runs/{run}/rerun`: the same again, as another run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RerunRun {
    /// Of the new run, chosen by the client, so that asking again after a lost answer makes no second run.
    #[serde(default)]
    pub id: Option<String>,
    /// The environment of the command, whole: that of the first run is gone with its end.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Object>))]
    pub env: Vec<EnvVar>,
    /// What of it was set with `--env`.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Object>))]
    pub env_set: Vec<EnvVar>,
    /// Instead of the first run's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// Instead of the first run's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The loop file as it is now, instead of the text that the first run was made of. Its limits hold, and not those
    /// of the first run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowFile>,
}

/// What a loop file says of an agent that is driven, as the command line has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AskedDriving {
    /// `park`, `deny` or `allow`: what becomes of a question whether a tool may be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approvals: Option<String>,
    /// Tools that may be used without a question. A name may end in `*`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
}

impl AskedDriving {
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// A loop file as its client found it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkflowFile {
    /// Where it was read: an absolute path.
    pub path: String,
    pub text: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AskedLimits {
    #[serde(default)]
    pub turn_timeout_ms: Option<u64>,
    #[serde(default)]
    pub stall_window_ms: Option<u64>,
    #[serde(default)]
    pub run_timeout_ms: Option<u64>,
    #[serde(default)]
    pub max_turns: Option<u32>,
    #[serde(default)]
    pub max_tokens: Option<u64>,
    #[serde(default)]
    pub max_cost_usd_micros: Option<u64>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Created {
    pub id: String,
    /// True if a run with this id or key was there already.
    pub existed: bool,
    /// What is odd about the request and does not keep the run from being made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Why it does not start at once, if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<super::WaitingView>,
    /// What ends the run and its turns, on one line; only of a loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub envelope: Option<String>,
    /// Of a child: what its parent knows of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<super::ChildView>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_knows_nothing_of_loops_is_understood() {
        let asked = r#"{"command":["true"],"dir":"/","retry":2,"limits":{"run_timeout_ms":5}}"#;
        let asked: CreateRun = serde_json::from_str(asked).expect("an older client's words");
        assert_eq!((asked.retry, asked.limits.run_timeout_ms), (Some(2), Some(5)));
        assert!(asked.workflow.is_none() && asked.limits.max_turns.is_none());
        let created: Created = serde_json::from_str(r#"{"id":"k3m","existed":false}"#)
            .expect("an older daemon's words");
        assert!(created.warnings.is_empty());
    }

    #[test]
    fn a_daemon_that_knows_nothing_of_loops_is_not_sent_what_it_would_refuse() {
        let asked = CreateRun { command: vec!["true".to_owned()], ..CreateRun::default() };
        let asked = serde_json::to_value(&asked).expect("plain data");
        // It wants a number there.
        assert!(asked.get("retry").is_none());
    }
}
