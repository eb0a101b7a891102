//! Notices: what of a run's life is told to those who are not looking.
//!
//! A function of the events and of the run they lead to, so the same events always make the same notices
//! under the same ids. Who is told how, and whether they want to know, is not this crate's business.

use crate::{Event, Exit, Fact, Health, Limit, ReasonCode, Run, StateName, Time, Verdict, Word};

/// Something to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// `run/attempt/event`: the same however often it is told.
    pub id: String,
    pub kind: NoticeKind,
    pub at: Time,
    /// Where to: names of sinks, or addresses.
    pub to: Vec<String>,
    pub state: StateName,
    pub reason_code: Option<Word<ReasonCode>>,
    pub exit: Option<Exit>,
    /// The turn and attempt it is about; 0 before the first.
    pub turn: u32,
    pub attempt: u32,
    /// What there is to say in words.
    pub summary: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeKind {
    Completed,
    Failed,
    Stopped,
    Exhausted,
    /// Only a person sets it going again.
    Blocked,
    /// Its agent waits for a person's answer.
    Asked,
    /// Something is about to go wrong.
    Warning,
    /// A watch has found what it looks for.
    Matched,
    /// There is new output.
    Heartbeat,
    /// What a turn has to say leaves the run.
    Emitted,
}

impl NoticeKind {
    /// The word that stands under `type`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Completed => "run.completed",
            Self::Failed => "run.failed",
            Self::Stopped => "run.stopped",
            Self::Exhausted => "run.exhausted",
            Self::Blocked => "run.blocked",
            Self::Asked => "run.asked",
            Self::Warning => "run.warning",
            Self::Matched => "run.matched",
            Self::Heartbeat => "run.heartbeat",
            Self::Emitted => "run.emitted",
        }
    }

    pub fn is_end(self) -> bool {
        match self {
            Self::Completed | Self::Failed | Self::Stopped | Self::Exhausted => true,
            Self::Blocked
            | Self::Asked
            | Self::Warning
            | Self::Matched
            | Self::Heartbeat
            | Self::Emitted => false,
        }
    }
}

impl Run {
    /// What these events, the last of which led to this run, have to tell; nothing if no sink is to be told.
    pub fn notices(&self, events: &[Event]) -> Vec<Notice> {
        events.iter().filter_map(|event| self.notice(event)).collect()
    }

    pub(crate) fn notice(&self, event: &Event) -> Option<Notice> {
        let (kind, summary) = match &event.fact {
            Fact::RunEnded { state, .. } => (end(*state), self.last_words()),
            Fact::StateChanged { to: StateName::Blocked, why, .. } => {
                (NoticeKind::Blocked, Some(why.reason.clone()))
            }
            Fact::QuestionAsked { tool, text, .. } => {
                (NoticeKind::Asked, Some(asked(tool.as_deref(), text)))
            }
            Fact::LimitNeared { limit, used, max, budget } => {
                (NoticeKind::Warning, Some(near(*limit, *used, *max, budget.as_deref())))
            }
            Fact::HealthDegraded { health, why, .. } if is_worth_a_word(*health) => {
                (NoticeKind::Warning, Some(format!("{}: {why}", health.word())))
            }
            Fact::OutputMatched { lines, suppressed, .. } => {
                (NoticeKind::Matched, Some(matched(lines, *suppressed)))
            }
            Fact::WatchDisabled { why, .. } => (NoticeKind::Matched, Some(why.clone())),
            Fact::HeartbeatTold { .. } => (NoticeKind::Heartbeat, None),
            Fact::Emitted { text, .. } => (NoticeKind::Emitted, Some(text.clone())),
            _ => return None,
        };
        let to = match &event.fact {
            Fact::Emitted { to, .. } => to.iter().filter(|name| *name != "log").cloned().collect(),
            _ => self.spec.notify.clone(),
        };
        if to.is_empty() {
            return None;
        }
        let (turn, attempt) = match &event.fact {
            // The next attempt may have begun with the end of the one that this is about.
            Fact::OutputMatched { turn, attempt, .. }
            | Fact::HeartbeatTold { turn, attempt, .. } => (*turn, *attempt),
            _ => self.attempt.as_ref().map_or((0, 0), |it| (it.turn, it.number)),
        };
        Some(Notice {
            id: format!("{}/t{turn}.a{attempt}/{}", self.id, event.seq),
            kind,
            at: event.at,
            to,
            state: self.state.name(),
            reason_code: self.reason_code(),
            exit: self.exit(),
            turn,
            attempt,
            summary,
        })
    }

    /// What the last turn said, or else why the run ended.
    fn last_words(&self) -> Option<String> {
        let said = self.previous.as_ref().map(|it| it.summary.clone());
        said.filter(|text| !text.trim().is_empty()).or_else(|| Some(self.why.reason.clone()))
    }
}

/// `may it use Bash? …`, or what the model asks.
fn asked(tool: Option<&str>, text: &str) -> String {
    match tool {
        Some(tool) => format!("may it use {tool}? {text}"),
        None => text.to_owned(),
    }
}

fn matched(lines: &[String], suppressed: u64) -> String {
    let told = lines.join("\n");
    match suppressed {
        0 => told,
        1 => format!("{told}\n(and 1 more line before)"),
        many => format!("{told}\n(and {many} more lines before)"),
    }
}

/// `82 % of max_tokens is used`, or of the budget of that name.
fn near(limit: Limit, used: u64, max: u64, budget: Option<&str>) -> String {
    let percent = u128::from(used) * 100 / u128::from(max.max(1));
    match budget {
        Some(name) => format!("{percent} % of the budget {name} is used"),
        None => format!("{percent} % of {} is used", limit.word()),
    }
}

/// What has its own notice, or comes and goes by itself, is not told a second time.
fn is_worth_a_word(health: Health) -> bool {
    match health {
        Health::Stalled | Health::Thrashing | Health::Orphaned | Health::Unreachable => true,
        Health::Healthy
        | Health::Silent
        | Health::WaitingHuman
        | Health::RateLimited
        | Health::NearLimit => false,
    }
}

fn end(verdict: Verdict) -> NoticeKind {
    match verdict {
        Verdict::Completed => NoticeKind::Completed,
        Verdict::Failed => NoticeKind::Failed,
        Verdict::Stopped => NoticeKind::Stopped,
        Verdict::Exhausted => NoticeKind::Exhausted,
    }
}
