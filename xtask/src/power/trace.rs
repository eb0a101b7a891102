//! What strace wrote, as calls: name, arguments, result, and where each call began and ended.
//!
//! Every string is in hex (`-xx`), so no comma, quote or bracket in a line belongs to a name or to data.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

/// One finished system call.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) args: Vec<String>,
    /// What came back, as strace writes it: `5<\x2f…>`, `-1 ENOENT (…)`.
    pub(super) result: String,
    /// The number of the line that it began on, and of the one it ended on; the first is 1.
    pub(super) began: usize,
    pub(super) ended: usize,
}

impl Call {
    /// The number that came back, unless the call failed or was not seen to return.
    pub(super) fn returned(&self) -> Option<u64> {
        let digits: String = self.result.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    }

    pub(super) fn arg(&self, at: usize) -> Result<&str> {
        let arg = self.args.get(at).map(String::as_str);
        arg.with_context(|| format!("{} has no argument {at}: {:?}", self.name, self.args))
    }

    pub(super) fn number(&self, at: usize) -> Result<u64> {
        let text = self.arg(at)?;
        text.parse().with_context(|| format!("argument {at} of {}: {text}", self.name))
    }

    /// The file that a descriptor stands for.
    pub(super) fn file(&self, at: usize) -> Result<Option<Named>> {
        named(self.arg(at)?)
    }

    /// The path that is given beside a directory's descriptor.
    pub(super) fn path_at(&self, directory: usize) -> Result<Option<PathBuf>> {
        let path = PathBuf::from(OsString::from_vec(bytes(self.arg(directory + 1)?)?));
        if path.is_absolute() {
            return Ok(Some(path));
        }
        Ok(named(self.arg(directory)?)?.map(|directory| directory.path.join(path)))
    }

    /// A path without a descriptor beside it; where it is relative to is not known then.
    pub(super) fn path(&self, at: usize) -> Result<Option<PathBuf>> {
        let path = PathBuf::from(OsString::from_vec(bytes(self.arg(at)?)?));
        Ok(path.is_absolute().then_some(path))
    }

    /// Everything that a write was given, in one piece.
    pub(super) fn data(&self, at: usize) -> Result<Vec<u8>> {
        let mut data = Vec::new();
        let arg = self.arg(at)?;
        // A vector of pieces has one string for each, and nothing else in quotes.
        for piece in arg.split('"').skip(1).step_by(2) {
            data.extend(unescape(piece)?);
        }
        ensure!(!arg.contains("\"..."), "strace cut the data of a {}", self.name);
        Ok(data)
    }
}

/// What a descriptor stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) path: PathBuf,
    pub(super) is_deleted: bool,
}

/// Reads `5<\x2f\x74>` or `5<\x2f\x74>(deleted)`; `None` for a descriptor without a name.
pub(super) fn named(text: &str) -> Result<Option<Named>> {
    let Some((_, rest)) = text.split_once('<') else { return Ok(None) };
    let Some((hex, rest)) = rest.split_once('>') else { bail!("a name without an end: {text}") };
    let path = PathBuf::from(OsString::from_vec(unescape(hex)?));
    Ok(Some(Named { path, is_deleted: rest.contains("deleted") }))
}

fn bytes(text: &str) -> Result<Vec<u8>> {
    let inner = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    unescape(inner.with_context(|| format!("not a string: {text}"))?)
}

fn unescape(text: &str) -> Result<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let one = |four: &[u8]| match four {
        [b'\\', b'x', high, low] => Some(digit(*high)? * 16 + digit(*low)?),
        _ => None,
    };
    let decoded: Option<Vec<u8>> = text.as_bytes().chunks(4).map(one).collect();
    decoded.with_context(|| format!("not in hex: {}", text.chars().take(40).collect::<String>()))
}

/// Puts calls together that strace had to write in two halves.
#[derive(Debug, Default)]
pub(super) struct Reader {
    halves: HashMap<String, (usize, String)>,
    line: usize,
}

