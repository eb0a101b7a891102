//! What has changed since the last snapshot, as git lists it; and each path looked at before it is read.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use outlast_wire::snapshot::LeftOut;

use crate::Failure;
use crate::place::path_in;

/// More than this is no work of a run.
const MOST_ENTRIES: usize = 500_000;
const MOST_NAMES: usize = 20;

/// One answer of `git status --porcelain=v2 -z`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Listed {
    /// In our index, and different on disk.
    pub(crate) changed: Vec<Vec<u8>>,
    pub(crate) untracked: Vec<Vec<u8>>,
    /// Directories with a `.git` of their own, without the slash.
    pub(crate) nested: Vec<Vec<u8>>,
    /// The index has something that the last snapshot has not.
    pub(crate) is_staged: bool,
}

pub(crate) fn parse(printed: &[u8]) -> Result<Listed, Failure> {
    let mut listed = Listed::default();
    let odd = |line: &[u8]| {
        let line = String::from_utf8_lossy(line).into_owned();
        Failure::Unreadable(format!("git status said {line:?}"))
    };
    let lines = printed.split(|byte| *byte == 0).filter(|line| !line.is_empty());
    for (at, line) in lines.enumerate() {
        if at >= MOST_ENTRIES {
            return Err(Failure::TooBig(format!("more than {MOST_ENTRIES} files changed")));
        }
        match line {
            [b'1', b' ', index, disk, b' ', ..] => {
                listed.is_staged |= *index != b'.';
                let path = line.splitn(9, |byte| *byte == b' ').nth(8).ok_or_else(|| odd(line))?;
                if *disk != b'.' {
                    listed.changed.push(path.to_vec());
                }
            }
            [b'u', b' ', ..] => {
                listed.is_staged = true;
                let path =
                    line.splitn(11, |byte| *byte == b' ').nth(10).ok_or_else(|| odd(line))?;
                listed.changed.push(path.to_vec());
            }
            [b'?', b' ', path @ .., b'/'] => listed.nested.push(path.to_vec()),
            [b'?', b' ', path @ ..] => listed.untracked.push(path.to_vec()),
            line => return Err(odd(line)),
        }
    }
    Ok(listed)
}

/// What to do with one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Look {
    Add { bytes: u64 },
    Remove,
    LeftOut { why: &'static str, bytes: u64 },
}

pub(crate) fn look(top: &Path, path: &[u8], max_file: u64) -> Result<Look, Failure> {
    if path.split(|byte| *byte == b'/').any(|name| name.eq_ignore_ascii_case(b".git")) {
        return Ok(Look::LeftOut { why: "a name that git keeps for itself", bytes: 0 });
    }
    if is_below_a_link(top, path) {
        return Ok(Look::Remove);
    }
    let found = fs::symlink_metadata(path_in(top, path));
    match found {
        Ok(found) => Ok(of_found(&found, max_file)),
        Err(error) if is_absence(&error) => Ok(Look::Remove),
        Err(error) => {
            Err(Failure::io(format!("looking at {}", String::from_utf8_lossy(path)))(error))
        }
    }
}

/// True if a directory of that path is a link now: what is found through it is in another place.
fn is_below_a_link(top: &Path, path: &[u8]) -> bool {
    let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    let mut parents = slashes.map(|(at, _)| &path[..at]);
    parents.any(|parent| path_in(top, parent).is_symlink())
}

fn of_found(found: &Metadata, max_file: u64) -> Look {
    let (kind, bytes) = (found.file_type(), found.len());
    if kind.is_dir() {
        Look::Remove
    } else if kind.is_symlink() {
        Look::Add { bytes }
    } else if kind.is_file() && bytes > max_file {
        Look::LeftOut { why: "larger than max_file", bytes }
    } else if kind.is_file() {
        Look::Add { bytes }
    } else if kind.is_fifo() {
        Look::LeftOut { why: "a pipe", bytes: 0 }
    } else if kind.is_socket() {
        Look::LeftOut { why: "a socket", bytes: 0 }
    } else {
        Look::LeftOut { why: "a device", bytes: 0 }
    }
}

pub(crate) fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Whether a file is named as files are that hold a secret. What is tracked was meant to be kept.
pub(crate) fn is_secret_name(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path).to_ascii_lowercase();
    let is_env = name == b".env" || (name.starts_with(b".env.") && !is_example(&name));
    let is_key = name.ends_with(b".pem") || name.ends_with(b".key");
    let is_identity = name.starts_with(b"id_")
        && !name.ends_with(b".pub")
        && [&b"id_rsa"[..], b"id_dsa", b"id_ecdsa", b"id_ed25519"]
            .iter()
            .any(|kind| name.starts_with(kind));
    let is_store = [&b".npmrc"[..], b".netrc", b".git-credentials", b".pypirc"]
        .contains(&&name[..])
        || name.starts_with(b"credentials")
            && (name == b"credentials" || name.starts_with(b"credentials."));
    is_env || is_key || is_identity || is_store
}

fn is_example(name: &[u8]) -> bool {
    [&b".example"[..], b".sample", b".template", b".dist"].iter().any(|end| name.ends_with(end))
}

/// What a snapshot leaves out: as it is told, and all of the paths.
#[derive(Debug, Default)]
pub(crate) struct Omitted {
    pub(crate) told: LeftOut,
    pub(crate) paths: Vec<Vec<u8>>,
}

pub(crate) fn leave_out(omitted: &mut Omitted, path: &[u8], why: &str, bytes: u64) {
    omitted.told.files += 1;
    omitted.told.bytes += bytes;
    if omitted.told.names.len() < MOST_NAMES {
        omitted.told.names.push(format!("{} ({why})", String::from_utf8_lossy(path)));
    }
    omitted.paths.push(path.to_vec());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_by_what_is_on_disk() {
        let printed = b"1 .M N... 100644 100644 100644 aa bb a b\0? new\n1\0? nested/\0\
            1 A. N... 000000 100644 100644 00 aa staged\0";
        let listed = parse(printed).expect("as git prints it");
        assert_eq!(listed.changed, [b"a b".to_vec()]);
        assert_eq!(listed.untracked, [b"new\n1".to_vec()]);
        assert_eq!(listed.nested, [b"nested".to_vec()]);
        assert!(listed.is_staged);
        assert!(parse(b"? ok\0!!").is_err(), "what is not understood is no empty list");
    }

    #[test]
    fn names_of_secrets_are_known_and_examples_are_none() {
        for name in [
            ".env",
            "a/.env.local",
            "x.pem",
            "deep/server.KEY",
            "id_ed25519",
            ".npmrc",
            "credentials.json",
        ] {
            assert!(is_secret_name(name.as_bytes()), "{name}");
        }
        for name in [
            ".env.example",
            "id_ed25519.pub",
            "env",
            "key",
            "id_card.txt",
            "credentials_test.go",
            "a.pem.md",
        ] {
            assert!(!is_secret_name(name.as_bytes()), "{name}");
        }
    }
}
