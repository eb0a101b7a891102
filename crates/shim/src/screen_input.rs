//! What a program wants to hear from the keyboard and the window beyond what the model of the screen
//! keeps: focus, xterm's modified keys and the kitty keyboard protocol.

use std::fmt::Write;

/// The kitty protocol has its flags on a stack; a program that only pushes keeps the last ones.
const STACK_MAX: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct Input {
    is_focus_wanted: bool,
    modify_other_keys: u16,
    kitty_flags: Vec<u16>,
}

impl Input {
    /// Notes a control sequence that the model does not know.
    pub(crate) fn note(&mut self, first: Option<u8>, params: &[&[u16]], last: char) {
        let param =
            |at: usize| params.get(at).and_then(|param| param.first()).copied().unwrap_or(0);
        match (first, last) {
            (Some(b'?'), 'h' | 'l') if params.iter().any(|mode| *mode == [1004]) => {
                self.is_focus_wanted = last == 'h';
            }
            (Some(b'>'), 'm') if param(0) == 4 => self.modify_other_keys = param(1),
            (Some(b'>'), 'u') => self.push(param(0)),
            (Some(b'<'), 'u') => {
                let left = self.kitty_flags.len().saturating_sub(usize::from(param(0).max(1)));
                self.kitty_flags.truncate(left);
            }
            (Some(b'='), 'u') => self.set(param(0), param(1)),
            _ => {}
        }
    }

    /// Bytes that make a terminal report what the program wants to hear.
    pub(crate) fn switch_on(&self) -> String {
        let mut bytes = String::new();
        if self.is_focus_wanted {
            bytes.push_str("\x1b[?1004h");
        }
        if self.modify_other_keys > 0 {
            write!(bytes, "\x1b[>4;{}m", self.modify_other_keys).expect("a string takes text");
        }
        if let Some(flags) = self.kitty_flags.last() {
            write!(bytes, "\x1b[={flags};1u").expect("a string takes text");
        }
        bytes
    }

    fn push(&mut self, flags: u16) {
        if self.kitty_flags.len() == STACK_MAX {
            self.kitty_flags.remove(0);
        }
        self.kitty_flags.push(flags);
    }

    fn set(&mut self, flags: u16, how: u16) {
        let before = self.kitty_flags.pop().unwrap_or(0);
        self.kitty_flags.push(match how {
            2 => before | flags,
            3 => before & !flags,
            _ => flags,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(sequences: &[(u8, &[u16], char)]) -> String {
        let mut input = Input::default();
        for (first, params, last) in sequences {
            let params: Vec<&[u16]> = params.chunks(1).collect();
            input.note(Some(*first), &params, *last);
        }
        input.switch_on()
    }

    #[test]
    fn what_is_on_is_switched_on_again_and_what_was_left_is_not() {
        assert_eq!(after(&[]), "");
        assert_eq!(after(&[(b'?', &[2026, 1004], 'h')]), "\x1b[?1004h");
        assert_eq!(after(&[(b'?', &[1004], 'h'), (b'?', &[1004], 'l')]), "");
        assert_eq!(after(&[(b'>', &[4, 2], 'm')]), "\x1b[>4;2m");
        assert_eq!(after(&[(b'>', &[4, 2], 'm'), (b'>', &[4], 'm')]), "");
        assert_eq!(after(&[(b'>', &[1], 'u'), (b'=', &[4, 2], 'u')]), "\x1b[=5;1u");
        assert_eq!(after(&[(b'>', &[1], 'u'), (b'>', &[3], 'u'), (b'<', &[0], 'u')]), "\x1b[=1;1u");
        assert_eq!(after(&[(b'>', &[1], 'u'), (b'<', &[9], 'u')]), "");
    }
}
