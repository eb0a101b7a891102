//! What the screen knows, and what follows from each thing that happens. Pure: whatever has to be done comes
//! back as effects.

mod detail;
mod filter;
mod line;
mod list;
mod press;
mod scrollback;
mod turns;

use jiff::Timestamp;
use outlast_wire::api::{self, RunRow, RunView};

use super::keys::Key;
use crate::follow::Piece;
use crate::journal;
use crate::output::{one_line, printable};
pub(crate) use detail::{Detail, Reading};
pub(crate) use line::Input;
pub(crate) use list::{Line, List, Scope, Shape, Sort, group};
pub(crate) use turns::Turn;

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
    Answer { run: String, question: String },
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
    Resume,
    Answer(api::Answer),
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
                }
            }
            Event::Followed { .. } => {}
            Event::Looked(view) => {
                if let Page::Run(detail) = &mut self.page
                    && detail.run == view.id
                {
                    detail.view = Some(*view);
                }
            }
            Event::ToAnswer(view) => self.ask(&view),
            Event::Did { text } => self.notice = Some(Notice { text, is_problem: false }),
            Event::Refused { text } => self.notice = Some(Notice { text, is_problem: true }),
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
        let Some(blocked) = &view.blocked else {
            let text = format!("{run} is not blocked; it is {}", printable(&view.state));
            self.notice = Some(Notice { text, is_problem: true });
            return;
        };
        let asked = blocked.question.as_deref().or(view.reason.as_deref());
        let question = one_line(asked.unwrap_or(&blocked.reason_code));
        self.mode = if blocked.reason_code == "needs_approval" {
            Mode::Approve { run, question }
        } else {
            Mode::Type { purpose: Purpose::Answer { run, question }, input: Input::default() }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::sample as views;
    use crate::tui::sample::{self, NOW};

    fn model(rows: Vec<RunRow>) -> Model {
        let mut model = Model::new(NOW.parse().expect("a time"), Scope::All);
        model.update(Event::Hello { since: NOW.to_owned() });
        for row in rows {
            model.update(Event::Row(Box::new(row)));
        }
        model.update(Event::Listed { is_cut: false });
        model.settle(10);
        model
    }

    fn press(model: &mut Model, keys: &str) -> Vec<Effect> {
        let effects = keys.chars().flat_map(|key| {
            let key = match key {
                '\r' => Key::Enter,
                '\x1b' => Key::Escape,
                other => Key::Char(other),
            };
            model.update(Event::Key(key))
        });
        effects.collect()
    }

    fn order(run: &str, what: What) -> Effect {
        Effect::Order(Order { run: run.to_owned(), what })
    }

    #[test]
    fn a_stop_is_asked_about_first() {
        let mut model = model(vec![sample::row("k3m", "running", 1)]);
        assert_eq!(press(&mut model, "sn"), []);
        assert_eq!(press(&mut model, "s\x1b"), []);
        assert_eq!(press(&mut model, "s\r"), [], "a key too many is not a yes");
        assert_eq!(press(&mut model, "sy"), [order("k3m", What::Stop)]);
        assert_eq!(press(&mut model, "Sy"), [order("k3m", What::StopNow)]);
    }

    #[test]
    fn what_was_asked_about_is_what_is_stopped() {
        let mut model = model(vec![sample::row("old", "running", 9)]);
        press(&mut model, "s");
        model.update(Event::Row(Box::new(sample::row("new", "running", 0))));
        model.settle(10);
        assert_eq!(press(&mut model, "y"), [order("old", What::Stop)]);
    }

    #[test]
    fn a_question_is_answered_in_a_line() {
        let mut model = model(vec![sample::row("k3mx7q9w2r5t", "blocked", 1)]);
        let look = Effect::LookToAnswer { run: "k3mx7q9w2r5t".to_owned() };
        assert_eq!(press(&mut model, "A"), [look]);
        let view = views::blocked("agent_blocked", Some("left\x1b[2J or right?\n"));
        model.update(Event::ToAnswer(Box::new(view)));
        let Mode::Type { purpose: Purpose::Answer { question, .. }, .. } = &model.mode else {
            panic!("{:?}", model.mode)
        };
        assert_eq!(question, "left·[2J or right?");
        assert_eq!(press(&mut model, "\r"), [], "nothing is no answer");
        let answer = What::Answer(api::Answer::Text("sq".to_owned()));
        assert_eq!(press(&mut model, "sq\r"), [order("k3mx7q9w2r5t", answer)]);
        assert_eq!(model.mode, Mode::Commands);
    }

    #[test]
    fn an_approval_is_a_yes_or_a_no() {
        let mut model = model(vec![sample::row("k3mx7q9w2r5t", "blocked", 1)]);
        let approval = || views::blocked("needs_approval", Some("may I push?"));
        model.update(Event::ToAnswer(Box::new(approval())));
        let approve = What::Answer(api::Answer::Approve);
        assert_eq!(press(&mut model, "y"), [order("k3mx7q9w2r5t", approve)]);
        model.update(Event::ToAnswer(Box::new(approval())));
        let deny = What::Answer(api::Answer::Deny);
        assert_eq!(press(&mut model, "n"), [order("k3mx7q9w2r5t", deny)]);
        model.update(Event::ToAnswer(Box::new(views::running_loop())));
        assert!(model.notice.as_ref().is_some_and(|notice| notice.is_problem));
    }

    #[test]
    fn pause_and_resume_are_one_key() {
        let paused =
            RunRow { reason_code: Some("paused".to_owned()), ..sample::row("a", "waiting", 1) };
        let mut model = model(vec![paused]);
        assert_eq!(press(&mut model, "p"), [order("a", What::Resume)]);
        model.update(Event::Row(Box::new(sample::row("a", "running", 1))));
        assert_eq!(press(&mut model, "p"), [order("a", What::Pause)]);
        assert_eq!(press(&mut model, "mgo on\r"), [order("a", What::Send("go on".to_owned()))]);
    }

    #[test]
    fn without_a_run_nothing_is_ordered() {
        let mut model = model(Vec::new());
        assert_eq!(press(&mut model, "sySyprAmt\ro"), []);
    }

    #[test]
    fn a_run_is_opened_and_left_again() {
        let mut model = model(vec![sample::row("a", "running", 1)]);
        let follow = Effect::Follow { following: 1, run: "a".to_owned(), after: 0, turn: None };
        assert_eq!(press(&mut model, "\r"), [follow, Effect::Look { run: "a".to_owned() }]);
        let wrote = |following, text: &str| Event::Followed {
            following,
            news: Followed::Wrote(Piece::Data {
                stream: outlast_wire::output::Stream::Stdout,
                at_ms: 0,
                bytes: text.as_bytes().to_vec(),
            }),
        };
        model.update(wrote(1, "hello\n"));
        model.update(wrote(0, "of another\n"));
        let Page::Run(detail) = &model.page else { panic!("it is open") };
        assert_eq!(detail.output.upwards().collect::<Vec<_>>(), ["hello"]);
        assert_eq!(press(&mut model, "\x1b"), [Effect::Unfollow]);
        assert!(matches!(model.page, Page::List));
    }

    #[test]
    fn a_daemon_that_comes_back_is_asked_again_for_what_broke() {
        let mut model = model(vec![sample::row("a", "running", 1)]);
        press(&mut model, "o");
        model.update(Event::Lost { why: "gone".to_owned() });
        let since = model.now;
        assert_eq!(model.link, Link::Gone { since, why: "gone".to_owned() });
        assert_eq!(
            model.update(Event::Hello { since: NOW.to_owned() }),
            [],
            "it goes on by itself"
        );
        let broke = Followed::Broke { why: "gone".to_owned() };
        model.update(Event::Followed { following: 1, news: broke });
        let effects = model.update(Event::Hello { since: NOW.to_owned() });
        let again = Effect::Follow { following: 2, run: "a".to_owned(), after: 0, turn: None };
        assert_eq!(effects.first(), Some(&again));
    }

    #[test]
    fn a_filter_narrows_as_it_is_typed_and_escape_lifts_it() {
        let mut model =
            model(vec![sample::row("abc", "running", 1), sample::row("xyz", "running", 2)]);
        press(&mut model, "/xy");
        model.settle(10);
        assert_eq!(model.list.lines().len(), 1);
        press(&mut model, "\r");
        assert_eq!(press(&mut model, "sy"), [order("xyz", What::Stop)]);
        press(&mut model, "\x1b");
        model.settle(10);
        assert_eq!(model.list.lines().len(), 2);
    }

    #[test]
    fn leaving_is_always_possible() {
        for before in ["", "?", "s", "/abc", "mabc", "\r"] {
            let mut model = model(vec![sample::row("a", "running", 1)]);
            press(&mut model, before);
            assert_eq!(model.update(Event::Key(Key::Ctrl('c'))), [Effect::Leave], "{before:?}");
        }
        assert_eq!(press(&mut model(Vec::new()), "q"), [Effect::Leave]);
    }
}
