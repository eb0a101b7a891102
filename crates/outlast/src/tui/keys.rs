//! Keys: bytes as a terminal sends them, into what was pressed.
//!
//! Reads nothing itself. An escape that nothing follows may be the key or the start of another one: the caller
//! that reads the terminal says after a while that nothing came.

/// Longer pastes than this are cut; what they go into is one line.
const LONGEST_PASTE: usize = 64 << 10;
/// No key is longer.
const LONGEST_SEQUENCE: usize = 32;

const PASTE: &[u8] = b"200~";
const PASTE_END: &[u8] = b"\x1b[201~";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Key {
    Char(char),
    /// Text that came in one piece; nothing in it is a command.
    Paste(String),
    Enter,
    Escape,
    Backspace,
    Tab,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
    /// A letter with Ctrl.
    Ctrl(char),
}

#[derive(Debug, Default)]
pub(crate) struct Keys {
    /// What does not make a whole key yet.
    pending: Vec<u8>,
}

/// The first thing in the bytes, and how many it took.
enum Found {
    Key(Key, usize),
    /// Nothing that we know.
    Nothing(usize),
    /// More has to come first.
    Part,
}

impl Keys {
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.pending.extend_from_slice(bytes);
        self.take(false)
    }

    /// True while a key may have been pressed that is not told yet.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.pending.is_empty() && !self.is_pasting()
    }

    /// Nothing more came: what there is stands for itself.
    pub(crate) fn settle(&mut self) -> Vec<Key> {
        if self.is_pasting() { Vec::new() } else { self.take(true) }
    }

    fn is_pasting(&self) -> bool {
        self.pending.strip_prefix(b"\x1b[").is_some_and(|rest| rest.starts_with(PASTE))
    }

    fn take(&mut self, is_all: bool) -> Vec<Key> {
        let mut keys = Vec::new();
        let mut at = 0;
        while at < self.pending.len() {
            match first(&self.pending[at..], is_all) {
                Found::Key(key, length) => {
                    keys.push(key);
                    at += length;
                }
                Found::Nothing(length) => at += length,
                Found::Part => break,
            }
        }
        self.pending.drain(..at);
        keys
    }
}

fn first(bytes: &[u8], is_all: bool) -> Found {
    match bytes {
        [b'\x1b', b'[', rest @ ..] => sequence(bytes, rest, is_all),
        [b'\x1b', b'O', letter, ..] => known(named(*letter), 3),
        [b'\x1b'] | [b'\x1b', b'O'] if !is_all => Found::Part,
        [b'\x1b', ..] => Found::Key(Key::Escape, 1),
        [b'\r' | b'\n', ..] => Found::Key(Key::Enter, 1),
        [b'\t', ..] => Found::Key(Key::Tab, 1),
        [0x7f | 0x08, ..] => Found::Key(Key::Backspace, 1),
        [control @ 1..=26, ..] => Found::Key(Key::Ctrl(char::from(control | 0x60)), 1),
        [0..=31, ..] => Found::Nothing(1),
        _ => text(bytes, is_all),
    }
}

fn text(bytes: &[u8], is_all: bool) -> Found {
    let length = match bytes[0] {
        0xf0..=0xf7 => 4,
        0xe0..=0xef => 3,
        0xc0..=0xdf => 2,
        _ => 1,
    };
    let Some(char) = bytes.get(..length) else {
        return if is_all { Found::Nothing(bytes.len()) } else { Found::Part };
    };
    match std::str::from_utf8(char).ok().and_then(|text| text.chars().next()) {
        Some(char) => Found::Key(Key::Char(char), length),
        None => Found::Nothing(1),
    }
}

