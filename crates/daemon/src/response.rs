//! Reads the response file of an attempt, whatever an agent put in its place.
//!
//! Follows no link, waits for nothing, and reads no more than the largest response. Decides nothing about what the
//! answer means.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use outlast_agents::response::{self, BadResponse};
use outlast_engine::Answer;
use outlast_secrets::Secrets;
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use crate::world::files::{self, Lasting};
use crate::world::host;

/// Fails only for what the host lacks, such as a descriptor: then it is to be read again.
pub(crate) fn read(path: &Path) -> io::Result<Answer> {
    match whole(path) {
        Ok(None) => Ok(Answer::None),
        Ok(Some(bytes)) => Ok(match response::parse(&bytes) {
            Ok(response) => Answer::Given(Box::new(response)),
            Err(bad) => Answer::Bad { why: bad.to_string() },
        }),
        Err(Refused::Io(error)) if host::failure(&error).is_some() => Err(error),
        Err(refused) => Ok(Answer::Bad { why: refused.to_string() }),
    }
}

/// Writes the response file anew if there are secrets in it. What is refused as a response stays as it is.
pub(crate) fn hide(path: &Path, secrets: &Secrets) -> io::Result<()> {
    if secrets.is_empty() {
        return Ok(());
    }
    let bytes = match whole(path) {
        Ok(Some(bytes)) => bytes,
        Err(Refused::Io(error)) => return Err(error),
        Ok(None) | Err(Refused::Symlink | Refused::NotAFile | Refused::Bad(_)) => return Ok(()),
    };
    match secrets.hide_json(&bytes) {
        Cow::Borrowed(_) => Ok(()),
        Cow::Owned(hidden) => files::write_whole(path, &hidden, Lasting::Power),
    }
}

#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("the response is a symlink")]
    Symlink,
    #[error("the response is no regular file")]
    NotAFile,
    #[error(transparent)]
    Bad(#[from] BadResponse),
    #[error("the response cannot be read: {0}")]
    Io(#[from] io::Error),
}

fn whole(path: &Path) -> Result<Option<Vec<u8>>, Refused> {
    let Some(file) = open(path)? else { return Ok(None) };
    unless_unfit(&file)?;
    bounded(file).map(Some)
}

/// Before a byte of it is read.
fn unless_unfit(file: &File) -> Result<(), Refused> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(Refused::NotAFile);
    }
    if metadata.len() > response::MAX_BYTES as u64 {
        return Err(BadResponse::TooLarge.into());
    }
    Ok(())
}

/// `None` if there is nothing of that name. A fifo is opened without waiting for its other end.
fn open(path: &Path) -> Result<Option<File>, Refused> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Refused::NotAFile);
    };
    let careful = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let dir = match retry_on_intr(|| {
        rustix::fs::open(parent, careful | OFlags::DIRECTORY, Mode::empty())
    }) {
        Ok(dir) => dir,
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(Refused::Io(error.into())),
    };
    match retry_on_intr(|| rustix::fs::openat(&dir, name, OFlags::RDONLY | careful, Mode::empty()))
    {
        Ok(file) => Ok(Some(File::from(file))),
        Err(Errno::NOENT) => Ok(None),
        Err(Errno::LOOP) => Err(Refused::Symlink),
        Err(Errno::NXIO) => Err(Refused::NotAFile),
        Err(error) => Err(Refused::Io(error.into())),
    }
}

