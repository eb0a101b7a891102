//! `fork`: another run, with the journal of this one up to the end of a turn and with the files of that turn.
//!
//! The parent is only read: its journal, its directory and its workspace stay byte for byte as they are.

use std::sync::Arc;

use outlast_engine::{
    CannotFork, Event, Fork, Run, RunId, SessionMark, Snapshot, Strategy, prefix, refuse_fork,
};
use outlast_snapshot::place_of;
use outlast_wire::api::{AskedDriving, AskedLimits, CreateRun, Created, ForkRun};
use outlast_wire::codes::Code;

use super::again;
use super::create::{self, Grown};
use super::diff::Known;
use super::find::snapshot_of;
use crate::conversation::mark_at;
use crate::lanes::blocking;
use crate::refusal::{Answer, Refusal};
use crate::supervisor::Supervisor;

const PAGE: usize = 1000;

pub(crate) async fn fork(
    supervisor: Arc<Supervisor>,
    id: &RunId,
    asked: ForkRun,
) -> Answer<Created> {
    let parent = snapshot_of(&supervisor, id).await?.run;
    let reader = supervisor.clone();
    let (request, grown) = blocking(move || planned(&reader, &parent, asked)).await?;
    create::fork(supervisor, request, grown).await
}

/// The request that makes the fork, and what it has of its parent. Blocks.
fn planned(supervisor: &Supervisor, parent: &Run, asked: ForkRun) -> Answer<(CreateRun, Grown)> {
    let id = &parent.id;
    let events = journal(supervisor, id)?;
    let Some((events, snapshot)) = prefix(&events, asked.turn) else {
        let known = Known::read(supervisor, id)?;
        return Err(known.point(id, asked.turn).err().unwrap_or_else(|| no_snapshot(id)));
    };
    let at = Run::replay(id, events).map_err(|illegal| {
        Refusal::new(Code::UnreadableRun, format!("run {id} cannot be read: {illegal}"))
    })?;
    refuse_fork(&at).map_err(|why| refusal(id, asked.turn, why))?;
    let git_dir = supervisor.ground.layout.run(id.as_str()).snapshots();
    let place = place_of(&git_dir)
        .map_err(|failure| Refusal::new(Code::NoSnapshot, failure.to_string()))?
        .ok_or_else(|| no_snapshot(id))?;
    if !place.prefix.is_empty() {
        let message = format!(
            "run {id} works in {} of its repository, and a fork has a workspace of its own",
            place.prefix.trim_end_matches('/')
        );
        return Err(Refusal::new(Code::NotForkable, message).hint(
            "only a run at the top of its repository, or with its own workspace, is forked",
        ));
    }
    let dir = supervisor.ground.layout.run(id.as_str());
    let base = again::request_of(parent, &dir)?;
    let agent_changes = asked.agent.as_ref().is_some_and(|kind| *kind != parent.spec.agent.kind);
    let request = CreateRun {
        id: asked.id,
        name: asked.name,
        workspace: Some(strategy(parent, snapshot).word().to_owned()),
        task: asked.task.clone().or_else(|| base.task.clone()),
        agent: asked.agent.clone().or_else(|| base.agent.clone()),
        command: if agent_changes { Vec::new() } else { base.command.clone() },
        limits: limits(base.limits, asked.limits),
        driving: driving(
            if agent_changes { AskedDriving::default() } else { base.driving.clone() },
            asked.driving,
        ),
        env: asked.env,
        env_set: asked.env_set,
        stdin: None,
        tty: None,
        ..base
    };
    let (session, fresh) = match (
        agent_changes,
        outlast_agents::is_driven(&parent.spec.agent, &parent.spec.driving),
    ) {
        (_, false) => (None, None),
        (true, true) => (None, Some("another agent goes on".to_owned())),
        (false, true) => session(supervisor, parent, asked.turn)
            .map_or_else(|why| (None, Some(why)), |mark| (Some(mark), None)),
    };
    let fork = Fork {
        run: id.clone(),
        turn: asked.turn,
        seq: events.last().map_or(0, |event| event.seq),
        point: snapshot.point(),
        has_task: asked.task.is_some(),
        session,
        fresh,
    };
    let grown = Grown {
        prefix: events.to_vec(),
        fork,
        start: parent.spec.start.clone(),
        snapshot: parent.spec.workspace.snapshot.clone().map(|mut rules| {
            rules.own_store |= snapshot.own_store;
            rules
        }),
        parent_dir: dir,
    };
    Ok((request, grown))
}

