//! Who may say yes: a person may, and no process inside a run, whatever it sheds; what a run may steer; and
//! where its token is to be found.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::guards::guards;
use crate::harness::{Gate, Home, is_alive, str_of, text, until};
use crate::hosted::{
    becomes, begin, configure, left, of_kind, put, refused, until_left, until_state,
};
use crate::notices::until_settled;

const OUTLAST: &str = env!("CARGO_BIN_EXE_outlast");
const APPROVAL: &str = "output: {require_approval_before_emit: true}";

/// A loop that has something to say which a person has to approve first.
fn asker(home: &Home) -> String {
    let id = begin(home, "say done 'the release is out'", APPROVAL);
    becomes(home, &id, "blocked", "needs_approval");
    id
}

/// What a call says that is made from inside a new run, through `prefix`.
struct Tried {
    code: i32,
    said: String,
}

/// Has a new run make this call.
fn from_inside(home: &Home, name: &str, flags: &[&str], prefix: &str, call: &str) -> Tried {
    let line = format!("{prefix} sh '{}'", script(home, name, "", call));
    home.ok(&[&["run", "-d"], flags, &["--", "sh", "-c", &line]].concat());
    tried(home, name)
}

/// A script that makes the call and leaves what came of it.
fn script(home: &Home, name: &str, first: &str, call: &str) -> String {
    let at = |end: &str| home.scratch().join(format!("{name}{end}")).display().to_string();
    let (out, done) = (at(".out"), at(".code"));
    let call = format!("'{OUTLAST}' {call} >'{out}' 2>&1\necho $? >'{done}.part'");
    put(at(".sh").as_ref(), &format!("{first}{call}\nmv '{done}.part' '{done}'\n"));
    at(".sh")
}

fn tried(home: &Home, name: &str) -> Tried {
    let code = until(&format!("{name} has called"), || {
        left(home, &format!("{name}.code")).first()?.parse().ok()
    });
    Tried { code, said: left(home, &format!("{name}.out")).join("\n") }
}

fn given_by(home: &Home, id: &str, kind: &str) -> Value {
    of_kind(home, id, kind).last().expect("there was one")["by"].clone()
}

#[test]
fn an_agent_does_not_approve_itself_by_way_of_another_run() {
    let home = Home::new();
    // As an adversary did it: the agent starts a run that outlives its turn and says yes to it.
    let helper = home.scratch().join("helper.sh");
    put(
        &helper,
        &format!(
            "until '{OUTLAST}' show \"$1\" --json | grep -q needs_approval; do sleep 0.02; done\n\
             '{OUTLAST}' answer \"$1\" --approve >\"$HOME/said\" 2>&1\n\
             echo $? >\"$HOME/code.part\"; mv \"$HOME/code.part\" \"$HOME/code\"\n"
        ),
    );
    let agent = format!(
        "'{OUTLAST}' run -d -- sh '{}' \"$OUTLAST_RUN_ID\"; say done 'the release is out'",
        helper.display()
    );
    let id = begin(&home, &agent, APPROVAL);
    until("the helper has called", || (!left(&home, "code").is_empty()).then_some(()));
    assert_eq!(left(&home, "code"), ["2"]);
    let said = left(&home, "said").join("\n");
    assert!(said.contains("only a person may answer") && said.contains("hint: "), "{said}");
    assert_eq!((home.count(&id, "Answered"), home.count(&id, "Emitted")), (0, 0));
    home.ok(&["answer", &id, "--approve"]);
    becomes(&home, &id, "completed", "done");
    let uid = rustix::process::geteuid().as_raw();
    assert_eq!(given_by(&home, &id, "Answered"), json!({"kind": "user", "uid": uid}));
}

#[test]
fn whatever_a_process_of_a_run_sheds_it_is_no_person() {
    let home = Home::new();
    let id = asker(&home);
    let call = format!("answer {id} --approve --json");
    let nothing = "env -i OUTLAST_HOME=\"$OUTLAST_HOME\" PATH=\"$PATH\"";
    for (name, prefix) in [
        ("plain", String::new()),
        ("token", "env -u OUTLAST_TOKEN".to_owned()),
        ("marks", "env -u OUTLAST_TOKEN -u OUTLAST_RUN_ID".to_owned()),
        ("bare", format!("exec {nothing}")),
        ("session", format!("exec setsid {nothing}")),
    ] {
        let tried = from_inside(&home, name, &[], &prefix, &call);
        assert_eq!(tried.code, 2, "{name}: {}", tried.said);
        assert!(tried.said.contains("inside_a_run"), "{name}: {}", tried.said);
    }
    // Its parents end, and it makes a session of its own: its shim inherits it.
    let tried = from_inside_orphaned(&home, &format!("setsid {nothing}"), &call);
    assert!(tried.said.contains("inside_a_run"), "{}", tried.said);
    assert_eq!(home.count(&id, "Answered"), 0);
    let blocked = begin(&home, "say blocked 'which port?'", "");
    becomes(&home, &blocked, "blocked", "agent_blocked");
    for call in ["resume", "answer"] {
        let text = if call == "answer" { " 80" } else { "" };
        let tried = from_inside(&home, call, &[], "", &format!("{call} {blocked}{text} --json"));
        assert!(tried.said.contains("inside_a_run"), "{call}: {}", tried.said);
    }
    assert_eq!(str_of(&home.show(&blocked), "state"), "blocked");
}

