//! What is said about a loop while a person watches it: a line for each change and, on a terminal, a line
//! at the bottom that says where it stands.
//!
//! A single command is watched in silence, but for its waits and retries: its output is all there is to see. Nothing
//! here decides when the watching is over.

pub(crate) mod news;
mod screen;
mod status;

use std::cell::{Cell, RefCell};
use std::time::Duration;

use outlast_client::ask::{Ask, run_path};
use outlast_client::journal::{Event, Journal};
use outlast_client::problem::Problem;
use outlast_client::session::Session;
use outlast_wire::api::{RunView, exit_status};
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::output::bytes::Target;
use crate::world::{self, World};
use news::Teller;
use screen::{Screen, StatusLine};
use status::Seen;

/// A short command is over before it is worth a connection to hear of its turns.
const BEFORE_LISTENING: Duration = Duration::from_millis(250);
/// How long the line at the bottom stays away after something was printed, so that it does not flicker.
const REDRAW: Duration = Duration::from_millis(100);
const TICK: Duration = Duration::from_secs(1);
/// How long the last changes of a run that is over may take to arrive.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// What is known of a run when the watching begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct About {
    kind: Kind,
    /// Only changes after this event are told.
    after: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Loop,
    /// It may turn out to be a loop: by a second turn.
    Command,
}

impl About {
    pub(crate) const COMMAND: Self = Self { kind: Kind::Command, after: 0 };
    pub(crate) const LOOP: Self = Self { kind: Kind::Loop, after: 0 };
}

impl From<&RunView> for About {
    fn from(view: &RunView) -> Self {
        let is_loop = view.workflow.is_some() || view.agent.kind != "exec" || view.turn > 1;
        Self { kind: if is_loop { Kind::Loop } else { Kind::Command }, after: view.seq }
    }
}

pub(crate) struct Progress<'w> {
    world: &'w World,
    run: String,
    about: About,
    speaks: Cell<bool>,
    screen: Screen,
    teller: RefCell<Teller>,
    seen: RefCell<Option<Seen>>,
    /// The number of the last event heard, and word of it.
    heard: Cell<u64>,
    news: Notify,
    /// The view is older than the last event.
    stale: Notify,
}

impl<'w> Progress<'w> {
    pub(crate) fn new(world: &'w World, run: &str, about: About) -> Self {
        Self {
            world,
            run: run.to_owned(),
            about,
            speaks: Cell::new(about.kind == Kind::Loop),
            screen: Screen::new(StatusLine::on(world)),
            teller: RefCell::default(),
            seen: RefCell::default(),
            heard: Cell::new(about.after),
            news: Notify::new(),
            stale: Notify::new(),
        }
    }

    /// Says where a loop stands that was under way before we came.
    pub(crate) fn joined(&self, view: &RunView) {
        let goes_on = exit_status(&view.state, view.reason_code.as_ref()).is_none();
        if self.speaks.get() && goes_on {
            self.screen.say(&news::standing(view, self.world.now()));
        }
        self.saw(view.clone());
    }

    /// Listens and tells, for as long as it is polled. That the daemon is gone is not told here: the code that
    /// shows the output does.
    pub(crate) async fn follow(&self) {
        tokio::join!(self.listen(), self.look(), self.speak(), self.draw());
    }

    /// What cannot be said is no reason to stop watching.
    async fn speak(&self) {
        if self.screen.speak().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    async fn listen(&self) {
        if self.about.kind == Kind::Command {
            sleep(BEFORE_LISTENING).await;
        }
        let mut journal =
            Journal::new(Session::new(&self.world.client), &self.run, self.about.after);
        while let Ok(Some(event)) = journal.next().await {
            self.hear(&event);
        }
        std::future::pending::<()>().await;
    }

    fn hear(&self, event: &Event) {
        if news::is_of_a_loop(event) {
            self.speaks.set(true);
        }
        let lines = self.teller.borrow_mut().tell(event);
        if self.speaks.get() {
            lines.iter().for_each(|line| self.screen.say(line));
        } else if news::is_of_a_wait(event) {
            lines.iter().for_each(|line| self.screen.say(news::without_turn(line)));
        }
        self.heard.set(event.seq);
        self.news.notify_waiters();
        self.stale.notify_one();
    }

    /// Keeps the view of the run as new as the last event. Only the line at the bottom shows it.
    async fn look(&self) {
        let mut session = Session::new(&self.world.client);
        while self.screen.has_status_line() {
            self.stale.notified().await;
            if !self.speaks.get() {
                continue;
            }
            // What cannot be had now is asked for again at the next event.
            if let Ok(view) = session.call(&Ask::get(&run_path(&self.run, ""))).await {
                self.saw(view);
            }
        }
        std::future::pending::<()>().await;
    }

    fn saw(&self, view: RunView) {
        *self.seen.borrow_mut() = Some(Seen { view, at: self.world.now() });
    }

    async fn draw(&self) {
        while self.screen.has_status_line() {
            tokio::select! {
                () = self.screen.was_changed() => sleep(REDRAW).await,
                () = sleep(TICK) => {}
            }
            if let Some(line) = self.status()
                && self.screen.draw(&line).await.is_err()
            {
                break;
            }
        }
        std::future::pending::<()>().await;
    }

    fn status(&self) -> Option<String> {
        let seen = self.seen.borrow();
        let seen = seen.as_ref().filter(|_| self.speaks.get())?;
        let columns = world::window().map_or(80, |window| usize::from(window.cols));
        Some(status::line(seen, &self.screen.last_line(), self.world.now(), columns))
    }

    /// Prints output of the run.
    pub(crate) async fn show(&self, target: Target, bytes: Vec<u8>) -> Result<(), Problem> {
        self.screen.show(target, bytes).await
    }

    /// Returns once all has been told that led to this view, or when that takes too long. Needs
    /// [`Progress::follow`] to be polled beside it.
    pub(crate) async fn last_words(&self, view: &RunView) {
        if !self.speaks.get() && view.turns_committed < 2 && view.attempt < 2 {
            return;
        }
        let told = async {
            while self.heard.get() < view.seq {
                self.news.notified().await;
            }
            self.screen.say_what_waits().await
        };
        tokio::select! {
            _ = told => {}
            () = sleep(LAST_WORDS) => {}
        }
    }

    /// Takes the line at the bottom away.
    pub(crate) fn leave(&self) {
        self.screen.clear();
    }
}
