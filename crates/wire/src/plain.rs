//! Output as text: the bytes that a program wrote, without the sequences that a terminal obeys.
//!
//! The parser is `vte`, so colours, cursor movements, titles, hyperlinks and device control strings are recognised
//! as terminals recognise them. A line feed ends a sequence that has no end, so that a stray escape hides at most
//! the rest of its line. Single control characters are not sequences: each caller says what becomes of those.

use std::fmt;
use std::mem;

use vte::{Params, Parser, Perform};

/// The text of a whole output: line feeds and tabs stay, other control characters, signs that are not seen, and all
/// sequences are left out.
/// Bytes that are not UTF-8 become U+FFFD.
pub fn plain_text(bytes: &[u8]) -> String {
    let text = without_sequences(bytes);
    visible(&text, |char| matches!(char, '\n' | '\t').then_some(char))
}

/// A text with each control character and each sign that is not seen exchanged for what the caller says, or left out.
/// A joiner stays where it joins letters that are not ASCII, as scripts and emoji need it.
pub fn visible(text: &str, instead: impl Fn(char) -> Option<char>) -> String {
    if !text.contains(is_unseen) {
        return text.to_owned();
    }
    let joins = |before: Option<char>, after: Option<&char>| {
        let is_letter = |char: char| !char.is_ascii() && !is_unseen(char);
        before.is_some_and(is_letter) && after.is_some_and(|char| is_letter(*char))
    };
    let (mut shown, mut before) = (String::with_capacity(text.len()), None);
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\u{200c}' | '\u{200d}' if joins(before, chars.peek()) => shown.push(char),
            unseen if is_unseen(unseen) => shown.extend(instead(unseen)),
            char => shown.push(char),
        }
        before = Some(char);
    }
    shown
}

/// Control characters, signs that change the order in which others are shown, and signs that take no room: a reader
/// does not see them, and a search does.
pub fn is_unseen(char: char) -> bool {
    char.is_control()
        || matches!(char,
            '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}' | '\u{891}'
            | '\u{8e2}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// The same, with every control character kept: for a caller that gives some of them a meaning.
pub fn without_sequences(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    let mut plain = Plain::default();
    let mut see = |char| text.push(char);
    plain.feed(bytes, &mut see);
    plain.finish(&mut see);
    text
}

/// The streaming form: a sequence or a character may be cut anywhere between two calls of [`Plain::feed`].
#[derive(Default)]
pub struct Plain {
    parser: Parser,
    /// The start of a character whose other bytes have not come. `vte` is given whole characters only: version
    /// 0.15 loses the character after one that was cut.
    begun: Vec<u8>,
    /// How many bytes the parser took since it last reported anything.
    silent_bytes: usize,
}

/// The parser keeps the text of an operating system command, such as a title, until the command ends. Beyond so
/// many bytes that text is dropped; the command still ends where it ends.
const LONGEST_COMMAND: usize = 64 << 10;

impl Plain {
    /// Shows `see` each character of the text, control characters among them.
    pub fn feed(&mut self, bytes: &[u8], see: &mut dyn FnMut(char)) {
        let joined;
        let bytes = if self.begun.is_empty() {
            bytes
        } else {
            joined = [mem::take(&mut self.begun).as_slice(), bytes].concat();
            &joined
        };
        let (whole, begun) = bytes.split_at(bytes.len() - cut_character(bytes));
        for line in whole.split_inclusive(|byte| *byte == b'\n') {
            self.advance(line, see);
            if line.ends_with(b"\n") {
                self.parser = Parser::new();
                see('\n');
            }
        }
        self.begun = begun.to_vec();
    }

    /// There are no more bytes: a character that was cut becomes U+FFFD.
    pub fn finish(&mut self, see: &mut dyn FnMut(char)) {
        let mut rest = mem::take(&mut self.begun);
        if !rest.is_empty() {
            rest.push(b'\n');
            self.advance(&rest, see);
        }
        *self = Self::default();
    }

    fn advance(&mut self, bytes: &[u8], see: &mut dyn FnMut(char)) {
        let mut seen = Seen { see, is_silent: true };
        self.parser.advance(&mut seen, bytes);
        self.silent_bytes = if seen.is_silent { self.silent_bytes + bytes.len() } else { 0 };
        if self.silent_bytes > LONGEST_COMMAND {
            self.parser = Parser::new();
            self.parser.advance(&mut seen, b"\x1b]");
            self.silent_bytes = 0;
        }
    }
}

impl fmt::Debug for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plain").field("begun", &self.begun).finish_non_exhaustive()
    }
}

