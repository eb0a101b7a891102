//! A loop through the deaths of its daemon, its shims and its machine.
//!
//! The loop has a workspace, every hook, a keyed call and a check; each of its steps takes one lock and
//! complains if a living process has it. Whatever dies, it completes with the same turns, and nothing that
//! was committed or completed is done again.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::crash_matrix::assert_sound;
use crate::harness::{Home, is_alive, kill, lines, str_of, text, until};

pub(crate) const TURNS: usize = 5;

/// What every step of the loop does first. A process that was killed may have left the lock.
const ENTER: &str = r#"
if ! mkdir "$L/lock" 2>/dev/null; then
  holder=$(cat "$L/lock/pid" 2>/dev/null)
  case "$(cat "/proc/${holder:-none}/stat" 2>/dev/null)" in
    '' | *') Z '* | *') X '*) ;;
    *) echo "$* met $holder" >> "$L/complaints" ;;
  esac
fi
echo $$ > "$L/lock/pid"
echo "$*" >> "$L/steps"
"#;

const LOOP: &str = r#"---
agent:
  kind: exec
  command: |
    L='@L'; set -- agent $OUTLAST_TURN $OUTLAST_ATTEMPT; . '@L/enter'
    echo "turn $OUTLAST_TURN"
    echo "step $OUTLAST_TURN" > "step.$OUTLAST_TURN"
    status=continue; calls='[]'
    [ "$OUTLAST_TURN" -lt 5 ] || status=done
    case $OUTLAST_TURN in 2|3) calls='[{"name":"count","input":{},"key":"the-call"}]' ;; esac
    @MIDDLE
    printf '{"status":"%s","summary":"%s steps","tool_calls":%s}' $status $OUTLAST_TURN "$calls" \
      > "$OUTLAST_RESPONSE_FILE.part"
    mv "$OUTLAST_RESPONSE_FILE.part" "$OUTLAST_RESPONSE_FILE"
    rm -r '@L/lock'
  max_turns: 12
workspace: { strategy: dir, root: '@L/workspaces' }
hooks:
  after_create: L='@L'; set -- after_create; . '@L/enter'; rm -r '@L/lock'
  before_run: L='@L'; set -- before_run; . '@L/enter'; rm -r '@L/lock'
  after_turn: L='@L'; set -- after_turn $OUTLAST_TURN; . '@L/enter'; rm -r '@L/lock'
  after_run: L='@L'; set -- after_run; . '@L/enter'; rm -r '@L/lock'
checks:
  done: ["L='@L'; set -- check; . '@L/enter'; rm -r '@L/lock'; test -e step.5"]
tools:
  - name: count
    command: [sh, -c, "L='@L'; set -- call; . '@L/enter'; rm -r '@L/lock'; echo counted"]
    class: keyed
retry: { initial_backoff_ms: 10, max_backoff_ms: 20 }
---
Build five steps.
"#;

pub(crate) struct Loop {
    pub(crate) home: Home,
    log: PathBuf,
    file: PathBuf,
}

impl Loop {
    /// The loop, with `middle` in the middle of its agent's script.
    pub(crate) fn new(home: Home, middle: &str) -> Self {
        let log = home.scratch().join("log");
        fs::create_dir(&log).expect("the scratch directory is ours");
        fs::write(log.join("enter"), ENTER).expect("it was just made");
        let file = home.scratch().join("WORKFLOW.md");
        let written = LOOP.replace("@L", &log.display().to_string()).replace("@MIDDLE", middle);
        fs::write(&file, written).expect("the scratch directory is ours");
        Self { home, log, file }
    }

    pub(crate) fn file(&self) -> &str {
        self.file.to_str().expect("the path is text")
    }

    /// As a person would: if the daemon does not answer, ask again. The key makes that one run.
    pub(crate) fn start(&self) -> String {
        self.insist(&["run", "-d", "--key", "the-one", "-f", self.file()])
    }

    pub(crate) fn insist(&self, args: &[&str]) -> String {
        until("the command succeeds", || {
            let output = self.home.output(args);
            output.status.success().then(|| text(&output.stdout).trim_end().to_owned())
        })
    }

    /// The run when it rests for good or for a person.
    pub(crate) fn end(&self, id: &str) -> Value {
        until("the run ends", || {
            let output = self.home.output(&["wait", id, "--timeout", "30s"]);
            output.status.code().filter(|code| ![2, 7, 124].contains(code))
        });
        serde_json::from_str(&self.insist(&["show", id, "--json"])).expect("show prints JSON")
    }

    pub(crate) fn steps(&self, of: &str) -> Vec<String> {
        let steps = fs::read_to_string(self.log.join("steps")).unwrap_or_default();
        let is_wanted = |line: &&str| line.split(' ').next() == Some(of);
        steps.lines().filter(is_wanted).map(str::to_owned).collect()
    }

