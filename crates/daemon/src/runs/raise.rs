//! More room for a run: new limits for one that goes on, and another start for one that was exhausted.
//!
//! Only a person may raise limits, and never above the operator's ceilings. The environment of an exhausted run was
//! removed when it ended, so it goes on with that of the client.

use std::sync::Arc;

use outlast_conduct::budgets::BudgetStatus;
use outlast_conduct::fenced_run::FencedRun;
use outlast_engine::{CannotRaise, Exceeded, Input, Limit, More, Order, Raise, Run, RunId, Verb};
use outlast_wire::api::{self, RaiseRun, RunView};
use outlast_wire::codes::Code;
use outlast_wire::hook;
use outlast_workflow::{Config, money};

use super::again;
use super::callers::{Caller, Right};
use super::find::{by_name, snapshot_of, view_of};
use super::orders::{Given, said};
use super::tell::{not_taken, order_id, refuse_ended, tell};
use super::{room, spec};
use crate::children;
use crate::conductor;
use crate::lanes::blocking;
use crate::refusal::{Answer, Refusal};
use crate::supervisor::Supervisor;
use crate::view::rfc3339;
use crate::world::files::{self, Lasting};

/// Has the run take the order, unless it has taken it before.
pub(crate) async fn raise(
    supervisor: Arc<Supervisor>,
    caller: Caller,
    id: RunId,
    asked: RaiseRun,
) -> Answer<RunView> {
    let limits = [
        asked.max_turns,
        asked.max_tokens,
        asked.max_cost_usd_micros,
        asked.run_timeout_ms,
        asked.turn_timeout_ms,
    ];
    let said = said(&supervisor, &limits)?;
    let given = Given { id: order_id(asked.id.clone())?, seq: None, verb: Verb::Raise, said };
    let reader = supervisor.clone();
    let config = blocking(move || {
        // The ceilings that hold are in it.
        reader.config().map_err(|refused| Refusal::of_file(&refused))
    })
    .await?;
    let raise = wanted(&asked, &config);
    let refuse = move |run: &Run, _seq: Option<u64>| refuse_raise(run, &raise);
    let input = move |order: Order| Input::RaiseAsked { raise: Box::new(raise), order };
    let before = snapshot_of(&supervisor, &id).await?.run;
    if !before.has_ended() {
        return given.give(&supervisor, caller, &id, refuse, input).await;
    }
    let reopened = reopen(&supervisor, caller, &id, asked, given, raise).await;
    by_name(&supervisor, &id, reopened).await
}

/// The same for a run that has ended: its files are made ready first, and it gets a conductor again.
async fn reopen(
    supervisor: &Arc<Supervisor>,
    caller: Caller,
    id: &RunId,
    asked: RaiseRun,
    given: Given,
    raise: Raise,
) -> Answer<RunView> {
    let Some(_claim) = supervisor.claim_soon(id).await else {
        let refusal = Refusal::new(Code::Busy, format!("run {id} is being changed"));
        return Err(refusal.hint("ask again"));
    };
    let before = snapshot_of(supervisor, id).await?.run;
    if given.is_taken(&before)? {
        return view_of(supervisor, id).await;
    }
    refuse_raise(&before, &raise)?;
    refuse_budget(supervisor, &before)?;
    let run = before.clone();
    blocking(move || refuse_without_workspace(&run)).await?;
    let by = caller.may(supervisor, Right::Raise, id).await?;
    refuse_name(supervisor, &before)?;
    make_ready(supervisor, &before, asked).await?;
    let order = given.order(by, None);
    let after =
        told(supervisor, &before, Input::RaiseAsked { raise: Box::new(raise), order }, &given.id)
            .await?;
    if !given.is_taken(&after)? {
        if after.has_ended() {
            let env = supervisor.ground.layout.run(id.as_str()).env();
            files::remove(&env)?;
        }
        refuse_raise(&after, &raise)?;
        return Err(not_taken(id));
    }
    // While it had ended it heard nothing of its children.
    let (again, run) = (supervisor.clone(), after);
    blocking(move || Ok(children::catch_up(&again, std::slice::from_ref(&*run))?)).await?;
    view_of(supervisor, id).await
}

