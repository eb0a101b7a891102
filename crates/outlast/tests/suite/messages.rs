//! Every kind of screen and message as a person sees it, on 80 columns and on 120: a snapshot, and no line is wider.
//!
//! A line may be wider if it is a command to paste, which cannot be broken, or a single word, such as a path. What
//! differs from run to run (ids, times, sizes) is replaced before it is compared, and measured before that.

use std::path::Path;

use regex::Regex;
use unicode_width::UnicodeWidthStr;

use crate::harness::{Gate, Home, until};
use crate::hosted::{git, put};
use crate::mistakes::MISTAKES;
use crate::terminal::Terminal;

/// What a loop's agent says in each turn.
fn script(status: &str, summary: &str) -> String {
    format!(
        "echo working on it\nprintf '{{\"status\":\"{status}\",\"summary\":\"{summary}\"}}' > \"$OUTLAST_RESPONSE_FILE\"\n"
    )
}

fn loop_file(home: &Home, name: &str, agent: &str, settings: &str) -> String {
    let agent_file = home.scratch().join(format!("{name}.sh"));
    put(&agent_file, agent);
    let path = home.scratch().join(format!("{name}.md"));
    let command = format!("sh {}", agent_file.display());
    let most = if name == "port" { ", max_turns: 2" } else { "" };
    put(
        &path,
        &format!(
            "---\nagent: {{kind: file, command: {command}{most}}}\nretry: {{initial_backoff_ms: 10}}\n{settings}---\nPort all of it.\n"
        ),
    );
    path.display().to_string()
}

/// Where no agent is installed.
const PATH: &str = "/usr/bin:/bin";

const QUESTION: &str =
    "May I change mul to multiply? It may break callers, of which there are a lot, in all parts.";

/// A home in which there is something of each kind. Its path is as long everywhere.
struct Everything {
    home: Home,
    _gate: Gate,
}

impl Everything {
    fn new() -> Self {
        let home = Home::within(Path::new("/tmp"), "h").env("TZ", "UTC").env("PATH", PATH);
        put(&home.path().join("config.toml"), CONFIG);
        put(&home.scratch().join("theirs.md"), "---\ntracker: { kind: linear }\n---\nhi\n");
        std::fs::create_dir(home.scratch().join("work")).expect("it is ours");
        let gate = Gate::new(&home, "gate");
        home.ok(&[
            "run",
            "-d",
            "--name",
            "serve",
            "--label",
            "team=a",
            "--",
            "sh",
            "-c",
            &gate.pass(),
        ]);
        home.pid("serve");
        home.ok(&["run", "-d", "--name", "child", "--parent", "serve", "--", "sh", "-c", "exit 0"]);
        home.wait("child");
        home.ok(&[
            "run",
            "-d",
            "--name",
            "train",
            "--",
            "sh",
            "-c",
            "echo CUDA out of memory; exit 7",
        ]);
        home.wait("train");
        let asks = loop_file(&home, "asks", &script("blocked", QUESTION), "");
        home.ok(&["run", "-d", "--name", "asks", "--dir", "work", "-f", &asks]);
        assert_eq!(home.wait("asks"), 3);
        let port = loop_file(&home, "port", &script("continue", "one file more"), "");
        home.ok(&["run", "-d", "--name", "port", "--dir", "work", "-f", &port]);
        assert_eq!(home.wait("port"), 4);
        let stuck = loop_file(
            &home,
            "stuck",
            &script("done", "all is done"),
            "checks: {done: ['echo 3 tests failed; exit 1']}\nlimits: {no_progress_turns: 1}\n",
        );
        home.ok(&["run", "-d", "--name", "stuck", "--dir", "work", "-f", &stuck]);
        assert_eq!(home.wait("stuck"), 3);
        fix(&home);
        rests(&home, &gate);
        home.ok(&["run", "-d", "--name", "old", "--", "sleep", "1000"]);
        home.pid("old");
        home.ok(&["stop", "old"]);
        home.ok(&[
            "schedule",
            "add",
            "nightly",
            "--cron",
            "0 3 * * *",
            "--",
            "sh",
            "-c",
            "make check",
        ]);
        until("the sink has failed", || {
            let sinks = home.json(&["sink", "ls", "--json"]);
            sinks[0]["failing_since"].is_string().then_some(())
        });
        Self { home, _gate: gate }
    }