/// As `from_inside`, by a process whose parents have ended: it waits until they are gone.
fn from_inside_orphaned(home: &Home, prefix: &str, call: &str) -> Tried {
    let wait = "while kill -0 \"$1\" 2>/dev/null; do sleep 0.02; done\n";
    let script = script(home, "orphan", wait, call);
    let line = format!("( {prefix} sh '{script}' $$ & )");
    home.ok(&["run", "-d", "--", "sh", "-c", &line]);
    tried(home, "orphan")
}

#[test]
fn a_sink_that_a_run_names_says_no_yes_for_it_unless_the_operator_allows_that() {
    let home = Home::new();
    let id = asker(&home);
    let notify = |name: &str| {
        let (out, done) = (home.scratch().join(name), home.scratch().join(format!("{name}.code")));
        let (out, done) = (out.display().to_string(), done.display().to_string());
        format!(
            "cmd:'{OUTLAST}' answer {id} --approve --json >'{out}' 2>&1; echo $? >'{done}.part'; mv '{done}.part' '{done}'"
        )
    };
    home.ok(&["run", "-d", "--notify", &notify("first"), "--", "true"]);
    until("the sink was told", || (!left(&home, "first.code").is_empty()).then_some(()));
    let said = left(&home, "first").join("\n");
    assert!(said.contains("not_a_person"), "{said}");
    assert_eq!(home.count(&id, "Answered"), 0);
    configure(&home, "[approvals]\ncommands_may_answer = true\n");
    home.ok(&["run", "-d", "--notify", &notify("second"), "--", "true"]);
    until_state(&home, &id, "completed");
    assert_eq!(given_by(&home, &id, "Answered"), json!({"kind": "daemon"}));
}

/// A command that ends and leaves a process behind: another session, an empty environment, no parent of its own. The
/// process says so, waits until the test lets it go on, and makes the call.
struct Leftover {
    command: String,
    gate: Gate,
    marker: String,
}

impl Leftover {
    fn new(home: &Home, name: &str, prefix: &str, call: &str) -> Self {
        let gate = Gate::new(home, &format!("{name}.gate"));
        let marker = format!("{name}.left");
        let left = home.scratch().join(&marker).display().to_string();
        let wait = format!(
            "while kill -0 \"$1\" 2>/dev/null; do sleep 0.02; done\necho $$ >'{left}'\n{}\n",
            gate.pass()
        );
        let script = script(home, name, &wait, call);
        let starter = home.scratch().join(format!("{name}.starter")).display().to_string();
        let line = format!("( setsid {prefix} sh '{script}' $$ & )\n");
        put(starter.as_ref(), &line);
        Self { command: format!("sh '{starter}'"), gate, marker }
    }

    /// Waits until its command has ended, and says which process is left.
    fn is_left(&self, home: &Home) -> u32 {
        until_left(home, &self.marker)[0].parse().expect("a pid")
    }

    fn tries(mut self, home: &Home, name: &str) -> Tried {
        self.is_left(home);
        self.gate.open();
        tried(home, name)
    }
}

const SHEDS_ALL: &str = "env -i OUTLAST_HOME=\"$OUTLAST_HOME\" PATH=\"$PATH\"";

fn is_no_person(tried: &Tried) {
    assert_eq!(tried.code, 2, "{}", tried.said);
    assert!(tried.said.contains("not_a_person"), "{}", tried.said);
}

fn is_unanswered(home: &Home, id: &str) {
    assert_eq!(home.count(id, "Answered"), 0);
    assert_eq!(str_of(&home.show(id), "state"), "blocked");
}

#[test]
fn what_a_sink_leaves_behind_is_no_person() {
    let home = Home::new();
    let id = asker(&home);
    let left = Leftover::new(&home, "sink", SHEDS_ALL, &format!("answer {id} --approve --json"));
    // As an agent does it, which has a sink of its own told.
    let sink = format!("cmd:{}", left.command);
    home.ok(&["run", "-d", "--", OUTLAST, "run", "-d", "--notify", &sink, "--", "true"]);
    is_no_person(&left.tries(&home, "sink"));
    is_unanswered(&home, &id);
}

