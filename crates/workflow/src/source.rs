//! A file's text before anything is read into it: how it was got, and where its front matter ends.
//!
//! Opens nothing; the caller hands over the bytes of the file, or why there are none.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::problem::{Code, Problem};

/// What `outlast` looks for where no file is named.
pub const DEFAULT_FILE: &str = "WORKFLOW.md";

pub const LARGEST_FILE: usize = 1024 * 1024;

#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    pub path: &'a Path,
    pub text: &'a str,
}

impl Source<'_> {
    pub(crate) fn file(&self) -> String {
        self.path.display().to_string()
    }
}

/// The file that is meant: the one named, else `WORKFLOW.md` in the current directory.
pub fn path(named: Option<&Path>, current_dir: &Path) -> PathBuf {
    match named {
        Some(named) => current_dir.join(named),
        None => current_dir.join(DEFAULT_FILE),
    }
}

/// A file's text from what reading it gave.
pub fn decode(path: &Path, read: Result<Vec<u8>, ErrorKind>) -> Result<String, Problem> {
    let file = path.display();
    let bytes = read.map_err(|kind| match kind {
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            Problem::new(Code::MissingWorkflowFile, &file, "there is no such file")
                .hint("name a file that is there; ./WORKFLOW.md is the default")
        }
        // What the readers say of a pipe or a device, which might never end.
        ErrorKind::InvalidInput => unreadable(path, "is not a regular file"),
        kind => unreadable(path, &kind.to_string()),
    })?;
    if bytes.len() > LARGEST_FILE {
        return Err(too_big(&file.to_string()));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + good.iter().filter(|byte| **byte == b'\n').count();
        Problem::new(Code::NotUtf8, &file, "is not UTF-8 text").at(line)
    })
}

fn unreadable(path: &Path, why: &str) -> Problem {
    Problem::new(Code::UnreadableFile, path.display(), format_args!("cannot be read: {why}"))
        .hint("check that it is a file, and that you may read it")
}

/// A file that cannot be read because a symbolic link on the way to it leads nowhere.
pub fn behind_broken_link(path: &Path, link: &Path) -> Problem {
    let why = match path == link {
        true => "is a symbolic link that leads nowhere".to_owned(),
        false => format!("{} is a symbolic link that leads nowhere", link.display()),
    };
    Problem::new(Code::UnreadableFile, path.display(), format_args!("cannot be read: {why}"))
        .hint("bring back what the link leads to, or remove the link")
}

pub(crate) fn too_big(file: &str) -> Problem {
    Problem::new(Code::FileTooBig, file, "is bigger than 1 MiB")
        .hint("a prompt is better kept short")
}

#[derive(Debug)]
pub(crate) struct Document<'a> {
    /// `None` where the whole file is the prompt.
    pub(crate) front: Option<&'a str>,
    pub(crate) prompt: &'a str,
    /// The prompt's first line in the file, counted from 1.
    pub(crate) prompt_line: usize,
}

/// The first line of the front matter in the file.
pub(crate) const FRONT_LINE: usize = 2;

pub(crate) fn split<'a>(source: &Source<'a>) -> Result<Document<'a>, Problem> {
    if source.text.len() > LARGEST_FILE {
        return Err(too_big(&source.file()));
    }
    let text = source.text.strip_prefix('\u{feff}').unwrap_or(source.text);
    let Some((first, rest)) = text.split_once('\n') else {
        return match text.trim_end() == "---" {
            true => Err(unterminated(source)),
            false => Ok(body(None, text, 1)),
        };
    };
    if first.trim_end() != "---" {
        return Ok(body(None, text, 1));
    }
    let mut at = 0;
    for (n, line) in rest.split_inclusive('\n').enumerate() {
        if line.trim_end() == "---" {
            return Ok(body(Some(&rest[..at]), &rest[at + line.len()..], FRONT_LINE + n + 1));
        }
        at += line.len();
    }
    Err(unterminated(source))
}

fn unterminated(source: &Source<'_>) -> Problem {
    let message = "the front matter that starts here has no end";
    Problem::new(Code::WorkflowParseError, source.file(), message)
        .at(1)
        .hint("end it with a line that is only ---")
}

/// Blank lines around the prompt are not part of it.
fn body<'a>(front: Option<&'a str>, text: &'a str, line: usize) -> Document<'a> {
    let prompt = text.trim_start();
    let skipped = &text[..text.len() - prompt.len()];
    let prompt_line = line + skipped.matches('\n').count();
    Document { front, prompt: prompt.trim_end(), prompt_line }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Document<'_>, Problem> {
        split(&Source { path: Path::new("WORKFLOW.md"), text })
    }

    #[test]
    fn front_matter_and_prompt_come_apart() {
        let found = of("---\na: 1\nb: 2\n---\n\nHello\nyou\n").unwrap();
        assert_eq!(
            (found.front, found.prompt, found.prompt_line),
            (Some("a: 1\nb: 2\n"), "Hello\nyou", 6)
        );
    }

    #[test]
    fn without_front_matter_the_whole_file_is_the_prompt() {
        let found = of("Do it.\n---\nnot this\n").unwrap();
        assert_eq!((found.front, found.prompt), (None, "Do it.\n---\nnot this"));
    }

    #[test]
    fn windows_line_ends_and_a_byte_order_mark_are_tolerated() {
        let found = of("\u{feff}---\r\na: 1\r\n---\r\nHi\r\n").unwrap();
        assert_eq!((found.front, found.prompt, found.prompt_line), (Some("a: 1\r\n"), "Hi", 4));
    }

    #[test]
    fn front_matter_without_an_end_is_refused() {
        for text in ["---", "---\n", "---\na: 1\n"] {
            let problem = of(text).unwrap_err();
            assert_eq!((problem.code.word(), problem.line), ("workflow_parse_error", Some(1)));
            assert!(problem.hint.is_some());
        }
    }

    #[test]
    fn a_file_of_more_than_a_mebibyte_is_refused() {
        assert_eq!(of(&"x".repeat(LARGEST_FILE + 1)).unwrap_err().code.word(), "file_too_big");
    }
}
