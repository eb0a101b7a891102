//! Which run is meant, and how it is now.

use std::sync::Arc;

use outlast_engine::{Run, RunId};
use outlast_store::Resolved;
use outlast_wire::api::RunView;
use outlast_wire::codes::Code;

use crate::children;
use crate::lanes::blocking;
use crate::mailbox::Snapshot;
use crate::output;
use crate::refusal::{Answer, Refusal};
use crate::supervisor::{Supervisor, strays};
use crate::tail;
use crate::view::{self, Beside};
use crate::world::peers;

/// The run that is meant.
pub(crate) async fn resolve(supervisor: &Arc<Supervisor>, text: &str) -> Answer<RunId> {
    let exact = RunId(text.to_owned());
    if supervisor.handle(&exact).is_some() {
        return Ok(exact);
    }
    let store = supervisor.ground.store.clone();
    let asked = text.to_owned();
    match blocking(move || Ok(store.resolve(&asked)?)).await? {
        Resolved::One(id) => Ok(id),
        Resolved::None if let Some(stray) = supervisor.strays.resolve(text) => {
            Err(strays::refusal(&stray))
        }
        Resolved::None if text.len() < Resolved::SHORTEST_PREFIX => {
            let refusal = Refusal::unknown_run(format!("there is no run {text}"));
            let hint = format!(
                "the start of an id needs {} characters or more; `outlast ps -a` lists every run",
                Resolved::SHORTEST_PREFIX
            );
            Err(refusal.hint(hint))
        }
        Resolved::None => Err(Refusal::unknown_run(format!("there is no run {text}"))),
        Resolved::Many(some) => {
            let ids: Vec<&str> = some.iter().map(RunId::as_str).collect();
            let refusal =
                Refusal::new(Code::AmbiguousRun, format!("{text} is the start of several runs"));
            Err(refusal.hint(format!("for example {}", ids.join(", "))))
        }
    }
}

/// The run as it is now: from its conductor if it has one, else from the store.
pub(crate) async fn snapshot_of(supervisor: &Arc<Supervisor>, id: &RunId) -> Answer<Snapshot> {
    if let Some(handle) = supervisor.handle(id) {
        let snapshot = handle.snapshot.borrow().clone();
        return Ok(snapshot);
    }
    let (reader, wanted) = (supervisor.clone(), id.clone());
    let run = blocking(move || {
        reader.ground.replay(&wanted).map_err(|message| {
            let refusal = Refusal::new(
                Code::UnreadableRun,
                format!("run {wanted} cannot be read: {message}"),
            );
            let hint = "`outlast doctor` shows it; `outlast rm` removes it";
            refusal.hint(hint).run(&wanted)
        })
    });
    Ok(Snapshot { trouble: supervisor.trouble_of(id), ..Snapshot::of(&run.await?) })
}

pub(crate) async fn view_of(supervisor: &Arc<Supervisor>, id: &RunId) -> Answer<RunView> {
    let Snapshot { run, shim_pid, trouble } = snapshot_of(supervisor, id).await?;
    let supervisor = supervisor.clone();
    blocking(move || {
        let last = run.attempt.as_ref();
        let dir = last.map(|last| {
            supervisor.ground.layout.run(run.id.as_str()).attempt(last.turn, last.number)
        });
        let (output_bytes, last_output_at) = dir.as_ref().map_or((0, None), output::extent);
        let last_line = dir.as_ref().and_then(tail::last_line);
        let scope = shim_pid.and_then(peers::scope_of);
        let notices = view::notices(supervisor.ground.store.notice_counts(&run.id)?);
        let root = root_of(&supervisor, &run)?;
        let run_dir = supervisor.ground.layout.run(run.id.as_str());
        let handle = supervisor.handle(&run.id);
        let activity =
            handle.and_then(|it| it.agent.look(&run, &run_dir, &supervisor.ground.world));
        let beside = Beside {
            shim_pid,
            scope,
            output_bytes,
            last_output_at,
            last_line,
            trouble,
            notices,
            activity,
            root,
        };
        Ok(view::run(&run, beside, supervisor.ground.world.now()))
    })
    .await
}

/// The run above all others that this one belongs to; itself if it belongs to none.
fn root_of(supervisor: &Supervisor, run: &Run) -> Answer<String> {
    if run.spec.parent.is_none() {
        return Ok(run.id.0.clone());
    }
    Ok(children::root(&*supervisor.ground.store, run)?.0)
}
