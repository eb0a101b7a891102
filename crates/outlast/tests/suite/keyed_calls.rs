//! `outlast call`: each step of a script is made once, whatever is killed in between.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::crash_matrix::assert_sound;
use crate::harness::{Home, lines, str_of, text, until};
use crate::hosted::post;

const STEPS: usize = 5;

/// Five steps; each writes a line where its effect is counted, and the script prints what each printed.
fn script(class: &str, more: &str) -> String {
    format!(
        r#"set -e
for i in 1 2 3 4 5; do
  out=$(outlast call --key step-$i --class {class} -- sh -c "echo step-$i >>\"$EFFECTS\"; echo out-$i; echo err-$i >&2; {more}")
  echo "$i $out" >>"$SEEN"
  if [ "$OUTLAST_ATTEMPT" = "$DIES_AFTER$i" ]; then kill -9 $$; fi
done"#
    )
}

pub(crate) struct Stage {
    pub(crate) home: Home,
    effects: PathBuf,
    pub(crate) seen: PathBuf,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let home = Home::new();
        let (effects, seen) = (home.scratch().join("effects"), home.scratch().join("seen"));
        let path = std::env::var("PATH").unwrap_or_default();
        let ours = Path::new(env!("CARGO_BIN_EXE_outlast")).parent().expect("it is in one");
        let home = home
            .env("EFFECTS", &effects)
            .env("SEEN", &seen)
            .env("PATH", format!("{}:{path}", ours.display()));
        Self { home, effects, seen }
    }

    pub(crate) fn env(self, name: &str, value: &str) -> Self {
        Self { home: self.home.env(name, value), ..self }
    }

    pub(crate) fn start(&self, script: &str) -> String {
        let args = ["run", "-d", "--retry", "9", "--backoff", "10ms", "--key", "one", "--"];
        until("the run is made", || {
            let output = self.home.output(&[&args[..], &["sh", "-c", script]].concat());
            output.status.success().then(|| text(&output.stdout).trim_end().to_owned())
        })
    }

    /// The run's exit code; a person who tells the truth resolves what is in doubt.
    pub(crate) fn end(&self, id: &str) -> i32 {
        until("the run ends", || {
            let code = self.home.output(&["wait", id, "--timeout", "5s"]).status.code()?;
            if self.resolve(id) {
                return None;
            }
            Some(code).filter(|code| ![2, 3, 7, 124].contains(code))
        })
    }

    fn resolve(&self, id: &str) -> bool {
        let Ok(run) =
            serde_json::from_slice::<Value>(&self.home.output(&["show", id, "--json"]).stdout)
        else {
            return false;
        };
        if run["state"] != "blocked" {
            return false;
        }
        assert_eq!(run["reason_code"], "unknown_call_outcome", "{run}");
        let listed = self.home.json(&["call", "--run", id, "--list", "--json"]);
        let doubted: Vec<&Value> = listed
            .as_array()
            .expect("a list")
            .iter()
            .filter(|call| call["state"] == "unknown")
            .collect();
        for call in doubted {
            let key = str_of(call, "key");
            let step = key.rsplit('/').next().expect("a key has a name");
            let is_made = self.effects().iter().any(|line| line == step);
            let what = if is_made { "made" } else { "again" };
            self.home.output(&["call", "--run", id, "--key", key, "--resolve", what]);
        }
        self.home.output(&["resume", id]);
        true
    }

    pub(crate) fn effects(&self) -> Vec<String> {
        fs::read_to_string(&self.effects).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    fn assert_each_once(&self, when: &str) {
        let expected: Vec<String> = (1..=STEPS).map(|step| format!("step-{step}")).collect();
        assert_eq!(self.effects(), expected, "{when}");
    }
}

