//! Making a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

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

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
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
