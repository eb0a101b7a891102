//! What can happen in a turn of the night, in which order, and what the model does meanwhile.

use std::time::Duration;

use super::super::model::{Step, Tokens, Tool};
use super::super::vendor::Vendor;
use crate::random::Random;

/// How long a tool takes in which something happens.
const TOOL_S: u64 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hazard {
    Tool,
    Quota,
    ServerError,
    CutStream,
    /// A person is asked, and answers once the process has been ended for it.
    Question,
    /// A person is asked, and answers while the process waits.
    LiveQuestion,
    /// A person sends the run a message while its tool runs.
    Steer,
    Kill(Victim),
    Reboot(While),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Victim {
    Cli,
    Driver,
    Shim,
    Daemon,
    All,
}

/// What the run does when the machine goes down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum While {
    ToolRuns,
    /// Between two attempts: it waits for its provider.
    Waiting,
}

impl Hazard {
    /// True if the attempt that meets it cannot end its turn.
    pub(super) fn cuts_off(self) -> bool {
        match self {
            Self::Question | Self::Reboot(While::ToolRuns) => true,
            Self::Kill(Victim::Cli | Victim::Driver | Victim::Shim | Victim::All) => true,
            Self::Kill(Victim::Daemon) | Self::Reboot(While::Waiting) => false,
            Self::Tool | Self::Quota | Self::ServerError | Self::CutStream => false,
            Self::LiveQuestion | Self::Steer => false,
        }
    }
}

pub(super) const VICTIMS: [Victim; 5] =
    [Victim::Cli, Victim::Driver, Victim::Shim, Victim::Daemon, Victim::All];

/// A first turn with a tool, so that there is a conversation; then the hazards in an order of their own.
pub(super) fn hazards(vendor: Vendor, seed: u64) -> Vec<Hazard> {
    let mut left = vec![Hazard::Quota, Hazard::ServerError, Hazard::CutStream, Hazard::Steer];
    left.push(Hazard::Reboot(While::ToolRuns));
    if vendor.reports_quota() {
        left.push(Hazard::Reboot(While::Waiting));
    }
    if vendor.asks() {
        left.extend([Hazard::Question, Hazard::LiveQuestion]);
    }
    left.extend(VICTIMS.map(Hazard::Kill));
    let mut random = Random::new(seed);
    let mut order = vec![Hazard::Tool];
    while !left.is_empty() {
        let at = random.below(left.len() as u64);
        order.push(left.swap_remove(usize::try_from(at).expect("a short list")));
    }
    order
}

/// What the model says when it has done a turn's work. No other turn has this text.
pub(super) fn closes(turn: usize) -> String {
    format!("close-{turn}.")
}

/// What a person sends in a turn.
pub(super) fn message(turn: usize) -> String {
    format!("message-{turn}: look at the plum.")
}

/// The file that a person is asked about, as the agent names it.
pub(super) fn asked_file(vendor: Vendor, turn: usize) -> String {
    let name = format!("asked-{turn}.txt");
    if vendor.asks_outside_only() { format!("../{name}") } else { name }
}

pub(super) fn steps(vendor: Vendor, hazard: Hazard, turn: usize) -> Vec<Step> {
    let text = format!("begin-{turn}.");
    let costs = Tokens { input: 100 * turn as u64, output: 12, cached: 30 };
    let tool = |line: String| Step::uses(text.clone(), Tool::Shell(line)).costs(costs);
    let slow =
        format!("echo start-{turn}. >> tools.log; sleep {TOOL_S}; echo end-{turn}. >> tools.log");
    let mut steps = match hazard {
        Hazard::Tool => vec![tool(format!("echo start-{turn}. end-{turn}. >> tools.log"))],
        Hazard::Quota | Hazard::Reboot(While::Waiting) => vec![Step::quota(vendor.quota_s())],
        Hazard::ServerError => vec![Step::Fail { status: 500 }],
        Hazard::CutStream => vec![Step::Drop { text: format!("{text} {}", "cut off. ".repeat(9)) }],
        Hazard::Question | Hazard::LiveQuestion => {
            let path = asked_file(vendor, turn);
            let write = Tool::Write { path, content: format!("asked in {turn}\n") };
            let step = Step::uses(text, write).costs(costs);
            match hazard {
                Hazard::Question => vec![step.clone(), step],
                _ => vec![step],
            }
        }
        Hazard::Steer | Hazard::Kill(_) | Hazard::Reboot(While::ToolRuns) => vec![tool(slow)],
    };
    steps.push(Step::says(closes(turn)).after(Duration::from_millis(100)).costs(Tokens {
        input: costs.input + 1,
        output: 7,
        cached: 60,
    }));
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_says_the_order_and_every_hazard_comes_once() {
        let night = |seed| hazards(Vendor::Claude, seed);
        assert_eq!(night(7), night(7));
        assert_ne!(night(7), night(8));
        let others = [
            Hazard::Tool,
            Hazard::Quota,
            Hazard::ServerError,
            Hazard::CutStream,
            Hazard::Question,
            Hazard::LiveQuestion,
            Hazard::Steer,
            Hazard::Reboot(While::ToolRuns),
            Hazard::Reboot(While::Waiting),
        ];
        let all: Vec<Hazard> = others.into_iter().chain(VICTIMS.map(Hazard::Kill)).collect();
        for hazard in &all {
            assert_eq!(night(7).iter().filter(|it| *it == hazard).count(), 1, "{hazard:?}");
        }
        assert_eq!(night(7).len(), all.len());
        assert!(!hazards(Vendor::Pi, 7).contains(&Hazard::Question));
        assert!(!hazards(Vendor::AcpOpencode, 7).contains(&Hazard::Reboot(While::Waiting)));
    }
}
