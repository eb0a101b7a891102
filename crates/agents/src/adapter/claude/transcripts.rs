//! Where Claude Code keeps its conversations.

use std::path::PathBuf;

use crate::adapter::{Transcripts, Variable};

/// The longest name of a directory that the CLI does not cut.
const LONGEST_DIRECTORY: usize = 200;

/// `$CLAUDE_CONFIG_DIR/projects/<directory>/ID.jsonl`, where what is neither a letter nor a digit of the directory's path
/// is a dash. The CLI cuts a longer name and adds a number of its own: then it is not known.
pub(super) fn of(var: &Variable<'_>, dir: &str) -> Option<Transcripts> {
    let own = var("CLAUDE_CONFIG_DIR").filter(|it| !it.is_empty()).map(PathBuf::from);
    let config = own.or_else(|| Some(PathBuf::from(var("HOME")?).join(".claude")))?;
    let letter = |it: u16| match u8::try_from(it) {
        Ok(it) if it.is_ascii_alphanumeric() => char::from(it),
        _ => '-',
    };
    let name: String = dir.encode_utf16().map(letter).collect();
    let root = config.join("projects");
    (name.len() <= LONGEST_DIRECTORY).then(|| Transcripts { here: root.join(name), root })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_conversations_are_in_a_directory_named_after_the_one_that_it_works_in() {
        let home = |name: &str| (name == "HOME").then(|| "/h".to_owned());
        let config = |name: &str| match name {
            "CLAUDE_CONFIG_DIR" => Some("/conf".to_owned()),
            other => home(other),
        };
        let found = of(&home, "/w/a_b.c d").unwrap();
        assert_eq!(found.here, PathBuf::from("/h/.claude/projects/-w-a-b-c-d"));
        assert_eq!(of(&config, "/ä").unwrap().here, PathBuf::from("/conf/projects/--"));
        assert_eq!(of(&home, &"x".repeat(201)), None, "the CLI adds a number of its own");
        assert_eq!(of(&|_| None, "/w"), None);
    }
}
