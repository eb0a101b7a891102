//! Words of a command line as a shell quotes and splits them: for a command that a person edits.
//!
//! Knows quotes and backslashes, and nothing else that a shell does.

/// The words on one line, each quoted where it has to be.
pub(crate) fn quoted(words: &[String]) -> String {
    words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ")
}

fn quote(word: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "%+,-./:=@_^".contains(char);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The words of a line; `None` if a quote is not closed.
pub(crate) fn split(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(char) = chars.next() {
        match char {
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        other => word.push(other),
                    }
                }
            }
            '"' => quoted_part(&mut chars, word.get_or_insert_default())?,
            '\\' => match chars.next()? {
                '\n' => {}
                other => word.get_or_insert_default().push(other),
            },
            space if space.is_whitespace() => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Some(words)
}

/// Up to the closing `"`.
fn quoted_part(chars: &mut std::str::Chars<'_>, word: &mut String) -> Option<()> {
    loop {
        match chars.next()? {
            '"' => return Some(()),
            '\\' => match chars.next()? {
                escaped @ ('"' | '\\' | '$' | '`') => word.push(escaped),
                other => word.extend(['\\', other]),
            },
            other => word.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_is_split_into_the_same_words() {
        let words = ["sh", "-c", "echo \"it's $HOME\" \\ done", "", "a b", "x=1", "ü\n2"];
        let words: Vec<String> = words.map(str::to_owned).to_vec();
        assert_eq!(split(&quoted(&words)), Some(words));
    }

    #[test]
    fn a_line_is_split_as_a_shell_splits_it() {
        let words = |line: &str| split(line).map(|words| words.join("|"));
        assert_eq!(words(r#"a  "b c"d 'e f'\ g ''"#), Some("a|b cd|e f g|".to_owned()));
        assert_eq!(words("make \\\n -j8"), Some("make|-j8".to_owned()));
        assert_eq!(words("it's"), None);
        assert_eq!(words("\"open"), None);
    }
}
