//! What a terminal would show, kept so that a viewer that attaches late sees it at once.
//!
//! A model of the visible screen without scrollback (that is in the log), which also answers the
//! questions that programs ask their terminal while no real one is attached. Touches no descriptor.
//!
//! The model is slower than a program can print, so text waits in a backlog until a viewer looks, the program does more
//! than print, or the backlog is full. What a viewer sees and what a program is answered is the same as without a backlog.

use std::num::NonZeroU16;

use outlast_wire::shim::Window;
use vt100::capture::RowContents;
use vt100::{Callbacks, Parser};

use crate::screen_backlog::{Backlog, Kind};
use crate::screen_input::Input;

/// A window is at least one cell and at most this in each direction, whatever a viewer claims.
const SIDE_MAX: u16 = 1000;
/// Answers and titles are bounded: a program that asks and never reads must not fill our memory.
const ANSWERS_MAX: usize = 4096;
const TITLE_MAX: usize = 1024;

/// A soft reset, a full scroll region, the default charset and cursor, no mouse, no focus, plain keys.
const RESET: &[u8] = b"\x1b[!p\x1b[r\x1b(B\x1b[0 q\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l\x1b[?1004l\x1b[>4m\x1b[=0;1u";

/// Text that the model is not shown at once: some milliseconds of work for it.
const BACKLOG_MAX: usize = 64 << 10;
/// No line is dropped before so many were scrolled away. When a window grows, the model makes room at the top for lines
/// that were scrolled away, as many as it has counted, and it does not count dropped lines.
const SCROLLED_MIN: usize = 16 << 10;

pub(crate) struct Screen {
    parser: Parser<Listener>,
    backlog: Backlog,
    bounds: Bounds,
}

/// When the backlog is shown or shortened; smaller for tests.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    backlog_max: usize,
    scrolled_min: usize,
}

/// Takes note of what the model itself does not keep.
#[derive(Debug, Default)]
struct Listener {
    answers: Vec<u8>,
    title: Vec<u8>,
    input: Input,
    /// Rows that went off the top since there was more than text.
    scrolled: usize,
}

impl Screen {
    pub(crate) fn new(window: Window) -> Self {
        Self::bounded(window, Bounds { backlog_max: BACKLOG_MAX, scrolled_min: SCROLLED_MIN })
    }

    fn bounded(window: Window, bounds: Bounds) -> Self {
        let (rows, cols) = sides(window);
        let parser = Parser::new_with_callbacks(rows, cols, 0, Listener::default());
        Self { parser, backlog: Backlog::default(), bounds }
    }

    /// Takes output, and answers with what a terminal would have said to it.
    pub(crate) fn show(&mut self, bytes: &[u8]) -> Vec<u8> {
        match self.backlog.follow(bytes) {
            Kind::Text => {
                self.backlog.add(bytes);
                if self.backlog.len() > self.bounds.backlog_max {
                    self.shorten();
                }
                Vec::new()
            }
            Kind::Control => {
                self.catch_up();
                self.parser.process(bytes);
                self.parser.callbacks_mut().scrolled = 0;
                std::mem::take(&mut self.parser.callbacks_mut().answers)
            }
        }
    }

    pub(crate) fn resize(&mut self, window: Window) {
        self.catch_up();
        let (rows, cols) = sides(window);
        self.parser.set_size(rows, cols);
        self.parser.callbacks_mut().scrolled = 0;
    }

    /// Shows the model all that waits.
    fn catch_up(&mut self) {
        self.drop_scrolled();
        let text = self.backlog.take();
        self.parser.process(&text);
    }

    /// Makes room in the backlog: by what is scrolled away again, or else by showing all of it.
    fn shorten(&mut self) {
        self.drop_scrolled();
        if self.backlog.len() > self.bounds.backlog_max / 2 {
            self.catch_up();
        }
    }

    /// Drops the lines of the backlog that are scrolled away by the lines after them.
    ///
    /// A row went off the top since there was more than text. So the region that scrolls begins at the top, and the cursor
    /// has been in the last row of the region ever since: each line feed moves every row of the region up.
    fn drop_scrolled(&mut self) {
        let (rows, _) = self.parser.screen().size();
        if self.parser.callbacks().scrolled >= self.bounds.scrolled_min
            && let Some(instead) = self.backlog.drop_scrolled(rows.get().into())
        {
            self.parser.process(&instead);
        }
    }

