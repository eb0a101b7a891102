//! Names for workspaces: any text in, one safe file name out, and a branch's name for it.
//!
//! Touches no disk. The same text gives the same name in every version, since the name is how a workspace
//! is found again.

use super::fnv::Fnv;

const LONGEST: usize = 100;
const HASH_DIGITS: usize = 16;
/// What is left for the text when a dash and the hash follow it.
const LONGEST_START: usize = LONGEST - 1 - HASH_DIGITS;

/// A file name for `raw`: itself where it is one, and otherwise what is left of it with a hash of the whole.
pub(crate) fn sanitised(raw: &str) -> String {
    let kept = with_underscores(raw, is_kept);
    if kept == raw && is_plain(&kept) {
        return kept;
    }
    let start = match kept.strip_prefix(['.', '-']) {
        Some(rest) => format!("_{rest}"),
        None if kept.is_empty() => "_".to_owned(),
        None => kept,
    };
    hashed(&start, raw)
}

/// The branch that a worktree in a directory of this name is on. Git forbids some dots that files may have.
pub(super) fn branch(name: &str) -> String {
    let is_fine = !name.is_empty()
        && name.chars().all(is_kept)
        && !name.starts_with('.')
        && !name.ends_with('.')
        && !name.ends_with(".lock")
        && !name.contains("..");
    if is_fine {
        return format!("outlast/{name}");
    }
    let start = with_underscores(name, |char| is_kept(char) && char != '.');
    format!("outlast/{}", hashed(&start, name))
}

fn is_kept(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '.' | '_' | '-')
}

fn with_underscores(raw: &str, is_kept: impl Fn(char) -> bool) -> String {
    raw.chars().map(|char| if is_kept(char) { char } else { '_' }).collect()
}

/// A text that looks as if it had been hashed is hashed, so that no run can ask for another's name.
fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= LONGEST
        && !name.starts_with(['.', '-'])
        && !ends_like_a_hash(name)
}

fn ends_like_a_hash(name: &str) -> bool {
    let is_digit = |char: char| matches!(char, '0'..='9' | 'a'..='f');
    name.rsplit_once('-')
        .is_some_and(|(_, end)| end.len() == HASH_DIGITS && end.chars().all(is_digit))
}

fn hashed(start: &str, raw: &str) -> String {
    let start = &start[..start.len().min(LONGEST_START)];
    format!("{start}-{:016x}", Fnv::of(raw.as_bytes()))
}

#[cfg(test)]
mod tests {
    use std::path::{Component, Path};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_that_is_one_is_left_alone() {
        for name in ["a", "ABC-123", "v1.2_rc", &"x".repeat(100)] {
            assert_eq!(sanitised(name), name);
        }
    }

    /// These are on disk: a change here loses workspaces.
    #[test]
    fn what_had_to_change_carries_a_hash_that_stays_the_same() {
        let all = ["team/42: fix", "", ".", "..", "-rf", ".git", "a-0123456789abcdef", "é"];
        let names = all.map(sanitised);
        assert_eq!(
            names,
            [
                "team_42__fix-e14c363e2c13e550",
                "_-cbf29ce484222325",
                "_-af63a34c86018bb1",
                "_.-07da1a07b4a03f2d",
                "_rf-df312917deb4b268",
                "_git-4eb9aea7925665ff",
                "a-0123456789abcdef-526182496f81bcaf",
                "_-0ac21707b7181e01",
            ]
        );
    }

    #[test]
    fn long_names_are_cut_and_still_differ() {
        let (a, b) = (sanitised(&"x".repeat(101)), sanitised(&"x".repeat(102)));
        assert_eq!((a.len(), b.len()), (100, 100));
        assert_ne!(a, b);
    }

    #[test]
    fn a_branch_is_named_as_git_allows() {
        assert_eq!(branch("ABC-123"), "outlast/ABC-123");
        for odd in ["a..b", "a.lock", "a.", ".a", "a b", "", "a~1", "@{u}"] {
            let name = branch(odd);
            assert!(name.len() > "outlast/-".len() + HASH_DIGITS - 1, "{name}");
            assert!(!name.contains(['.', ' ', '~', '@', '{']), "{name}");
        }
    }

    proptest! {
        #[test]
        fn distinct_texts_get_distinct_names(a in "[ab/:._ -]{0,5}", b in "[ab/:._ -]{0,5}") {
            prop_assume!(a != b);
            prop_assert_ne!(sanitised(&a), sanitised(&b));
        }

        #[test]
        fn nobody_gets_a_name_by_asking_for_it(a in "[ab/ .-]{0,5}") {
            let name = sanitised(&a);
            prop_assert!(name == a || sanitised(&name) != name);
        }

        #[test]
        fn every_name_is_one_harmless_file_name(raw in any::<String>()) {
            let name = sanitised(&raw);
            let parts: Vec<_> = Path::new(&name).components().collect();
            prop_assert!(matches!(parts[..], [Component::Normal(_)]), "{name}");
            prop_assert!(name.len() <= LONGEST && name.chars().all(is_kept), "{name}");
            prop_assert!(!name.starts_with(['.', '-']), "{name}");
        }
    }
}
