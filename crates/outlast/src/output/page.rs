//! Pages: keys on the left, what is known on the right; what is not known is left out.

use crate::output::printable;

/// How far longer text is set in below its key.
const INDENT: &str = "  ";

#[derive(Debug, Default)]
pub(crate) struct Page(pub(crate) String);

impl Page {
    pub(crate) fn line(&mut self, key: &str, value: &str) {
        self.painted(key, &printable(value));
    }

    pub(crate) fn some(&mut self, key: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.line(key, value);
        }
    }

    /// A value that carries colours of ours.
    pub(crate) fn painted(&mut self, key: &str, value: &str) {
        self.0.push_str(&format!("{key:<11}{value}\n"));
    }

    /// What follows is about something of its own.
    pub(crate) fn heading(&mut self, text: &str) {
        self.0.push_str(&format!("\n{}\n", printable(text)));
    }

    /// Text of several lines below its key. None is left out, and none can act on a terminal.
    pub(crate) fn text(&mut self, key: &str, text: &str) {
        let text = text.trim_end();
        if text.is_empty() {
            return;
        }
        self.0.push_str(&format!("{key}\n"));
        for line in text.lines() {
            let line = format!("{INDENT}{}", printable(line));
            self.0.push_str(line.trim_end());
            self.0.push('\n');
        }
    }
}

/// A command as it could be typed again.
pub(crate) fn shell_words(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
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
        assert_eq!(page.0, "prompt\n  Port it.\n\n  ·[2JKeep the tests.\n");
    }
}
