//! A short slice of fuzzing on a stable compiler: the corpus, and seeded mutations of it, through the same functions
//! that the fuzz targets call (`fuzz/`, a workspace of its own).

#[path = "../../../../fuzz/daemon_entries.rs"]
mod daemon_entries;
#[path = "../../../../fuzz/entries.rs"]
mod entries;

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

/// Of each file of the corpus.
const MUTATIONS: u64 = 300;

fn corpus(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let listed = fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut files: Vec<PathBuf> = listed.flatten().map(|entry| entry.path()).collect();
    files.sort();
    files.into_iter().map(|path| (path.clone(), fs::read(path).expect("it is ours"))).collect()
}

/// Numbers that look like chance and are the same each time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap_or(0) % bound.max(1)
    }
}

/// What parsers trip over.
const TOKENS: [&[u8]; 24] = [
    b"\0",
    b"\xff\xff\xff\xff",
    b"\xc3",
    b"\n",
    b"\n\n",
    b"---\n",
    b"{{",
    b"}}",
    b"{% ",
    b" %}",
    b"\"",
    b"'",
    b"\\",
    b"[",
    b"{",
    b"}",
    b"-1",
    b"1e999",
    b"18446744073709551616",
    b": ",
    b"&a ",
    b"*a",
    b"null",
    b" | ",
];

/// One to six changes: bits, bytes, tokens, cuts, repeats, parts of another file.
fn mutated(seed: &[u8], others: &[(PathBuf, Vec<u8>)], chance: &mut Chance) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=chance.below(6) {
        let at = chance.below(bytes.len() + 1);
        let end = (at + chance.below(40)).min(bytes.len());
        match chance.below(7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
            1 if at < bytes.len() => bytes[at] = u8::try_from(chance.below(256)).unwrap_or(0),
            2 => drop(bytes.splice(at..at, TOKENS[chance.below(TOKENS.len())].iter().copied())),
            3 => drop(bytes.drain(at..end)),
            4 => {
                let again = bytes[at..end].repeat(1 + chance.below(20));
                drop(bytes.splice(at..at, again));
            }
            5 => bytes.truncate(at),
            _ => {
                let (_, other) = &others[chance.below(others.len())];
                let from = chance.below(other.len() + 1);
                let to = (from + chance.below(80)).min(other.len());
                drop(bytes.splice(at..end, other[from..to].iter().copied()));
            }
        }
    }
    bytes
}

fn slice(target: &str) {
    let mut all = entries::ALL.iter().chain(&daemon_entries::ALL);
    let (_, entry) = all.find(|(name, _)| *name == target).expect("it is listed");
    let files = corpus(target);
    assert!(!files.is_empty(), "{target} has no corpus");
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
    for (path, bytes) in &files {
        let put_in = |bytes: &[u8]| {
            if catch_unwind(|| entry(bytes)).is_err() {
                panic!("{target}: from {}: {}", path.display(), bytes.escape_ascii());
            }
        };
        put_in(bytes);
        for _ in 0..MUTATIONS {
            put_in(&mutated(bytes, &files, &mut chance));
        }
    }
}

#[test]
fn every_target_has_its_slice_and_its_file() {
    let targets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/fuzz_targets");
    let mut files: Vec<String> = fs::read_dir(targets)
        .expect("it is part of the source")
        .flatten()
        .filter_map(|entry| Some(entry.path().file_stem()?.to_str()?.to_owned()))
        .collect();
    files.sort();
    let mut listed: Vec<&str> =
        entries::ALL.iter().chain(&daemon_entries::ALL).map(|(name, _)| *name).collect();
    listed.sort_unstable();
    assert_eq!(files, listed);
}

macro_rules! slices {
    ($($target:ident),*) => { $(
        #[test]
        fn $target() {
            slice(stringify!($target));
        }
    )* };
}

slices!(
    agents,
    config,
    event,
    frames,
    http,
    index,
    output_frames,
    plain,
    poll,
    records,
    response,
    template,
    tools,
    webhook,
    workflow
);