    /// What is printed on a terminal of this width; no line of it may be wider.
    fn shown(&self, columns: u16, args: &[&str], volatile: &[(&str, &str)]) -> String {
        let before = self.ids();
        let printed = printed(&self.home, columns, args);
        format!("$ outlast {}\n{}\n", args.join(" "), self.steady(&printed, before, volatile))
    }

    /// Of every run that there is now.
    fn ids(&self) -> Vec<String> {
        let rows = self.home.json(&["ps", "-a", "--json"]);
        let rows = rows.as_array().expect("a list").iter();
        rows.map(|row| row["id"].as_str().expect("an id").to_owned()).collect()
    }

    /// The same text in every run of the test.
    fn steady(&self, printed: &str, before: Vec<String>, volatile: &[(&str, &str)]) -> String {
        let scratch = self.home.scratch().display().to_string();
        let mut text = printed.replace(&scratch, "/tmp/tHOME00");
        // A run that the command removed is known from before.
        for id in before.into_iter().chain(self.ids()) {
            text = text.replace(&id, "<id>");
        }
        for (pattern, instead) in volatile {
            let pattern = Regex::new(pattern).expect("a pattern");
            text = pattern.replace_all(&text, *instead).into_owned();
        }
        text
    }
}

fn printed(home: &Home, columns: u16, args: &[&str]) -> String {
    let mut terminal = Terminal::new(60, columns);
    terminal.take();
    terminal.printed();
    terminal.start(home, args);
    terminal.status();
    terminal.take();
    let printed = terminal.printed();
    for line in printed.lines() {
        let is_fitting = line.width() <= usize::from(columns);
        assert!(is_fitting || is_unbreakable(line), "{args:?} at {columns} columns: {line}");
    }
    printed
}

/// A loop that is done, on a branch of its own.
fn fix(home: &Home) {
    let repository = home.scratch().join("repo");
    std::fs::create_dir(&repository).expect("it is ours");
    git(&repository, &["init", "--quiet"]);
    git(&repository, &["commit", "--quiet", "--allow-empty", "-m", "first"]);
    let path = loop_file(
        home,
        "fix",
        &script("done", "fixed div"),
        "workspace: {strategy: worktree}\nchecks: {done: ['true']}\n",
    );
    let dir = repository.display().to_string();
    home.ok(&["run", "-d", "--name", "fix", "--dir", &dir, "-f", &path, "--notify", "dead"]);
    assert_eq!(home.wait("fix"), 0);
}

/// Runs that wait: one in a queue, one for a time, one for a person to resume it.
fn rests(home: &Home, gate: &Gate) {
    home.ok(&["run", "-d", "--name", "first", "--queue", "gpu", "--", "sh", "-c", &gate.pass()]);
    home.pid("first");
    home.ok(&["run", "-d", "--name", "second", "--queue", "gpu", "--", "true"]);
    home.ok(&["run", "-d", "--name", "later", "--delay", "5h", "--", "true"]);
    let path = loop_file(home, "pausing", &gate.pass(), "");
    home.ok(&["run", "-d", "--name", "pausing", "--dir", "work", "-f", &path]);
    home.pid("pausing");
    home.ok(&["pause", "pausing"]);
}

const CONFIG: &str = "[budgets.day]\nmax_cost_usd = 50\nmax_tokens = 20000000\n\
    [sinks.dead]\nkind = \"webhook\"\nurl = \"http://127.0.0.1:9/hooks/of/some/length\"\n";

/// A command to paste, or one word.
fn is_unbreakable(line: &str) -> bool {
    let line = line.trim_start();
    let line = line.strip_prefix("hint: ").unwrap_or(line);
    let line = line.strip_prefix("do ").map_or(line, str::trim_start);
    let programs =
        ["outlast ", "curl ", "printf ", "mkdir ", "secret=", "body=", "sign=", "--unix-socket "];
    programs.iter().any(|program| line.starts_with(program)) || !line.contains(' ')
}

