//! What a driven agent did in one attempt, from the files that its driver left. Of a long one, how it began and how it
//! ended; what is left out is said.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use outlast_home::layout::AttemptDir;
use outlast_wire::api::AgentAttempt;
use serde_json::Value;

use crate::world::files;

/// Of an attempt's events, at most so many bytes of the first and of the last are shown.
const HEAD: u64 = 256 << 10;
const TAIL: u64 = 768 << 10;

/// The attempts of one turn are shown with no more than this, the last of them first.
const ALL_ATTEMPTS: u64 = 8 << 20;

/// No end that a driver writes is larger.
const LARGEST_END: usize = 4 << 20;

/// How much may still be shown of the attempts of a turn.
#[derive(Debug)]
pub(super) struct Room(u64);

impl Default for Room {
    fn default() -> Self {
        Self(ALL_ATTEMPTS)
    }
}

/// What the agent did. `is_over` says that nothing more is written. Blocks.
pub(super) fn read(dir: &AttemptDir, is_over: bool, room: &mut Room) -> AgentAttempt {
    let mut view = AgentAttempt::default();
    if let Err(error) = events(&mut view, dir, is_over, room) {
        view.unreadable = Some(format!("agent.jsonl: {error}"));
    }
    match end(dir) {
        Ok(end) => view.end = end,
        Err(error) => {
            let before = view.unreadable.map(|before| format!("{before}; ")).unwrap_or_default();
            view.unreadable = Some(format!("{before}agent-end.json: {error}"));
        }
    }
    view
}

fn end(dir: &AttemptDir) -> io::Result<Option<Value>> {
    match files::read_regular(&dir.agent_end(), LARGEST_END) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(io::Error::other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn events(
    view: &mut AgentAttempt,
    dir: &AttemptDir,
    is_over: bool,
    room: &mut Room,
) -> io::Result<()> {
    let file = match files::open_regular(&dir.agent_events()) {
        Ok(file) => file,
        // An attempt that could not be launched has none, and one that is being launched has none yet.
        Err(error)
            if error.kind() == io::ErrorKind::NotFound
                && dir.transcript().symlink_metadata().is_err() =>
        {
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len();
    let most = (HEAD + TAIL).min(room.0);
    room.0 -= most.min(length);
    if length <= most {
        let bytes = part(&file, 0, length)?;
        let (whole, begun) = bytes.split_at(after_last_line(&bytes));
        lines(view, whole);
        view.damaged_lines += u32::from(is_over && !begun.is_empty());
        return Ok(());
    }
    let head = HEAD.min(most / 4);
    let first = part(&file, 0, head)?;
    let last = part(&file, length - (most - head), most - head)?;
    let first = &first[..after_last_line(&first)];
    let from = last.iter().position(|byte| *byte == b'\n').map_or(last.len(), |at| at + 1);
    let last = &last[from..];
    let (last, begun) = last.split_at(after_last_line(last));
    lines(view, first);
    view.omitted_after = Some(view.events.len());
    view.omitted_bytes = length - (first.len() + last.len() + begun.len()) as u64;
    lines(view, last);
    view.damaged_lines += u32::from(is_over && !begun.is_empty());
    Ok(())
}

fn part(file: &File, from: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, from)?;
    Ok(bytes)
}

/// Where the last whole line ends.
fn after_last_line(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

fn lines(view: &mut AgentAttempt, bytes: &[u8]) {
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        match serde_json::from_slice::<Value>(line) {
            Ok(event @ Value::Object(_)) => view.events.push(event),
            Ok(_) | Err(_) => view.damaged_lines += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn of(content: &[u8], is_over: bool) -> AgentAttempt {
        let home = tempfile::tempdir().expect("a directory");
        let dir = AttemptDir(home.path().to_owned());
        File::create(dir.agent_events())
            .and_then(|mut file| file.write_all(content))
            .expect("the directory is ours");
        read(&dir, is_over, &mut Room::default())
    }

    #[test]
    fn a_line_that_is_being_written_is_damaged_only_if_no_more_of_it_comes() {
        let content = b"{\"at_ms\":1,\"event\":\"said\",\"text\":\"a\"}\ngarbage\n{\"at_ms\"";
        let live = of(content, false);
        assert_eq!((live.events.len(), live.damaged_lines), (1, 1));
        assert_eq!(of(content, true).damaged_lines, 2);
    }

    #[test]
    fn of_a_long_one_the_middle_is_left_out_and_that_is_said() {
        let line = |number: u32| {
            let text = "x".repeat(1000);
            format!("{{\"at_ms\":{number},\"event\":\"said\",\"text\":\"{text}\"}}\n")
        };
        let content: String = (0..3000).map(line).collect();
        let view = of(content.as_bytes(), true);
        let after = view.omitted_after.expect("something is left out");
        assert_eq!((&view.events[0]["at_ms"], view.damaged_lines), (&0.into(), 0));
        assert_eq!(view.events.last().map(|event| &event["at_ms"]), Some(&2999.into()));
        let first = view.events[after]["at_ms"].as_u64().expect("a time");
        let omitted: usize = (u32::try_from(after).expect("few")
            ..u32::try_from(first).expect("few"))
            .map(|number| line(number).len())
            .sum();
        assert_eq!(view.omitted_bytes, omitted as u64);
    }

    #[test]
    fn many_long_attempts_are_shown_with_as_much_as_there_is_room_for() {
        let home = tempfile::tempdir().expect("a directory");
        let dir = AttemptDir(home.path().to_owned());
        let line =
            format!("{{\"at_ms\":1,\"event\":\"said\",\"text\":\"{}\"}}\n", "x".repeat(1000));
        File::create(dir.agent_events())
            .and_then(|mut file| file.write_all(line.repeat(2000).as_bytes()))
            .expect("the directory is ours");
        let mut room = Room::default();
        for _ in 0..8 {
            assert!(!read(&dir, true, &mut room).events.is_empty());
        }
        let last = read(&dir, true, &mut room);
        assert_eq!((last.events.len(), last.omitted_bytes), (0, 2000 * line.len() as u64));
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        let home = tempfile::tempdir().expect("a directory");
        let dir = AttemptDir(home.path().to_owned());
        assert_eq!(read(&dir, true, &mut Room::default()), AgentAttempt::default());
        std::fs::create_dir(dir.agent_events()).expect("the directory is ours");
        std::fs::create_dir(dir.agent_end()).expect("the directory is ours");
        let said = read(&dir, true, &mut Room::default()).unreadable.expect("it is said");
        assert!(said.contains("agent.jsonl") && said.contains("agent-end.json"), "{said}");
    }
}