/// `rest` is what follows `ESC [`.
fn sequence(bytes: &[u8], rest: &[u8], is_all: bool) -> Found {
    if rest.starts_with(PASTE) {
        return paste(&rest[PASTE.len()..], bytes.len() - rest.len() + PASTE.len());
    }
    let Some(end) = rest.iter().position(|byte| (0x40..=0x7e).contains(byte)) else {
        let is_hopeless = is_all || rest.len() > LONGEST_SEQUENCE;
        return if is_hopeless { Found::Nothing(bytes.len()) } else { Found::Part };
    };
    let length = bytes.len() - rest.len() + end + 1;
    let number = rest[..end].split(|byte| *byte == b';').next().unwrap_or_default();
    let key = match (number, rest[end]) {
        (b"1" | b"7", b'~') => Some(Key::Home),
        (b"4" | b"8", b'~') => Some(Key::End),
        (b"5", b'~') => Some(Key::PageUp),
        (b"6", b'~') => Some(Key::PageDown),
        (_, letter) => named(letter),
    };
    known(key, length)
}

fn paste(text: &[u8], begins_at: usize) -> Found {
    let Some(end) = text.windows(PASTE_END.len()).position(|some| some == PASTE_END) else {
        // Its end did not come for so long that it is none.
        return if text.len() > LONGEST_PASTE {
            Found::Nothing(begins_at + text.len())
        } else {
            Found::Part
        };
    };
    let text = String::from_utf8_lossy(&text[..end]).into_owned();
    Found::Key(Key::Paste(text), begins_at + end + PASTE_END.len())
}

fn named(letter: u8) -> Option<Key> {
    Some(match letter {
        b'A' => Key::Up,
        b'B' => Key::Down,
        b'C' => Key::Right,
        b'D' => Key::Left,
        b'H' => Key::Home,
        b'F' => Key::End,
        b'M' => Key::Enter,
        _ => return None,
    })
}

fn known(key: Option<Key>, length: usize) -> Found {
    key.map_or(Found::Nothing(length), |key| Found::Key(key, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_out_whole_however_they_arrive() {
        let typed = "q\x1b[A\x1bOB\x1b[5~\x1b[1;5Cé\r\x7f\x03\x1b[200~s\ny\x1b[201~j".as_bytes();
        let expected = vec![
            Key::Char('q'),
            Key::Up,
            Key::Down,
            Key::PageUp,
            Key::Right,
            Key::Char('é'),
            Key::Enter,
            Key::Backspace,
            Key::Ctrl('c'),
            Key::Paste("s\ny".to_owned()),
            Key::Char('j'),
        ];
        for split in 0..=typed.len() {
            let mut keys = Keys::default();
            let mut seen = keys.feed(&typed[..split]);
            seen.extend(keys.feed(&typed[split..]));
            assert_eq!(seen, expected, "split at {split}");
        }
    }

    #[test]
    fn an_escape_is_the_key_once_nothing_follows() {
        let mut keys = Keys::default();
        assert_eq!(keys.feed(b"\x1b"), []);
        assert!(keys.is_waiting());
        assert_eq!(keys.settle(), [Key::Escape]);
        assert!(!keys.is_waiting());
        assert_eq!(keys.feed(b"\x1bq"), [Key::Escape, Key::Char('q')], "nothing is bound to Alt");
    }

    #[test]
    fn what_is_pasted_is_never_a_command() {
        let mut keys = Keys::default();
        assert_eq!(keys.feed(b"\x1b[200~Sy"), []);
        assert!(!keys.is_waiting(), "a paste ends when it ends");
        assert_eq!(keys.settle(), []);
        assert_eq!(keys.feed(b"\x1b[201~"), [Key::Paste("Sy".to_owned())]);
    }

    #[test]
    fn nonsense_is_passed_over() {
        let mut keys = Keys::default();
        assert_eq!(keys.feed(b"\xff\x1b[?25;1$y\x00x"), [Key::Char('x')]);
        assert_eq!(keys.feed(&[b"\x1b[".as_slice(), &[b'1'; 40]].concat()), []);
        assert_eq!(keys.feed(b"x"), [Key::Char('x')]);
    }
}