#[test]
fn what_a_poll_leaves_behind_is_no_person() {
    let home = Home::new();
    let id = asker(&home);
    let left = Leftover::new(&home, "poll", SHEDS_ALL, &format!("answer {id} --approve --json"));
    let add = ["trigger", "add", "tracker", "--every", "1h", "--poll", &left.command];
    home.ok(&[&["run", "-d", "--", OUTLAST], &add[..], &["--", "true"]].concat());
    is_no_person(&left.tries(&home, "poll"));
    is_unanswered(&home, &id);
}

#[test]
fn what_a_command_leaves_behind_is_no_person_to_the_next_daemon() {
    let home = Home::new();
    let id = asker(&home);
    let left = Leftover::new(&home, "later", SHEDS_ALL, &format!("answer {id} --approve --json"));
    let run = home.ok(&["run", "-d", "--notify", &format!("cmd:{}", left.command), "--", "true"]);
    let pid = left.is_left(&home);
    // A notice that is not settled is told again.
    until_settled(&home, &run);
    home.crash_daemon();
    home.ok(&["daemon", "start"]);
    is_no_person(&left.tries(&home, "later"));
    is_unanswered(&home, &id);
    // Its guard was there for it alone.
    until("it has ended", || (!is_alive(pid)).then_some(()));
    until("no guard is left", || guards(&home).is_empty().then_some(()));
}

#[test]
fn a_command_that_kills_its_guard_is_known_by_its_environment() {
    let home = Home::new();
    let id = asker(&home);
    let call = format!("answer {id} --approve --json");
    let left = Leftover::new(&home, "killer", "", &call);
    // Once: a sink whose end is not known is told again.
    let sink = format!("cmd:mkdir \"$HOME/once\" || exit 0; kill -9 $PPID; {}", left.command);
    home.ok(&["run", "-d", "--notify", &sink, "--", "true"]);
    let why = until("its end is not known", || {
        let sink = home.json(&["sink", "ls", "--json"])[0].clone();
        sink["problem"].as_str().map(str::to_owned)
    });
    assert!(why.contains("its guard was killed"), "{why}");
    is_no_person(&left.tries(&home, "killer"));
    is_unanswered(&home, &id);
}

#[test]
fn a_run_steers_itself_and_those_below_it_and_no_other() {
    let home = Home::new();
    let other = home.ok(&["run", "-d", "--retry", "1", "--", "sleep", "600"]);
    let gate = Gate::new(&home, "gate");
    let parent = home.start(&gate.pass());
    let child = home.ok(&["run", "-d", "--parent", &parent, "--", "sleep", "600"]);
    for verb in ["stop", "pause"] {
        let tried = from_inside(&home, verb, &[], "", &format!("{verb} {other} --json"));
        assert_eq!(tried.code, 2, "{verb}: {}", tried.said);
        assert!(tried.said.contains("not_below"), "{verb}: {}", tried.said);
    }
    let tried = from_inside(&home, "all", &[], "", "pause --all --json");
    assert!(tried.said.contains("inside_a_run"), "{}", tried.said);
    // Spend that another run never had would end it at its limit.
    let tried = from_inside(&home, "usage", &[], "", &format!("usage {other} --cost 9 --json"));
    assert!(tried.said.contains("not_below"), "{}", tried.said);
    assert_eq!(home.count(&other, "UsageReported"), 0);
    // What rm may not remove, gc may not either; a look is free.
    let ended = home.start("true");
    assert_eq!(home.wait(&ended), 0);
    let tried = from_inside(&home, "gc", &[], "", "gc --older-than 0s --json");
    assert!(tried.said.contains("inside_a_run"), "{}", tried.said);
    assert_eq!(from_inside(&home, "look", &[], "", "gc --older-than 0s --dry-run").code, 0);
    assert_eq!(str_of(&home.show(&ended), "state"), "completed");
    let grandchild = home.ok(&["run", "-d", "--parent", &child, "--", "sleep", "600"]);
    // A child has nothing to say to its parent's other children, and its own it may stop.
    let tried =
        from_inside(&home, "sibling", &["--parent", &child], "", &format!("stop {child} --json"));
    assert!(tried.said.contains("not_below"), "{}", tried.said);
    let own = home.scratch().join("own.sh");
    put(
        &own,
        &format!(
            "id=$('{OUTLAST}' run -d --parent \"$OUTLAST_RUN_ID\" -- sleep 600)\n\
             '{OUTLAST}' stop \"$id\" --now && echo \"$id\" >\"$HOME/stopped\"\n"
        ),
    );
    let run = home.ok(&["run", "-d", "--", "sh", &own.display().to_string()]);
    assert_eq!(home.wait(&run), 0);
    let stopped = left(&home, "stopped").join("");
    assert_eq!(given_by(&home, &stopped, "StopRequested"), json!({"kind": "run", "run": run}));
    for id in [&other, &child, &grandchild] {
        assert_eq!(str_of(&home.show(id), "state"), "running");
    }
}

