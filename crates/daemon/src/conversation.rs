//! Which conversation of a driven agent an attempt goes on with, and when a new one begins.
//!
//! Decided by the journal and by `session.json`, which the drivers of earlier attempts have left: every daemon decides
//! the same. A new conversation begins between two turns only: an attempt at a turn that the conversation is already in
//! goes on with it.

use std::io;

use outlast_agents::adapter::{Ended, Session};
use outlast_agents::is_driven;
use outlast_engine::{Run, SessionMark, SessionRules};
use outlast_home::layout::{AttemptDir, RunDir};

use crate::world::files;

/// No file that is read here is as large as this.
const LARGEST: usize = 4 << 20;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Conversation {
    /// The agent's own name of it; `None` begins one.
    pub(crate) session: Option<String>,
    /// It is a copy of that one, which ends with this mark.
    pub(crate) fork: Option<SessionMark>,
    pub(crate) past: Past,
}

/// What the conversation knows of the run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Past {
    /// All turns that the agent has been asked before.
    #[default]
    Whole,
    /// This attempt begins it, because a rule of the run says so.
    Left { why: String },
    /// An earlier attempt at the same turn has begun it.
    ThisTurn,
    /// All turns up to the one that the files are as. If no copy can be had, the attempt begins a new one.
    Copied { why: String },
}

impl Conversation {
    fn left(why: String) -> Self {
        Self { past: Past::Left { why }, ..Self::default() }
    }

    /// What the attempt is in if no copy can be had.
    pub(crate) fn afresh(&self) -> Option<Self> {
        match &self.past {
            Past::Copied { why } => Some(Self::left(why.clone())),
            Past::Whole | Past::Left { .. } | Past::ThisTurn => None,
        }
    }
}

/// The conversation of the run's current attempt. One that cannot be read is not taken for none: the attempt is launched
/// later.
pub(crate) fn of(run: &Run, dir: &RunDir) -> io::Result<Conversation> {
    let kind = &run.spec.agent.kind;
    let Some(attempt) =
        run.attempt.as_ref().filter(|_| is_driven(&run.spec.agent, &run.spec.driving))
    else {
        return Ok(Conversation::default());
    };
    let bytes = match files::read_regular(&dir.session(), LARGEST) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let read = |bytes: Vec<u8>| serde_json::from_slice::<Session>(&bytes).map_err(io::Error::other);
    let left = bytes.map(read).transpose()?.filter(|it| it.kind == *kind && it.is_sound());
    // An agent that remembers what was undone would build upon it.
    if let Some(back) = run.went_back(attempt.turn, attempt.number) {
        let why = format!("the workspace was put back to the end of turn {}", back.back_to);
        return as_of(run, dir, back.back_to, why);
    }
    if run.is_after_restore(attempt.turn, attempt.number) {
        let why = "the workspace was put back to the end of the turn before".to_owned();
        return as_of(run, dir, attempt.turn - 1, why);
    }
    if run.is_first_of_fork(attempt.turn, 1) && left.is_none() {
        let why = "this run is a fork, which begins one of its own".to_owned();
        return as_of(run, dir, attempt.turn - 1, why);
    }
    Ok(choose(run.spec.driving.session, attempt.turn, attempt.number, left))
}

/// A copy of the conversation that ends with this turn, or a new one.
fn as_of(run: &Run, dir: &RunDir, turn: u32, why: String) -> io::Result<Conversation> {
    let of_fork = run.spec.fork.as_ref().filter(|fork| turn <= fork.turn);
    let mark = match of_fork {
        Some(fork) => fork.session.clone().filter(|_| turn == fork.turn),
        None => mark_at(dir, turn)?,
    };
    let is_kept = run.spec.driving.session.every != Some(1);
    let mark = mark.filter(|mark| is_kept && mark.kind == run.spec.agent.kind);
    Ok(match mark {
        Some(mark) => {
            let session = Some(mark.id.clone());
            Conversation { session, fork: Some(mark), past: Past::Copied { why } }
        }
        None => Conversation::left(why),
    })
}