/// Tells a run that has ended: by the conductor that watches what it has left behind, or by a new one.
pub(super) async fn told(
    supervisor: &Arc<Supervisor>,
    before: &Arc<Run>,
    input: Input,
    order: &str,
) -> Answer<Arc<Run>> {
    let id = &before.id;
    if supervisor.handle(id).is_some() {
        return tell(supervisor, id, input).await;
    }
    let seat = FencedRun::new((**before).clone(), supervisor.ground.epoch);
    let handle = conductor::start(supervisor, seat, Some(input));
    let mut snapshot = handle.snapshot;
    // A conductor that did not take it goes at once, since the run has ended.
    drop(snapshot.wait_for(|seen| seen.run.orders.get(order).is_some()).await);
    let after = snapshot.borrow().run.clone();
    Ok(after)
}

/// The environment first, then the file that says how the run ended: a journal that has the run open finds neither
/// missing. If this daemon dies in between, the run has ended as before.
async fn make_ready(supervisor: &Arc<Supervisor>, run: &Arc<Run>, asked: RaiseRun) -> Answer<()> {
    let (supervisor, run) = (supervisor.clone(), run.clone());
    blocking(move || {
        let dir = supervisor.ground.layout.run(run.id.as_str());
        let mut request = again::request_of(&run, &dir)?;
        request.env = asked.env;
        request.env_set = asked.env_set;
        request.limits = api::AskedLimits::default();
        let env = spec::environment_again(&supervisor, &request)?;
        let json = serde_json::to_vec(&env).map_err(std::io::Error::other)?;
        files::write_whole(&dir.env(), &json, Lasting::Power)?;
        hook!("daemon.raise-env");
        Ok(files::remove(&dir.ended())?)
    })
    .await
}

/// Live names are unique, and another run may have this one's by now.
fn refuse_name(supervisor: &Supervisor, run: &Run) -> Answer<()> {
    let Some(name) = &run.spec.name else { return Ok(()) };
    let other = supervisor.handles().into_iter().find(|(id, handle)| {
        let other = handle.snapshot.borrow().run.clone();
        *id != run.id && !other.has_ended() && other.spec.name.as_ref() == Some(name)
    });
    let Some((other, _)) = other else { return Ok(()) };
    let message = format!("run {other} has the name {name:?} now, so {} cannot go on", run.id);
    Err(Refusal::new(Code::NameTaken, message)
        .hint(format!("wait for it, or stop it:\noutlast stop {other}")))
}

fn wanted(asked: &RaiseRun, config: &Config) -> Raise {
    let more = |more: Option<api::More>| {
        more.map(|more| match more {
            api::More::To(to) => More::To(to),
            api::More::By(by) => More::By(by),
        })
    };
    Raise {
        max_turns: more(asked.max_turns),
        max_tokens: more(asked.max_tokens),
        max_cost_usd_micros: more(asked.max_cost_usd_micros),
        run_timeout_ms: more(asked.run_timeout_ms),
        turn_timeout_ms: more(asked.turn_timeout_ms),
        ceilings: room::ceilings(config),
    }
}

/// A run that a shared budget ends would end again at once while that budget has no room.
fn refuse_budget(supervisor: &Supervisor, run: &Run) -> Answer<()> {
    let ends = |it: &&BudgetStatus| {
        it.rule.on_exceed == Exceeded::End && it.is_spent() && it.rule.covers(&run.spec.labels)
    };
    let budgets = supervisor.budgets();
    let Some(spent) = budgets.iter().find(ends).filter(|_| run.counts_in_budgets()) else {
        return Ok(());
    };
    let name = &spent.rule.name;
    let until = spent.resets_at().map(|at| format!(" until {}", rfc3339(at)));
    let message = format!(
        "the budget {name}, which run {} shares, is spent{}, and would end the run again at once",
        run.id,
        until.unwrap_or_default()
    );
    Err(Refusal::new(Code::BudgetSpent, message)
        .hint("look at the budget, and give it more:\noutlast budgets\noutlast config edit"))
}

