//! `outlast top`: every run on one screen, live.
//!
//! What happens becomes an event, a pure model makes of it a new state and effects, a pure view draws the
//! state, and only this file and those that it names last touch anything. Leaving ends no run.

mod keys;
mod model;
mod view;

mod act;
mod feed;
mod input;
#[cfg(test)]
mod sample;
mod screen;
mod trail;

use std::pin::Pin;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::signal::unix::Signal;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

use self::input::Input;
use self::keys::Keys;
use self::model::{Effect, Event, Model, Scope};
use self::screen::Screen;
use self::trail::Trail;
use self::view::Theme;
use crate::Answer;
use crate::output::bytes::{self, Target};
use crate::output::tell;
use crate::signals::{self, Detach, How};
use crate::world::{self, World};
use outlast_client::problem::{DETACHED, Problem};
use outlast_client::session::Session;

/// News that wait to be taken; a task that brings more waits.
const NEWS: usize = 256;
/// Between two drawings, for the sake of slow lines.
const PACE: Duration = Duration::from_millis(40);
/// Ages are shown in seconds.
const TICK: Duration = Duration::from_secs(1);
/// How long an escape waits for what may follow it.
const ESCAPE: Duration = Duration::from_millis(40);
/// How long a terminal may take for the last that is written to it.
const LAST_WORDS: Duration = Duration::from_secs(1);

pub(crate) async fn show(world: &World, open_only: bool) -> Answer {
    // Before the screen is taken, so that what is wrong is said where it stays.
    let source = feed::open(Session::new(&world.client)).await?;
    let detach = Detach::listen()?;
    let resizes = signals::window_changes()?;
    let input = Input::open()?;
    let scope = if open_only { Scope::Open } else { Scope::All };
    let (send, news) = mpsc::channel(NEWS);
    let work = FuturesUnordered::new();
    work.push(feed::follow(world, source, send.clone()).map(|never| match never {}).boxed_local());
    let mut top = Top {
        world,
        model: Model::new(world.now(), scope),
        screen: Screen::enter()?,
        keys: Keys::default(),
        settle_at: Instant::now(),
        input,
        detach,
        resizes,
        send,
        news,
        work,
        trail: None,
        writing: None,
        is_stale: true,
        draw_at: Instant::now(),
    };
    let answer = top.run().await;
    top.finish_writing().await;
    answer
}

type Work<'w> = Pin<Box<dyn Future<Output = ()> + 'w>>;
type Writing = Pin<Box<dyn Future<Output = Result<Vec<u8>, Problem>>>>;

struct Top<'w> {
    world: &'w World,
    model: Model,
    screen: Screen,
    keys: Keys,
    /// When what was typed last stands for itself, whatever else happens meanwhile.
    settle_at: Instant,
    /// No other code may read the terminal meanwhile.
    input: Input,
    detach: Detach,
    resizes: Signal,
    send: mpsc::Sender<Event>,
    news: mpsc::Receiver<Event>,
    work: FuturesUnordered<Work<'w>>,
    trail: Option<AbortHandle>,
    /// Bytes on their way to the terminal, which may have stopped taking any.
    writing: Option<Writing>,
    /// The screen shows something old.
    is_stale: bool,
    draw_at: Instant,
}

/// What woke us.
enum Woke {
    Left,
    Typed(std::io::Result<Vec<u8>>),
    /// Nothing followed what was typed.
    Settled,
    Resized,
    Written(Result<Vec<u8>, Problem>),
    News(Event),
    Worked,
    Ticked,
}

impl<'w> Top<'w> {
    async fn run(&mut self) -> Answer {
        let mut tick = Instant::now() + TICK;
        loop {
            self.draw();
            let events = match self.wake(tick).await {
                Woke::Left => return Ok(DETACHED),
                Woke::Typed(Ok(bytes)) => {
                    self.settle_at = Instant::now() + ESCAPE;
                    self.keys.feed(&bytes)
                }
                // The terminal is gone, and with it the person who could be told.
                Woke::Typed(Err(_)) => return Ok(DETACHED),
                Woke::Settled => self.keys.settle(),
                Woke::Written(written) => {
                    written?;
                    continue;
                }
                Woke::Resized => {
                    self.screen.forget();
                    self.is_stale = true;
                    continue;
                }
                Woke::Ticked => {
                    tick = Instant::now() + TICK;
                    self.is_stale = true;
                    continue;
                }
                Woke::News(event) => {
                    self.take(event).await?;
                    continue;
                }
                Woke::Worked => continue,
            };
            for key in events {
                if let Some(code) = self.take(Event::Key(key)).await? {
                    return Ok(code);
                }
            }
        }
    }

    async fn wake(&mut self, tick: Instant) -> Woke {
        let is_drawable = self.is_stale && self.writing.is_none();
        let writing = async {
            match &mut self.writing {
                Some(writing) => writing.await,
                None => std::future::pending().await,
            }
        };
        let woke = tokio::select! {
            biased;
            () = self.detach.asked() => Woke::Left,
            typed = self.input.next() => Woke::Typed(typed),
            () = sleep_until(self.settle_at), if self.keys.is_waiting() => Woke::Settled,
            _ = self.resizes.recv() => Woke::Resized,
            written = writing => Woke::Written(written),
            Some(event) = self.news.recv() => Woke::News(event),
            Some(()) = self.work.next(), if !self.work.is_empty() => Woke::Worked,
            () = sleep_until(self.draw_at), if is_drawable => Woke::Worked,
            () = sleep_until(tick) => Woke::Ticked,
        };
        if let Woke::Written(_) = woke {
            self.writing = None;
        }
        woke
    }

