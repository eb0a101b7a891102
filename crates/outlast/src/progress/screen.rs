//! The part of the user's screen that is ours while a run's output is shown on it.
//!
//! The writer holds the pen, so that the line at the bottom never stands in the run's output. Nothing
//! here holds up the runtime: a reader may have stopped reading for good.

use std::cell::{Cell, RefCell};
use std::io::IsTerminal;

use outlast_client::problem::Problem;
use tokio::sync::{Mutex, Notify};

use crate::output::bytes::{Target, columns, stream, write_all};
use crate::output::colour::Colour;
use crate::output::lines::fitting;
use crate::output::{last_line, printable};
use crate::world::World;

const CLEAR: &str = "\r\x1b[K";

/// Where there may be a line that is drawn over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatusLine {
    /// Both streams end at one terminal.
    AtTheBottom,
    /// They go elsewhere, or to a terminal that cannot or shall not.
    None,
}

impl StatusLine {
    /// A line that is drawn over again and again needs a terminal that can do that, and that both streams end at.
    pub(super) fn on(world: &World) -> Self {
        if world.colours() && std::io::stderr().is_terminal() {
            Self::AtTheBottom
        } else {
            Self::None
        }
    }
}

pub(super) struct Screen {
    status_line: StatusLine,
    pen: Mutex<()>,
    is_drawn: Cell<bool>,
    /// What standard error ends with has no end of line yet; on a terminal, what either does.
    is_mid_line: Cell<bool>,
    waiting: RefCell<Vec<String>>,
    last_line: RefCell<String>,
    asked: Notify,
    changed: Notify,
}

impl Screen {
    pub(super) fn new(status_line: StatusLine) -> Self {
        Self {
            status_line,
            pen: Mutex::new(()),
            is_drawn: Cell::new(false),
            is_mid_line: Cell::new(false),
            waiting: RefCell::default(),
            last_line: RefCell::default(),
            asked: Notify::new(),
            changed: Notify::new(),
        }
    }

    pub(super) fn has_status_line(&self) -> bool {
        self.status_line == StatusLine::AtTheBottom
    }

    /// Returns when something was printed since the last time.
    pub(super) async fn was_changed(&self) {
        self.changed.notified().await;
    }

    /// The last line that the run has written here.
    pub(super) fn last_line(&self) -> String {
        self.last_line.borrow().clone()
    }

    /// Output of the run, unchanged.
    pub(super) async fn show(&self, target: Target, bytes: Vec<u8>) -> Result<(), Problem> {
        let _pen = self.pen.lock().await;
        if self.is_drawn.take() {
            stream(Target::Stderr, CLEAR.into()).await?;
        }
        let shown = stream(target, bytes).await?;
        if let Some(last) = shown.last()
            && (self.has_status_line() || target == Target::Stderr)
        {
            self.is_mid_line.set(*last != b'\n');
        }
        if self.has_status_line()
            && let Some(line) = last_line(&shown)
        {
            self.last_line.replace(line);
        }
        self.changed.notify_one();
        Ok(())
    }

    /// Has a line said by the task that polls [`Screen::speak`].
    pub(super) fn say(&self, line: &str) {
        self.waiting.borrow_mut().push(printable(line));
        self.asked.notify_one();
    }

    /// Says what it is asked to, for as long as it is polled and standard error is there.
    pub(super) async fn speak(&self) -> Result<(), Problem> {
        loop {
            self.asked.notified().await;
            self.say_what_waits().await?;
        }
    }

    pub(super) async fn say_what_waits(&self) -> Result<(), Problem> {
        let _pen = self.pen.lock().await;
        let lines = self.waiting.take();
        if lines.is_empty() {
            return Ok(());
        }
        let mut text = if self.is_drawn.take() { CLEAR.to_owned() } else { String::new() };
        if self.is_mid_line.take() {
            text.push('\n');
        }
        let columns = columns(Target::Stderr);
        for line in lines {
            let line = fitting(&line, columns);
            text.push_str(&Colour::Dim.paint(&line, self.has_status_line()));
            text.push('\n');
        }
        stream(Target::Stderr, text.into_bytes()).await?;
        self.changed.notify_one();
        Ok(())
    }

    /// Draws the line at the bottom, unless the run is in the middle of a line there.
    pub(super) async fn draw(&self, line: &str) -> Result<(), Problem> {
        let _pen = self.pen.lock().await;
        if self.is_mid_line.get() {
            return Ok(());
        }
        self.is_drawn.set(true);
        let text = format!("{CLEAR}{}", Colour::Dim.paint(line, true));
        stream(Target::Stderr, text.into_bytes()).await.map(drop)
    }

    /// Takes the line at the bottom away for good.
    pub(super) fn clear(&self) {
        if self.is_drawn.take() {
            // When even standard error is gone there is no place left to write to.
            drop(write_all(Target::Stderr, CLEAR.as_bytes()));
        }
    }
}