    /// Bytes that bring any terminal to this screen: contents, cursor, modes and title.
    pub(crate) fn repaint(&mut self) -> Vec<u8> {
        self.catch_up();
        let screen = self.parser.screen();
        let alternate: &[u8] =
            if screen.alternate_screen() { b"\x1b[?1049h" } else { b"\x1b[?1049l" };
        // What follows moves the cursor, so the other screen is left first: it keeps its own for when
        // it comes back. What the model's state does not switch off is switched off before it.
        let listener = self.parser.callbacks();
        let mut bytes = [alternate, RESET, screen.state_formatted().as_bytes()].concat();
        bytes.extend(listener.input.switch_on().into_bytes());
        let title = &listener.title;
        if !title.is_empty() {
            bytes.extend([b"\x1b]2;", title.as_slice(), b"\x07"].concat());
        }
        bytes
    }
}

/// A window as the kernel is told of it: the same bounds as the model's.
pub(crate) fn clamp(window: Window) -> Window {
    let (rows, cols) = sides(window);
    Window { rows: rows.get(), cols: cols.get() }
}

fn sides(window: Window) -> (NonZeroU16, NonZeroU16) {
    let side = |cells: u16| NonZeroU16::new(cells.min(SIDE_MAX)).unwrap_or(NonZeroU16::MIN);
    (side(window.rows), side(window.cols))
}

impl Listener {
    fn answer(&mut self, text: &str) {
        if self.answers.len() + text.len() <= ANSWERS_MAX {
            self.answers.extend_from_slice(text.as_bytes());
        }
    }
}

impl Callbacks for Listener {
    fn on_scroll(&mut self, _: RowContents<'_>, _is_alternate: bool) {
        self.scrolled = self.scrolled.saturating_add(1);
    }

    fn set_window_title(&mut self, _: &mut vt100::Screen, title: &[u8]) {
        self.title = title[..title.len().min(TITLE_MAX)].to_vec();
    }

    fn unhandled_csi(
        &mut self,
        screen: &mut vt100::Screen,
        first: Option<u8>,
        second: Option<u8>,
        params: &[&[u16]],
        last: char,
    ) {
        self.input.note(first, params, last);
        let param = params.first().and_then(|param| param.first()).copied().unwrap_or(0);
        let (row, col) = screen.cursor_position();
        let (row, col) = (row + 1, col + 1);
        let (rows, cols) = screen.size();
        match (first, second, last, param) {
            (None, None, 'n', 5) => self.answer("\x1b[0n"),
            (None, None, 'n', 6) => self.answer(&format!("\x1b[{row};{col}R")),
            (Some(b'?'), None, 'n', 6) => self.answer(&format!("\x1b[?{row};{col}R")),
            (None, None, 'c', 0) => self.answer("\x1b[?62;22c"),
            (Some(b'>'), None, 'c', 0) => self.answer("\x1b[>1;10;0c"),
            (Some(b'>'), None, 'q', 0) => self.answer("\x1bP>|outlast\x1b\\"),
            (None, None, 't', 18) => self.answer(&format!("\x1b[8;{rows};{cols}t")),
            (Some(b'?'), Some(b'$'), 'p', mode) => self.answer(&format!("\x1b[?{mode};0$y")),
            (Some(b'$'), None, 'p', mode) => self.answer(&format!("\x1b[{mode};0$y")),
            _ => {}
        }
    }

    fn unhandled_osc(&mut self, _: &mut vt100::Screen, params: &[&[u8]]) {
        match params {
            [b"10", b"?"] => self.answer("\x1b]10;rgb:d0d0/d0d0/d0d0\x1b\\"),
            [b"11", b"?"] => self.answer("\x1b]11;rgb:0000/0000/0000\x1b\\"),
            _ => {}
        }
    }
}

impl std::fmt::Debug for Screen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Screen").field("size", &self.parser.screen().size()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
