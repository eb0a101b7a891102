//! Who gives an order, and whether it may.
//!
//! A person is a process of our user that belongs to no run. Whatever shows that a caller belongs to one is
//! enough: its token, the marks, session, scope and shim of it or of a process above it. Nor is a person a
//! command of a sink or a poll, or what such a command has left behind: a guard is above it. Looked at for orders
//! only, never to read or to start a run.

use std::sync::Arc;

use outlast_engine::{By, RunId};
use outlast_wire::codes::Code;
use outlast_workflow::Approvals;

use crate::children;
use crate::lanes::blocking;
use crate::refusal::{Answer, Refusal};
use crate::supervisor::Supervisor;
use crate::world::peers::{self, Kin, Peer};

/// A request's sender, before it was looked at.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) peer: Option<Peer>,
    pub(crate) token: Option<String>,
    /// By which way a person came, as the process says that asks for them.
    pub(crate) via: Option<String>,
}

/// What an order takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Right {
    /// To say yes or no, or to let a blocked run go on: a person's.
    Answer,
    /// To stop, pause, resume or remove: a person's, and a run's over itself and those below it.
    Steer,
    /// To give a run more room: a person's, whatever the config lets others do.
    Raise,
}

/// Where a caller stands.
#[derive(Debug, Clone, PartialEq, Eq)]
enum CallerKind {
    Person {
        uid: u32,
        via: Option<String>,
    },
    /// In each of these runs: those that were found first, then those that the caller names itself; the nearest first.
    Inside(Vec<RunId>),
    /// Run by the daemon, for a sink or a poll.
    Command,
    Unknown {
        why: String,
    },
}

impl Caller {
    /// Who gives the order, if it may.
    pub(crate) async fn may(
        self,
        supervisor: &Arc<Supervisor>,
        right: Right,
        target: &RunId,
    ) -> Answer<Option<By>> {
        let (supervisor, target) = (supervisor.clone(), target.clone());
        blocking(move || {
            let kind = self.kind(&supervisor);
            if let CallerKind::Inside(runs) = &kind {
                let above = children::above(&*supervisor.ground.store, &target)?;
                refuse_inside(&supervisor, runs, right, &target, &above)?;
            }
            if let (CallerKind::Command, Right::Answer) = (&kind, right)
                && !approvals(&supervisor).commands_may_answer
            {
                let message = format!("a command of the daemon may not answer run {target}");
                let hint = "approvals.commands_may_answer in config.toml allows it";
                return Err(Refusal::new(Code::NotAPerson, message).hint(hint));
            }
            if let (CallerKind::Command, Right::Raise) = (&kind, right) {
                let message =
                    format!("a command of the daemon may not raise the limits of {target}");
                let hint = "raise them from a terminal that belongs to no run";
                return Err(Refusal::new(Code::NotAPerson, message).hint(hint));
            }
            if let (CallerKind::Unknown { why }, Right::Answer | Right::Raise) = (&kind, right) {
                let what = if right == Right::Raise { "raise the limits of" } else { "answer" };
                let message = format!("only a person may {what} run {target}, and {why}");
                let hint = "do it from a terminal that belongs to no run";
                return Err(Refusal::new(Code::CallerUnknown, message).hint(hint));
            }
            Ok(kind.by())
        })
        .await
    }

    /// Who it is, for what every caller may do.
    pub(crate) async fn who(self, supervisor: &Arc<Supervisor>) -> Answer<Option<By>> {
        let supervisor = supervisor.clone();
        blocking(move || Ok(self.kind(&supervisor).by())).await
    }

    /// Who gives an order to every run, which no caller inside one may. `what` completes the refusal: `may not …`.
    pub(crate) async fn may_steer_all(
        self,
        supervisor: &Arc<Supervisor>,
        what: &'static str,
    ) -> Answer<Option<By>> {
        let supervisor = supervisor.clone();
        blocking(move || match self.kind(&supervisor) {
            CallerKind::Inside(runs) => {
                let from = names(&runs);
                let message = format!("a call from inside {from} may not {what}");
                let hint = "a run may steer itself and the runs below it";
                Err(Refusal::new(Code::InsideARun, message).hint(hint))
            }
            kind @ (CallerKind::Person { .. }
            | CallerKind::Command
            | CallerKind::Unknown { .. }) => Ok(kind.by()),
        })
        .await
    }

