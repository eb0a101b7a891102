//! Sentences of our own without what was put into them: quoted text, addresses, paths.

use crate::world::World;

const LEFT_OUT: &str = "[…]";

pub(super) struct Scrub {
    /// Names of this user.
    own: Vec<String>,
}

impl Scrub {
    pub(super) fn new(world: &World) -> Self {
        let names = ["USER", "LOGNAME", "HOSTNAME"];
        let own = names.iter().filter_map(|name| world.client.var(name)?.to_str());
        Self { own: own.filter(|name| name.len() >= 3).map(str::to_owned).collect() }
    }

    pub(super) fn text(&self, text: &str) -> String {
        let plain = without_quotes(text);
        let words = plain.split(' ').map(|word| self.word(word));
        words.collect::<Vec<_>>().join(" ")
    }

    fn word(&self, word: &str) -> String {
        let is_ours = !word.contains('/')
            && !word.contains('@')
            && !self.own.iter().any(|own| word.contains(own));
        if is_ours { word.to_owned() } else { LEFT_OUT.to_owned() }
    }
}

/// What stands between two quotes goes; what begins with one and never ends goes to the end.
fn without_quotes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut quote = None;
    let mut before = ' ';
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match quote {
            Some(open) if letter == open => quote = None,
            // A quote within quotes, as Rust writes it.
            Some('"') if letter == '\\' => drop(letters.next()),
            Some(_) => {}
            // An apostrophe within a word is none.
            None if matches!(letter, '"' | '`')
                || (letter == '\'' && !before.is_alphanumeric()) =>
            {
                quote = Some(letter);
                plain.push_str(LEFT_OUT);
            }
            None => plain.push(if letter.is_control() { ' ' } else { letter }),
        }
        before = letter;
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scrub(text: &str) -> String {
        let world = World::new(vec![("USER".into(), "adalovelace".into())]);
        Scrub::new(&world).text(text)
    }

    #[test]
    fn only_our_own_words_stay() {
        let cases = [
            ("disk full (os error 28)", "disk full (os error 28)"),
            (r#"must be a number, got "S3" here"#, "must be a number, got […] here"),
            ("unknown variant `S3`, expected one", "unknown variant […], expected one"),
            ("cannot read '/a/S3' now", "cannot read […] now"),
            ("the run's end of /ho/S3/x: no", "the run's end of […] no"),
            ("asked http://u:S3@h/p?S3 twice", "asked […] twice"),
            ("never closed \"S3 and S3", "never closed […]"),
            (r#"said "no: \"S3\" S3 \\" then"#, "said […] then"),
            ("belongs to adalovelace", "belongs to […]"),
        ];
        for (text, expected) in cases {
            assert_eq!(scrub(text), expected);
        }
    }
}