fn refuse_raise(run: &Run, raise: &Raise) -> Answer<()> {
    let Err(why) = run.raised(raise) else { return Ok(()) };
    let id = &run.id;
    let bad = |message: String| Refusal::new(Code::BadValue, message);
    let line = |options: Option<String>| match options {
        Some(options) => format!("outlast raise {id} {options}"),
        None => "the operator's ceiling leaves no room:\noutlast config edit".to_owned(),
    };
    let another = |limit: Limit| line(room::option(run, limit, &raise.ceilings));
    let together = |limit: Limit| line(room::options(run, limit, &raise.ceilings));
    Err(match why {
        CannotRaise::HasEnded(_) => refuse_ended(run).err().unwrap_or_else(|| not_taken(id)),
        CannotRaise::IsEnding => Refusal::new(Code::IsEnding, format!("run {id} is being ended"))
            .hint("raise its limits once it is exhausted"),
        CannotRaise::WorkspaceGone => {
            Refusal::new(Code::HasEnded, format!("the workspace of run {id} was removed"))
                .hint(format!("outlast rerun {id}"))
        }
        CannotRaise::Reserved(Limit::Budget) => {
            let message =
                format!("run {} is a child, and its parent was told that it ended", run.id);
            Refusal::new(Code::HasEnded, message).hint(format!("outlast rerun {id}"))
        }
        CannotRaise::Reserved(limit) => {
            let parent = run.spec.parent.as_ref().map_or("its parent", RunId::as_str);
            let what = limit.code().word();
            let message =
                format!("{what} of run {} is what run {parent} has reserved for it", run.id);
            Refusal::new(Code::CeilingExceeded, message)
                .hint("give it more room under another key, or raise the run at the top")
        }
        CannotRaise::NoLimit(limit) => {
            bad(format!("run {id} has no limit {}", flag(limit))).hint("it goes on without one")
        }
        CannotRaise::NotMore { limit, now } => {
            let now = shown(limit, now);
            bad(format!("{} of run {id} is {now} already", flag(limit))).hint(another(limit))
        }
        CannotRaise::AboveCeiling { limit, ceiling } => {
            let ceiling = shown(limit, ceiling);
            let message = format!("{}: the operator's ceiling is {ceiling}", flag(limit));
            Refusal::new(Code::CeilingExceeded, message).hint(another(limit))
        }
        CannotRaise::TooMuch { limit, most } => {
            let message = format!("{}: no limit is larger than {most}", flag(limit));
            bad(message).hint(another(limit))
        }
        CannotRaise::StillSpent { limit, used, max } => {
            let (used, max) = (shown(limit, used), shown(limit, max));
            let message = format!(
                "run {id} has {used} of {max} ({}) spent or held for what was not reported, and would end at once",
                flag(limit)
            );
            bad(message).hint(together(limit))
        }
        CannotRaise::Nothing => bad("there is no limit to raise in it".to_owned())
            .hint(format!("outlast raise {id} --max-turns +10")),
    })
}

fn flag(limit: Limit) -> &'static str {
    match limit {
        Limit::RunTimeout => "--run-timeout",
        Limit::TurnTimeout => "--turn-timeout",
        Limit::StallWindow => "--stall",
        Limit::MaxTurns => "--max-turns",
        Limit::MaxTokens => "--max-tokens",
        Limit::MaxCost => "--max-cost",
        Limit::Budget => "budget",
    }
}

fn shown(limit: Limit, value: u64) -> String {
    match limit {
        Limit::RunTimeout | Limit::TurnTimeout | Limit::StallWindow => {
            outlast_engine::duration::in_words(value)
        }
        Limit::MaxCost => money::shown(value),
        Limit::MaxTurns | Limit::MaxTokens | Limit::Budget => value.to_string(),
    }
}

/// A run that is opened without its directory would fail for good; closed, it waits until the directory is back. Blocks.
fn refuse_without_workspace(run: &Run) -> Answer<()> {
    if room::has_directory(run) {
        return Ok(());
    }
    let message = format!("the workspace of run {} is not there: {}", run.id, run.spec.dir);
    Err(Refusal::new(Code::HasEnded, message).hint("bring the directory back, then raise it again"))
}