    fn kind(&self, supervisor: &Supervisor) -> CallerKind {
        let line = match &self.peer {
            Some(peer) if cfg!(target_os = "linux") => {
                peers::line_of(peer, std::process::id()).map_err(|why| why.to_string())
            }
            Some(_) => Ok(Vec::new()),
            None => Err("the kernel does not say who asks".to_owned()),
        };
        let kin = line.as_deref().unwrap_or_default();
        let mut runs: Vec<RunId> = Vec::new();
        let mut add = |run: RunId| {
            if !runs.contains(&run) {
                runs.push(run);
            }
        };
        kin.iter().flat_map(|kin| found_in(supervisor, kin)).for_each(&mut add);
        // A process chooses its own environment, so what that says does not come before what was found.
        kin.iter().filter_map(|kin| marked_as(supervisor, kin)).for_each(&mut add);
        let token = self.token.as_deref().map(|token| supervisor.ground.tokens.run_of(token));
        let is_wrong = match token {
            None => false,
            Some(Ok(Some(run))) => {
                add(run);
                false
            }
            Some(Ok(None)) => true,
            Some(Err(error)) => {
                tracing::error!(%error, "a token cannot be verified");
                true
            }
        };
        let is_ours = |kin: &Kin| kin.pid == std::process::id();
        match (line, self.peer) {
            _ if !runs.is_empty() => CallerKind::Inside(runs),
            _ if is_wrong => CallerKind::Unknown { why: "its token is not one of ours".to_owned() },
            (Err(why), _) => CallerKind::Unknown { why },
            // Below the daemon that runs it, or below its guard, which outlives that daemon.
            (Ok(line), _) if line.iter().any(|kin| is_ours(kin) || kin.is_commands) => {
                CallerKind::Command
            }
            (Ok(_), Some(Peer { uid, .. })) => CallerKind::Person { uid, via: self.via.clone() },
            (Ok(_), None) => {
                CallerKind::Unknown { why: "the kernel does not say who asks".to_owned() }
            }
        }
    }
}

impl CallerKind {
    fn by(self) -> Option<By> {
        match self {
            Self::Person { uid, via } => Some(By::User { uid, via }),
            Self::Inside(runs) => runs.into_iter().next().map(|run| By::Run { run }),
            Self::Command => Some(By::Daemon),
            Self::Unknown { .. } => None,
        }
    }
}

/// The runs that a process is found in: by its shim, its scope and its session.
fn found_in(supervisor: &Supervisor, kin: &Kin) -> Vec<RunId> {
    let named = [&kin.shim, &kin.scope].into_iter().flatten();
    let named = named.filter(|run| is_known(supervisor, run)).cloned();
    let in_session = supervisor.sessions.runs_of(kin.session, kin.start);
    named.chain(in_session).collect()
}

/// The run that a process says it belongs to, by its environment.
fn marked_as(supervisor: &Supervisor, kin: &Kin) -> Option<RunId> {
    kin.marked.clone().filter(|run| is_known(supervisor, run))
}

/// A name that this journal does not know is that of another Outlast's run, inside which a person may use this one.
fn is_known(supervisor: &Supervisor, run: &RunId) -> bool {
    // What cannot be read may be there, and what the journal has forgotten may run.
    supervisor.handle(run).is_some()
        || supervisor.strays.get(run).is_some()
        || !matches!(supervisor.ground.store.row(run), Ok(None))
}

fn refuse_inside(
    supervisor: &Supervisor,
    runs: &[RunId],
    right: Right,
    target: &RunId,
    above: &[RunId],
) -> Result<(), Refusal> {
    let is_below = runs.iter().all(|run| above.contains(run));
    let is_in_reach = runs.iter().all(|run| run == target || above.contains(run));
    let from = names(runs);
    match right {
        Right::Steer if is_in_reach => Ok(()),
        Right::Steer => {
            let message = format!("run {target} is not below {from}, where this call comes from");
            Err(Refusal::new(Code::NotBelow, message)
                .hint("a call from inside a run may steer that run and those below it"))
        }
        Right::Raise => {
            let message = format!(
                "only a person may raise the limits of run {target}, and this call comes from inside {from}"
            );
            Err(Refusal::new(Code::InsideARun, message)
                .hint("raise them from a terminal that belongs to no run"))
        }
        Right::Answer if is_below && approvals(supervisor).parents_may_answer => Ok(()),
        Right::Answer => {
            let message = format!(
                "only a person may answer run {target}, and this call comes from inside {from}"
            );
            Err(Refusal::new(Code::InsideARun, message).hint(
                "answer from a terminal that belongs to no run; approvals.parents_may_answer in config.toml lets a run answer those below it",
            ))
        }
    }
}

/// A config that is wrong allows nothing.
fn approvals(supervisor: &Supervisor) -> Approvals {
    supervisor.ground.settings.current().map(|config| config.approvals).unwrap_or_default()
}

fn names(runs: &[RunId]) -> String {
    let names: Vec<&str> = runs.iter().map(RunId::as_str).collect();
    format!("run {}", names.join(", run "))
}
