//! Output that the model of the screen has not been shown yet: text and colours, which ask no question.
//!
//! A program that prints fast scrolls most of its lines away before a viewer looks. The backlog keeps the newest lines and
//! drops the lines before them, so that the model is not shown what no viewer can see. Every other sequence (a cursor that
//! moves, a mode, a title, a question) is shown to the model at once. Knows bytes, and no cells.

const ESC: u8 = 0x1b;

/// Text that the model is to be shown before anything else.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    bytes: Vec<u8>,
    /// Where `bytes` begins: a sequence may have begun in what the model was shown.
    began: ParserState,
    /// Where the output has come to.
    place: ParserState,
}

/// What a piece of output consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Text, colours, and what erases within a line. None of it moves the cursor up, lasts beyond a line (but for the
    /// colours) or is answered.
    Text,
    /// Anything else, or a part of it.
    Control,
}

/// Where the output has come to. It is `Text` only where a terminal's parser certainly is at text too.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum ParserState {
    #[default]
    Text,
    Escape,
    /// In what may become a colour: `ESC [` and numbers.
    Colour,
    /// In any other sequence that a letter ends.
    Sequence,
    /// In an operating system command, as a title is: the bell ends it too.
    Title,
    /// In a string that only the next escape is sure to end.
    Long,
}

impl Backlog {
    /// Follows the output through `bytes`, which the caller adds if they are text, and otherwise shows after
    /// [`Backlog::take`].
    pub(crate) fn follow(&mut self, bytes: &[u8]) -> Kind {
        if self.place == ParserState::Text && !bytes.contains(&ESC) {
            return Kind::Text;
        }
        let mut all = Kind::Text;
        let mut rest = bytes;
        loop {
            // Most bytes are text, so these are passed over first.
            if self.place == ParserState::Text {
                let Some(at) = rest.iter().position(|byte| *byte == ESC) else { return all };
                rest = &rest[at..];
            }
            let Some((byte, after)) = rest.split_first() else { return all };
            let (place, kind) = self.place.after(*byte);
            (self.place, rest) = (place, after);
            if kind == Kind::Control {
                all = Kind::Control;
            }
        }
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Everything, for the model to be shown.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.began = self.place;
        std::mem::take(&mut self.bytes)
    }

    /// Drops all but the newest lines, if these fill `rows` rows. What is to be shown instead of the dropped lines is the
    /// answer: their colours, and the return to the first column.
    ///
    /// The caller's cursor is in the last row of the region that scrolls, which has at most `rows`. The kept bytes begin with
    /// a line feed in the first column, so their first line is an empty row, and each row of before is scrolled away.
    pub(crate) fn drop_scrolled(&mut self, rows: usize) -> Option<Vec<u8>> {
        let feeds = (0..self.bytes.len()).rev().filter(|at| self.bytes[*at] == b'\n');
        let cut =
            feeds.skip(rows.saturating_sub(1)).find(|at| self.bytes[..*at].ends_with(b"\r"))?;
        let (dropped, kept) = self.bytes.split_at(cut);
        // A terminal can be asked to repeat the last character, so there must be one.
        if !prints(kept) {
            return None;
        }
        let mut instead = colours(dropped, self.began);
        instead.push(b'\r');
        self.bytes.drain(..cut);
        // A control character in the middle of a sequence is not text, so a line feed is never in one.
        self.began = ParserState::Text;
        Some(instead)
    }
}

impl ParserState {
    /// Where a byte leads, and what it belongs to.
    fn after(self, byte: u8) -> (Self, Kind) {
        match (self, byte) {
            (Self::Text, ESC) => (Self::Escape, Kind::Text),
            (Self::Text, _) => (Self::Text, Kind::Text),
            (Self::Escape, b'[') | (Self::Colour, b'0'..=b';') => (Self::Colour, Kind::Text),
            (Self::Colour, b'm' | b'K') => (Self::Text, Kind::Text),

            (_, ESC) => (Self::Escape, Kind::Control),
            // Both cancel whatever sequence they are in.
            (_, 0x18 | 0x1a) => (Self::Text, Kind::Control),
            (Self::Escape, b']') => (Self::Title, Kind::Control),
            (Self::Escape, b'P' | b'X' | b'^' | b'_') => (Self::Long, Kind::Control),
            (Self::Escape, b' '..=b'/') => (Self::Sequence, Kind::Control),
            (Self::Escape, b'0'..=b'~') => (Self::Text, Kind::Control),
            (Self::Colour | Self::Sequence, b'@'..=b'~') => (Self::Text, Kind::Control),
            (Self::Title, 0x07) => (Self::Text, Kind::Control),
            (Self::Colour, _) => (Self::Sequence, Kind::Control),
            (Self::Escape | Self::Sequence | Self::Title | Self::Long, _) => (self, Kind::Control),
        }
    }
}

/// The sequences of a text, from the last that resets every colour on.
fn colours(text: &[u8], began: ParserState) -> Vec<u8> {
    if began == ParserState::Text && !text.contains(&ESC) {
        return Vec::new();
    }
    let escapes = (0..text.len()).rev().filter(|at| text[*at] == ESC);
    let reset = escapes
        .map(|at| &text[at..])
        .find(|rest| rest.starts_with(b"\x1b[m") || rest.starts_with(b"\x1b[0m"));
    let (text, mut place) = reset.map_or((text, began), |rest| (rest, ParserState::Text));
    let is_in_sequence = |byte: &u8| {
        let before = place;
        place = before.after(*byte).0;
        before != ParserState::Text || place != ParserState::Text
    };
    text.iter().copied().filter(is_in_sequence).collect()
}

/// True if a text without its sequences has a character that takes a cell.
fn prints(text: &[u8]) -> bool {
    let mut place = ParserState::Text;
    text.iter().any(|byte| {
        let before = place;
        place = before.after(*byte).0;
        before == ParserState::Text && (b' '..=b'~').contains(byte)
    })
}
