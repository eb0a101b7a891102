//! Loops for tests: a loop file whose agent is a shell script, and what the agent says that it did.
//!
//! The agent keeps a log of its own beside its workspace, so that a test can tell what really ran from what
//! the journal says. Nothing waits for long between two attempts.

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use serde_json::Value;

use crate::harness::{Home, str_of, text, until};

/// What every agent starts with: its line in the log, and the words for an answer.
const PREAMBLE: &str = r#"
echo "$OUTLAST_TURN $OUTLAST_ATTEMPT" >>"$LOG"
answer() { printf '%s' "$1" >"$OUTLAST_RESPONSE_FILE.part"; mv "$OUTLAST_RESPONSE_FILE.part" "$OUTLAST_RESPONSE_FILE"; }
say() { answer "{\"status\":\"$1\",\"summary\":\"$2\"}"; }
"#;

pub(crate) struct Loop<'h> {
    home: &'h Home,
    agent: Vec<String>,
    retry: &'static str,
    settings: Vec<String>,
}

impl<'h> Loop<'h> {
    /// A loop whose every attempt is this script.
    pub(crate) fn of(home: &'h Home, script: &str) -> Self {
        let log = format!("LOG='{}'", log(home).display());
        let lines: Vec<&str> =
            log.lines().chain(PREAMBLE.lines()).chain(script.lines()).map(str::trim_end).collect();
        Self::running(home, &format!("command: |\n    {}", lines.join("\n    ")))
    }

    /// A loop whose agent's command is given as the file has it.
    pub(crate) fn running(home: &'h Home, command: &str) -> Self {
        let agent = vec!["kind: exec".to_owned(), command.to_owned()];
        let retry = "retry: {initial_backoff_ms: 10, max_backoff_ms: 20}";
        Self { home, agent, retry, settings: Vec::new() }
    }

    /// An agent of this kind instead.
    pub(crate) fn kind(mut self, kind: &str) -> Self {
        self.agent[0] = format!("kind: {kind}");
        self
    }

    /// Adds a line of the agent's settings.
    pub(crate) fn agent(mut self, line: &str) -> Self {
        self.agent.push(line.to_owned());
        self
    }

    /// Adds lines that stand at the top level of the file.
    pub(crate) fn with(mut self, lines: &str) -> Self {
        self.settings.push(lines.to_owned());
        self
    }

    pub(crate) fn retry(mut self, line: &'static str) -> Self {
        self.retry = line;
        self
    }

    pub(crate) fn start(&self) -> String {
        self.start_with(&[])
    }

    /// Starts it with more on the command line, and leaves it.
    pub(crate) fn start_with(&self, flags: &[&str]) -> String {
        let args: Vec<String> = self.args().into_iter().chain(["-d".to_owned()]).collect();
        let args: Vec<&str> =
            args.iter().map(String::as_str).chain(flags.iter().copied()).collect();
        self.home.ok(&args)
    }

    /// Starts it, and watches it until it rests.
    pub(crate) fn watch(&self) -> Output {
        self.home.output(&self.args())
    }

    fn args(&self) -> Vec<String> {
        let file = self.write();
        let workspace = workspace(self.home);
        fs::create_dir_all(&workspace).expect("the scratch directory is ours");
        let (file, workspace) = (file.display().to_string(), workspace.display().to_string());
        ["run", "--dir", &workspace, "-f", &file].map(str::to_owned).to_vec()
    }

    fn write(&self) -> PathBuf {
        let path = self.home.scratch().join("WORKFLOW.md");
        let agent = self.agent.join("\n  ");
        let settings = self.settings.join("\n");
        let file = format!("---\nagent:\n  {agent}\n{}\n{settings}\n---\nDo it.\n", self.retry);
        fs::write(&path, file).expect("the scratch directory is ours");
        path
    }
}

/// Where the turns of a loop work.
pub(crate) fn workspace(home: &Home) -> PathBuf {
    home.scratch().join("workspace")
}

fn log(home: &Home) -> PathBuf {
    home.scratch().join("turns.log")
}

/// The attempts that really ran, as `turn attempt`, in the order in which they began.
pub(crate) fn ran(home: &Home) -> Vec<String> {
    let log = fs::read_to_string(log(home)).unwrap_or_default();
    log.lines().map(str::to_owned).collect()
}

/// Waits until the run has come to rest, and says what `show` then says. `wait` has to mirror it.
pub(crate) fn rests(home: &Home, id: &str, state: &str, reason_code: &str) -> Value {
    let output = home.output(&["wait", id, "--timeout", "60s"]);
    let run = home.show(id);
    assert_eq!(
        (str_of(&run, "state"), run["reason_code"].as_str()),
        (state, Some(reason_code)),
        "{run:#}"
    );
    let expected = match (state, reason_code) {
        ("completed", _) => 0,
        ("failed", "lost") => 6,
        ("failed", _) => 1,
        ("blocked", _) => 3,
        ("exhausted", _) => 4,
        ("stopped", _) => 5,
        (other, _) => panic!("{other} is not a rest that wait returns for"),
    };
    assert_eq!(output.status.code(), Some(expected), "{}", text(&output.stderr));
    assert_eq!(home.count(id, "RunEnded"), usize::from(state != "blocked"));
    assert_eq!(run["phase"], if state == "blocked" { "blocked" } else { "ended" });
    assert_sound(home);
    run
}

/// Waits until the run waits for this.
pub(crate) fn until_waiting(home: &Home, id: &str, cause: &str) -> Value {
    until(&format!("the run waits: {cause}"), || {
        let run = home.show(id);
        (run["state"] == "waiting" && run["phase"] == cause).then_some(run)
    })
}

/// Every journal is one that may be.
pub(crate) fn assert_sound(home: &Home) {
    let report: Value =
        serde_json::from_slice(&home.output(&["doctor", "--json"]).stdout).expect("it is JSON");
    let findings = report["findings"].as_array().expect("a list");
    let journal: Vec<&Value> = findings.iter().filter(|it| it["subject"] == "journal").collect();
    assert!(journal.len() == 1 && journal[0]["level"] == "ok", "{report:#}");
}

/// How the attempts ended, in order.
pub(crate) fn outcomes(home: &Home, id: &str) -> Vec<String> {
    let events = home.events(id);
    let ended = events.iter().filter(|event| event["kind"] == "AttemptEnded");
    ended.map(|event| str_of(event, "outcome").to_owned()).collect()
}

/// What an attempt was asked.
pub(crate) fn request(home: &Home, id: &str, turn: u32, attempt: u32) -> Value {
    let path = home.attempt_dir(id, turn, attempt).join("request.json");
    serde_json::from_slice(&fs::read(&path).expect("it was asked")).expect("it is JSON")
}
