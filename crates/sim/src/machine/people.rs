//! People who look after runs: they send, pause, stop and answer at odd times, and in peace they come back
//! to every run that rests until it has ended.

use outlast_engine::{
    AsksPerson, By, Decision, Input, Limit, More, Order, Raise, Removal, Run, State, StopMode,
    Usage, WaitCause,
};

use super::Machine;
use crate::agent;
use crate::conductor::{Asker, Message};
use crate::rng::Rng;
use crate::world::RunIndex;

/// So often a person asks for more room for one run: every simulation has an end.
const MOST_RAISES: u32 = 3;

/// How a person looks after one run.
#[derive(Debug)]
pub(super) struct Person {
    /// How often they let a run go on that rests.
    patience: u64,
    wants_removal: bool,
    /// Messages that were sent so far.
    sent: u64,
    /// Orders that were given so far.
    given: u64,
    /// How often they have asked for more room.
    raised: u32,
    /// They have tried once more to stop what could not be stopped.
    has_insisted: bool,
    /// Rounds of peace in which a stop that cannot succeed was not called incomplete.
    unsaid_rounds: u32,
}

impl Person {
    pub(super) fn draw(rng: &mut Rng) -> Self {
        let (patience, wants_removal) = (rng.below(5), rng.chance(300));
        let (sent, given, raised) = (0, 0, 0);
        let (has_insisted, unsaid_rounds) = (false, 0);
        Self { patience, wants_removal, sent, given, raised, has_insisted, unsaid_rounds }
    }
}

impl Machine {
    /// A person wants something of a run, just now.
    pub(super) fn meddle(&mut self, run: RunIndex) {
        let input = match self.world.rng.below(100) {
            0..=31 => self.something_to_say(run),
            32..=35 => return self.report_usage(run),
            36..=38 => return self.speak_for_the_agent(run),
            39 => match self.a_resolution(run) {
                Some(input) => input,
                None => return,
            },
            40..=43 => Input::PauseAsked(self.an_order(run)),
            44..=45 => return self.ask_raise(run),
            46..=47 => Input::PauseAllNow,
            48..=67 => Input::ResumeAsked(self.an_order(run)),
            68..=87 => self.an_answer(run),
            88..=96 => return self.ask_removal(run),
            _ => return self.ask_stop(run),
        };
        self.ask(run, input);
    }

    /// A live attempt says what it has used up; sometimes less than before, or for another attempt.
    fn report_usage(&mut self, run: RunIndex) {
        let live =
            self.world.runs[run].known.run().and_then(Run::live).map(|it| (it.turn, it.number));
        let Some((turn, attempt)) = live else { return };
        let attempt = if self.world.rng.chance(100) { attempt + 1 } else { attempt };
        let mut some = |most: u64| self.world.rng.chance(700).then(|| self.world.rng.below(most));
        let usage = Usage {
            input_tokens: some(3_000),
            output_tokens: some(500),
            cached_tokens: some(500),
            cost_usd_micros: some(50_000),
        };
        self.ask(run, Input::UsageReported { turn, attempt, usage });
    }

    /// The driver of a live attempt says what its agent asks a person, or which messages it took; sometimes again, or
    /// for another attempt.
    fn speak_for_the_agent(&mut self, run: RunIndex) {
        let Some(known) = self.world.runs[run].known.run() else { return };
        let Some((turn, attempt)) = known.live().map(|it| (it.turn, it.number)) else { return };
        let unread: Vec<u64> = known.inbox.unread.iter().map(|it| it.seq).collect();
        let attempt = if self.world.rng.chance(100) { attempt + 1 } else { attempt };
        let input = if unread.is_empty() || self.world.rng.chance(600) {
            let (id, text) = (agent::a_question(&mut self.world.rng), "simulated".to_owned());
            let tool = self.world.rng.chance(500).then(|| "Bash".to_owned());
            if self.world.rng.chance(200) {
                return self.ask(run, Input::Withdrew { turn, attempt, question: id });
            }
            Input::Asked { turn, attempt, asks: AsksPerson { id, tool, text } }
        } else {
            Input::Gave { turn, attempt, messages: unread }
        };
        self.ask(run, input);
    }

