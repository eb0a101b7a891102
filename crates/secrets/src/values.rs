//! Which values count, and in what forms they are looked for.

use std::collections::BTreeSet;

/// Bytes that a value has at least if its name only looks secret: shorter ones occur by themselves.
pub const LEAST_LOOKING: usize = 8;

/// The same if the operator has named its variable.
pub const LEAST_NAMED: usize = 4;

/// A word or a number up to this is a setting and no secret.
const LONGEST_WORD: usize = 12;

/// A line of a value of several lines is looked for by itself from this length on.
const LEAST_LINE: usize = 16;

/// Last words of the names of variables that hold a path.
const PLACES: [&str; 7] = ["FILE", "PATH", "DIR", "HOME", "ROOT", "SOCK", "SOCKET"];

/// False for what a variable with a secret name holds when it holds no secret: a path, a word, a number.
pub(crate) fn looks_secret(name: &str, value: &[u8]) -> bool {
    let value = value.trim_ascii();
    !is_path(name, value) && !is_word(value)
}

/// Keys may begin with a slash too, so a value with a part that looks drawn by lot is none.
fn is_path(name: &str, value: &[u8]) -> bool {
    let has_start = [&b"/"[..], b"./", b"../", b"~/"].iter().any(|start| value.starts_with(start));
    let name = name.to_uppercase();
    let is_place = name.rsplit('_').next().is_some_and(|word| PLACES.contains(&word));
    has_start && (is_place || !value.split(|byte| *byte == b'/').any(is_random))
}

fn is_random(part: &[u8]) -> bool {
    part.len() >= LEAST_LOOKING
        && part.iter().any(u8::is_ascii_uppercase)
        && part.iter().any(u8::is_ascii_lowercase)
        && part.iter().any(u8::is_ascii_digit)
}

fn is_word(value: &[u8]) -> bool {
    let all = |is: fn(&u8) -> bool| value.iter().all(is);
    let is_plain =
        all(u8::is_ascii_lowercase) || all(u8::is_ascii_uppercase) || all(u8::is_ascii_digit);
    is_plain && value.len() <= LONGEST_WORD
}

/// The value as programs print it, in each form once; none if it has fewer bytes than `least`.
pub(crate) fn forms(value: &[u8], least: usize) -> BTreeSet<Vec<u8>> {
    let value = value.trim_ascii();
    let mut forms = BTreeSet::new();
    if value.len() < least {
        return forms;
    }
    if value.contains(&b'\n') {
        let lines = || value.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        // A terminal ends its lines so.
        let ended: Vec<&[u8]> = value.split(|byte| *byte == b'\n').collect();
        forms.insert(ended.join(&b"\r\n"[..]));
        let telling =
            lines().filter(|line| line.len() >= LEAST_LINE && !line.starts_with(b"-----"));
        forms.extend(telling.map(<[u8]>::to_vec));
    }
    if let Ok(text) = std::str::from_utf8(value) {
        forms.extend(in_json(text));
    }
    forms.insert(value.to_vec());
    forms
}

/// How the writers of JSON differ. Each of them escapes quotes, backslashes and control characters.
#[derive(Clone, Copy)]
struct Style {
    /// `\/`
    slash: bool,
    /// `\u00e9`
    ascii: bool,
    /// `\u003c` for `<`, `>` and `&`
    html: bool,
    /// `\u00E9`
    upper: bool,
    /// Each character as `\u0061`
    all: bool,
}

fn in_json(text: &str) -> impl Iterator<Item = Vec<u8>> {
    let styles = (0..32_u8).map(|bits| {
        let is = |bit: u8| bits & (1 << bit) != 0;
        Style { slash: is(0), ascii: is(1), html: is(2), upper: is(3), all: is(4) }
    });
    styles.map(move |style| escaped(text, style).into_bytes())
}

fn escaped(text: &str, style: Style) -> String {
    let mut written = String::with_capacity(text.len() + 8);
    for char in text.chars() {
        let short = match char {
            _ if style.all => None,
            '"' => Some("\\\""),
            '\\' => Some("\\\\"),
            '\n' => Some("\\n"),
            '\r' => Some("\\r"),
            '\t' => Some("\\t"),
            '\u{8}' => Some("\\b"),
            '\u{c}' => Some("\\f"),
            '/' if style.slash => Some("\\/"),
            _ => None,
        };
        let is_coded = style.all
            || char.is_ascii_control()
            || (style.ascii && !char.is_ascii())
            || (style.html && "<>&\u{2028}\u{2029}".contains(char));
        match short {
            Some(short) => written.push_str(short),
            None if is_coded => code(char, style.upper, &mut written),
            None => written.push(char),
        }
    }
    written
}

fn code(char: char, upper: bool, to: &mut String) {
    for unit in char.encode_utf16(&mut [0; 2]) {
        to.push_str(&if upper { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_and_paths_are_no_secrets() {
        let open = [
            ("AUTH_MODE", "disabled"),
            ("AUTH_METHOD", "CREDENTIALS"),
            ("MAX_TOKENS", "200000000"),
            ("SSH_AUTH_SOCK", "/tmp/com.apple.launchd.Xy12AbCdEf/Listeners"),
            ("KEY_STORE", "/srv/keys/main.pem"),
            ("TOKEN_CACHE", "~/.cache/tokens"),
        ];
        for (name, value) in open {
            assert!(!looks_secret(name, value.as_bytes()), "{name}={value}");
        }
        let secret = [
            ("DB_PASSWORD", "hunter22"),
            ("DB_PASSWORD", "correcthorsebattery"),
            ("AWS_SECRET_ACCESS_KEY", "/Ab3xYz0123456789abcdefGHIJKLmnop/qrsTUV"),
            ("PIN_TOKEN", "1234567890123"),
        ];
        for (name, value) in secret {
            assert!(looks_secret(name, value.as_bytes()), "{name}={value}");
        }
    }

    #[test]
    fn a_plain_token_has_few_forms_and_a_short_one_none() {
        let found = forms(b" sk-0123456789\n", LEAST_LOOKING);
        assert_eq!(found.len(), 3, "itself, and all of it as codes with either digits");
        assert!(found.contains(&b"sk-0123456789"[..]));
        assert!(forms(b"short", LEAST_LOOKING).is_empty());
        assert!(forms(b"pin1", LEAST_NAMED).contains(&b"pin1"[..]));
    }

    #[test]
    fn a_key_of_several_lines_is_found_line_by_line_too() {
        let key = b"-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEF\n-----END PRIVATE KEY-----\n";
        let found = forms(key, LEAST_LOOKING);
        assert!(found.contains(&b"MIIEvQIBADANBgkqhkiG9w0B"[..]));
        assert!(
            !found.contains(&b"AQEF"[..])
                && !found.iter().any(|form| form.ends_with(b"KEY-----\n"))
        );
        let on_a_terminal = b"-----BEGIN PRIVATE KEY-----\r\nMIIEvQIBADANBgkqhkiG9w0B\r\nAQEF\r\n-----END PRIVATE KEY-----";
        assert!(found.contains(&on_a_terminal[..]));
    }
}