/// A file may grow after its size was asked, so the bound holds for the reading too.
fn bounded(file: impl Read) -> Result<Vec<u8>, Refused> {
    let mut bytes = Vec::new();
    file.take(response::MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > response::MAX_BYTES {
        return Err(BadResponse::TooLarge.into());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;

    use outlast_engine::TurnStatus;
    use rustix::fs::{CWD, FileType};
    use tempfile::TempDir;

    use super::*;

    fn read(path: &Path) -> Answer {
        super::read(path).expect("the host lacks nothing")
    }

    const DONE: &[u8] = br#"{"status":"done","summary":"it works"}"#;

    fn place() -> (TempDir, PathBuf) {
        let dir = TempDir::new().expect("a directory");
        let path = dir.path().join("response.json");
        (dir, path)
    }

    #[expect(clippy::disallowed_methods, reason = "what an agent writes need not be durable")]
    fn put(path: &Path, bytes: &[u8]) {
        std::fs::write(path, bytes).expect("written");
    }

    fn answer_to(bytes: &[u8]) -> Answer {
        let (_dir, path) = place();
        put(&path, bytes);
        read(&path)
    }

    fn bad(why: &str) -> Answer {
        Answer::Bad { why: why.to_owned() }
    }

    fn assert_done(answer: &Answer) {
        match answer {
            Answer::Given(response) => {
                assert_eq!(response.status, TurnStatus::Done);
                assert_eq!(response.summary, "it works");
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_file_is_read_and_so_is_one_with_two_names() {
        let (dir, path) = place();
        put(&path, DONE);
        assert_done(&read(&path));
        std::fs::hard_link(&path, dir.path().join("also.json")).expect("a link");
        assert_done(&read(&path));
    }

    fn secrets() -> Secrets {
        let rules = outlast_secrets::SecretRules::default();
        let (name, value) = ("A_TOKEN".as_ref(), "s3cr3t-Xq7vT2".as_ref());
        Secrets::of(&rules, [(name, value)], &[])
    }

    #[test]
    fn secrets_are_taken_out_of_the_file_and_of_none_that_it_shares() {
        let (dir, path) = place();
        let shared = dir.path().join("shared.json");
        put(&shared, br#"{"status":"done","summary":"\u00733cr3t-Xq7vT2", "summary" : 1}"#);
        std::fs::hard_link(&shared, &path).expect("a link");
        hide(&path, &secrets()).expect("hidden");
        let expected = br#"{"status":"done","summary":"[A_TOKEN]", "summary" : 1}"#;
        assert_eq!(std::fs::read(&path).expect("read"), expected);
        assert_ne!(std::fs::read(&shared).expect("read"), expected, "it is another's too");
        put(&path, b"no JSON: s3cr3t-Xq7vT2");
        hide(&path, &secrets()).expect("hidden");
        assert_eq!(std::fs::read(&path).expect("read"), b"no JSON: [A_TOKEN]");
    }

    #[test]
    fn what_is_no_file_of_the_attempt_is_not_written_to() {
        let (dir, path) = place();
        let real = dir.path().join("real.json");
        put(&real, b"s3cr3t-Xq7vT2");
        symlink(&real, &path).expect("a link");
        hide(&path, &secrets()).expect("nothing to do");
        assert_eq!(std::fs::read(&real).expect("read"), b"s3cr3t-Xq7vT2");
        assert!(path.symlink_metadata().expect("there").is_symlink());
        std::fs::remove_file(&path).expect("removed");
        hide(&path, &secrets()).expect("nothing there");
        assert!(!path.exists());
    }

    #[test]
    fn no_file_is_no_answer() {
        let (dir, path) = place();
        assert_eq!(read(&path), Answer::None);
        drop(dir);
        assert_eq!(read(&path), Answer::None);
    }

    #[test]
    fn a_link_is_refused_wherever_it_leads() {
        let (dir, path) = place();
        let real = dir.path().join("real.json");
        put(&real, DONE);
        for target in [real.as_path(), Path::new("nowhere"), Path::new("/dev/zero"), dir.path()] {
            symlink(target, &path).expect("a link");
            assert_eq!(read(&path), bad("the response is a symlink"), "{}", target.display());
            std::fs::remove_file(&path).expect("removed");
        }
    }

    #[test]
    fn a_linked_directory_is_refused() {
        let (dir, path) = place();
        put(&path, DONE);
        let elsewhere = TempDir::new().expect("a directory");
        let linked = elsewhere.path().join("attempt");
        symlink(dir.path(), &linked).expect("a link");
        let Answer::Bad { why } = read(&linked.join("response.json")) else { panic!("was read") };
        assert!(why.starts_with("the response cannot be read: "), "{why}");
    }

    #[test]
    fn what_is_no_file_is_refused_without_waiting() {
        let refused = bad("the response is no regular file");
        let (_dir, path) = place();
        rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
            .expect("a fifo");
        assert_eq!(read(&path), refused);
        let (_dir, path) = place();
        std::fs::create_dir(&path).expect("a directory");
        assert_eq!(read(&path), refused);
        let (_dir, path) = place();
        let _socket = UnixListener::bind(&path).expect("a socket");
        assert_eq!(read(&path), refused);
        assert_eq!(read(Path::new("/dev/null")), refused);
    }

    #[test]
    fn the_largest_response_is_read_and_a_larger_one_is_not() {
        let mut bytes = DONE.to_vec();
        bytes.resize(response::MAX_BYTES, b' ');
        assert_done(&answer_to(&bytes));
        bytes.push(b' ');
        assert_eq!(answer_to(&bytes), bad("the response is larger than 1 MiB"));
    }

    #[test]
    fn a_huge_file_is_refused_by_its_size_alone() {
        let (_dir, path) = place();
        let file = File::create(&path).expect("a file");
        file.set_len(1 << 30).expect("a hole");
        assert!(matches!(unless_unfit(&file), Err(Refused::Bad(BadResponse::TooLarge))));
        assert_eq!(read(&path), bad("the response is larger than 1 MiB"));
    }

    /// Never ends, and counts what is taken from it.
    struct Endless {
        taken: usize,
    }

    impl Read for &mut Endless {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            into.fill(b' ');
            self.taken += into.len();
            Ok(into.len())
        }
    }

    #[test]
    fn a_file_that_grows_while_it_is_read_is_left_at_the_bound() {
        let mut endless = Endless { taken: 0 };
        let refused = bounded(&mut endless).expect_err("too large");
        assert_eq!(refused.to_string(), "the response is larger than 1 MiB");
        assert_eq!(endless.taken, response::MAX_BYTES + 1);
    }

    #[test]
    fn what_is_not_one_whole_response_is_bad_and_never_none() {
        assert_eq!(answer_to(b""), bad("the response is empty"));
        assert_eq!(
            answer_to(&DONE[..DONE.len() - 1]),
            bad("the response ends too early, at line 1 column 37")
        );
        assert_eq!(
            answer_to(b"all done!"),
            bad("the response is not JSON: expected value at line 1 column 1")
        );
        assert_eq!(answer_to(b"{\"status\":\"\xc3"), bad("the response is not UTF-8 at byte 11"));
        assert_eq!(answer_to(b"{\"summary\":\"\"}"), bad("status: is missing"));
    }
}