impl Reader {
    /// The call that this line ends, if it ends one.
    pub(super) fn line(&mut self, line: &str) -> Result<Option<Call>> {
        self.line += 1;
        let number = self.line;
        let Some((pid, rest)) = line.split_once(char::is_whitespace) else { return Ok(None) };
        let rest = rest.trim_start();
        if rest.starts_with("+++") || rest.starts_with("---") {
            self.halves.remove(pid);
            return Ok(None);
        }
        if let Some(head) = rest.strip_suffix("<unfinished ...>") {
            self.halves.insert(pid.to_owned(), (number, head.trim_end().to_owned()));
            return Ok(None);
        }
        let Some(resumed) = rest.strip_prefix("<...") else {
            return call(rest, number, number).map(Some);
        };
        let (began, head) = self.halves.remove(pid).context("the end of a call without a start")?;
        let (_, tail) = resumed.split_once("resumed>").context("no end of a call")?;
        call(&format!("{head}{tail}"), began, number).map(Some)
    }
}

fn call(text: &str, began: usize, ended: usize) -> Result<Call> {
    let what = || format!("not a call: {}", text.chars().take(80).collect::<String>());
    let (name, rest) = text.split_once('(').with_context(what)?;
    let (args, result) =
        rest.rsplit_once(") = ").or_else(|| split_padded(rest)).with_context(what)?;
    let args = arguments(args);
    Ok(Call { name: name.to_owned(), args, result: result.trim().to_owned(), began, ended })
}

/// strace pads short calls before the result.
fn split_padded(text: &str) -> Option<(&str, &str)> {
    let (args, result) = text.rsplit_once(" = ")?;
    Some((args.trim_end().strip_suffix(')')?, result))
}

fn arguments(text: &str) -> Vec<String> {
    let (mut args, mut depth, mut current) = (Vec::new(), 0_i32, String::new());
    for letter in text.chars() {
        match letter {
            '[' | '{' => depth += 1,
            ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                args.push(std::mem::take(&mut current).trim().to_owned());
                continue;
            }
            _ => {}
        }
        current.push(letter);
    }
    args.push(current.trim().to_owned());
    args
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_call_in_two_halves_is_one_that_began_at_the_first() {
        let mut reader = Reader::default();
        let first = r#"12 pwrite64(7<\x2f\x61>, "\x41\x42", 2, 4096 <unfinished ...>"#;
        assert!(reader.line(first).unwrap().is_none());
        let between = reader.line(r"13 fdatasync(8<\x2f\x62>)     = 0").unwrap().unwrap();
        assert_eq!((between.name.as_str(), between.returned()), ("fdatasync", Some(0)));
        let whole = reader.line("12 <... pwrite64 resumed>) = 2").unwrap().unwrap();
        assert_eq!((whole.began, whole.ended), (1, 3));
        assert_eq!(whole.data(1).unwrap(), b"AB");
        assert_eq!(whole.number(3).unwrap(), 4096);
        assert_eq!(whole.file(0).unwrap().unwrap().path, Path::new("/a"));
    }

    #[test]
    fn vectors_names_and_failures_are_read() {
        let mut reader = Reader::default();
        let line = r#"1 writev(3<\x2f\x61>(deleted), [{iov_base="\x41", iov_len=1}, {iov_base="\x42", iov_len=1}], 2) = 2"#;
        let call = reader.line(line).unwrap().unwrap();
        assert_eq!(call.data(1).unwrap(), b"AB");
        assert!(call.file(0).unwrap().unwrap().is_deleted);
        let line =
            r#"1 openat(AT_FDCWD<\x2f>, "\x61", O_RDONLY|O_CLOEXEC) = -1 ENOENT (No such file)"#;
        let call = reader.line(line).unwrap().unwrap();
        assert_eq!(call.returned(), None);
        assert_eq!(call.path_at(0).unwrap().unwrap(), Path::new("/a"));
    }
}
