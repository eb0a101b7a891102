//! What an errand runs: the command of a hook, a check, a tool or a checkout, and what it is told.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use outlast_engine::{Purpose, Run, State, Step};
use outlast_wire::shim::EnvVar;
use outlast_workflow::{CHECK_TIMEOUT_MS, HOOK_TIMEOUT_MS};

use crate::{snapshots, workspace};

/// A checkout may have to fetch a large tree from disk.
const CHECKOUT_TIMEOUT_MS: u64 = 600_000;

pub(super) struct Command {
    pub(super) argv: Vec<String>,
    pub(super) dir: PathBuf,
    pub(super) timeout_ms: u64,
    /// What it reads from its standard input.
    pub(super) input: Option<String>,
    pub(super) env: Vec<EnvVar>,
}

/// How long a step may take.
pub(super) fn timeout_ms(run: &Run, step: Step) -> Option<u64> {
    match (step, &run.errand) {
        (Step::Attempt { .. }, _) => run.spec.limits.turn_timeout_ms,
        (Step::Errand { .. }, Some(errand)) => {
            command(run, &errand.purpose).ok().map(|command| command.timeout_ms)
        }
        (Step::Errand { .. }, None) => None,
    }
}

/// The command of the run's current errand.
pub(super) fn command(run: &Run, purpose: &Purpose) -> io::Result<Command> {
    let spec = &run.spec;
    let missing = || {
        let message = format!("{} is not in the run's spec", purpose.label());
        io::Error::new(io::ErrorKind::InvalidData, message)
    };
    let dir = PathBuf::from(&spec.dir);
    let plain = |argv, timeout_ms| Command {
        argv,
        dir: dir.clone(),
        timeout_ms,
        input: None,
        env: told(run, purpose),
    };
    let check = |checks: &[String], at: u32| {
        let at = usize::try_from(at).map_err(io::Error::other)?;
        let text = checks.get(at).ok_or_else(missing)?;
        Ok(plain(shell(text), spec.checks.timeout_ms.unwrap_or(CHECK_TIMEOUT_MS)))
    };
    match purpose {
        Purpose::Checkout => {
            let argv = workspace::checkout(spec).ok_or_else(missing)?;
            let repository = spec.workspace.repository.as_ref().ok_or_else(missing)?;
            Ok(Command { dir: repository.into(), ..plain(argv, CHECKOUT_TIMEOUT_MS) })
        }
        Purpose::Hook { hook } => {
            let text = spec.hooks.command(*hook).ok_or_else(missing)?;
            Ok(plain(shell(text), spec.hooks.timeout_ms.unwrap_or(HOOK_TIMEOUT_MS)))
        }
        Purpose::Ready { check: at } => check(&spec.checks.before_run, *at),
        Purpose::Done { check: at } => check(&spec.checks.done, *at),
        // What is run is this program, which the launch knows.
        Purpose::Snapshot { .. } | Purpose::Restore { .. } => {
            Ok(plain(Vec::new(), snapshots::TIMEOUT_MS))
        }
        Purpose::Tool { call, name, .. } => {
            let tool = spec.tools.iter().find(|tool| tool.name == *name).ok_or_else(missing)?;
            let settling = run.settling.as_ref().ok_or_else(missing)?;
            let at = usize::try_from(*call).map_err(io::Error::other)?;
            let input = settling.calls.get(at).ok_or_else(missing)?.input.clone();
            Ok(Command { input: Some(input), ..plain(tool.command.clone(), tool.timeout_ms) })
        }
    }
}

pub(super) fn shell(text: &str) -> Vec<String> {
    ["sh", "-c", text].map(str::to_owned).to_vec()
}

/// What an errand is told on top of what every step is.
fn told(run: &Run, purpose: &Purpose) -> Vec<EnvVar> {
    let set = |name: &str, value: String| EnvVar {
        name: OsString::from(name).into(),
        value: OsString::from(value).into(),
    };
    let mut told = vec![set("OUTLAST_PURPOSE", purpose.label())];
    if let Some(name) = &run.spec.name {
        told.push(set("OUTLAST_RUN_NAME", name.clone()));
    }
    if let Purpose::Tool { name, key, .. } = purpose {
        told.push(set("OUTLAST_TOOL", name.clone()));
        told.push(set("OUTLAST_CALL_KEY", key.clone()));
    }
    // How the run is ending, for the hook that cleans up after it.
    if let State::Finishing { verdict, .. } | State::Ended { verdict } = run.state {
        told.push(set("OUTLAST_OUTCOME", verdict.name().word().to_owned()));
        told.push(set("OUTLAST_REASON_CODE", run.why.reason_code.to_string()));
    }
    told
}
