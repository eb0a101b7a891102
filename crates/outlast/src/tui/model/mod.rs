//! What the screen knows, and what follows from each thing that happens. Pure: whatever has to be done comes
//! back as effects.

mod detail;
mod filter;
mod line;
mod list;
mod press;
mod scrollback;

use jiff::Timestamp;
use outlast_client::follow::Piece;
use outlast_client::journal;
use outlast_wire::api::{self, RunRow, RunView};
use outlast_wire::words::Wants;

use super::keys::Key;
use crate::output::{self, one_line, printable, rest};
pub(crate) use crate::turns::Turn;
pub(crate) use detail::{Detail, Reading};
pub(crate) use line::Input;
pub(crate) use list::{Line, List, Scope, Shape, Sort, group};

#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) now: Timestamp,
    pub(crate) link: Link,
    pub(crate) list: List,
    pub(crate) page: Page,
    pub(crate) mode: Mode,
    pub(crate) notice: Option<Notice>,
    /// How many runs fit on the screen.
    height: usize,
    /// The number of the last following that was begun; what an older one still brings is old news.
    following: u64,
}

/// What there is to be said to the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Link {
    Connecting,
    Up { since: String },
    Gone { since: Timestamp, why: String },
}

#[derive(Debug)]
pub(crate) enum Page {
    List,
    Run(Box<Detail>),
}

/// What keys mean just now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mode {
    Commands,
    Help,
    /// Yes or no.
    Confirm {
        order: Order,
        question: String,
    },
    /// An approval: yes, no, or in words.
    Approve {
        run: String,
        question: String,
        /// The event that asked, as it was shown.
        seq: Option<u64>,
    },
    Type {
        purpose: Purpose,
        input: Input,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Purpose {
    Filter,
    Message { run: String },
    Answer { run: String, question: String, seq: Option<u64> },
}

/// A word at the bottom of the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) text: String,
    pub(crate) is_problem: bool,
}

/// Something that a run is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) run: String,
    pub(crate) what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    Stop,
    StopNow,
    Pause,
    /// Nothing that came after this event.
    Resume {
        seq: Option<u64>,
    },
    /// To the question that this event asked.
    Answer {
        answer: api::Answer,
        seq: Option<u64>,
    },
    Send(String),
}

#[derive(Debug)]
pub(crate) enum Event {
    Key(Key),
    Hello {
        since: String,
    },
    Row(Box<RunRow>),
    Listed {
        is_cut: bool,
    },
    Gone {
        run: String,
    },
    /// The daemon went away, or could not be found again.
    Lost {
        why: String,
    },
    Followed {
        following: u64,
        news: Followed,
    },
    /// What a run is, as it was asked for to show or to answer it.
    Looked(Box<RunView>),
    ToAnswer(Box<RunView>),
    Did {
        text: String,
    },
    Refused {
        text: String,
    },
}

/// News of the one run that is followed.
#[derive(Debug)]
pub(crate) enum Followed {
    Happened(Box<journal::Event>),
    Wrote(Piece),
    Broke { why: String },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    Leave,
    Order(Order),
    /// Instead of whatever is followed now: events after a number, and output, with a turn only that turn's.
    Follow {
        following: u64,
        run: String,
        after: u64,
        turn: Option<u64>,
    },
    Unfollow,
    Look {
        run: String,
    },
    LookToAnswer {
        run: String,
    },
    Attach {
        run: String,
    },
    /// As ctrl-z does elsewhere.
    Suspend,
    Redraw,
}

impl Model {
    pub(crate) fn new(now: Timestamp, scope: Scope) -> Self {
        let mut list = List::default();
        list.scope = scope;
        Self {
            now,
            link: Link::Connecting,
            list,
            page: Page::List,
            mode: Mode::Commands,
            notice: None,
            height: 1,
            following: 0,
        }
    }

