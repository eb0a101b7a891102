//! As much of a Cargo.toml as the rules need: which dependencies it names, and where.

use super::tree::File;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    /// What is built into the crate, also by its build script and also for one platform only.
    Normal,
    Dev,
    /// `[workspace.dependencies]`
    Workspace,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Dependency {
    pub(super) section: Section,
    /// The crate's name, also where it is used under another.
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) has_comment: bool,
}

pub(super) fn dependencies(file: &File) -> Vec<Dependency> {
    let mut found: Vec<Dependency> = Vec::new();
    let mut place = Header::Elsewhere;
    let mut depth = 0;
    for (line, text) in file.lines() {
        let (code, has_comment) = split_comment(text);
        let code = code.trim();
        if depth == 0 && code.starts_with('[') {
            place = Header::of(code);
            if let Header::Table(section, name) = &place {
                found.push(Dependency { section: *section, name: name.clone(), line, has_comment });
            }
        } else if let Some(known) =
            found.last_mut().filter(|_| depth > 0 || matches!(place, Header::Table(..)))
        {
            known.has_comment |= has_comment;
            rename(known, code);
        } else if let (Header::List(section), Some((name, _))) =
            (&place, code.split_once(['=', '.', ' ']))
        {
            let mut dependency =
                Dependency { section: *section, name: unquoted(name), line, has_comment };
            rename(&mut dependency, code);
            found.push(dependency);
        }
        depth = (depth + brackets(code)).max(0);
    }
    found
}

enum Header {
    Elsewhere,
    /// `[dependencies]`
    List(Section),
    /// `[dependencies.name]`
    Table(Section, String),
}

impl Header {
    fn of(header: &str) -> Self {
        let header = header.trim_matches(['[', ']']);
        let in_section = |header: &str| match header.rsplit('.').next() {
            Some("dev-dependencies") => Some(Section::Dev),
            Some("dependencies") if header == "workspace.dependencies" => Some(Section::Workspace),
            Some("dependencies" | "build-dependencies") => Some(Section::Normal),
            _ => None,
        };
        if let Some(section) = in_section(header) {
            return Self::List(section);
        }
        let parts = header
            .rsplit_once('.')
            .and_then(|(rest, name)| Some((in_section(rest)?, unquoted(name))));
        parts.map_or(Self::Elsewhere, |(section, name)| Self::Table(section, name))
    }
}

/// Takes the real name from `package = "…"`.
fn rename(dependency: &mut Dependency, code: &str) {
    let value =
        code.split_once("package").and_then(|(_, rest)| rest.trim_start().strip_prefix('='));
    if let Some(name) = value.and_then(|value| value.split('"').nth(1)) {
        name.clone_into(&mut dependency.name);
    }
}

fn unquoted(name: &str) -> String {
    name.trim().trim_matches(['"', '\'']).to_owned()
}

fn brackets(code: &str) -> i32 {
    let one =
        |byte: u8| i32::from(matches!(byte, b'[' | b'{')) - i32::from(matches!(byte, b']' | b'}'));
    code.bytes().map(one).sum()
}

/// What stands before the comment, and whether there is one that says something.
fn split_comment(line: &str) -> (&str, bool) {
    let mut in_string = false;
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            b'"' => in_string = !in_string,
            b'#' if !in_string => return (&line[..at], !line[at + 1..].trim().is_empty()),
            _ => {}
        }
    }
    (line, false)
}

#[cfg(test)]
mod tests {
    use super::super::tree::files;
    use super::*;

    #[test]
    fn every_way_to_name_a_dependency_is_read() {
        let text = r##"
[package]
name = "x"
[dependencies]
a = "1" # why
b.workspace = true
c = { package = "real-c", version = "1" }
d = { version = "1#2", features = [
    "f", # for f
] }
[dependencies.e]
version = "1"
[target.'cfg(unix)'.dependencies]
f = "1"
[dev-dependencies]
g = "1"
[lints]
workspace = true
"##;
        let read = dependencies(&files(&[("Cargo.toml", text)])[0]);
        let lines: Vec<_> = read
            .iter()
            .map(|d| format!("{} {} {:?} {}", d.line, d.name, d.section, d.has_comment))
            .collect();
        let expected = [
            "5 a Normal true",
            "6 b Normal false",
            "7 real-c Normal false",
            "8 d Normal true",
            "11 e Normal false",
            "14 f Normal false",
            "16 g Dev false",
        ];
        assert_eq!(lines, expected);
    }
}