    fn log(&self, name: &str) -> PathBuf {
        self.log.join(name)
    }
}

/// How many tries at one step a death may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cost {
    /// Every end is observed: everything is executed exactly once.
    Nothing,
    /// One end may go unseen; what has no promise of its own is executed again.
    OneUnseen,
}

/// What must hold of the loop whichever process died.
pub(crate) fn assert_told(told: &Loop, id: &str, cost: Cost, when: &str) {
    let run = told.end(id);
    let steps = fs::read_to_string(told.log("steps")).unwrap_or_default();
    let journal = || format!("{when}: {run}\n{steps}\n{}", told.home.ok(&["events", id]));
    assert_eq!(str_of(&run, "state"), "completed", "{}", journal());
    assert_eq!(run["turns_committed"], TURNS, "{}", journal());
    assert_eq!(told.home.count(id, "TurnCommitted"), TURNS, "{}", journal());
    assert_eq!(lines(&told.log("complaints")), 0, "two at once: {}", complaints(told));
    assert_turns(&told.steps("agent"), cost, &journal);
    assert_errands(told, cost, &journal);
    assert_sound(&told.home, when);
}

fn complaints(told: &Loop) -> String {
    fs::read_to_string(told.log("complaints")).unwrap_or_default()
}

/// Turns in their order, attempts of each in theirs, none twice.
fn assert_turns(agent: &[String], cost: Cost, journal: &dyn Fn() -> String) {
    let number =
        |word: Option<&str>| word.and_then(|it| it.parse::<usize>().ok()).expect("a number");
    let executed: Vec<(usize, usize)> = agent
        .iter()
        .map(|line| {
            let mut words = line.split(' ').skip(1);
            (number(words.next()), number(words.next()))
        })
        .collect();
    assert!(executed.is_sorted_by(|one, next| one < next), "done again: {}", journal());
    let turns: Vec<usize> = executed.iter().map(|(turn, _)| *turn).collect();
    let again = turns.len().saturating_sub(TURNS);
    assert!((1..=TURNS).all(|turn| turns.contains(&turn)), "left out: {}", journal());
    assert!(again <= usize::from(cost == Cost::OneUnseen), "done again: {}", journal());
}

fn assert_errands(told: &Loop, cost: Cost, journal: &dyn Fn() -> String) {
    let most = 1 + usize::from(cost == Cost::OneUnseen);
    for step in ["after_create", "before_run", "call", "check"] {
        let times = told.steps(step).len();
        assert!((1..=most).contains(&times), "{step} {times} times: {}", journal());
    }
    let cleaned_up = told.steps("after_run").len();
    let least = usize::from(cost == Cost::Nothing);
    assert!((least..=1).contains(&cleaned_up), "after_run {cleaned_up} times: {}", journal());
    let after_turns = told.steps("after_turn").len();
    assert!((TURNS..TURNS + most).contains(&after_turns), "after_turn: {}", journal());
}

#[test]
fn a_loop_whose_terminal_is_closed_completes() {
    let told = Loop::new(Home::new(), "");
    let client = told.home.spawn(&["run", "--key", "the-one", "-f", told.file()]);
    let id = told.start();
    kill(client.0.id(), "HUP");
    assert_told(&told, &id, Cost::Nothing, "without a terminal");
    assert_eq!(told.steps("call").len(), 1, "a completed call was made again");
}

/// Every death of the daemon falls into another turn, while the agent works.
#[test]
fn a_daemon_that_dies_in_every_turn_costs_nothing() {
    let home = Home::new();
    let reached = home.scratch().join("reached");
    let go = home.scratch().join("go");
    let middle = format!(
        "echo $OUTLAST_TURN > '{0}.part'; mv '{0}.part' '{0}'; while [ ! -e '{1}.'$OUTLAST_TURN ]; do sleep 0.02; done",
        reached.display(),
        go.display()
    );
    let told = Loop::new(home, &middle);
    let id = told.start();
    for turn in 1..=TURNS {
        until("the turn is reached", || is_at(&reached, turn));
        let daemon = told.home.daemon_pid();
        kill(daemon, "KILL");
        until("the daemon is dead", || (!is_alive(daemon)).then_some(()));
        fs::write(format!("{}.{turn}", go.display()), "").expect("the scratch directory is ours");
    }
    assert_told(&told, &id, Cost::Nothing, "a death in every turn");
    assert_eq!(told.end(&id)["restarts"], serde_json::json!({"stall": 0, "crash": 0}));
}

fn is_at(reached: &Path, turn: usize) -> Option<()> {
    let text = fs::read_to_string(reached).ok()?;
    (text.trim() == turn.to_string()).then_some(())
}
