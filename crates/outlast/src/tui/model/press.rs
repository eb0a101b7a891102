//! What each key does, in each of the modes.

use outlast_wire::api::{self, RunRow};
use outlast_wire::words::ReasonCode;

use super::list::{Scope, Shape, Sort, Step};
use super::{Effect, Input, Mode, Model, Notice, Order, Page, Purpose, What};
use crate::output::printable;
use crate::tui::keys::Key;

impl Model {
    pub(super) fn press(&mut self, key: &Key) -> Vec<Effect> {
        match key {
            Key::Ctrl('c') => return vec![Effect::Leave],
            Key::Ctrl('z') => return vec![Effect::Suspend],
            Key::Ctrl('l') => return vec![Effect::Redraw],
            _ => {}
        }
        match std::mem::replace(&mut self.mode, Mode::Commands) {
            Mode::Commands => {
                self.notice = None;
                self.command(key)
            }
            // Any key closes it.
            Mode::Help => Vec::new(),
            Mode::Confirm { order, question } => match key {
                Key::Char('y' | 'Y') => vec![Effect::Order(order)],
                Key::Paste(_) => self.stay(Mode::Confirm { order, question }),
                _ => Vec::new(),
            },
            Mode::Approve { run, question, seq } => self.approve(key, run, question, seq),
            Mode::Type { purpose, input } => self.type_in(key, purpose, input),
        }
    }

    fn stay(&mut self, mode: Mode) -> Vec<Effect> {
        self.mode = mode;
        Vec::new()
    }

    fn approve(
        &mut self,
        key: &Key,
        run: String,
        question: String,
        seq: Option<u64>,
    ) -> Vec<Effect> {
        let answer = match key {
            Key::Char('y' | 'Y') => api::Answer::Approve,
            Key::Char('n' | 'N') => api::Answer::Deny,
            Key::Char('t') => {
                let purpose = Purpose::Answer { run, question, seq };
                return self.stay(Mode::Type { purpose, input: Input::default() });
            }
            Key::Escape => return Vec::new(),
            _ => return self.stay(Mode::Approve { run, question, seq }),
        };
        vec![Effect::Order(Order { run, what: What::Answer { answer, seq } })]
    }

    fn type_in(&mut self, key: &Key, purpose: Purpose, mut input: Input) -> Vec<Effect> {
        match key {
            Key::Escape => {
                if purpose == Purpose::Filter {
                    self.list.filter.clear();
                }
                Vec::new()
            }
            Key::Enter => self.typed(purpose, input),
            key => {
                input.take(key);
                if purpose == Purpose::Filter {
                    self.list.filter.clone_from(&input.text);
                }
                self.stay(Mode::Type { purpose, input })
            }
        }
    }

    fn typed(&mut self, purpose: Purpose, input: Input) -> Vec<Effect> {
        let (run, what) = match purpose {
            Purpose::Filter => return Vec::new(),
            // Nothing is neither a message nor an answer.
            _ if input.text.trim().is_empty() => return self.stay(Mode::Type { purpose, input }),
            Purpose::Message { run } => (run, What::Send(input.text)),
            Purpose::Answer { run, seq, .. } => {
                (run, What::Answer { answer: api::Answer::Text(input.text), seq })
            }
        };
        vec![Effect::Order(Order { run, what })]
    }

    fn command(&mut self, key: &Key) -> Vec<Effect> {
        match key {
            Key::Char('q') => return vec![Effect::Leave],
            Key::Char('?') => return self.stay(Mode::Help),
            _ => {}
        }
        if let Some(row) = self.subject()
            && let Some(effects) = self.act(key, &row)
        {
            return effects;
        }
        match self.page {
            Page::List => self.in_list(key),
            Page::Run(_) => self.in_run(key),
        }
    }

    /// The run that is open, or chosen.
    pub(crate) fn subject(&self) -> Option<RunRow> {
        match &self.page {
            Page::List => self.list.chosen().cloned(),
            Page::Run(detail) => self.list.row(&detail.run).cloned(),
        }
    }

    /// What can be done with a run; `None` if the key is for something else.
    fn act(&mut self, key: &Key, row: &RunRow) -> Option<Vec<Effect>> {
        if row.state.has_ended() && is_for_live(key, row) {
            let name = printable(row.name.as_deref().unwrap_or(&row.id));
            self.notice = Some(Notice { text: format!("{name} has ended"), is_problem: true });
            return Some(Vec::new());
        }
        let run = row.id.clone();
        let order = |what| vec![Effect::Order(Order { run: row.id.clone(), what })];
        let seq = row.asks_seq;
        // Also one that waits for something besides, or ends its turn first.
        let is_paused =
            row.paused || row.reason_code.as_ref().is_some_and(|it| *it == ReasonCode::Paused);
        Some(match key {
            Key::Char('s') => self.confirm(row, What::Stop, "stop"),
            Key::Char('S') => self.confirm(row, What::StopNow, "kill"),
            Key::Char('p') => order(if is_paused { What::Resume { seq } } else { What::Pause }),
            Key::Char('r') => order(What::Resume { seq }),
            Key::Char('A') => vec![Effect::LookToAnswer { run }],
            Key::Char('m') => self.type_for(Purpose::Message { run }),
            Key::Char('t') => vec![Effect::Attach { run }],
            _ => return None,
        })
    }

