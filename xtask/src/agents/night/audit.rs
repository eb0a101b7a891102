//! What must hold when the night is over: the conversation, the prompts and their notes, and nothing left behind.

use std::time::Duration;

use anyhow::Result;
use serde_json::Value;

use super::super::lab::Lab;
use super::super::model::{Asked, Fate, attempt_of, turn_of};
use super::super::vendor::Vendor;
use super::bill;
use super::hazard::{Hazard, Victim, While, asked_file, closes, message};
use crate::{interrupt, process};

/// So long after a quota's end the agent has asked again.
const LATEST: Duration = Duration::from_secs(12);

pub(super) struct Night {
    pub(super) vendor: Vendor,
    pub(super) order: Vec<Hazard>,
}

impl Night {
    pub(super) fn audit(&self, lab: &mut Lab) -> Result<()> {
        let asked = lab.asked();
        let tools = lab.file("tools.log");
        let events = lab.outlast.events(&lab.run)?;
        for (hazard, turn) in self.order.iter().zip(1..) {
            let of_turn: Vec<&Asked> =
                asked.iter().filter(|asked| asked.turn == Some(turn)).collect();
            self.conversation(lab, turn, &of_turn);
            attempts(lab, turn, &of_turn, &events);
            let ran_on = tools.contains(&format!("end-{turn}."));
            match hazard {
                Hazard::Tool | Hazard::ServerError | Hazard::CutStream => {}
                Hazard::Quota => self.quota(lab, turn, &of_turn),
                Hazard::Question => {
                    let written = lab.file(&asked_file(self.vendor, turn));
                    let is_so = written == format!("asked in {turn}\n");
                    lab.expect(is_so, format!("turn {turn}: the allowed file has {written:?}"));
                    note(lab, turn, &of_turn, "a question to a person");
                }
                Hazard::LiveQuestion => {
                    let written = lab.file(&asked_file(self.vendor, turn));
                    let is_so = written == format!("asked in {turn}\n");
                    lab.expect(is_so, format!("turn {turn}: the allowed file has {written:?}"));
                    let is_one = of_turn.iter().all(|asked| asked.attempt() == 1);
                    lab.expect(is_one, format!("turn {turn}: an answer in time cost an attempt"));
                }
                Hazard::Steer => {
                    lab.expect(ran_on, format!("turn {turn}: a message ended the tool"));
                    steered(lab, turn, &asked);
                    let text = message(turn);
                    let is_in_turn = of_turn.iter().any(|asked| asked.body.contains(&text));
                    let is_meant = self.vendor.takes_messages();
                    lab.expect(
                        is_in_turn == is_meant,
                        format!("turn {turn}: the message reached the turn: {is_in_turn}"),
                    );
                }
                Hazard::Kill(Victim::Daemon) => {
                    lab.expect(ran_on, format!("turn {turn}: the tool did not outlive the daemon"));
                    let is_one = of_turn.iter().all(|asked| asked.attempt() == 1);
                    lab.expect(is_one, format!("turn {turn}: a daemon's death cost an attempt"));
                }
                // The driver goes on without its shim, and what it ended with counts or is asked again.
                Hazard::Kill(Victim::Shim) => {}
                Hazard::Kill(victim) => {
                    lab.expect(!ran_on, format!("turn {turn}: a tool outlived its {victim:?}"));
                    note(lab, turn, &of_turn, "ended");
                }
                Hazard::Reboot(While::ToolRuns) => {
                    lab.expect(!ran_on, format!("turn {turn}: a tool outlived its machine"));
                    note(lab, turn, &of_turn, "was interrupted when the machine went down");
                    interrupted(lab, turn, &events);
                }
                Hazard::Reboot(While::Waiting) => self.quota(lab, turn, &of_turn),
            }
        }
        order(lab, &asked);
        prompts(lab, &asked);
        bill::audit(lab, self.vendor, &self.order, &asked, &events);
        leftovers(lab);
        Ok(())
    }

    /// Every request has the conversation before it.
    fn conversation(&self, lab: &mut Lab, turn: usize, of_turn: &[&Asked]) {
        if turn == 1 || !self.vendor.resumes() {
            return;
        }
        let before = closes(turn - 1);
        let forgotten = of_turn.iter().filter(|asked| !asked.body.contains(&before)).count();
        let all = of_turn.len();
        lab.expect(
            forgotten == 0 && all > 0,
            format!("turn {turn}: {forgotten} of {all} requests do not have the turn before it"),
        );
    }

