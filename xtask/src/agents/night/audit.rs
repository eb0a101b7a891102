//! What must hold when the night is over: the conversation, the notes, the bill, and nothing left behind.

use std::time::Duration;

use super::super::lab::Lab;
use super::super::model::{Asked, Fate, Tokens};
use super::super::vendor::Vendor;
use super::{Hazard, Victim, asked_file, closes, of_tool};
use crate::{interrupt, process};

/// So long after a quota's end the agent has asked again.
const LATEST: Duration = Duration::from_secs(12);

pub(super) struct Night {
    pub(super) vendor: Vendor,
    pub(super) order: Vec<Hazard>,
}

impl Night {
    pub(super) fn audit(&self, lab: &mut Lab) {
        let asked = lab.asked();
        let tools = lab.file("tools.log");
        for (hazard, turn) in self.order.iter().zip(1..) {
            let of_turn: Vec<&Asked> =
                asked.iter().filter(|asked| asked.turn == Some(turn)).collect();
            self.conversation(lab, turn, &of_turn);
            match hazard {
                Hazard::Tool | Hazard::ServerError | Hazard::CutStream => {}
                Hazard::Quota => self.quota(lab, turn, &of_turn),
                Hazard::Question => {
                    let written = lab.file(&asked_file(turn));
                    let is_so = written == format!("asked in {turn}\n");
                    lab.expect(is_so, format!("turn {turn}: the allowed file has {written:?}"));
                    note(lab, turn, of_turn.get(1).copied());
                }
                Hazard::Kill(Victim::Daemon) => {
                    let is_so = tools.contains(&format!("end-{turn}."));
                    lab.expect(is_so, format!("turn {turn}: the tool did not outlive the daemon"));
                    let is_one = of_turn.iter().all(|asked| !asked.last_user.contains(NOTE));
                    lab.expect(is_one, format!("turn {turn}: a daemon's death cost an attempt"));
                }
                // The driver goes on without its shim, and what it ended with counts or is asked again.
                Hazard::Kill(Victim::Shim) => {}
                Hazard::Kill(victim) => {
                    let goes_on = tools.contains(&format!("end-{turn}."));
                    lab.expect(!goes_on, format!("turn {turn}: a tool outlived its {victim:?}"));
                    note(lab, turn, of_turn.get(1).copied());
                }
            }
        }
        order(lab, &asked);
        self.spend(lab);
        leftovers(lab);
    }

    /// Every request has the conversation before it.
    fn conversation(&self, lab: &mut Lab, turn: usize, of_turn: &[&Asked]) {
        if turn == 1 || self.vendor == Vendor::Gemini {
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
        let is_told = self.vendor != Vendor::Gemini;
        lab.expect(
            waited < quota + LATEST || !is_told,
            format!("turn {turn}: went on {waited:.1?} after a limit of {quota:?} was met"),
        );
        lab.expect(
            refused.len() <= self.vendor.tries(),
            format!("turn {turn}: asked {} times while the quota was used up", refused.len()),
        );
        note(lab, turn, Some(after));
    }

    /// What calls have used that were cut off before the agent said it. Of the output, none says it in time.
    fn unsaid(&self) -> Tokens {
        let of = |(hazard, turn): (&Hazard, usize)| match hazard.cuts_a_tool() {
            true if self.vendor.counts_at_once() => Tokens { input: 0, cached: 0, ..of_tool(turn) },
            true => of_tool(turn),
            false => Tokens::default(),
        };
        self.order.iter().zip(1..).map(of).fold(Tokens::default(), Tokens::and)
    }

    fn spend(&self, lab: &mut Lab) {
        let usage = lab.view().unwrap_or_default()["usage"].clone();
        let sent = lab.model.finished();
        let told = |name: &str| usage[name].as_u64().unwrap_or(0);
        let unsaid = self.unsaid();
        let is_floor = told("input_tokens") + unsaid.input >= sent.input
            && told("output_tokens") + unsaid.output >= sent.output
            && told("cached_tokens") + unsaid.cached >= sent.cached;
        // Gemini counts at the end of a turn, and a cut turn has none.
        lab.expect(
            is_floor || self.vendor == Vendor::Gemini,
            format!("usage is {usage}, less than the model has sent: {sent:?}"),
        );
        lab.expect(usage["known"] == false, "turns were cut off, and usage is said to be known");
    }
}

const NOTE: &str = "This is the same run, turn";

fn note(lab: &mut Lab, turn: usize, resumed: Option<&Asked>) {
    let is_there = resumed.is_some_and(|asked| asked.last_user.contains(&format!("{NOTE} {turn}")));
    lab.expect(is_there, format!("turn {turn}: the resumed attempt has no note"));
}

/// No turn is asked again once a later one was.
fn order(lab: &mut Lab, asked: &[Asked]) {
    let turns: Vec<Option<usize>> = asked.iter().map(|asked| asked.turn).collect();
    lab.expect(turns.is_sorted(), format!("a committed turn was asked again: {turns:?}"));
    let too_many = asked.iter().filter(|asked| asked.fate == Fate::TooMany).count();
    lab.expect(too_many == 0, format!("{too_many} requests of turns that the night does not have"));
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