    pub(crate) fn ask_stop(&mut self, run: RunIndex) {
        let mode = if self.world.rng.chance(500) { StopMode::Gracefully } else { StopMode::Now };
        let order = self.an_order(run);
        self.ask(run, Input::StopAsked { mode, order });
    }

    /// More room for a run, whether it goes on or was exhausted; also again, and where there is no such limit.
    fn ask_raise(&mut self, run: RunIndex) {
        if self.people[run].raised >= MOST_RAISES {
            return;
        }
        self.people[run].raised += 1;
        let more = |rng: &mut Rng, most| rng.chance(500).then(|| More::By(rng.between(1, most)));
        let rng = &mut self.world.rng;
        let raise = Raise {
            max_turns: more(rng, 3),
            max_tokens: more(rng, 2_000),
            max_cost_usd_micros: more(rng, 8_000),
            run_timeout_ms: more(rng, 60_000),
            ..Raise::default()
        };
        // A limit that the run does not have cannot be raised.
        let has = |limit| {
            let known = self.world.runs[run].known.run();
            known.is_some_and(|known| known.spec.limits.of(limit).is_some())
        };
        let raise = Raise {
            max_turns: raise.max_turns.filter(|_| has(Limit::MaxTurns)),
            max_tokens: raise.max_tokens.filter(|_| has(Limit::MaxTokens)),
            max_cost_usd_micros: raise.max_cost_usd_micros.filter(|_| has(Limit::MaxCost)),
            run_timeout_ms: raise.run_timeout_ms.filter(|_| has(Limit::RunTimeout)),
            ..raise
        };
        let order = self.an_order(run);
        let has_ended = |known: &Run| known.ended_at.is_some();
        if !self.world.runs[run].known.run().is_some_and(has_ended) {
            return self.ask(run, Input::RaiseAsked { raise: Box::new(raise), order });
        }
        let Some(daemon) = self.a_serving_daemon() else { return };
        self.world.note(|| format!("run {run} is to have more room: {raise:?}"));
        let mut daemon_of = self.daemons.remove(&daemon).expect("it serves");
        daemon_of.tell_or_conduct(
            &mut self.world,
            run,
            Input::RaiseAsked { raise: Box::new(raise), order },
        );
        self.daemons.insert(daemon, daemon_of);
    }

    fn ask(&mut self, run: RunIndex, input: Input) {
        let Some(daemon) = self.a_serving_daemon() else { return };
        self.world.note(|| format!("run {run} is asked: {input:?}"));
        let message = Message::new(input, Asker::Client);
        self.daemons.get_mut(&daemon).expect("it serves").tell(run, message);
    }

    fn ask_removal(&mut self, run: RunIndex) {
        let has_ended = |known: &Run| known.ended_at.is_some();
        let Some(daemon) = self.a_serving_daemon() else { return };
        if !self.world.runs[run].known.run().is_some_and(has_ended) {
            return;
        }
        self.world.note(|| format!("run {run} is to be removed"));
        let mut daemon_of = self.daemons.remove(&daemon).expect("it serves");
        daemon_of.remove(&mut self.world, run);
        self.daemons.insert(daemon, daemon_of);
    }

    /// Something new, or something that was said before, by a person who had no answer.
    fn something_to_say(&mut self, run: RunIndex) -> Input {
        let sent = &mut self.people[run].sent;
        let is_again = *sent > 0 && self.world.rng.chance(300);
        *sent += u64::from(!is_again);
        let number = if is_again { self.world.rng.below(*sent) } else { *sent - 1 };
        let (message, text) = (format!("m{number}"), "simulated".to_owned());
        Input::Sent {
            message,
            from: "user".to_owned(),
            text,
            by: Some(By::User { uid: 0, via: None }),
        }
    }

