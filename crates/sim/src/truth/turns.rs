//! Turns: what was said in them, what they were told, and what they cost.

use outlast_engine::{Answer, Charge, Exit, Fact, Reserved, Step, TurnStatus};
use outlast_store::{Ledger, Used};

use super::broke_unless;
use crate::world::{Key, RunIndex, World, boot_id};

/// An attempt is meant to start: no ceiling may have been reached.
pub(super) fn on_turn_started(world: &mut World, run: RunIndex, attempt: u32) {
    let truth = &world.runs[run];
    let Some(known) = truth.known.run() else { return };
    let limits = truth.known.raised.as_ref().unwrap_or(&truth.spec.limits);
    let turns = limits.max_turns.is_some_and(|most| known.turns_committed >= most);
    let tokens = limits.max_tokens.is_some_and(|most| known.spend.tokens() >= most);
    let cost = limits.max_cost_usd_micros.is_some_and(|most| known.spend.cost_usd_micros >= most);
    if (turns && attempt == 1) || tokens || cost {
        world.broke(Some(run), "a turn was started beyond a ceiling".to_owned());
    }
}

/// What ran is paid for, also if its agent did not say what it cost; but no plain command pays for what it did not say.
pub(super) fn on_charged(world: &mut World, key: Key, charge: Option<&Charge>) {
    let spec = &world.runs[key.run].spec;
    let (limits, is_plain) = (spec.limits, !spec.unreported().is_reserved());
    let is_limited = limits.max_tokens.is_some() || limits.max_cost_usd_micros.is_some();
    let is_limited = is_limited && !is_plain;
    let is_invented = is_plain && charge.is_some_and(|it| it.reserved() != Reserved::default());
    broke_unless(world, key, !is_invented, "a plain command is charged what it did not report");
    let now_boot = boot_id(world.boot);
    let site = world.site(key);
    // What was written of its start is gone with the machine.
    let is_unknown = site.has_vanished && site.boot.as_ref() != Some(&now_boot);
    let has_run = site.executions > 0 && !is_unknown;
    let is_paid = charge.is_some() || !is_limited || !has_run;
    broke_unless(world, key, is_paid, "it ran, and is charged with nothing");
}

/// A committed turn says what its agent answered, and takes what its agent was told.
pub(super) fn on_committed(world: &mut World, key: Key, committed: &Fact) {
    let Fact::TurnCommitted { turn, status, summary, next_task, tool_calls, wait, .. } = committed
    else {
        unreachable!("asked for a TurnCommitted")
    };
    let is_loop = world.runs[key.run].spec.workflow.is_some();
    let site = world.site(key);
    // Of a single command the exit is the answer, if its files are gone.
    let is_by_exit = site.has_vanished && !is_loop;
    let is_true = match &site.said {
        _ if is_by_exit && site.exit == Some(Exit::Code(0)) && *status == TurnStatus::Done => true,
        Answer::Given(said) => {
            (said.status, &said.summary, &said.next_task, &said.tool_calls, &said.wait)
                == (*status, summary, next_task, tool_calls, wait)
        }
        Answer::None => site.exit == Some(Exit::Code(0)) && *status == TurnStatus::Done,
        Answer::Bad { .. } | Answer::NoProgram { .. } | Answer::Impeded { .. } => false,
    };
    let mut given = site.given.clone();
    if let Step::Attempt { turn, attempt } = key.step {
        let midway = world.runs[key.run].known.midway.iter();
        given.extend(midway.filter(|it| (it.0, it.1) == (turn, attempt)).map(|it| it.2.clone()));
    }
    broke_unless(world, key, is_true, "committed, and its agent has said something else");
    let is_new = world.runs[key.run].known.committed.insert(*turn);
    broke_unless(world, key, is_new, "committed a second time");
    for message in given {
        let is_new = world.runs[key.run].known.taken.insert(message.clone());
        let what = format!("message {message} was given to two turns that have committed");
        broke_unless(world, key, is_new, &what);
    }
}

/// A live agent has taken messages that its request did not have.
pub(super) fn on_given(world: &mut World, run: RunIndex, at: (u32, u32), messages: &[u64]) {
    let known = &mut world.runs[run].known;
    let Some(folded) = known.run() else { return };
    let unread = folded.inbox.unread.iter().filter(|message| messages.contains(&message.seq));
    let ids: Vec<String> = unread.map(|message| message.id.clone()).collect();
    known.midway.extend(ids.into_iter().map(|id| (at.0, at.1, id)));
}

/// Each message is read by one committed turn, or still waits for one.
pub(super) fn check_messages(world: &mut World, run: RunIndex) {
    let known = &world.runs[run].known;
    let Some(folded) = known.run() else { return };
    let unread: Vec<&String> = folded.inbox.unread.iter().map(|message| &message.id).collect();
    let is_wrong = |id: &&String| unread.contains(id) == known.taken.contains(*id);
    let wrong = known.received.iter().find(is_wrong).cloned();
    if let Some(id) = wrong {
        world.broke(Some(run), format!("message {id} is neither read nor unread, or both"));
    }
}

/// What is spent stays spent.
pub(super) fn check_spend(world: &mut World, run: RunIndex) {
    let used = world.store.used_by(&world.runs[run].id).expect("memory can be read");
    let known = &mut world.runs[run].known;
    let Some(folded) = known.run() else { return };
    let (now, is_in_ledger) = (folded.spend, used == Used::by(folded));
    let before = std::mem::replace(&mut known.spend, now);
    let has_shrunk = now.tokens() < before.tokens()
        || now.cost_usd_micros < before.cost_usd_micros
        || now.reserved.tokens < before.reserved.tokens
        || now.reserved.cost_usd_micros < before.reserved.cost_usd_micros
        || (now.known.money && !before.known.money)
        || (now.known.tokens && !before.known.tokens);
    if has_shrunk {
        world.broke(Some(run), "what was spent has become less".to_owned());
    }
    if !is_in_ledger {
        world.broke(Some(run), "the ledger does not say what the run has spent".to_owned());
    }
}
