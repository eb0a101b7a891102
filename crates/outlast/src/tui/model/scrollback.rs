//! The end of a run's output as lines of text: bounded, and with nothing left in it that a terminal would obey.

use std::collections::VecDeque;

use outlast_wire::plain::{Plain, is_unseen};
use unicode_width::UnicodeWidthChar;

/// What is kept, of all lines and of each.
const MOST_LINES: usize = 5000;
const MOST_BYTES: usize = 2 << 20;
const LONGEST_LINE: usize = 4 << 10;

const TAB: usize = 8;

#[derive(Debug, Default)]
pub(crate) struct Scrollback {
    lines: VecDeque<String>,
    bytes: usize,
    /// The last line goes on.
    is_open: bool,
    /// A carriage return came: what is printed next takes the place of the line.
    returns: bool,
    plain: Plain,
    /// How many lines below the last one that is shown.
    below: usize,
}

impl Scrollback {
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let before = self.lines.len();
        let mut plain = std::mem::take(&mut self.plain);
        plain.feed(bytes, &mut |c| self.show(c));
        self.plain = plain;
        self.grew(before);
    }

    /// A line of our own.
    pub(crate) fn say(&mut self, line: &str) {
        let before = self.lines.len();
        self.is_open = false;
        line.chars().for_each(|c| self.push(c));
        self.is_open = false;
        self.grew(before);
    }

    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether new lines are shown as they come.
    pub(crate) fn is_at_end(&self) -> bool {
        self.below == 0
    }

    /// The lines down to the last that is shown, that one first.
    pub(crate) fn upwards(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().rev().skip(self.below).map(String::as_str)
    }

    pub(crate) fn up(&mut self, lines: usize) {
        self.below = (self.below + lines).min(self.lines.len().saturating_sub(1));
    }

    pub(crate) fn down(&mut self, lines: usize) {
        self.below = self.below.saturating_sub(lines);
    }

    fn show(&mut self, c: char) {
        match c {
            '\n' => {
                if !self.is_open {
                    self.begin();
                }
                self.is_open = false;
                self.returns = false;
            }
            '\r' => self.returns = self.is_open,
            '\t' => {
                let column: usize =
                    self.open_line().chars().filter_map(UnicodeWidthChar::width).sum();
                (0..TAB - column % TAB).for_each(|_| self.push(' '));
            }
            '\x07' => {}
            c if is_unseen(c) => self.push('·'),
            c => self.push(c),
        }
    }

    fn open_line(&self) -> &str {
        match self.lines.back() {
            Some(line) if self.is_open && !self.returns => line,
            _ => "",
        }
    }

    fn push(&mut self, c: char) {
        if !self.is_open {
            self.begin();
        }
        let line = self.lines.back_mut().expect("a line is open");
        if std::mem::take(&mut self.returns) {
            self.bytes -= line.len();
            line.clear();
        }
        if line.len() < LONGEST_LINE {
            line.push(c);
            self.bytes += c.len_utf8();
        }
    }

    fn begin(&mut self) {
        self.lines.push_back(String::new());
        self.is_open = true;
    }

    /// A person who has scrolled up goes on seeing the same lines, as long as they are kept.
    fn grew(&mut self, before: usize) {
        if self.below > 0 {
            self.below += self.lines.len() - before;
        }
        while self.lines.len() > MOST_LINES || self.bytes > MOST_BYTES {
            let Some(line) = self.lines.pop_front() else { break };
            self.bytes -= line.len();
        }
        self.below = self.below.min(self.lines.len().saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]]) -> Vec<String> {
        let mut scrollback = Scrollback::default();
        pieces.iter().for_each(|piece| scrollback.write(piece));
        let mut lines: Vec<String> = scrollback.upwards().map(str::to_owned).collect();
        lines.reverse();
        lines
    }

    #[test]
    fn text_comes_out_the_same_wherever_it_is_split() {
        let text = "one\r\ntw\to\n\n\x1b[1;31mr\u{e9}d\x1b[0m \x1b]0;title\x07日本\x1b(B!\n10%\r100%\nlast\x08".as_bytes();
        let whole = lines(&[text]);
        assert_eq!(whole, ["one", "tw      o", "", "réd 日本!", "100%", "last·"]);
        for split in 0..=text.len() {
            assert_eq!(lines(&[&text[..split], &text[split..]]), whole, "split at {split}");
        }
    }

    #[test]
    fn what_is_not_text_does_not_get_through() {
        assert_eq!(lines(&[b"a\xff\xfeb\x00\xc2\x9b2J\n"]), ["a\u{fffd}\u{fffd}b··2J"]);
        assert_eq!(lines(&[b"\x1b]52;c;aGk=\x1b\\after"]), ["after"]);
    }

    #[test]
    fn it_holds_no_more_than_it_may() {
        let mut scrollback = Scrollback::default();
        for number in 0..MOST_LINES * 2 {
            scrollback.write(format!("{number}\n").as_bytes());
        }
        assert_eq!(scrollback.len(), MOST_LINES);
        assert_eq!(scrollback.upwards().next(), Some("9999"));
        scrollback.write(&vec![b'x'; 10 << 20]);
        assert_eq!(scrollback.upwards().next().map(str::len), Some(LONGEST_LINE));
        scrollback.write("y".repeat(LONGEST_LINE).as_bytes());
        for _ in 0..2000 {
            scrollback.write(format!("\n{}", "z".repeat(LONGEST_LINE)).as_bytes());
        }
        assert!(scrollback.bytes <= MOST_BYTES, "{}", scrollback.bytes);
        let counted: usize = scrollback.lines.iter().map(String::len).sum();
        assert_eq!(scrollback.bytes, counted);
    }

    #[test]
    fn whoever_looks_back_is_not_moved_by_what_comes() {
        let mut scrollback = Scrollback::default();
        scrollback.write(b"1\n2\n3\n4\n");
        scrollback.up(2);
        assert_eq!(scrollback.upwards().next(), Some("2"));
        scrollback.write(b"5\n6\n");
        assert_eq!(scrollback.upwards().next(), Some("2"));
        scrollback.up(100);
        assert_eq!(scrollback.upwards().next(), Some("1"));
        scrollback.down(100);
        assert!(scrollback.is_at_end());
        assert_eq!(scrollback.upwards().next(), Some("6"));
    }
}