/// What differs from run to run, and what stands in its place; dates first. Widths are measured before.
const VOLATILE: &[(&str, &str)] = &[
    (r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]+(Z| UTC)", "<time>"),
    (r"[A-Z][a-z]{2} [0-9]{4}-[0-9]{2}-[0-9]{2}", "<day>"),
    (
        r"(yesterday |tomorrow |[A-Z][a-z]{2} [0-9]{1,2} )?\b[0-9]{2}:[0-9]{2}(:[0-9]{2})?\b",
        "<clock>",
    ),
    (
        r"(\bin )?\b[0-9]+(\.[0-9]+)?(ms|s|m|h|d)( [0-9]+(\.[0-9]+)?(ms|s|m|h|d))*( ago)?\b",
        "<span>",
    ),
    (r"\bnow\b", "<span>"),
    // Of what took less than a second the report says nothing.
    (r"<clock> · <span>", "<clock>"),
    (r"\b[0-9]+(\.[0-9]+)? (B|KiB|MiB|GiB|TiB)\b", "<size>"),
    (r"\bpid( +)[0-9]+", "pid <pid>"),
    (r"\bshim [0-9]+", "shim <pid>"),
    (r"whsec_[A-Za-z0-9+/=]+", "<secret>"),
    (r"\bversion( +)[0-9.]+[^ ,)\n]*", "version <version>"),
    (r"\bbuild( +)[0-9a-f]{16}", "build <build>"),
    (r"sha256 [0-9a-f]+", "sha256 <sha>"),
    (r"\bservice( +)[^:\n]*: not installed", "service <service>: not installed"),
    (r"\bok( +)[0-9]+ checks", "ok <n> checks"),
    // How much of a cell fits depends on the times beside it.
    (r"  (?:[^ \n]| [^ \n])*…", "  …"),
    // Columns are as wide as what stands in them.
    (r" {2,}", "  "),
];

/// In an order in which none changes what a later one shows.
const SCREENS: &[&[&str]] = &[
    &["show", "serve"],
    &["show", "train"],
    &["show", "asks"],
    &["show", "port"],
    &["show", "stuck"],
    &["show", "fix"],
    &["show", "old"],
    &["show", "second"],
    &["show", "later"],
    &["show", "pausing"],
    &["show", "asks", "--turn", "1"],
    &["show", "stuck", "--turn", "1"],
    &["show", "port", "--limits"],
    &["report", "--since", "2h"],
    &["doctor"],
    &["attach", "train"],
    &["attach", "asks"],
    &["attach", "stuck"],
    &["attach", "port"],
    &["attach", "fix"],
    &["wait", "asks"],
    &["events", "asks"],
    &["events", "stuck"],
    &["logs", "port"],
    &["logs", "train", "--timestamps"],
    &["tree", "serve"],
    &["budgets"],
    &["sink", "ls"],
    &["sink", "test", "dead"],
    &["schedule", "show", "nightly"],
    &["schedule", "next", "nightly", "-n", "2"],
    &["config", "path"],
    &["config", "check"],
    &["config", "show"],
    &["daemon", "status"],
    &["check", "stuck.md"],
    &["check", "stuck.md", "--explain"],
    &["gc", "--dry-run"],
    &["path", "fix"],
    &["send", "asks", "use the new name"],
    // Mistakes.
    &["show", "nope"],
    &["shwo", "asks"],
    &["prune"],
    &["run", "--turns", "5", "--", "true"],
    &["run", "--max-turns", "-1", "--", "true"],
    &["stop"],
    &["logs", "asks", "--turn", "9"],
    &["pause", "serve"],
    &["answer", "serve", "yes"],
    &["resume", "port"],
    &["raise", "train", "--max-turns", "+1"],
    &["rerun", "-d", "asks"],
    &["rm", "serve"],
    &["send", "train", "hello"],
    &["exec", "child", "--", "no-such-program"],
    &["schedule", "run", "nope"],
    &["schedule", "add", "x", "--cron", "61 * * * *", "--", "true"],
    &["sink", "test", "phone"],
    &["agents", "test", "clod"],
    &["check", "nowhere.md"],
    &["run", "--notify", "phone", "--", "true"],
    &["run", "no-such-program"],
    &["run", "--env", "NAME", "--", "true"],
    &["run", "-f", "stuck.md", "--queue", "bad name"],
    &["recover", "nope"],
];

/// What these print depends on the machine or the time of day, so only their width is looked at.
const WIDE_ONLY: &[&[&str]] =
    &[&["agents"], &["ps", "-a"], &["version"], &["trigger", "ls"], &["schedule", "ls"]];

