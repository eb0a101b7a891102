//! A path as a file has it into a path as it is: `~`, `$NAME`, and never above where it starts.
//!
//! Asks no file system: `..` is resolved by its letters.

use std::path::{Component, Path, PathBuf};

use super::Surroundings;
use crate::problem::Code;

/// A code, a message that goes on from the key, and a hint.
type Refusal = (Code, String, String);

pub(super) fn expand(
    text: &str,
    file: &Path,
    around: &Surroundings<'_>,
) -> Result<PathBuf, Refusal> {
    let (base, rest) = start(text, file, around)?;
    let rest = variables(rest, around)?;
    let root = below(&base, Path::new(&rest)).ok_or_else(|| escapes(text, &base))?;
    if !root.is_absolute() {
        return Err((
            Code::WorkspaceEscapes,
            format!("{text:?} is not an absolute path"),
            "start it with /, ~ or a variable that does".to_owned(),
        ));
    }
    if root.parent().is_none() {
        return Err((
            Code::WorkspaceEscapes,
            format!("{text:?} is the root of the file system"),
            "name a directory of its own".to_owned(),
        ));
    }
    Ok(root)
}

fn escapes(text: &str, base: &Path) -> Refusal {
    let message = format!("{text:?} leads out of {}", base.display());
    (Code::WorkspaceEscapes, message, "name the directory without ..".to_owned())
}

/// Where a path starts, and what follows.
fn start<'t>(
    text: &'t str,
    file: &Path,
    around: &Surroundings<'_>,
) -> Result<(PathBuf, &'t str), Refusal> {
    let (first, rest) = text.split_once('/').unwrap_or((text, ""));
    if first == "~" {
        let home = around.home.ok_or_else(|| unset("~"))?;
        return Ok((home.to_owned(), rest));
    }
    if first.starts_with('$') {
        return Ok((PathBuf::from(variables(first, around)?), rest));
    }
    if first.is_empty() && !text.is_empty() {
        return Ok((PathBuf::from("/"), rest));
    }
    let beside = file.parent().unwrap_or(Path::new(""));
    Ok((beside.to_owned(), text))
}

/// Each `$NAME` and `${NAME}` with its value.
fn variables(text: &str, around: &Surroundings<'_>) -> Result<String, Refusal> {
    let mut parts = text.split('$');
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = match part.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
            Some(braced) => braced,
            None => part.split_at(part.find(|any: char| !is_name(any)).unwrap_or(part.len())),
        };
        let value = (around.env)(name).filter(|value| !value.is_empty());
        whole.push_str(&value.ok_or_else(|| unset(&format!("${name}")))?);
        whole.push_str(rest);
    }
    Ok(whole)
}

fn is_name(any: char) -> bool {
    any.is_ascii_alphanumeric() || any == '_'
}

fn unset(name: &str) -> Refusal {
    let message = format!("{name} is empty or not set");
    (
        Code::UnsetVariable,
        message,
        format!("set {name} where outlast is started, or write the path out"),
    )
}

/// `rest` under `base`, or nothing if it climbs out. An absolute rest stays below as well.
fn below(base: &Path, rest: &Path) -> Option<PathBuf> {
    let mut down: Vec<&std::ffi::OsStr> = Vec::new();
    for part in rest.components() {
        match part {
            Component::Normal(name) => down.push(name),
            Component::ParentDir => {
                down.pop()?;
            }
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    let base = normal(base)?;
    Some(down.into_iter().fold(base, |path, name| path.join(name)))
}

fn normal(base: &Path) -> Option<PathBuf> {
    let mut path = PathBuf::new();
    for part in base.components() {
        match part {
            Component::ParentDir => {
                if !path.pop() {
                    return None;
                }
            }
            Component::CurDir => {}
            other => path.push(other),
        }
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Result<String, Code> {
        let env = |name: &str| match name {
            "ROOM" => Some("/room".to_owned()),
            "UP" => Some("../..".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        let around = Surroundings {
            home: Some(Path::new("/people/ada")),
            env: &env,
            temp_dir: Path::new("/tmp"),
            default_root: Path::new("/state/workspaces"),
        };
        let found = expand(text, Path::new("/repo/sub/WORKFLOW.md"), &around);
        found.map(|path| path.display().to_string()).map_err(|(code, ..)| code)
    }

    #[test]
    fn a_path_starts_where_it_says() {
        let paths = [
            ("~/runs", "/people/ada/runs"),
            ("~", "/people/ada"),
            ("$ROOM/a", "/room/a"),
            ("${ROOM}/a", "/room/a"),
            ("/x/$ROOM/y", "/x/room/y"),
            ("runs", "/repo/sub/runs"),
            ("./a/../b", "/repo/sub/b"),
            ("/a/./b/../c", "/a/c"),
        ];
        for (text, expected) in paths {
            assert_eq!(expanded(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_path_does_not_climb_out_of_where_it_starts() {
        for text in
            ["../runs", "a/../../b", "~/../bob", "$ROOM/..", "/..", "/a/../..", "x/$UP/../y", "/"]
        {
            assert_eq!(expanded(text), Err(Code::WorkspaceEscapes), "{text}");
        }
    }

    #[test]
    fn a_variable_that_is_empty_or_unset_is_no_path() {
        for text in ["$EMPTY", "$NOPE/x", "a/${NOPE}", "$"] {
            assert_eq!(expanded(text), Err(Code::UnsetVariable), "{text}");
        }
    }
}
