//! Rust source as words and signs, without comments, strings and characters; or these alone.
//!
//! Knows as much of the language as it takes to tell code from text.

/// A word (also a keyword or a number), `::`, or any other sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) text: &'a str,
    pub(super) line: usize,
}

impl Token<'_> {
    pub(super) fn is_word(&self) -> bool {
        self.text.starts_with(is_of_word)
    }
}

pub(super) fn tokens(source: &str) -> Vec<Token<'_>> {
    pieces(source).filter(|(is_code, _)| *is_code).map(|(_, token)| token).collect()
}

/// Comments, strings and characters, each whole and with the line that it begins on; and the space between tokens.
pub(super) fn texts(source: &str) -> Vec<Token<'_>> {
    pieces(source).filter(|(is_code, _)| !*is_code).map(|(_, token)| token).collect()
}

/// The source in pieces, each of which is code or not.
fn pieces(source: &str) -> impl Iterator<Item = (bool, Token<'_>)> {
    let (mut rest, mut line) = (source, 1);
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let skipped = text_length(rest);
        let (text, after) = rest.split_at(skipped.unwrap_or_else(|| token_length(rest)));
        let token = Token { text, line };
        line += text.matches('\n').count();
        rest = after;
        Some((skipped.is_none(), token))
    })
}

fn token_length(rest: &str) -> usize {
    let word = rest.find(|letter| !is_of_word(letter)).unwrap_or(rest.len());
    match word {
        0 if rest.starts_with("::") => 2,
        0 => rest.chars().next().map_or(0, char::len_utf8),
        word => word,
    }
}

/// How long the space, comment, string, character or tick of a lifetime is that `rest` begins with, if it does.
fn text_length(rest: &str) -> Option<usize> {
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return Some(block_comment(rest));
    }
    if let Some(length) = string(rest) {
        return Some(length);
    }
    match rest.chars().next()? {
        '\'' => Some(character(rest)),
        space if space.is_whitespace() => Some(space.len_utf8()),
        _ => None,
    }
}

fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        let here = &rest.as_bytes()[at..];
        match here {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// A string, with the letters before it.
fn string(rest: &str) -> Option<usize> {
    let prefix = ["br", "cr", "r", "b", "c", ""].into_iter().find(|it| rest.starts_with(it))?;
    let marked = &rest[prefix.len()..];
    let marks = marked.len() - marked.trim_start_matches('#').len();
    let body = marked[marks..].strip_prefix('"')?;
    let start = rest.len() - body.len();
    if prefix.ends_with('r') {
        let end = format!("\"{}", &marked[..marks]);
        return Some(body.find(&end).map_or(rest.len(), |at| start + at + end.len()));
    }
    (marks == 0).then(|| start + until(body, b'"'))
}

/// A character as a whole, or the tick of a lifetime alone.
fn character(rest: &str) -> usize {
    let body = &rest[1..];
    let first = body.chars().next().map_or(0, char::len_utf8);
    let is_character = body.starts_with('\\') || body[first..].starts_with('\'');
    if is_character { 1 + until(body, b'\'') } else { 1 }
}

/// The length up to and with the first `end` that no backslash stands before.
fn until(body: &str, end: u8) -> usize {
    let mut is_escaped = false;
    for (at, byte) in body.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            byte if byte == end => return at + 1,
            _ => {}
        }
    }
    body.len()
}

fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(source: &str) -> String {
        tokens(source).iter().map(|token| token.text).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn words_and_signs_are_left() {
        assert_eq!(words("use a::{b, c};"), "use a :: { b , c } ;");
        assert_eq!(words("x1+r#type"), "x1 + r # type");
    }

    #[test]
    fn comments_strings_and_characters_are_not() {
        assert_eq!(words("a // b\nc /* d /* e */ f */ g"), "a c g");
        assert_eq!(words(r##"a "b \" c" d r#"e " f"# g b"h" i br"j\" k"##), "a d g i k");
        assert_eq!(words(r"a '\'' b 'c' d '{' e b'f' g"), "a b d e b g");
        assert_eq!(words("fn f<'a>(x: &'a str)"), "fn f < a > ( x : & a str )");
    }

    #[test]
    fn tokens_know_their_lines() {
        let lines: Vec<_> = tokens("a\n/* \n */ b \"\n\" c").iter().map(|it| it.line).collect();
        assert_eq!(lines, [1, 3, 4]);
    }

    #[test]
    fn comments_and_strings_are_the_text() {
        let text = |source| -> String { texts(source).iter().map(|it| it.text.trim()).collect() };
        assert_eq!(text("let a = \"b\"; // c\nd('e')"), "\"b\"// c'e'");
    }
}