    pub(crate) fn update(&mut self, event: Event) -> Vec<Effect> {
        match event {
            Event::Key(key) => return self.press(&key),
            Event::Hello { since } => return self.connected(since),
            Event::Row(row) => return self.changed(*row),
            Event::Listed { is_cut } => self.list.listed(is_cut),
            Event::Gone { run } => self.list.remove(&run),
            Event::Lost { why } => self.lost(why),
            Event::Followed { following, news } if following == self.following => {
                if let Page::Run(detail) = &mut self.page {
                    detail.take(news);
                    return look_again(detail);
                }
            }
            Event::Followed { .. } => {}
            Event::Looked(view) => {
                if let Page::Run(detail) = &mut self.page
                    && detail.run == view.id
                {
                    detail.looked(*view);
                    return look_again(detail);
                }
            }
            Event::ToAnswer(view) => self.ask(&view),
            Event::Did { text } => self.notice = Some(Notice { text, is_problem: false }),
            Event::Refused { text } => {
                if let Page::Run(detail) = &mut self.page {
                    detail.not_looked();
                }
                self.notice = Some(Notice { text, is_problem: true });
            }
        }
        Vec::new()
    }

    /// Has everything in its place for a screen that shows so many runs.
    pub(crate) fn settle(&mut self, height: usize) {
        self.height = height;
        self.list.arrange();
        self.list.scroll(height);
    }

    /// A daemon answers, perhaps another than before.
    fn connected(&mut self, since: String) -> Vec<Effect> {
        self.list.relist();
        self.link = Link::Up { since };
        match &self.page {
            Page::Run(detail) if matches!(detail.reading, Reading::Broken { .. }) => {
                let (run, turn) = (detail.run.clone(), detail.turn);
                self.follow(run, turn)
            }
            Page::Run(_) | Page::List => Vec::new(),
        }
    }

    fn lost(&mut self, why: String) {
        let since = match &self.link {
            Link::Gone { since, .. } => *since,
            Link::Connecting | Link::Up { .. } => self.now,
        };
        self.link = Link::Gone { since, why };
    }

    fn changed(&mut self, row: RunRow) -> Vec<Effect> {
        let is_behind = match &mut self.page {
            Page::Run(detail) => detail.run == row.id && detail.is_behind(&row),
            Page::List => false,
        };
        let effects = is_behind.then(|| Effect::Look { run: row.id.clone() });
        self.list.put(row);
        effects.into_iter().collect()
    }

    /// Shows a run's turns, and its output from near the end.
    fn follow(&mut self, run: String, turn: Option<u64>) -> Vec<Effect> {
        self.following += 1;
        let detail = match std::mem::replace(&mut self.page, Page::List) {
            Page::Run(detail) if detail.run == run => detail.again(turn),
            Page::Run(_) | Page::List => Detail::new(run.clone(), turn),
        };
        let (following, after) = (self.following, detail.turns.seq);
        self.page = Page::Run(Box::new(detail));
        vec![Effect::Follow { following, run: run.clone(), after, turn }, Effect::Look { run }]
    }

    /// Asks the person what the run asks.
    fn ask(&mut self, view: &RunView) {
        let run = view.id.clone();
        let seq = view.asks.as_ref().map(|asked| asked.seq);
        if let (None, Some(asks), Some(question)) =
            (&view.blocked, &view.asks, rest::question(view))
        {
            let question = one_line(question);
            self.mode = match asks.tool {
                Some(_) => Mode::Approve { run, question, seq },
                None => {
                    let purpose = Purpose::Answer { run, question, seq };
                    Mode::Type { purpose, input: Input::default() }
                }
            };
            return;
        }
        let Some(blocked) = &view.blocked else {
            let (run, state) = (output::called(view), printable(view.state.as_str()));
            let text = format!("{run} is not blocked; it is {state}");
            self.notice = Some(Notice { text, is_problem: true });
            return;
        };
        let asked = blocked.question.as_deref().or(view.reason.as_deref());
        let question = one_line(asked.unwrap_or(blocked.reason_code.as_str()));
        self.mode = if blocked.reason_code.wants() == Wants::Decision {
            Mode::Approve { run, question, seq }
        } else {
            let purpose = Purpose::Answer { run, question, seq };
            Mode::Type { purpose, input: Input::default() }
        };
    }
}

fn look_again(detail: &mut Detail) -> Vec<Effect> {
    let effect = detail.is_to_look().then(|| Effect::Look { run: detail.run.clone() });
    effect.into_iter().collect()
}

#[cfg(test)]
mod tests;
