//! The paths that a source file mentions: every branch of its `use` trees, and paths from `crate`, `super` and `self`.
//!
//! Leaves out items that are compiled for tests only. Does not know which paths are modules.

use super::super::tokens::{Token, tokens};

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Mentions<'a> {
    pub(super) paths: Vec<Mention<'a>>,
    /// Modules within the file, from the file's own down.
    pub(super) inline: Vec<Vec<&'a str>>,
    /// Children that have a file of their own and are there for tests only.
    pub(super) for_tests: Vec<&'a str>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mention<'a> {
    /// The inline module that holds the path; empty for the file's own.
    pub(super) within: Vec<&'a str>,
    pub(super) path: Vec<&'a str>,
    pub(super) line: usize,
}

pub(super) fn of(source: &str) -> Mentions<'_> {
    let tokens = tokens(source);
    let mut reader =
        Reader { tokens: &tokens, at: 0, open: Vec::new(), found: Mentions::default() };
    while let Some(token) = reader.next() {
        reader.read(token);
    }
    reader.found
}

struct Reader<'a, 't> {
    tokens: &'t [Token<'a>],
    at: usize,
    /// What each open brace belongs to: a module, or `None` for anything else.
    open: Vec<Option<&'a str>>,
    found: Mentions<'a>,
}

impl<'a> Reader<'a, '_> {
    fn next(&mut self) -> Option<Token<'a>> {
        let token = self.tokens.get(self.at).copied();
        self.at += 1;
        token
    }

    /// The text of the token that is `ahead` of the next one; empty behind the end.
    fn peek(&self, ahead: usize) -> &'a str {
        self.tokens.get(self.at + ahead).map_or("", |token| token.text)
    }

    /// True if the next tokens are these.
    fn sees(&self, texts: &[&str]) -> bool {
        texts.iter().enumerate().all(|(ahead, text)| self.peek(ahead) == *text)
    }

    fn read(&mut self, token: Token<'a>) {
        match token.text {
            "{" => self.open.push(None),
            "}" => drop(self.open.pop()),
            "#" if self.is_for_tests() => self.skip_item(),
            "mod" if self.peek(1) == "{" => self.enter(),
            // `use<'a>` in a bound captures lifetimes.
            "use" if self.peek(0) != "<" => self.tree(&[]),
            "crate" | "super" | "self" if self.peek(0) == "::" => self.path(token),
            _ => {}
        }
    }

    fn enter(&mut self) {
        self.open.push(Some(self.peek(0)));
        self.at += 2;
        let within = self.within();
        self.found.inline.push(within);
    }

    fn within(&self) -> Vec<&'a str> {
        self.open.iter().copied().flatten().collect()
    }

    fn mention(&mut self, path: Vec<&'a str>, line: usize) {
        let within = self.within();
        self.found.paths.push(Mention { within, path, line });
    }

    fn path(&mut self, first: Token<'a>) {
        let mut path = vec![first.text];
        while self.peek(0) == "::" && self.tokens.get(self.at + 1).is_some_and(Token::is_word) {
            path.push(self.peek(1));
            self.at += 2;
        }
        self.mention(path, first.line);
    }

    /// Reads the rest of a `use` tree whose branches all begin with `stem`.
    fn tree(&mut self, stem: &[&'a str]) {
        let mut path = stem.to_vec();
        let line = self.tokens.get(self.at).map_or(0, |token| token.line);
        loop {
            match self.peek(0) {
                "{" => return self.branches(&path),
                // Of another crate, whatever its name.
                "::" if path.is_empty() => path.push(""),
                "::" => {}
                "" | "," | "}" | ";" | "as" => break,
                name => path.push(name),
            }
            self.at += 1;
        }
        if self.peek(0) == "as" {
            self.at += 2;
        }
        self.mention(path, line);
    }

    fn branches(&mut self, stem: &[&'a str]) {
        self.at += 1;
        while !matches!(self.peek(0), "}" | "") {
            self.tree(stem);
            if self.peek(0) == "," {
                self.at += 1;
            }
        }
        self.at += 1;
    }

    /// True if the attribute after the `#` compiles its item for tests only.
    fn is_for_tests(&self) -> bool {
        self.sees(&["[", "cfg", "(", "test", ")"])
            || self.sees(&["[", "cfg", "(", "all", "(", "test"])
    }

    /// Skips the attribute that follows, all others, and the item behind them.
    fn skip_item(&mut self) {
        self.skip_group();
        while self.peek(0) == "#" {
            self.at += 1;
            self.skip_group();
        }
        loop {
            match self.peek(0) {
                "mod" if self.peek(2) == ";" => self.found.for_tests.push(self.peek(1)),
                "(" | "[" => {
                    self.skip_group();
                    continue;
                }
                "{" => return self.skip_group(),
                ";" | "}" | "" => return,
                _ => {}
            }
            self.at += 1;
        }
    }

    /// Skips from an opening bracket to behind the closing one.
    fn skip_group(&mut self) {
        let mut depth = 0_usize;
        while let Some(token) = self.next() {
            match token.text {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(source: &str) -> Vec<String> {
        let joined = |mention: &Mention<'_>| {
            let within: String = mention.within.iter().map(|name| format!("{name}/")).collect();
            within + &mention.path.join("::")
        };
        of(source).paths.iter().map(joined).collect()
    }

    #[test]
    fn every_branch_of_a_use_tree_is_a_path() {
        let source =
            "pub(crate) use crate::{a::{self, B as C}, d::*};\nuse super::e;\nuse f;\nuse ::g::h;";
        let expected = ["crate::a::self", "crate::a::B", "crate::d::*", "super::e", "f", "::g::h"];
        assert_eq!(paths(source), expected);
    }

    #[test]
    fn paths_in_code_begin_with_crate_super_or_self() {
        let source =
            "fn f(x: &self::A) -> super::super::b::B { crate::c::d::<E>(x); self.f(); g::h() }";
        assert_eq!(paths(source), ["self::A", "super::super::b::B", "crate::c::d"]);
        assert_eq!(paths("fn f() -> impl A + use<'a> {}\npub(crate) fn g() {}"), [""; 0]);
    }

    #[test]
    fn what_is_for_tests_is_left_out() {
        let source = "#[cfg(test)]\nmod tests {\n use crate::a;\n mod b { }\n}\n#[cfg(test)]\n#[rustfmt::skip]\nuse crate::{c, d};\n\
            #[cfg(all(test, unix))]\nfn e(x: [u8; 2]) { crate::f() }\n#[cfg(unix)]\nuse crate::g;\n#[cfg(test)]\npub(crate) mod h;\nuse crate::i;";
        assert_eq!(paths(source), ["crate::g", "crate::i"]);
        assert_eq!(of(source).for_tests, ["h"]);
    }

    #[test]
    fn what_stands_in_an_inline_module_is_of_that_module() {
        let source =
            "mod a { fn f() { super::b() } mod c { use super::d; } }\nuse crate::e;\nmod f;";
        assert_eq!(paths(source), ["a/super::b", "a/c/super::d", "crate::e"]);
        assert_eq!(of(source).inline, [vec!["a"], vec!["a", "c"]]);
    }
}