    fn confirm(&mut self, row: &RunRow, what: What, verb: &str) -> Vec<Effect> {
        let name = row.name.as_deref().map(|name| format!(" ({})", printable(name)));
        let question = format!("{verb} {}{}?", row.id, name.unwrap_or_default());
        let order = Order { run: row.id.clone(), what };
        self.stay(Mode::Confirm { order, question })
    }

    fn type_for(&mut self, purpose: Purpose) -> Vec<Effect> {
        self.stay(Mode::Type { purpose, input: Input::default() })
    }

    fn in_list(&mut self, key: &Key) -> Vec<Effect> {
        let page = self.height.saturating_sub(1).max(1);
        match key {
            Key::Up | Key::Char('k') => self.list.step(Step::Up(1)),
            Key::Down | Key::Char('j') => self.list.step(Step::Down(1)),
            Key::PageUp | Key::Ctrl('b') => self.list.step(Step::Up(page)),
            Key::PageDown | Key::Ctrl('f') | Key::Char(' ') => self.list.step(Step::Down(page)),
            Key::Home | Key::Char('g') => self.list.step(Step::First),
            Key::End | Key::Char('G') => self.list.step(Step::Last),
            Key::Char('a') => {
                self.list.scope = match self.list.scope {
                    Scope::All => Scope::Open,
                    Scope::Open => Scope::All,
                };
            }
            Key::Char('T') => {
                self.list.shape = match self.list.shape {
                    Shape::Flat => Shape::Tree,
                    Shape::Tree => Shape::Flat,
                };
            }
            Key::Char('1') => self.list.sort = Sort::NeedsMe,
            Key::Char('2') => self.list.sort = Sort::Newest,
            Key::Char('3') => self.list.sort = Sort::Spend,
            Key::Char('4') => self.list.sort = Sort::Name,
            Key::Char('/') => {
                let input = Input::of(&self.list.filter);
                return self.stay(Mode::Type { purpose: Purpose::Filter, input });
            }
            Key::Escape => self.list.filter.clear(),
            Key::Enter | Key::Char('o') => {
                if let Some(row) = self.list.chosen() {
                    let run = row.id.clone();
                    return self.follow(run, None);
                }
            }
            _ => {}
        }
        Vec::new()
    }

    fn in_run(&mut self, key: &Key) -> Vec<Effect> {
        let page = self.height.saturating_sub(1).max(1);
        let Page::Run(detail) = &mut self.page else { return Vec::new() };
        let everything = detail.output.len();
        match key {
            Key::Up | Key::Char('k') => detail.output.up(1),
            Key::Down | Key::Char('j') => detail.output.down(1),
            Key::PageUp | Key::Ctrl('b') => detail.output.up(page),
            Key::PageDown | Key::Ctrl('f') | Key::Char(' ') => detail.output.down(page),
            Key::Home | Key::Char('g') => detail.output.up(everything),
            Key::End | Key::Char('G') => detail.output.down(everything),
            Key::Left | Key::Char('h') => {
                // From the live view, the turn before the one that is shown there.
                let last = detail.turns.before(None);
                if let Some(turn) = detail.turns.before(detail.turn.or(last)) {
                    let run = detail.run.clone();
                    return self.follow(run, Some(turn));
                }
            }
            Key::Right | Key::Char('l') => {
                if let Some(turn) = detail.turn {
                    let last = detail.turns.before(None);
                    let next = detail.turns.after(turn).filter(|next| Some(*next) != last);
                    let run = detail.run.clone();
                    return self.follow(run, next);
                }
            }
            Key::Escape | Key::Backspace => {
                self.page = Page::List;
                // What is still under way to us is old news.
                self.following += 1;
                return vec![Effect::Unfollow];
            }
            _ => {}
        }
        Vec::new()
    }
}

/// True of a key that does nothing to a run that has ended. What such a run left behind can be stopped.
fn is_for_live(key: &Key, row: &RunRow) -> bool {
    match key {
        Key::Char('s' | 'S') => row.survivors == 0,
        Key::Char('p' | 'r' | 'A' | 'm') => true,
        _ => false,
    }
}
