//! One line of text, being typed.

use crate::tui::keys::Key;

/// More is better put into a file.
const LONGEST: usize = 4 << 10;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Input {
    pub(crate) text: String,
    /// Where the cursor is, in characters from the start.
    pub(crate) cursor: usize,
}

impl Input {
    pub(crate) fn of(text: &str) -> Self {
        Self { text: text.to_owned(), cursor: text.chars().count() }
    }

    /// Takes what changes the line; other keys change nothing.
    pub(crate) fn take(&mut self, key: &Key) {
        match key {
            Key::Char(c) => self.insert(*c),
            // What is on several lines is put on one.
            Key::Paste(text) => {
                text.trim_end()
                    .chars()
                    .for_each(|c| self.insert(if c.is_control() { ' ' } else { c }));
            }
            Key::Backspace => self.remove_back(1),
            Key::Ctrl('u') => self.remove_back(self.cursor),
            Key::Ctrl('w') => self.remove_back(self.word_before()),
            Key::Left => self.cursor = self.cursor.saturating_sub(1),
            Key::Right => self.cursor = (self.cursor + 1).min(self.text.chars().count()),
            Key::Home | Key::Ctrl('a') => self.cursor = 0,
            Key::End | Key::Ctrl('e') => self.cursor = self.text.chars().count(),
            _ => {}
        }
    }

    fn insert(&mut self, c: char) {
        if self.text.len() + c.len_utf8() <= LONGEST {
            self.text.insert(self.at(self.cursor), c);
            self.cursor += 1;
        }
    }

    fn remove_back(&mut self, count: usize) {
        let from = self.cursor.saturating_sub(count);
        self.text.replace_range(self.at(from)..self.at(self.cursor), "");
        self.cursor = from;
    }

    /// How many characters the word before the cursor has, with the spaces behind it.
    fn word_before(&self) -> usize {
        let before: Vec<char> = self.text.chars().take(self.cursor).collect();
        let spaces = before.iter().rev().take_while(|c| c.is_whitespace()).count();
        let word = before.iter().rev().skip(spaces).take_while(|c| !c.is_whitespace()).count();
        spaces + word
    }

    fn at(&self, chars: usize) -> usize {
        self.text.char_indices().nth(chars).map_or(self.text.len(), |(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &[Key]) -> Input {
        let mut input = Input::default();
        keys.iter().for_each(|key| input.take(key));
        input
    }

    #[test]
    fn a_line_is_edited_anywhere() {
        let mut input = Input::of("größe 日本 now");
        input.take(&Key::Ctrl('w'));
        assert_eq!((input.text.as_str(), input.cursor), ("größe 日本 ", 9));
        input.take(&Key::Left);
        input.take(&Key::Backspace);
        assert_eq!(input.text, "größe 日 ");
        input.take(&Key::Home);
        input.take(&Key::Char('a'));
        assert_eq!((input.text.as_str(), input.cursor), ("agröße 日 ", 1));
        input.take(&Key::End);
        input.take(&Key::Ctrl('u'));
        assert_eq!(input, Input::default());
        input.take(&Key::Backspace);
        assert_eq!(input, Input::default());
    }

    #[test]
    fn a_paste_is_one_line_and_not_without_end() {
        assert_eq!(typed(&[Key::Paste("a\nb\tc\x1b\n".to_owned())]).text, "a b c ");
        assert_eq!(typed(&[Key::Paste("x".repeat(1 << 20))]).text.len(), LONGEST);
    }
}