/// Where the conversation stood at the end of this turn, by the driver of the attempt that ended the turn.
pub(crate) fn mark_at(dir: &RunDir, turn: u32) -> io::Result<Option<SessionMark>> {
    let attempts = match files::names(&dir.0) {
        Ok(names) => names,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let attempts = attempts.iter().filter_map(|name| AttemptDir::step_of(name.to_str()?));
    let last = attempts.filter(|(of, _)| *of == turn).map(|(_, attempt)| attempt).max();
    let Some(last) = last else { return Ok(None) };
    let bytes = match files::read_regular(&dir.attempt(turn, last).agent_end(), LARGEST) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    // One that cannot be read has no mark.
    let mark = serde_json::from_slice::<Ended>(&bytes).ok().and_then(|ended| ended.session);
    Ok(mark.filter(|mark| Session::begun(&mark.kind, &mark.id, None).is_sound()))
}

/// Why the fork's agent began a new conversation, although a copy was meant.
pub(crate) fn why_afresh(run: &Run, dir: &RunDir) -> Option<String> {
    let fork = run.spec.fork.as_ref().filter(|fork| fork.session.is_some())?;
    let bytes = files::read_regular(&dir.session(), LARGEST).ok()?;
    let session: Session = serde_json::from_slice(&bytes).ok()?;
    session.afresh.into_iter().find(|it| it.turn == Some(fork.turn + 1)).map(|it| it.why)
}

fn choose(rules: SessionRules, turn: u32, attempt: u32, left: Option<Session>) -> Conversation {
    // An older driver does not say which turns it was in: then no attempt at this one came before the first.
    let is_between_turns = left
        .as_ref()
        .is_none_or(|session| session.last_turn.map_or(attempt == 1, |last| last < turn));
    let why = (turn > 1 && is_between_turns).then(|| reason(rules, turn, left.as_ref())).flatten();
    if let Some(why) = why {
        return Conversation::left(why);
    }
    let is_new = turn > 1 && left.as_ref().is_some_and(|it| it.began_in == Some(turn));
    let past = if is_new { Past::ThisTurn } else { Past::Whole };
    Conversation { session: left.map(|session| session.id), past, fork: None }
}

/// Why the conversation of the turns before this one is left, if it is.
fn reason(rules: SessionRules, turn: u32, left: Option<&Session>) -> Option<String> {
    if rules.every == Some(1) {
        return Some("each turn has its own".to_owned());
    }
    let left = left?;
    let full = left.context.and_then(|context| context.millionths());
    if let (Some(most), Some(full)) = (rules.refresh_at_millionths, full)
        && full >= u64::from(most)
    {
        return Some(format!("the old one's context was {} % full", full / 10_000));
    }
    let every = rules.every?;
    match left.began_in.map(|began_in| turn.saturating_sub(began_in)) {
        Some(turns) => (turns >= every).then(|| format!("the old one has had {turns} turns")),
        None => Some("it is not known how many turns the old one has had".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use outlast_agents::adapter::Context;

    use super::*;

    const KEEP: SessionRules = SessionRules { every: None, refresh_at_millionths: None };
    const FRESH: SessionRules = SessionRules { every: Some(1), ..KEEP };
    const EVERY_TWO: SessionRules = SessionRules { every: Some(2), ..KEEP };
    const AT_80: SessionRules = SessionRules { refresh_at_millionths: Some(800_000), ..KEEP };

    fn session(began_in: u32, last_turn: u32) -> Session {
        Session {
            began_in: Some(began_in),
            last_turn: Some(last_turn),
            ..Session::begun("claude", "s", None)
        }
    }

    fn filled(used: u64, window: Option<u64>) -> Session {
        Session { context: Some(Context { used, window }), ..session(1, 1) }
    }

    /// Why a new one begins, for an attempt at turn 2.
    fn left(rules: SessionRules, session: Session) -> Option<String> {
        why(&choose(rules, 2, 1, Some(session)))
    }

    fn why(conversation: &Conversation) -> Option<String> {
        let Past::Left { why } = &conversation.past else {
            assert_eq!(conversation.session.as_deref(), Some("s"));
            return None;
        };
        assert_eq!(conversation.session, None);
        Some(why.clone())
    }

    #[test]
    fn a_rule_holds_between_two_turns() {
        assert_eq!(left(KEEP, session(1, 1)), None);
        assert_eq!(left(FRESH, session(1, 1)).as_deref(), Some("each turn has its own"));
        assert_eq!(left(EVERY_TWO, session(1, 1)), None);
        let third = choose(EVERY_TWO, 3, 1, Some(session(1, 2)));
        assert_eq!(why(&third).as_deref(), Some("the old one has had 2 turns"));
        assert_eq!(why(&choose(EVERY_TWO, 4, 1, Some(session(3, 3)))), None);
    }

    #[test]
    fn a_turn_that_the_conversation_is_in_goes_on_with_it() {
        let full = Session { context: filled(99, Some(100)).context, ..session(1, 2) };
        for rules in [KEEP, EVERY_TWO, AT_80] {
            let again = choose(rules, 2, 2, Some(full.clone()));
            assert_eq!((why(&again), again.past), (None, Past::Whole));
        }
        let begun = choose(FRESH, 2, 2, Some(session(2, 2)));
        assert_eq!((why(&begun), begun.past), (None, Past::ThisTurn));
        // The attempt before ended before its agent had named the new one.
        let unnamed = choose(FRESH, 2, 2, Some(session(1, 1)));
        assert!(why(&unnamed).is_some());
    }

    #[test]
    fn a_first_turn_leaves_nothing_behind() {
        for rules in [KEEP, FRESH, EVERY_TWO, AT_80] {
            assert_eq!(choose(rules, 1, 1, None), Conversation::default());
            let again = choose(rules, 1, 2, Some(session(1, 1)));
            assert_eq!((why(&again), again.past), (None, Past::Whole));
        }
    }

    #[test]
    fn a_conversation_without_a_name_is_left_by_each_turn_and_by_no_other_rule() {
        assert!(matches!(choose(FRESH, 2, 1, None).past, Past::Left { .. }));
        for rules in [KEEP, EVERY_TWO, AT_80] {
            assert_eq!(choose(rules, 2, 1, None), Conversation::default());
        }
    }

    #[test]
    fn a_context_is_full_from_the_given_part_on_and_an_unknown_one_never() {
        let full = |used, window| left(AT_80, filled(used, window));
        assert_eq!(full(800, Some(1000)).as_deref(), Some("the old one's context was 80 % full"));
        assert_eq!(full(799, Some(1000)), None);
        assert!(full(u64::MAX, Some(3)).is_some());
        assert_eq!(full(800, None), None);
        assert_eq!(full(800, Some(0)), None);
        assert_eq!(left(AT_80, session(1, 1)), None);
        assert_eq!(left(KEEP, filled(1000, Some(1000))), None);
        let both = SessionRules { every: Some(5), ..AT_80 };
        assert!(left(both, filled(900, Some(1000))).is_some());
    }

    #[test]
    fn a_file_of_an_older_driver_is_of_the_turn_before_only_for_a_first_attempt() {
        let old = Session::begun("claude", "s", None);
        assert!(why(&choose(FRESH, 3, 1, Some(old.clone()))).is_some());
        assert_eq!(why(&choose(FRESH, 3, 2, Some(old.clone()))), None);
        let unknown = why(&choose(EVERY_TWO, 3, 1, Some(old.clone())));
        assert!(unknown.is_some_and(|why| why.contains("not known")));
        let gone_on_with = Session { last_turn: Some(3), ..old };
        let again = choose(EVERY_TWO, 3, 2, Some(gone_on_with));
        assert_eq!((why(&again), again.past), (None, Past::Whole));
    }
}
