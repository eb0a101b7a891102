//! The screen, drawn from what is known: cells in memory, which `screen` writes to a terminal.

mod canvas;
mod columns;
mod detail;
mod footer;
mod header;
mod health;
mod help;
mod list;
mod theme;

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::{Position, Rect};

use super::model::{Mode, Model, Page};
use canvas::Canvas;
pub(crate) use theme::Theme;

/// No terminal is larger, and no memory is spent on one that says it is.
const LARGEST: u16 = 1000;

/// What there is to be seen, and where the cursor stands if it is to be seen.
pub(crate) struct Picture {
    pub(crate) cells: Buffer,
    pub(crate) cursor: Option<Position>,
}

/// Which lines are for what. Where there are few, runs come before titles, and those before figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Frame {
    header: Option<u16>,
    titles: Option<u16>,
    body_at: u16,
    body: u16,
    footer: Option<u16>,
    gap: u16,
    is_narrow: bool,
}

impl Frame {
    fn of(width: u16, height: u16) -> Self {
        let header = (height >= 4).then_some(0);
        let titles = (height >= 5).then_some(1);
        let footer = (height >= 2).then_some(height.saturating_sub(1));
        let body_at = u16::from(header.is_some()) + u16::from(titles.is_some());
        let body = height - body_at - u16::from(footer.is_some());
        let is_narrow = width < 100;
        let gap = if is_narrow { 1 } else { 2 };
        Self { header, titles, body_at, body, footer, gap, is_narrow }
    }
}

/// Draws everything anew.
pub(crate) fn draw(model: &mut Model, width: u16, height: u16, theme: Theme) -> Picture {
    let (width, height) = (width.min(LARGEST), height.min(LARGEST));
    let frame = Frame::of(width, height);
    model.settle(frame.body.into());
    let mut cells = Buffer::empty(Rect::new(0, 0, width, height));
    let mut canvas = Canvas::new(&mut cells, theme);
    match &model.page {
        Page::List => list::draw(model, frame, &mut canvas),
        Page::Run(run) => detail::draw(model, run, frame, &mut canvas),
    }
    if model.mode == Mode::Help {
        help::draw(frame, &mut canvas);
    }
    let cursor = frame.footer.and_then(|y| footer::draw(model, y, &mut canvas));
    Picture { cells, cursor }
}

#[cfg(test)]
mod tests;