/// Where the agent's conversation stood at the end of the turn, or why no copy of it can be made from there.
fn session(supervisor: &Supervisor, parent: &Run, turn: u32) -> Result<SessionMark, String> {
    let spec = &parent.spec;
    if turn == 0 {
        return Err("there is no turn before".to_owned());
    }
    if spec.driving.session.every == Some(1) {
        return Err("each turn has its own".to_owned());
    }
    if !outlast_agents::can_fork(spec) {
        return Err(format!("{} cannot copy a conversation", spec.agent.kind));
    }
    let layout = &supervisor.ground.layout;
    let inherited = spec.fork.as_ref().filter(|fork| turn <= fork.turn);
    let mark = match inherited {
        Some(fork) if turn == fork.turn => Ok(fork.session.clone()),
        Some(fork) => mark_at(&layout.run(fork.run.as_str()), turn),
        None => mark_at(&layout.run(parent.id.as_str()), turn),
    };
    let mark = mark.map_err(|error| format!("the end of turn {turn} cannot be read: {error}"))?;
    mark.filter(|mark| mark.kind == spec.agent.kind)
        .ok_or_else(|| format!("turn {turn} has not left where its conversation stood"))
}

/// A fork never works where a person does.
fn strategy(parent: &Run, snapshot: &Snapshot) -> Strategy {
    match parent.spec.workspace.strategy {
        Strategy::Worktree => Strategy::Worktree,
        Strategy::Inplace if !snapshot.own_store => Strategy::Worktree,
        Strategy::Inplace | Strategy::Dir => Strategy::Dir,
    }
}

fn limits(of_parent: AskedLimits, asked: AskedLimits) -> AskedLimits {
    AskedLimits {
        turn_timeout_ms: asked.turn_timeout_ms.or(of_parent.turn_timeout_ms),
        stall_window_ms: asked.stall_window_ms.or(of_parent.stall_window_ms),
        run_timeout_ms: asked.run_timeout_ms.or(of_parent.run_timeout_ms),
        max_turns: asked.max_turns.or(of_parent.max_turns),
        max_tokens: asked.max_tokens.or(of_parent.max_tokens),
        max_cost_usd_micros: asked.max_cost_usd_micros.or(of_parent.max_cost_usd_micros),
    }
}

fn driving(of_parent: AskedDriving, asked: AskedDriving) -> AskedDriving {
    AskedDriving {
        model: asked.model.or(of_parent.model),
        effort: asked.effort.or(of_parent.effort),
        ..of_parent
    }
}

fn journal(supervisor: &Supervisor, id: &RunId) -> Answer<Vec<Event>> {
    let mut events: Vec<Event> = Vec::new();
    loop {
        let after = events.last().map_or(0, |event| event.seq);
        let page = supervisor.ground.store.events(id, after, PAGE)?;
        let is_last = page.len() < PAGE;
        events.extend(page);
        if is_last {
            return Ok(events);
        }
    }
}

fn no_snapshot(id: &RunId) -> Refusal {
    Refusal::new(Code::NoSnapshot, format!("the snapshots of run {id} are gone"))
}

fn refusal(id: &RunId, turn: u32, why: CannotFork) -> Refusal {
    match why {
        CannotFork::NoSnapshot => no_snapshot(id),
        CannotFork::Child(child) => {
            let message = format!("run {child}, a child of {id}, had not settled by turn {turn}");
            Refusal::new(Code::NotForkable, message)
                .hint(format!("fork it at another turn:\noutlast tree {id}"))
        }
        CannotFork::UnknownCall(call) => {
            let message = format!("the end of the call {call} was not known by turn {turn}");
            Refusal::new(Code::NotForkable, message).hint("fork it at an earlier turn")
        }
        CannotFork::Illegal(illegal) => {
            Refusal::new(Code::NotForkable, format!("run {id} cannot be forked there: {illegal}"))
        }
    }
}