#[test]
fn a_parent_answers_its_child_only_if_the_operator_allows_that() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let script = home.scratch().join("parent.sh");
    // Says what it is told to say to whom it is told, each time that the test lets it.
    put(
        &script,
        &format!(
            "while {}; do\n  read -r id <\"$HOME/target\"\n  '{OUTLAST}' answer \"$id\" --approve --json >\"$HOME/said.part\" 2>&1\n  mv \"$HOME/said.part\" \"$HOME/said\"\ndone\n",
            gate.pass()
        ),
    );
    let parent = home.ok(&["run", "-d", "--", "sh", &script.display().to_string()]);
    let file = crate::hosted::file(&home, "loop", "say done 'it is out'", APPROVAL);
    let child = crate::hosted::start(&home, &file, &["--parent", &parent]);
    let stranger = crate::hosted::start(&home, &file, &[]);
    let mut answers = |id: &str| {
        let said = home.scratch().join("said");
        let _old = std::fs::remove_file(&said);
        put(&home.scratch().join("target"), &format!("{id}\n"));
        gate.open();
        until("it has called", || std::fs::read_to_string(&said).ok())
    };
    becomes(&home, &child, "blocked", "needs_approval");
    becomes(&home, &stranger, "blocked", "needs_approval");
    assert!(answers(&child).contains("inside_a_run"));
    configure(&home, "[approvals]\nparents_may_answer = true\n");
    let said = answers(&stranger);
    assert!(said.contains("inside_a_run"), "it is no parent of it: {said}");
    answers(&child);
    becomes(&home, &child, "completed", "done");
    assert_eq!(given_by(&home, &child, "Answered"), json!({"kind": "run", "run": parent}));
    home.ok(&["stop", "--now", &parent]);
}

#[test]
fn a_token_is_each_steps_own_and_makes_its_bearer_a_run() {
    let home = Home::new();
    let id = asker(&home);
    let told = home.scratch().join("token");
    let agent = "printf '%s\\n' \"$OUTLAST_TOKEN\" >>\"$HOME/token\"; say done x";
    for _ in 0..2 {
        let run =
            begin(&home, agent, "hooks: {before_run: 'echo \"$OUTLAST_TOKEN\" >>\"$HOME/token\"'}");
        becomes(&home, &run, "completed", "done");
    }
    let tokens = left(&home, "token");
    let unique: BTreeSet<&String> = tokens.iter().collect();
    assert_eq!((tokens.len(), unique.len()), (4, 4), "{tokens:?}");
    for (token, code) in [(tokens[0].as_str(), "inside_a_run"), ("ot1.x.t1a1.00", "caller_unknown")]
    {
        let mut call = home.outlast(&["answer", &id, "--approve", "--json"]);
        let said = call.env("OUTLAST_TOKEN", token).output().expect("it starts");
        let said = format!("{}{}", text(&said.stdout), text(&said.stderr));
        assert!(said.contains(code), "{said}");
    }
    // It may read.
    let mut call = home.outlast(&["show", &id]);
    assert!(call.env("OUTLAST_TOKEN", &tokens[0]).status().expect("it starts").success());
    let key = home.state().join("token.key");
    let mode = std::fs::metadata(&key).expect("there is a key").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let _seen = std::fs::remove_file(told);
    let run = str_of(&home.json(&["ps", "-a", "--json"])[0], "id").to_owned();
    let bundle = home.scratch().join("bundle.tar.gz");
    home.output(&["doctor", "--bundle", &bundle.display().to_string()]);
    let mut shown = home.ok(&["events", &run, "--json"]) + &home.show(&run).to_string();
    shown.push_str(&home.ok(&["show", &run, "--turn", "1", "--json"]));
    shown.push_str(&home.ok(&["daemon", "logs"]));
    home.ok(&["daemon", "stop"]);
    for file in ["outlast.db", "outlast.db-wal", "daemon.log"] {
        shown.push_str(&text(&std::fs::read(home.state().join(file)).unwrap_or_default()));
    }
    for token in &tokens {
        let mac = token.rsplit('.').next().expect("it has parts");
        assert!(mac.len() == 64 && !shown.contains(mac), "{token}");
    }
    assert_eq!(str_of(&refused(&home, &["answer", &id, "x", "--json"]), "code"), "needs_decision");
}