#[test]
fn a_script_that_is_killed_after_each_step_makes_each_step_once() {
    // In its n-th attempt it dies after its n-th step.
    let stage = Stage::new().env("DIES_AFTER", "");
    let id = stage.start(&script("unsafe", "true"));
    assert_eq!(stage.home.wait(&id), 0);
    stage.assert_each_once("killed after each step");
    let mut expected = Vec::new();
    for attempt in 1..=STEPS + 1 {
        expected.extend((1..=attempt.min(STEPS)).map(|step| format!("{step} out-{step}")));
    }
    let seen = fs::read_to_string(&stage.seen).expect("it wrote");
    assert_eq!(seen.lines().collect::<Vec<_>>(), expected, "stored output is printed again");
    assert_eq!(stage.home.count(&id, "CallBegun"), STEPS);
    assert_eq!(stage.home.count(&id, "CallEnded"), STEPS);
    assert_sound(&stage.home, "after five deaths");
}

#[test]
fn a_call_that_is_killed_in_its_effect_is_made_again_only_if_its_class_allows() {
    // The command ends the process that called it, once.
    let more = "if mkdir $SEEN.killed 2>/dev/null; then kill -9 \\$PPID; sleep 0.2; fi";
    for (class, made) in [("idempotent", 2), ("keyed", 2), ("read", 2), ("unsafe", 1)] {
        let stage = Stage::new().env("DIES_AFTER", "none");
        let id = stage.start(&script(class, more));
        assert_eq!(stage.end(&id), 0, "{class}");
        let first = stage.effects().iter().filter(|line| *line == "step-1").count();
        assert_eq!(first, made, "{class}: {:?}", stage.effects());
        assert_eq!(lines(&stage.effects), STEPS - 1 + made, "{class}");
        assert_sound(&stage.home, class);
    }
}

/// Every point that such a script passes when no process dies, with how often it is passed.
fn passes() -> Vec<String> {
    let stage = Stage::new().env("DIES_AFTER", "none");
    let log = stage.home.scratch().join("passed");
    let stage = Stage { home: stage.home.env("OUTLAST_CRASH_LOG", &log), ..stage };
    let id = stage.start(&script("unsafe", "true"));
    assert_eq!(stage.home.wait(&id), 0);
    fs::read_to_string(log).unwrap_or_default().lines().map(str::to_owned).collect()
}

pub(crate) fn points() -> BTreeSet<String> {
    passes().into_iter().collect()
}

#[test]
fn whatever_dies_at_whichever_point_each_effect_happens_once() {
    let passed = passes();
    let of_calls =
        ["client.call-begun", "client.call-made", "daemon.before-append", "daemon.after-append"];
    for point in of_calls {
        let times = passed.iter().filter(|it| *it == point).count();
        assert!(times >= STEPS, "{point} is passed with each step: {passed:?}");
        for pass in 1..=times {
            let stage = Stage::new().env("DIES_AFTER", "none");
            let (token, log) =
                (stage.home.scratch().join("token"), stage.home.scratch().join("passed"));
            fs::write(&token, "").expect("the scratch directory is ours");
            let home = stage
                .home
                .env("OUTLAST_CRASH_LOG", &log)
                .env("OUTLAST_CRASH_TOKEN", &token)
                .env("OUTLAST_CRASH_AT", format!("{point}@{pass}"));
            let stage = Stage { home, ..stage };
            let when = format!("a death at {point}, pass {pass}");
            let id = stage.start(&script("unsafe", "true"));
            assert_eq!(stage.end(&id), 0, "{when}");
            assert!(!token.exists(), "{when}: no process died");
            stage.assert_each_once(&when);
            assert_sound(&stage.home, &when);
        }
    }
}