/// After all others: these change something.
const CHANGES: &[&[&str]] = &[
    &["pause", "asks"],
    &["resume", "asks"],
    &["answer", "stuck", "try the other file"],
    &["raise", "train", "--run-timeout", "+1h"],
    &["stop", "second"],
    &["stop", "--now", "first", "later", "pausing"],
    &["stop", "old"],
    &["rm", "old", "second"],
    &["rm", "--state", "failed"],
    &["sink", "enable", "dead"],
    &["recover", "--dry-run"],
    &["import", "symphony", "theirs.md", "-o", "mine.md"],
    &["init", "--yes", "--agent", "script", "new.md"],
    &["init", "--yes", "--agent", "claude", "other.md"],
    &["exec", "child", "--", "true"],
    &["schedule", "add", "daily", "--every", "24h", "--", "true"],
    &["schedule", "pause", "nightly"],
    &[
        "trigger",
        "add",
        "issues",
        "--webhook",
        "--replace",
        "--task",
        "{{ item.title }}",
        "--agent",
        "exec",
        "--",
        "true",
    ],
    &["run", "--name", "echo", "--", "echo", "hello"],
    &["run", "-d", "-f", "port.md"],
];

#[test]
fn slow_every_message_fits_80_and_120_columns_and_is_as_it_was() {
    for columns in [80, 120] {
        let everything = Everything::new();
        for args in WIDE_ONLY {
            everything.shown(columns, args, VOLATILE);
        }
        let screens = SCREENS.iter().chain(CHANGES);
        let text: String = screens.map(|args| everything.shown(columns, args, VOLATILE)).collect();
        insta::with_settings!({ prepend_module_to_snapshot => false, snapshot_path => "../messages", omit_expression => true }, {
            insta::assert_snapshot!(format!("messages_at_{columns}_columns"), text);
        });
    }
}

/// The table of mistakes, each in a home of its own.
#[test]
fn slow_messages_of_mistakes_fit_80_and_120_columns_and_are_as_they_were() {
    for columns in [80, 120] {
        let mut text = String::new();
        for mistake in MISTAKES {
            let home = Home::within(Path::new("/tmp"), "h").env("TZ", "UTC").env("PATH", PATH);
            mistake.set_up(&home);
            let everything = Everything { _gate: Gate::new(&home, "gate"), home };
            let args: Vec<&str> = mistake.typed.split_whitespace().collect();
            text.push_str(&format!(
                "# {}\n{}",
                mistake.what,
                everything.shown(columns, &args, &VOLATILE[..1])
            ));
        }
        insta::with_settings!({ prepend_module_to_snapshot => false, snapshot_path => "../messages", omit_expression => true }, {
            insta::assert_snapshot!(format!("mistakes_at_{columns}_columns"), text);
        });
    }
}

#[test]
fn messages_of_a_daemon_that_comes_and_goes_fit_80_columns() {
    let home = Home::within(Path::new("/tmp"), "h").env("TZ", "UTC").env("PATH", PATH);
    for (verb, says) in
        [("start", ""), ("restart", ""), ("status", "running"), ("stop", "stopped; ")]
    {
        let said = printed(&home, 80, &["daemon", verb]);
        assert!(said.contains(says), "{verb}: {said}");
    }
    let said = printed(&home, 80, &["daemon", "status"]);
    assert!(said.contains("not running"), "{said}");
}

/// A broken config, and what is said of it beside what was asked for.
#[test]
fn messages_about_a_config_that_is_wrong_fit_80_columns() {
    let home = Home::within(Path::new("/tmp"), "h").env("TZ", "UTC").env("PATH", PATH);
    put(&home.path().join("config.toml"), "[ceilings]\nmax_turn = 3\nmax_cost_usd = \"five\"\n");
    loop_file(&home, "port", &script("done", "x"), "");
    let everything = Everything { _gate: Gate::new(&home, "gate"), home };
    let screens: [&[&str]; 4] =
        [&["config", "show"], &["config", "check"], &["check", "port.md"], &["doctor"]];
    for args in screens {
        let shown = everything.shown(80, args, VOLATILE);
        assert!(shown.contains("max_cost_usd"), "{shown}");
    }
}