    fn quota(&self, lab: &mut Lab, turn: usize, of_turn: &[&Asked]) {
        let refused: Vec<_> =
            of_turn.iter().filter(|it| it.fate == Fate::Refused { status: 429 }).collect();
        let after = of_turn.iter().find(|it| it.fate == Fate::Whole);
        let (Some(first), Some(after)) = (refused.first(), after) else {
            lab.problems.push(format!("turn {turn}: the quota was not met"));
            return;
        };
        let waited = after.at.duration_since(first.at);
        let quota = Duration::from_secs(self.vendor.quota_s());
        lab.expect(
            waited < quota + LATEST || !self.vendor.reports_reset(),
            format!("turn {turn}: went on {waited:.1?} after a limit of {quota:?} was met"),
        );
        if !self.vendor.reports_quota() {
            return;
        }
        lab.expect(
            refused.len() <= self.vendor.tries(),
            format!("turn {turn}: asked {} times while the quota was used up", refused.len()),
        );
        note(lab, turn, of_turn, "was cut off by a limit of its provider");
    }
}

/// The second attempt at a turn has a note that says what became of the first.
fn note(lab: &mut Lab, turn: usize, of_turn: &[&Asked], happened: &str) {
    let resumed = of_turn.iter().find(|asked| asked.attempt() == 2);
    let says_it = |asked: &&&Asked| asked.prompts.last().is_some_and(|it| it.contains(happened));
    let is_there = resumed.filter(says_it).is_some();
    lab.expect(is_there, format!("turn {turn}: no second attempt has a note with {happened:?}"));
}

/// Every attempt that the journal has was seen by the model under its number, and no other.
fn attempts(lab: &mut Lab, turn: usize, of_turn: &[&Asked], events: &[Value]) {
    let started = events.iter().filter(|it| it["kind"] == "AttemptStarted" && it["turn"] == turn);
    let mut started: Vec<u64> = started.filter_map(|it| it["attempt"].as_u64()).collect();
    started.dedup();
    let mut seen: Vec<u64> = of_turn.iter().map(|asked| asked.attempt()).collect();
    seen.dedup();
    lab.expect(
        seen == started,
        format!("turn {turn}: the run started attempts {started:?}, the model saw {seen:?}"),
    );
}

/// The journal says that the machine went down, once.
fn interrupted(lab: &mut Lab, turn: usize, events: &[Value]) {
    let ended = events.iter().filter(|it| it["kind"] == "AttemptEnded" && it["turn"] == turn);
    let outcomes: Vec<&str> = ended.filter_map(|it| it["outcome"].as_str()).collect();
    lab.expect(
        outcomes == ["interrupted", "exited"],
        format!("turn {turn}: its attempts ended as {outcomes:?}"),
    );
}

/// A message is given once: to the turn that runs if the agent takes messages there, and else to the next turn.
fn steered(lab: &mut Lab, turn: usize, asked: &[Asked]) {
    let text = message(turn);
    let next = asked.iter().find(|asked| asked.turn == Some(turn + 1));
    let given = next.map_or(0, |asked| asked.body.matches(&text).count());
    lab.expect(given == 1, format!("turn {turn}: its message was given {given} times"));
}

/// No turn is asked again once a later one was.
fn order(lab: &mut Lab, asked: &[Asked]) {
    let turns: Vec<Option<usize>> = asked.iter().map(|asked| asked.turn).collect();
    lab.expect(turns.is_sorted(), format!("a committed turn was asked again: {turns:?}"));
    let too_many = asked.iter().filter(|asked| asked.fate == Fate::TooMany).count();
    lab.expect(too_many == 0, format!("{too_many} requests of turns that the night does not have"));
}

/// No conversation has a prompt twice, unless the second says that it is another attempt.
fn prompts(lab: &mut Lab, asked: &[Asked]) {
    for (number, asked) in asked.iter().enumerate() {
        let said: Vec<(Option<usize>, u64)> =
            asked.prompts.iter().map(|it| (turn_of(it), attempt_of(it))).collect();
        let is_told = said.windows(2).all(|pair| pair[0] < pair[1]);
        lab.expect(is_told, format!("request {number} has a prompt twice: {said:?}"));
    }
}

/// Nothing lives but the daemon, and the waiter that would start another one.
fn leftovers(lab: &mut Lab) {
    let home = lab.outlast.home().to_owned();
    let daemon = lab.outlast.daemon_pid().ok().flatten();
    let words = |pid: u32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).replace('\0', " ")
    };
    let is_meant = |pid: &u32| Some(*pid) == daemon || words(*pid).contains(" __wait ");
    let alive = || -> Vec<u32> {
        let ours = process::ours(&home).into_iter();
        ours.filter(|pid| process::is_alive(*pid) && !is_meant(pid)).collect()
    };
    let gone = interrupt::wait_for("all processes have ended", Duration::from_secs(10), || {
        Ok(alive().is_empty().then_some(()))
    });
    if gone.is_err() {
        let named =
            |pid: u32| format!("{pid} {}", words(pid).chars().take(120).collect::<String>());
        let left: Vec<String> = alive().into_iter().map(named).collect();
        lab.problems.push(format!("processes were left behind: {left:?}"));
    }
}