    fn an_answer(&mut self, run: RunIndex) -> Input {
        let decisions = [Decision::Approve, Decision::Deny, Decision::Reply];
        let decision = self.world.rng.pick(&decisions).expect("it is a list");
        let message = (decision == Decision::Reply).then(|| {
            let said = self.something_to_say(run);
            let Input::Sent { message, text, .. } = said else {
                unreachable!("that is what it is")
            };
            (message, text)
        });
        let order = self.an_order(run);
        let asked = self.world.runs[run].known.run().and_then(Run::asks).map(|it| it.seq);
        // A giver who has seen no question answers whatever is open.
        let answers = asked.filter(|_| order.answers.is_some());
        Input::Answered { decision, message, order: Order { answers, ..order } }
    }

    /// A new order, or one that was given before by a client that had no answer.
    fn an_order(&mut self, run: RunIndex) -> Order {
        let given = self.people[run].given;
        if given == 0 || !self.world.rng.chance(300) {
            return self.a_new_order(run);
        }
        let (number, seen) =
            (self.world.rng.below(given), self.world.runs[run].known.run().map(Run::seq));
        let answers = seen.map(|seen| self.world.rng.below(seen + 1));
        Order {
            id: Some(format!("o{number}")),
            by: Some(By::User { uid: 0, via: None }),
            answers,
            said: None,
        }
    }

    fn a_new_order(&mut self, run: RunIndex) -> Order {
        let number = self.people[run].given;
        self.people[run].given += 1;
        let answers =
            self.world.runs[run].known.run().map(Run::seq).filter(|_| self.world.rng.chance(700));
        Order {
            id: Some(format!("o{number}")),
            by: Some(By::User { uid: 0, via: None }),
            answers,
            said: None,
        }
    }

    /// In peace: lets a run go on that rests, as long as there is patience, and then ends it.
    /// For how many rounds a second stop that cannot succeed was not called incomplete.
    pub(crate) fn note_unsaid(&mut self, run: RunIndex, is_unsaid: bool) -> u32 {
        let person = &mut self.people[run];
        let is_unsaid = is_unsaid && person.has_insisted;
        person.unsaid_rounds = if is_unsaid { person.unsaid_rounds + 1 } else { 0 };
        person.unsaid_rounds
    }

    /// True if a run could not be stopped, and a person has yet to try once more.
    pub(crate) fn wants_to_insist(&self, run: RunIndex) -> bool {
        let known = self.world.runs[run].known.run();
        known.is_some_and(Run::is_stop_incomplete) && !self.people[run].has_insisted
    }

    pub(crate) fn look_after(&mut self, run: RunIndex) {
        let Some(known) = self.world.runs[run].known.run() else { return };
        let (is_paused, needs_decision) = (known.is_paused, known.needs_decision());
        let is_blocked = matches!(known.state, State::Blocked { .. });
        let rests = match known.state {
            State::Blocked { .. } => true,
            State::Waiting { cause, .. } => cause == WaitCause::Message,
            _ => false,
        };
        if self.wants_to_insist(run) {
            self.people[run].has_insisted = true;
            return self.ask_stop(run);
        }
        let is_to_go = known.ended_at.is_some() && known.removal == Removal::NotAsked;
        if is_to_go && self.people[run].wants_removal {
            return self.ask_removal(run);
        }
        if known.has_ended() || known.stop.is_some() || !(rests || is_paused) {
            return;
        }
        if is_paused {
            let order = self.a_new_order(run);
            return self.ask(run, Input::ResumeAsked(order));
        }
        if self.people[run].patience == 0 {
            return self.ask_stop(run);
        }
        if is_blocked && let Some(input) = self.a_resolution(run) {
            return self.ask(run, input);
        }
        self.people[run].patience -= 1;
        let input = match self.world.runs[run].known.run().map(|known| &known.state) {
            Some(State::Blocked { .. }) if needs_decision || self.world.rng.chance(500) => {
                self.an_answer(run)
            }
            Some(State::Blocked { .. }) => Input::ResumeAsked(self.a_new_order(run)),
            _ => self.something_to_say(run),
        };
        self.ask(run, input);
    }

    /// True if a person has yet to ask that the workspace of an ended run goes.
    pub(crate) fn is_to_be_removed(&self, run: RunIndex) -> bool {
        let is_there = |known: &Run| known.ended_at.is_some() && known.removal == Removal::NotAsked;
        self.people[run].wants_removal && self.world.runs[run].known.run().is_some_and(is_there)
    }
}
