//! Keys of a browser as the bytes that a terminal sends for them.

use serde::Deserialize;

use crate::screen::Screen;

/// A longer text is refused, in bytes.
const MOST_TEXT: usize = 16 * 1024;

/// What the page sends when a person types.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Typed {
    /// A text that was pasted, or typed on a phone.
    Text(String),
    /// A key, as the browser names it.
    Key {
        name: String,
        #[serde(default)]
        ctrl: bool,
        #[serde(default)]
        alt: bool,
    },
}

impl Typed {
    /// `None` for what no terminal sends.
    pub(crate) fn bytes(&self, screen: &Screen) -> Option<Vec<u8>> {
        match self {
            Self::Text(text) if text.len() > MOST_TEXT => None,
            Self::Text(text) => Some(pasted(text, screen.wants_bracketed_paste())),
            Self::Key { name, ctrl, alt } => {
                let bytes = key(name, *ctrl, screen.wants_application_cursor())?;
                Some(if *alt { [b"\x1b", bytes.as_slice()].concat() } else { bytes })
            }
        }
    }
}

/// A text of more than one line is a paste, which a program may want to be told.
fn pasted(text: &str, is_bracketed: bool) -> Vec<u8> {
    // An escape in it could end the brackets, or be a key that no person pressed.
    let text: String =
        text.chars().filter(|it| !it.is_control() || matches!(it, '\n' | '\t')).collect();
    let keys = text.replace('\n', "\r");
    match is_bracketed && text.contains('\n') {
        true => format!("\x1b[200~{keys}\x1b[201~").into_bytes(),
        false => keys.into_bytes(),
    }
}

fn key(name: &str, ctrl: bool, is_application: bool) -> Option<Vec<u8>> {
    let mut letters = name.chars();
    if let (Some(letter), None) = (letters.next(), letters.next()) {
        return if ctrl { control(letter).map(|byte| vec![byte]) } else { Some(name.into()) };
    }
    let arrow = |letter: char| format!("\x1b{}{letter}", if is_application { 'O' } else { '[' });
    Some(
        match name {
            "Enter" => "\r".to_owned(),
            "Tab" => "\t".to_owned(),
            "Backspace" => "\x7f".to_owned(),
            "Escape" => "\x1b".to_owned(),
            "ArrowUp" => arrow('A'),
            "ArrowDown" => arrow('B'),
            "ArrowRight" => arrow('C'),
            "ArrowLeft" => arrow('D'),
            "Home" => arrow('H'),
            "End" => arrow('F'),
            "Insert" => "\x1b[2~".to_owned(),
            "Delete" => "\x1b[3~".to_owned(),
            "PageUp" => "\x1b[5~".to_owned(),
            "PageDown" => "\x1b[6~".to_owned(),
            _ => return None,
        }
        .into_bytes(),
    )
}

/// Ctrl and a letter: `^C` is 3.
fn control(letter: char) -> Option<u8> {
    let byte = u8::try_from(letter).ok()?.to_ascii_uppercase();
    match byte {
        b'@'..=b'_' => Some(byte & 0x1f),
        b' ' => Some(0),
        b'?' => Some(0x7f),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_what_a_terminal_sends() {
        let mut screen = Screen::new();
        let key = |screen: &Screen, json: &str| {
            let typed: Typed = serde_json::from_str(json).expect("a key");
            typed.bytes(screen).map(|bytes| String::from_utf8(bytes).expect("text"))
        };
        assert_eq!(key(&screen, r#"{"key":{"name":"a"}}"#).as_deref(), Some("a"));
        assert_eq!(key(&screen, r#"{"key":{"name":"c","ctrl":true}}"#).as_deref(), Some("\x03"));
        assert_eq!(key(&screen, r#"{"key":{"name":"x","alt":true}}"#).as_deref(), Some("\x1bx"));
        assert_eq!(key(&screen, r#"{"key":{"name":"ArrowUp"}}"#).as_deref(), Some("\x1b[A"));
        assert_eq!(key(&screen, r#"{"key":{"name":"F24"}}"#), None);
        assert_eq!(key(&screen, r#"{"text":"a\u001b[201~b\nc"}"#).as_deref(), Some("a[201~b\rc"));
        screen.take(b"\x1b[?1h\x1b[?2004h");
        assert_eq!(key(&screen, r#"{"key":{"name":"ArrowUp"}}"#).as_deref(), Some("\x1bOA"));
        let pasted = key(&screen, r#"{"text":"a\nb"}"#);
        assert_eq!(pasted.as_deref(), Some("\x1b[200~a\rb\x1b[201~"));
    }
}