    /// Draws what has changed, unless the last drawing is still on its way, or only just arrived.
    fn draw(&mut self) {
        if !self.is_stale || self.writing.is_some() || Instant::now() < self.draw_at {
            return;
        }
        self.is_stale = false;
        self.draw_at = Instant::now() + PACE;
        self.model.now = self.world.now();
        let Some(window) = world::window() else { return };
        let theme = Theme { colours: self.world.colours() };
        let picture = view::draw(&mut self.model, window.cols, window.rows, theme);
        let changed = self.screen.bytes_for(picture);
        if !changed.is_empty() {
            self.writing = Some(Box::pin(bytes::stream(Target::Stdout, changed)));
        }
    }

    /// Takes one piece of news, and does what follows from it. Gives the exit code once it is over.
    async fn take(&mut self, event: Event) -> Result<Option<u8>, Problem> {
        self.is_stale = true;
        let world = self.world;
        for effect in self.model.update(event) {
            match effect {
                Effect::Leave => return Ok(Some(0)),
                Effect::Attach { run } => {
                    if let Some(code) = self.attach(&run).await? {
                        return Ok(Some(code));
                    }
                }
                Effect::Suspend => self.suspend().await?,
                Effect::Redraw => self.screen.forget(),
                Effect::Follow { following, run, after, turn } => {
                    self.unfollow();
                    self.follow(Trail { following, run, after, turn });
                }
                Effect::Unfollow => self.unfollow(),
                Effect::Order(order) => self.later(act::perform(world, order)),
                Effect::Look { run } => self.later(act::look(world, run, Event::Looked)),
                Effect::LookToAnswer { run } => {
                    self.later(act::look(world, run, Event::ToAnswer));
                }
            }
        }
        Ok(None)
    }

    fn follow(&mut self, trail: Trail) {
        let (handle, registration) = AbortHandle::new_pair();
        let follow = trail.follow(self.world, self.send.clone());
        let follow = Abortable::new(follow, registration);
        self.work.push(follow.map(drop).boxed_local());
        self.trail = Some(handle);
    }

    fn unfollow(&mut self) {
        if let Some(trail) = self.trail.take() {
            trail.abort();
        }
    }

    /// Asks the daemon something; its answer is news.
    fn later(&mut self, ask: impl Future<Output = Event> + 'w) {
        let send = self.send.clone();
        let told = async move {
            let _left = send.send(ask.await).await;
        };
        self.work.push(told.boxed_local());
    }

    /// Runs `outlast attach` on this terminal, and comes back.
    async fn attach(&mut self, run: &str) -> Result<Option<u8>, Problem> {
        self.step_aside().await;
        let mut child = self.world.run_verb(&["attach", run])?;
        let pid = child.id();
        #[expect(
            clippy::disallowed_methods,
            reason = "a client has no lanes; this is its one thread"
        )]
        let ended = tokio::task::spawn_blocking(move || child.wait());
        let status = tokio::select! {
            ended = ended => ended,
            () = self.detach.asked_for_good() => {
                self.world.terminate(pid);
                return Ok(Some(DETACHED));
            }
        };
        // What the keyboard sent meanwhile was for the other one.
        self.detach.forget_keys();
        self.input = Input::open()?;
        let is_detached =
            matches!(status, Ok(Ok(status)) if status.code() == Some(DETACHED.into()));
        if !is_detached {
            tell("outlast: press enter to go back to top");
            // The keys that leave a run lead back to the list here, as they do from a run that goes on.
            tokio::select! {
                _typed = self.input.next() => {}
                how = self.detach.asked_how() => match how {
                    How::ByKeys => {}
                    How::ForGood => return Ok(Some(DETACHED)),
                },
            }
        }
        self.come_back()?;
        Ok(None)
    }

    /// Goes to sleep until the shell brings us to the front again.
    async fn suspend(&mut self) -> Result<(), Problem> {
        self.step_aside().await;
        self.world.stop_here();
        self.input = Input::open()?;
        self.come_back()
    }

    /// Leaves the terminal, and its keys, to another program.
    async fn step_aside(&mut self) {
        self.finish_writing().await;
        self.screen.leave();
        std::mem::replace(&mut self.input, Input::none()).close().await;
    }

    fn come_back(&mut self) -> Result<(), Problem> {
        self.is_stale = true;
        self.screen.come_back()
    }

    /// Nothing may be written after the terminal has been put back.
    async fn finish_writing(&mut self) {
        if let Some(writing) = self.writing.take() {
            drop(timeout(LAST_WORDS, writing).await);
        }
    }
}

/// A problem on one line.
fn words(problem: &Problem) -> String {
    // Why it cannot be reached is what matters.
    let told = |message: &str| message.trim_start_matches("daemon unreachable: ").to_owned();
    match problem {
        Problem::Told { info, .. } => match &info.hint {
            Some(hint) => format!("{}; {hint}", told(&info.message)),
            None => told(&info.message),
        },
        Problem::OutputClosed => "the terminal is gone".to_owned(),
    }
}
