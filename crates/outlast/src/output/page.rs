//! Pages: keys on the left, what is known on the right; what is not known is left out.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::output::{lines, printable};

/// In columns of the terminal: what is narrower is not worth wrapping to.
const NARROWEST: usize = 20;

/// How far longer text is set in below its key.
const INDENT: &str = "  ";

/// Where the values begin.
const KEY: usize = 11;

#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) text: String,
    /// Values are wrapped to this width, of a terminal.
    columns: Option<usize>,
}

impl Page {
    pub(crate) fn fitting(columns: Option<usize>) -> Self {
        Self { text: String::new(), columns }
    }

    pub(crate) fn line(&mut self, key: &str, value: &str) {
        let value = printable(value);
        let room = self.columns.map(|columns| columns.saturating_sub(KEY).max(NARROWEST));
        let pieces = room.map_or_else(|| vec![value.clone()], |room| wrapped(&value, room));
        for (at, piece) in pieces.iter().enumerate() {
            self.painted(if at == 0 { key } else { "" }, piece);
        }
    }

    pub(crate) fn some(&mut self, key: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.line(key, value);
        }
    }

    /// A command to paste, on a line of its own and never broken; lines before it say what it is for.
    pub(crate) fn command(&mut self, key: &str, hint: &str) {
        for (at, line) in hint.lines().enumerate() {
            let key = if at == 0 { key } else { "" };
            match lines::is_command(line) {
                true => self.painted(key, &printable(line)),
                false => self.line(key, line),
            }
        }
    }

    /// A value that carries colours of ours.
    pub(crate) fn painted(&mut self, key: &str, value: &str) {
        let line = format!("{key:<KEY$}{value}");
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// Text that is laid out already, apart from what is above it.
    pub(crate) fn block(&mut self, text: &str) {
        self.text.push('\n');
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// What follows is about something of its own.
    pub(crate) fn heading(&mut self, text: &str) {
        self.text.push_str(&format!("\n{}\n", printable(text)));
    }

    /// Text of several lines below its key. None is left out, and none can act on a terminal.
    pub(crate) fn text(&mut self, key: &str, text: &str) {
        self.below(key, text, self.columns);
    }

    /// The same of output of a program, whose lines are as wide as they were printed.
    pub(crate) fn verbatim(&mut self, key: &str, text: &str) {
        self.below(key, text, None);
    }

    fn below(&mut self, key: &str, text: &str, columns: Option<usize>) {
        let text = text.trim_end();
        if text.is_empty() {
            return;
        }
        self.text.push_str(&format!("{key}\n"));
        for line in text.lines() {
            let line = format!("{INDENT}{}", printable(line));
            self.text.push_str(lines::fitting(line.trim_end(), columns).as_str());
            self.text.push('\n');
        }
    }
}

/// A line as lines of at most this many columns, broken at blanks where there are any.
pub(crate) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_inclusive(' ') {
        let wide = word.trim_end().width();
        if used > 0 && used + wide > columns {
            lines.push(String::new());
            used = 0;
        }
        for c in word.chars() {
            let wide = c.width().unwrap_or(0);
            if used > 0 && used + wide > columns && c != ' ' {
                lines.push(String::new());
                used = 0;
            }
            used += wide;
            lines.last_mut().expect("there is always one").push(c);
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

/// A command as it could be typed again.
pub(crate) fn shell_words(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// A word as it could be typed.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_quoted_so_that_it_can_be_typed_again() {
        let words = ["sh", "-c", "echo it's $HOME", "", "a=b"].map(str::to_owned);
        assert_eq!(shell_words(&words), r"sh -c 'echo it'\''s $HOME' '' a=b");
    }

    #[test]
    fn long_text_stands_below_its_key() {
        let mut page = Page::default();
        page.text("prompt", "Port it.\n\n\x1b[2JKeep the tests.\n\n");
        page.text("nothing", "\n");
        assert_eq!(page.text, "prompt\n  Port it.\n\n  ·[2JKeep the tests.\n");
    }

    #[test]
    fn on_a_terminal_a_long_value_goes_on_below_itself() {
        let mut page = Page::fitting(Some(40));
        page.line("asks", "May I change mul to multiply? It may break callers.");
        page.command("do", "give advice for the next turn of it:\noutlast send bug-42 'TEXT'");
        assert_eq!(
            page.text,
            "asks       May I change mul to multiply?\n           It may break callers.\n\
             do         give advice for the next turn\n           of it:\n           outlast send bug-42 'TEXT'\n"
        );
        assert_eq!(wrapped("aaaaaaaa b", 4), ["aaaa", "aaaa", "b"]);
        assert_eq!(wrapped("", 4), [""]);
    }
}
