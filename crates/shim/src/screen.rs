//! What a terminal would show, kept so that a viewer that attaches late sees it at once.
//!
//! A model of the visible screen without scrollback (that is in the log), which also answers the
//! questions that programs ask their terminal while no real one is attached. Touches no descriptor.

use std::num::NonZeroU16;

use outlast_wire::shim::Window;
use vt100::{Callbacks, Parser};

use crate::screen_input::Input;

/// A window is at least one cell and at most this in each direction, whatever a viewer claims.
const SIDE_MAX: u16 = 1000;
/// Answers and titles are bounded: a program that asks and never reads must not fill our memory.
const ANSWERS_MAX: usize = 4096;
const TITLE_MAX: usize = 1024;

/// A soft reset, a full scroll region, the default charset and cursor, no mouse, no focus, plain keys.
const RESET: &[u8] = b"\x1b[!p\x1b[r\x1b(B\x1b[0 q\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l\x1b[?1004l\x1b[>4m\x1b[=0;1u";

pub(crate) struct Screen {
    parser: Parser<Listener>,
}

/// Takes note of what the model itself does not keep.
#[derive(Debug, Default)]
struct Listener {
    answers: Vec<u8>,
    title: Vec<u8>,
    input: Input,
}

impl Screen {
    pub(crate) fn new(window: Window) -> Self {
        let (rows, cols) = sides(window);
        Self { parser: Parser::new_with_callbacks(rows, cols, 0, Listener::default()) }
    }

    /// Shows output, and answers with what a terminal would have said to it.
    pub(crate) fn show(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.parser.process(bytes);
        std::mem::take(&mut self.parser.callbacks_mut().answers)
    }

    pub(crate) fn resize(&mut self, window: Window) {
        let (rows, cols) = sides(window);
        self.parser.set_size(rows, cols);
    }

    /// Bytes that bring any terminal to this screen: contents, cursor, modes and title.
    pub(crate) fn repaint(&self) -> Vec<u8> {
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
mod tests {
    use super::*;

    const WINDOW: Window = Window { rows: 5, cols: 20 };

    #[test]
    fn questions_are_answered_also_when_they_come_in_pieces() {
        let cases: [(&[u8], &[u8]); 9] = [
            (b"\x1b[5n", b"\x1b[0n"),
            (b"ab\r\ncd\x1b[6n", b"\x1b[2;3R"),
            (b"\x1b[c", b"\x1b[?62;22c"),
            (b"\x1b[>c", b"\x1b[>1;10;0c"),
            (b"\x1b[18t", b"\x1b[8;5;20t"),
            (b"\x1b[?2026$p", b"\x1b[?2026;0$y"),
            (b"\x1b]11;?\x07", b"\x1b]11;rgb:0000/0000/0000\x1b\\"),
            (b"\x1b]10;?\x1b\\", b"\x1b]10;rgb:d0d0/d0d0/d0d0\x1b\\"),
            (b"\x1b[>q", b"\x1bP>|outlast\x1b\\"),
        ];
        for (question, answer) in cases {
            let mut whole = Screen::new(WINDOW);
            assert_eq!(whole.show(question), answer, "{}", question.escape_ascii());
            let mut pieces = Screen::new(WINDOW);
            let said: Vec<u8> = question.iter().flat_map(|byte| pieces.show(&[*byte])).collect();
            assert_eq!(said, answer, "in pieces: {}", question.escape_ascii());
        }
    }

    #[test]
    fn a_repaint_brings_another_terminal_to_the_same_screen() {
        let mut screen = Screen::new(WINDOW);
        screen.show(b"below\x1b[?1049h\x1b[?2004h\x1b[?1h\x1b[?1002h\x1b[?1006h\x1b]2;title\x07\x1b[3;4H\x1b[1;31mred");
        let mut other = Screen::new(WINDOW);
        other.show(b"something else entirely\r\n\x1b[?1000h");
        other.show(&screen.repaint());
        let (one, two) = (screen.parser.screen(), other.parser.screen());
        assert_eq!(two.contents_formatted(), one.contents_formatted());
        assert_eq!(two.input_mode_formatted(), one.input_mode_formatted());
        assert_eq!(two.cursor_position(), (2, 6));
        assert!(two.alternate_screen());
        assert_eq!(other.parser.callbacks().title, b"title");
    }

    /// A viewer that fell behind may have missed that the mouse was let go.
    #[test]
    fn a_repaint_switches_off_what_the_program_did_not_leave_on() {
        let mut other = Screen::new(WINDOW);
        other.show(b"\x1b[?1003h\x1b[?1006h\x1b[?2004h\x1b[?1h\x1b=\x1b[5 q\x1b[2;4r\x1b[?25l");
        other.show(&Screen::new(WINDOW).repaint());
        let plain = Screen::new(WINDOW);
        let (one, two) = (plain.parser.screen(), other.parser.screen());
        assert_eq!(two.state_formatted(), one.state_formatted());
    }

    /// A panic in the model would take the shim, and with it the exit status, down.
    #[test]
    fn no_garbage_and_no_size_breaks_the_model() {
        let pieces: [&[u8]; 16] = [
            b"\x1b[",
            b"\x1b]",
            b"\x1bP",
            b";",
            b"9999",
            b"0",
            b"?",
            b"h",
            b"l",
            b"m",
            b"H",
            b"L",
            b"\xff\xe4\xb8",
            "宽字👩‍👩‍👧".as_bytes(),
            b"\r\n\t\x08",
            b"text",
        ];
        let finals = b"@ABCDEFGHIJKLMPSTXZ`abcdefghlmnpqrstu78=>M";
        let mut seed = 1u64;
        let mut next = |bound: usize| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(seed >> 33).expect("31 bits") % bound
        };
        let mut screen = Screen::new(WINDOW);
        for _ in 0..200_000 {
            match next(20) {
                0 => {
                    let side = |n: usize| u16::try_from(n).expect("small");
                    screen.resize(Window { rows: side(next(9)), cols: side(next(9)) });
                }
                1..=6 => drop(screen.show(&[finals[next(finals.len())]])),
                _ => drop(screen.show(pieces[next(pieces.len())])),
            }
            if next(50) == 0 {
                drop(screen.repaint());
            }
        }
    }
}
