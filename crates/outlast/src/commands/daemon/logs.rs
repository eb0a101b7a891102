//! `outlast daemon logs`: the daemon's log, read from its file, so that a daemon that does not start
//! can be looked into as well.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use tokio::time::sleep;

use crate::Answer;
use crate::output::bytes::{self, Target};
use crate::problem::Problem;
use crate::world::World;

const LOOK: Duration = Duration::from_millis(250);
const CHUNK: u64 = 64 << 10;

pub(crate) async fn logs(world: &World, follow: bool, tail: Option<usize>) -> Answer {
    let path = world.layout()?.daemon_log();
    let mut file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound && !follow => return Err(no_log(&path)),
        Err(error) if error.kind() == ErrorKind::NotFound => await_file(&path).await?,
        Err(error) => return Err(cannot(&path, &error)),
    };
    if let Some(lines) = tail {
        skip_to_tail(&mut file, lines).map_err(|error| cannot(&path, &error))?;
    }
    loop {
        print_rest(&mut file, &path).await?;
        if !follow {
            return Ok(0);
        }
        sleep(LOOK).await;
        reopen_if_replaced(&mut file, &path).map_err(|error| cannot(&path, &error))?;
    }
}

async fn print_rest(file: &mut File, path: &Path) -> Result<(), Problem> {
    loop {
        let mut chunk = Vec::new();
        file.take(CHUNK).read_to_end(&mut chunk).map_err(|error| cannot(path, &error))?;
        if chunk.is_empty() {
            return Ok(());
        }
        bytes::stream(Target::Stdout, chunk).await?;
    }
}

/// Moves to where the last `lines` lines begin, reading backwards.
fn skip_to_tail(file: &mut File, lines: usize) -> io::Result<()> {
    let mut begin = file.seek(SeekFrom::End(0))?;
    let end = begin;
    let mut tail: Vec<u8> = Vec::new();
    while begin > 0 {
        let from = begin.saturating_sub(CHUNK);
        let mut chunk = Vec::new();
        file.seek(SeekFrom::Start(from))?;
        file.take(begin - from).read_to_end(&mut chunk)?;
        chunk.extend_from_slice(&tail);
        tail = chunk;
        begin = from;
        if let Some(at) = last_lines(&tail, lines) {
            let skipped = tail.len() - at;
            file.seek(SeekFrom::Start(end - skipped as u64))?;
            return Ok(());
        }
    }
    file.seek(SeekFrom::Start(0))?;
    Ok(())
}

/// Where the last `lines` lines of a text begin, if a line before them ends in it.
fn last_lines(text: &[u8], lines: usize) -> Option<usize> {
    let body = text.strip_suffix(b"\n").unwrap_or(text);
    if lines == 0 {
        return Some(text.len());
    }
    let breaks = body.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    breaks.map(|(at, _)| at + 1).nth(lines - 1)
}

/// A log that was rotated away or cut short is read again from its start.
fn reopen_if_replaced(file: &mut File, path: &Path) -> io::Result<()> {
    let now = match std::fs::metadata(path) {
        Ok(now) => now,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let known = file.metadata()?;
    if (known.dev(), known.ino()) != (now.dev(), now.ino()) {
        *file = File::open(path)?;
    } else if now.len() < file.stream_position()? {
        file.seek(SeekFrom::Start(0))?;
    }
    Ok(())
}

async fn await_file(path: &Path) -> Result<File, Problem> {
    loop {
        match File::open(path) {
            Ok(file) => return Ok(file),
            Err(error) if error.kind() == ErrorKind::NotFound => sleep(LOOK).await,
            Err(error) => return Err(cannot(path, &error)),
        }
    }
}

fn no_log(path: &Path) -> Problem {
    Problem::refusal("no_log", format_args!("there is no log at {}", path.display()))
        .hint("a daemon that was never started has written none")
}

fn cannot(path: &Path, error: &io::Error) -> Problem {
    Problem::failure(format_args!("cannot read {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn tail(text: &str, lines: usize) -> String {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(text.as_bytes()).expect("written");
        skip_to_tail(&mut file, lines).expect("a place");
        let mut rest = String::new();
        file.read_to_string(&mut rest).expect("text");
        rest
    }

    #[test]
    fn the_last_lines_are_found_from_the_end() {
        assert_eq!(tail("a\nb\nc\n", 2), "b\nc\n");
        assert_eq!(tail("a\nb\nc", 2), "b\nc");
        assert_eq!(tail("a\nb\n", 0), "");
        assert_eq!(tail("a\nb\n", 5), "a\nb\n");
        assert_eq!(tail("", 5), "");
        let long = format!("{}\nlast\n", "x".repeat(200_000));
        assert_eq!(tail(&long, 1), "last\n");
        assert_eq!(tail(&long, 2), long);
    }
}
