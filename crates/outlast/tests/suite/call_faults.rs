//! Seeded sequences of faults over calls and children, with real processes: a caller, a script, the daemon or all of them
//! die before and after an effect, answers get lost, and keys are refused. Every call has one result, and everything ends.
//!
//! The suite takes a slice. `OUTLAST_FAULT_SEEDS=0-299 cargo test -p outlast --test suite call_faults` takes as many as one
//! likes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use crate::crash_matrix::assert_sound;
use crate::harness::{kill, str_of, until};
use crate::keyed_calls::Stage;

const STEPS: u64 = 5;

/// Seeds of the slice, by the part of it that a test takes.
const SLICE: [(u64, u64); 3] = [(0, 5), (6, 11), (12, 17)];

const CLASSES: [&str; 4] = ["unsafe", "keyed", "idempotent", "read"];

/// Where a process dies, if it is told to: the last of them are of children.
const POINTS: [&str; 9] = [
    "client.call-begun",
    "client.call-made",
    "daemon.before-append",
    "daemon.after-append",
    "client.call-begun",
    "client.call-made",
    "daemon.run-created",
    "daemon.child-ended",
    "daemon.parent-told",
];

/// Repeatable chance: SplitMix64.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, below: u64) -> u64 {
        self.next() % below
    }

    /// One of `1..=STEPS`, or none.
    fn a_step(&mut self) -> Option<u64> {
        (self.below(3) > 0).then(|| 1 + self.below(STEPS))
    }

    fn one_of<'a>(&mut self, from: &[&'a str]) -> &'a str {
        let at = self.below(u64::try_from(from.len()).expect("it is short"));
        from[usize::try_from(at).expect("it is within the list")]
    }
}

/// What is done, and what goes wrong.
#[derive(Debug)]
struct Sequence {
    /// The class of each call; `None` for a child.
    steps: Vec<Option<&'static str>>,
    /// After this step another command under its key is refused.
    refused_after: Option<u64>,
    /// The script dies after this step, once.
    script_dies: Option<u64>,
    /// The process that makes this step dies in its effect, once.
    caller_dies: Option<u64>,
    /// The daemon dies when so many effects are there.
    daemon_dies: Option<u64>,
    /// A process dies when it passes this point the n-th time.
    point: Option<String>,
}

impl Sequence {
    fn draw(seed: u64) -> Self {
        let mut chance = Chance(seed);
        let steps = (0..STEPS).map(|_| (chance.below(3) > 0).then(|| chance.one_of(&CLASSES)));
        Self {
            steps: steps.collect(),
            refused_after: chance.a_step(),
            script_dies: chance.a_step(),
            caller_dies: chance.a_step(),
            daemon_dies: chance.a_step(),
            point: (chance.below(4) > 0)
                .then(|| format!("{}@{}", chance.one_of(&POINTS), 1 + chance.below(6))),
        }
    }

    /// A script that knows nothing of resuming.
    fn script(&self) -> String {
        let mut text = "set -e\n".to_owned();
        for (number, class) in (1_u64..).zip(&self.steps) {
            let effect = format!("echo step-{number} >>\\\"$EFFECTS\\\"");
            let dies = if self.caller_dies == Some(number) && class.is_some() {
                "; if mkdir $SEEN.caller 2>/dev/null; then kill -9 \\$PPID; sleep 0.2; fi"
            } else {
                ""
            };
            let made = format!("sh -c \"{effect}; echo out-{number}{dies}\"");
            let asked = match class {
                Some(class) => {
                    format!("outlast call --key step-{number} --class {class} -- {made}")
                }
                None => format!(
                    "outlast run --parent $OUTLAST_RUN_ID --key step-{number} --lost again -- {made}"
                ),
            };
            writeln!(text, "out=$({asked})\necho \"{number} $out\" >>\"$SEEN\"")
                .expect("memory has room");
            if self.refused_after == Some(number) {
                let other = asked.replace("echo out-", "echo other-");
                writeln!(text, "if {other}; then exit 9; fi").expect("memory has room");
            }
            if self.script_dies == Some(number) {
                text.push_str("if mkdir $SEEN.script 2>/dev/null; then kill -9 $$; fi\n");
            }
        }
        text
    }