#[test]
fn a_key_with_other_arguments_is_refused_and_what_failed_is_made_again_on_request() {
    let stage = Stage::new();
    let said = stage.home.scratch().join("said");
    let script = format!(
        r#"exec 2>>{said}
outlast call --key a -- sh -c 'exit 3'; echo $? >&2
outlast call --key a -- sh -c 'exit 3'; echo $? >&2
outlast call --key a -- sh -c 'exit 4'; echo $? >&2
outlast call --key a --class read -- sh -c 'exit 3'; echo $? >&2
outlast call --key a --retry-failed -- sh -c 'exit 3'; echo $? >&2
outlast call --key none -- /no/such/program; echo $? >&2
outlast call --key none -- true; echo $? >&2
outlast call --key big -- sh -c 'head -c 300000 /dev/zero | tr "\0" x' | wc -c >&2
outlast call --key big -- sh -c 'head -c 300000 /dev/zero | tr "\0" x' | wc -c >&2
exit 0"#,
        said = said.display()
    );
    let id = stage.home.start(&script);
    assert_eq!(stage.home.wait(&id), 0);
    let said = fs::read_to_string(said).expect("it said something");
    let codes: Vec<&str> =
        said.lines().map(str::trim).filter(|line| line.parse::<u32>().is_ok()).collect();
    assert_eq!(codes, ["3", "3", "2", "2", "3", "127", "0", "300000", "300000"], "{said}");
    assert!(said.contains("belongs to another call: sh -c exit 3"), "{said}");
    assert_eq!(stage.home.count(&id, "CallBegun"), 5, "{:?}", stage.home.kinds(&id));
    assert_sound(&stage.home, "keys");
}

#[test]
fn a_call_needs_the_token_of_its_own_live_attempt() {
    let stage = Stage::new();
    let said = stage.home.fails(2, &["call", "--key", "a", "--", "true"]);
    assert!(said.contains("hint: start the script with: outlast run -- SCRIPT"), "{said}");
    let gate = crate::harness::Gate::new(&stage.home, "gate");
    let id = stage.home.start(&gate.pass());
    let call = json!({"key": "a", "class": "read", "digest": "d", "command": "c", "ticket": "t"});
    let (status, body) = post(&stage.home, &format!("/v1/runs/{id}/calls"), &call);
    assert_eq!((status, &body["error"]["code"]), (403, &json!("needs_token")), "{body}");
    let mut gate = gate;
    gate.open();
    assert_eq!(stage.home.wait(&id), 0);
}

#[test]
fn the_next_attempt_is_told_which_calls_have_results_and_which_are_in_doubt() {
    let stage = Stage::new();
    let script = r#"if [ "$OUTLAST_ATTEMPT" = 1 ]; then
  outlast call --key known -- echo known
  outlast call --key doubted --class idempotent -- sh -c 'kill -9 $PPID'
  kill -9 $$
fi
cp "$OUTLAST_REQUEST_FILE" "$SEEN""#;
    let id = stage.start(script);
    assert_eq!(stage.home.wait(&id), 0);
    let request: Value =
        serde_json::from_slice(&fs::read(&stage.seen).expect("it was copied")).expect("JSON");
    let told: Vec<(String, &str)> = request["calls"]
        .as_array()
        .expect("calls")
        .iter()
        .map(|call| (str_of(call, "key").replace(&id, "RUN"), str_of(call, "status")))
        .collect();
    let expected = [("RUN/t1/doubted".to_owned(), "unknown"), ("RUN/t1/known".to_owned(), "ok")];
    assert_eq!(told, expected);
    let note = str_of(&request["note"], "text");
    assert!(note.contains("Calls with known results") && note.contains("t1/known"), "{note}");
    assert!(note.contains("Calls of unknown outcome") && note.contains("t1/doubted"), "{note}");
}

/// The call of the run, and its number.
fn doubted(stage: &Stage, id: &str, begun: usize) -> u64 {
    until("the run is blocked", || {
        let is_begun = stage.home.count(id, "CallBegun") == begun;
        (is_begun && stage.home.show(id)["state"] == "blocked").then_some(())
    });
    let listed = stage.home.json(&["call", "--run", id, "--list", "--json"]);
    assert_eq!(listed[0]["state"], "unknown", "{listed}");
    listed[0]["seq"].as_u64().expect("a number")
}