/// How many bytes at the end are the start of a character that is not whole.
fn cut_character(bytes: &[u8]) -> usize {
    let is_lead = |byte: u8| !(0x80..=0xbf).contains(&byte);
    let Some(length) = (1..=bytes.len().min(3)).find(|back| is_lead(bytes[bytes.len() - back]))
    else {
        return 0;
    };
    let whole = match bytes[bytes.len() - length] {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    };
    if whole > length { length } else { 0 }
}

/// Passes characters on; what the parser reports of sequences is only evidence that one ended.
struct Seen<'a> {
    see: &'a mut dyn FnMut(char),
    is_silent: bool,
}

impl Perform for Seen<'_> {
    fn print(&mut self, char: char) {
        self.is_silent = false;
        (self.see)(char);
    }

    fn execute(&mut self, byte: u8) {
        self.is_silent = false;
        // `Plain::feed` shows line feeds itself, those in the middle of a sequence as well.
        if byte != b'\n' {
            (self.see)(char::from(byte));
        }
    }

    fn put(&mut self, _: u8) {
        self.is_silent = false;
    }

    fn osc_dispatch(&mut self, _: &[&[u8]], _: bool) {
        self.is_silent = false;
    }

    fn csi_dispatch(&mut self, _: &Params, _: &[u8], _: bool, _: char) {
        self.is_silent = false;
    }

    fn esc_dispatch(&mut self, _: &[u8], _: bool, _: u8) {
        self.is_silent = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hyperlink_that_ends_with_st_leaves_no_backslash() {
        let link = b"\x1b]8;;https://example.org\x1b\\ link\x1b]8;;\x1b\\ done";
        assert_eq!(plain_text(link), " link done");
        assert_eq!(plain_text(b"\x1b]0;title\x07text"), "text");
    }

    #[test]
    fn the_body_of_a_device_control_string_is_not_text() {
        assert_eq!(plain_text(b"a\x1bPq#0;2;0;0;0#0~~@@vv\x1b\\b"), "ab");
        assert_eq!(
            plain_text(b"a\x1b_G f=100;aGk=\x1b\\b\x1b^private\x1b\\c\x1bXs\x1b\\d"),
            "abcd"
        );
    }

    #[test]
    fn colours_and_movements_are_left_out_and_lines_and_tabs_stay() {
        assert_eq!(
            plain_text(b"\x1b[1;31merr\x1b[0mor\x1b(B\x1b=\t1\r\n\x07two\x08"),
            "error\t1\ntwo"
        );
        assert_eq!(without_sequences(b"10%\r\x1b[K20%\x08"), "10%\r20%\x08");
    }

    #[test]
    fn what_is_not_utf8_is_replaced() {
        assert_eq!(plain_text(b"a\xffb\xe2\x82"), "a\u{fffd}b\u{fffd}");
        assert_eq!(plain_text(b"\xe2\x82\nnext"), "\u{fffd}\nnext");
        assert_eq!(plain_text(b"\x1b]0;\xe2\x82"), "");
    }

    #[test]
    fn a_sequence_without_an_end_hides_its_line_only() {
        assert_eq!(
            plain_text(b"one\x1b]0;title\ntwo\x1b[3\nthree\x1bPq\nfour\x1b"),
            "one\ntwo\nthree\nfour"
        );
    }

    #[test]
    fn text_is_the_same_wherever_it_is_cut() {
        let bytes = "gr\u{f6}\u{df}e x\n\x1b[38;5;9m日x本\x1b]8;;u\x1b\\é\x1b[0mü\x1b]0;tïtle\x07!\x1bPqü\x1b\\.\n"
            .as_bytes();
        let whole = without_sequences(bytes);
        assert_eq!(whole, "größe x\n日x本éü!.\n");
        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                let (mut plain, mut text) = (Plain::default(), String::new());
                let mut see = |char| text.push(char);
                for part in [&bytes[..first], &bytes[first..second], &bytes[second..]] {
                    plain.feed(part, &mut see);
                }
                plain.finish(&mut see);
                assert_eq!(text, whole, "cut at {first} and {second}");
            }
        }
    }

    #[test]
    fn a_command_without_an_end_takes_no_more_room_than_it_may() {
        let (mut plain, mut text) = (Plain::default(), String::new());
        plain.feed(b"a\x1b]1337;", &mut |char| text.push(char));
        for _ in 0..100 {
            plain.feed(&[b'x'; 4096], &mut |char| text.push(char));
            assert!(plain.silent_bytes <= LONGEST_COMMAND);
        }
        plain.feed(b"\x1b\\b", &mut |char| text.push(char));
        assert_eq!(text, "ab");
    }
}