    fn play(&self, seed: u64) {
        let when = format!("seed {seed}: {self:?}");
        let mut stage = Stage::new();
        let token = stage.home.scratch().join("token");
        if let Some(point) = &self.point {
            std::fs::write(&token, "").expect("the scratch directory is ours");
            let log = stage.home.scratch().join("passed");
            stage = stage
                .env("OUTLAST_CRASH_LOG", &log.to_string_lossy())
                .env("OUTLAST_CRASH_TOKEN", &token.to_string_lossy())
                .env("OUTLAST_CRASH_AT", point);
        }
        let id = stage.start(&self.script());
        if let Some(most) = self.daemon_dies {
            let most = usize::try_from(most).expect("small");
            until("the daemon is to die", || {
                let shown = stage.home.output(&["show", &id, "--json"]).stdout;
                let run: Value = serde_json::from_slice(&shown).unwrap_or_default();
                let rests = run["ended_at"].is_string() || run["state"] == "blocked";
                (stage.effects().len() >= most || rests).then_some(())
            });
            // One that has just died by itself is as good.
            if let Some(pid) = stage.home.daemon_if_up() {
                kill(pid, "KILL");
            }
        }
        assert_eq!(stage.end(&id), 0, "{when}");
        self.assert_each_has_one_result(&stage, &id, &when);
        assert_sound(&stage.home, &when);
    }

    fn assert_each_has_one_result(&self, stage: &Stage, id: &str, when: &str) {
        let mut effects: BTreeMap<String, usize> = BTreeMap::new();
        stage.effects().into_iter().for_each(|step| *effects.entry(step).or_default() += 1);
        for (number, class) in (1_u64..).zip(&self.steps) {
            let made = effects.get(&format!("step-{number}")).copied().unwrap_or(0);
            let is_right = match class {
                // A child is a run of its own, and none of the faults is its.
                Some("unsafe") | None => made == 1,
                Some(_) => (1..=4).contains(&made),
            };
            assert!(is_right, "{when}: step {number} ({class:?}) was made {made} times");
        }
        let events = stage.home.events(id);
        let mut results: BTreeMap<&str, u64> = BTreeMap::new();
        for ended in events.iter().filter(|event| event["kind"] == "CallEnded") {
            if !ended["exit"].is_null() {
                *results.entry(str_of(ended, "key")).or_default() += 1;
            }
        }
        assert!(results.values().all(|count| *count == 1), "{when}: {results:?}");
        let of = |kind: &str| events.iter().filter(|event| event["kind"] == kind).count();
        let children = self.steps.iter().filter(|class| class.is_none()).count();
        let meant = events.iter().filter(|event| event["kind"] == "ChildSpawned");
        assert!(meant.count() >= children, "{when}: children are missing");
        assert_eq!(of("ChildSpawned"), of("ChildSettled"), "{when}: a child has no end");
        // What a call wrote that a person has resolved is not known.
        let is_resolved = of("CallResolved") > 0;
        let seen = std::fs::read_to_string(&stage.seen).unwrap_or_default();
        for line in seen.lines() {
            let (number, out) = line.split_once(' ').expect("a number and an output");
            let is_same = out == format!("out-{number}");
            assert!(is_same || (is_resolved && out.is_empty()), "{when}: {seen}");
        }
    }
}

/// The seeds that a test takes: its part of the slice, or of what a person asks for.
fn play(part: usize) {
    let asked = std::env::var("OUTLAST_FAULT_SEEDS").ok();
    let asked = asked.as_deref().and_then(|text| text.split_once('-'));
    let asked = asked.map(|(first, last)| {
        (first.parse::<u64>().expect("a seed"), last.parse::<u64>().expect("a seed"))
    });
    let parts = u64::try_from(SLICE.len()).expect("few");
    let seeds: Vec<u64> = match asked {
        Some((first, last)) => {
            let of_part = |seed: &u64| seed % parts == u64::try_from(part).expect("few");
            (first..=last).filter(of_part).collect()
        }
        None => (SLICE[part].0..=SLICE[part].1).collect(),
    };
    seeds.into_iter().for_each(|seed| Sequence::draw(seed).play(seed));
}

#[test]
fn whatever_fails_every_call_has_one_result_and_everything_ends_first_part() {
    play(0);
}

#[test]
fn whatever_fails_every_call_has_one_result_and_everything_ends_second_part() {
    play(1);
}

#[test]
fn whatever_fails_every_call_has_one_result_and_everything_ends_third_part() {
    play(2);
}