#[test]
fn what_resolves_a_call_answers_one_doubt_and_counts_once() {
    let stage = Stage::new();
    let script =
        r#"outlast call --key pay -- sh -c 'echo paid >>"$EFFECTS"; kill -9 $PPID'; exit 5"#;
    let id = stage.start(script);
    let path = format!("/v1/runs/{id}/calls/resolve");
    let order = |order: &str, seq: u64, was_made: bool| {
        let body = json!({"id": order, "seq": seq, "key": "pay", "was_made": was_made});
        let (status, answer) = post(&stage.home, &path, &body);
        (status, answer["error"]["code"].as_str().unwrap_or_default().to_owned())
    };
    let taken = (200, String::new());
    let answered = (409, "already_answered".to_owned());
    let first = doubted(&stage, &id, 1);
    assert_eq!(order("r-1", first, false), taken);
    assert_eq!(order("r-1", first, false), taken, "the same order");
    assert_eq!(order("r-1", first, true), (409, "id_conflict".to_owned()), "another");
    assert_eq!(order("r-2", first, true), answered);
    stage.home.ok(&["resume", &id]);

    let second = doubted(&stage, &id, 2);
    assert_ne!(first, second);
    assert_eq!(order("r-1", first, false), taken, "its answer was lost, and it is asked for again");
    assert_eq!(order("r-3", first, false), answered, "it was given for the first doubt");
    assert_eq!(doubted(&stage, &id, 2), second, "the second doubt stays");
    stage.home.crash_daemon();
    stage.home.ok(&["ps"]);
    assert_eq!(order("r-1", first, false), taken);

    let resolve =
        |what| ["call", "--run", &id, "--key", "pay", "--resolve", what].map(str::to_owned);
    stage.home.ok(&resolve("made"));
    let said = stage.home.fails(2, &resolve("again"));
    assert!(said.contains("was resolved as made by user"), "{said}");
    assert_eq!(stage.home.count(&id, "CallResolved"), 2);
    assert_eq!(stage.effects(), ["paid", "paid"]);
    assert_sound(&stage.home, "resolved twice");
}

#[test]
fn a_stored_result_that_was_cut_short_or_changed_is_no_result() {
    let stage = Stage::new();
    let runs = stage.home.state().join("runs");
    let script = format!(
        r#"file={runs}/$OUTLAST_RUN_ID/calls/*.stdout
outlast call --key big -- sh -c 'echo made >>"$EFFECTS"; head -c 100000 /dev/zero' >"$SEEN.out" 2>>"$SEEN"
echo "rc $?, $(wc -c <"$SEEN.out") bytes" >>"$SEEN"
case "$OUTLAST_ATTEMPT" in
1) truncate -s 50000 $file; exit 1;;
2) head -c 100000 /dev/zero | tr '\0' y >$(echo $file); exit 1;;
3) head -c 100000 /dev/zero >$(echo $file); exit 1;;
esac"#,
        runs = runs.display()
    );
    let id = stage.start(&script);
    assert_eq!(stage.home.wait(&id), 0);
    let seen = fs::read_to_string(&stage.seen).expect("it wrote");
    let codes: Vec<&str> = seen.lines().filter(|line| line.starts_with("rc ")).collect();
    let (whole, none) = ("rc 0, 100000 bytes", "rc 2, 0 bytes");
    assert_eq!(codes, [whole, none, none, whole], "{seen}");
    assert!(seen.contains("has 50000 bytes, and 100000 were written"), "{seen}");
    assert!(seen.contains("is not what was written"), "{seen}");
    assert_eq!(stage.effects(), ["made"]);
}

#[test]
fn a_key_of_the_whole_run_is_never_a_key_of_a_turn() {
    let stage = Stage::new();
    let script = r#"exec 2>>"$SEEN"
try() { outlast call --key "$1" -- sh -c 'echo made >>"$EFFECTS"'; echo "rc $?" >&2; }
try "$OUTLAST_RUN_ID/t2/pay"
try "$OUTLAST_KEY_BASE/pay"
try pay
try "$OUTLAST_RUN_ID/t2"
exit 0"#;
    let id = stage.home.start(script);
    assert_eq!(stage.home.wait(&id), 0);
    let seen = fs::read_to_string(&stage.seen).expect("it wrote");
    let codes: Vec<&str> = seen.lines().filter(|line| line.starts_with("rc ")).collect();
    assert_eq!(codes, ["rc 2", "rc 0", "rc 0", "rc 0"], "{seen}");
    assert!(seen.contains("has the form of another turn's keys; this is turn 1"), "{seen}");
    assert_eq!(stage.effects(), ["made", "made"], "the base and the short key are one");
}
