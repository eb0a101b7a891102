//! Loops for the tests of what the host does: a loop file, an agent that is a shell script, and ways to look.
//!
//! The home directory of every script is the test's own, so that is where they leave word of themselves.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::harness::{Home, str_of, until};

/// The words that every agent has for an answer.
pub(crate) const WORDS: &str = r#"
respond() { printf '%s' "$1" >"$OUTLAST_RESPONSE_FILE.part" && mv "$OUTLAST_RESPONSE_FILE.part" "$OUTLAST_RESPONSE_FILE"; }
say() { respond "{\"status\":\"$1\",\"summary\":\"$2\"}"; }
"#;

/// Delays that a person does not notice.
pub(crate) const RETRY: &str = "retry: {initial_backoff_ms: 10, max_backoff_ms: 20}";

/// Writes a loop file whose agent is this script, and says where it is.
pub(crate) fn file(home: &Home, name: &str, agent: &str, settings: &str) -> String {
    let script = home.scratch().join(format!("{name}.sh"));
    put(&script, &format!("{WORDS}\n{agent}\n"));
    let command = format!("[sh, '{}']", script.display());
    let front = format!("agent: {{kind: exec, command: {command}}}\n{RETRY}\n{settings}");
    let path = home.scratch().join(format!("{name}.md"));
    put(&path, &format!("---\n{front}\n---\nDo it: {{{{ task }}}}\n"));
    path.display().to_string()
}

/// Starts a loop file in a directory of the test's own, and leaves it.
pub(crate) fn start(home: &Home, file: &str, flags: &[&str]) -> String {
    home.ok(&starting(home, file, flags))
}

/// What is typed to start a loop file.
pub(crate) fn starting(home: &Home, file: &str, flags: &[&str]) -> Vec<String> {
    let work = work(home).display().to_string();
    let words = ["run", "-d", "--dir", &work, "-f", file];
    words.iter().chain(flags).map(|word| (*word).to_owned()).collect()
}

/// A loop that is started at once.
pub(crate) fn begin(home: &Home, agent: &str, settings: &str) -> String {
    start(home, &file(home, "loop", agent, settings), &[])
}

/// Where loops in place work.
pub(crate) fn work(home: &Home) -> PathBuf {
    let work = home.scratch().join("work");
    fs::create_dir_all(&work).expect("the scratch directory is ours");
    work
}

pub(crate) fn put(path: &Path, text: &str) {
    fs::write(path, text).expect("the scratch directory is ours");
}

/// A config that bears any number of deaths of the daemon. For a test that kills more than five in two
/// minutes and does not want what it resumes held back.
pub(crate) const BEARS_ALL: &str = "[supervision]\nstorm_starts = 0\n";

/// The operator's config.
pub(crate) fn configure(home: &Home, text: &str) {
    put(&home.path().join("config.toml"), text);
}

/// The lines of a file that a script has left; none if there is no such file.
pub(crate) fn left(home: &Home, name: &str) -> Vec<String> {
    let text = fs::read_to_string(home.scratch().join(name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// What the run is when it has ended or rests.
pub(crate) fn rested(home: &Home, id: &str) -> Value {
    home.wait(id);
    home.show(id)
}

/// Waits until the run rests or ends like this.
pub(crate) fn becomes(home: &Home, id: &str, state: &str, reason_code: &str) -> Value {
    let run = rested(home, id);
    let found = (str_of(&run, "state"), run["reason_code"].as_str().unwrap_or_default());
    assert_eq!(found, (state, reason_code), "{run:#}");
    run
}

/// Waits until the run is in this state, whatever for.
pub(crate) fn until_state(home: &Home, id: &str, state: &str) -> Value {
    until(&format!("{id} is {state}"), || Some(home.show(id)).filter(|run| run["state"] == state))
}

/// Waits until the run waits for this.
pub(crate) fn until_waiting(home: &Home, id: &str, cause: &str) -> Value {
    until(&format!("{id} waits: {cause}"), || {
        let run = home.show(id);
        (run["state"] == "waiting" && run["phase"] == cause).then_some(run)
    })
}

/// Waits until a script has left word.
pub(crate) fn until_left(home: &Home, name: &str) -> Vec<String> {
    until(&format!("{name} is left"), || Some(left(home, name)).filter(|lines| !lines.is_empty()))
}

pub(crate) fn of_kind(home: &Home, id: &str, kind: &str) -> Vec<Value> {
    home.events(id).into_iter().filter(|event| event["kind"] == kind).collect()
}

pub(crate) fn request(home: &Home, id: &str, turn: u32, attempt: u32) -> Value {
    let path = home.attempt_dir(id, turn, attempt).join("request.json");
    let text = fs::read_to_string(&path).expect("the attempt was asked something");
    serde_json::from_str(&text).expect("a request is JSON")
}

/// What a command that is refused says in JSON.
pub(crate) fn refused<S: AsRef<std::ffi::OsStr> + std::fmt::Debug>(
    home: &Home,
    args: &[S],
) -> Value {
    let said = home.output(args);
    assert_eq!(said.status.code(), Some(2), "{args:?}: {said:?}");
    let answer: Value = serde_json::from_slice(&said.stderr)
        .unwrap_or_else(|error| panic!("{args:?}: {said:?}: {error}"));
    answer["error"].clone()
}

/// Asks the daemon as any client can, and says the status and the answer.
pub(crate) fn post(home: &Home, path: &str, body: &Value) -> (u16, Value) {
    let mut stream =
        UnixStream::connect(home.path().join("run/daemon.sock")).expect("a daemon listens");
    let body = body.to_string();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: outlast\r\nConnection: close\r\nContent-Type: application/json"
    );
    write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).expect("it listens");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers with text");
    let status = answer.split_whitespace().nth(1).and_then(|word| word.parse().ok());
    let json = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status.expect("a status"), serde_json::from_str(json).unwrap_or(Value::Null))
}

/// Makes the directory that loops are started in a repository with one commit.
pub(crate) fn repository(home: &Home) -> PathBuf {
    let work = work(home);
    put(&work.join("README"), "hello\n");
    for args in [&["init", "-q", "-b", "main"][..], &["add", "."], &["commit", "-q", "-m", "first"]]
    {
        git(&work, args);
    }
    work
}

pub(crate) fn git(dir: &Path, args: &[&str]) -> String {
    let who = ["-c", "user.name=test", "-c", "user.email=test@example.org"];
    let mut git = Command::new("git");
    git.current_dir(dir).env("GIT_CONFIG_GLOBAL", "/dev/null").args(who).args(args);
    let output = git.output().expect("there is a git");
    assert!(output.status.success(), "{args:?}: {output:?}");
    crate::harness::text(&output.stdout).trim_end().to_owned()
}
