//! The daemon as a supervisor: how it goes on with what it finds at its start, and what it does when it dies too
//! often. What else supervisors get wrong is in `scenarios`.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::Value;

use crate::harness::{Gate, Home, is_alive, kill, str_of, text, until};
use crate::hosted::{
    BEARS_ALL, begin, configure, file, left, of_kind, repository, start, until_state, until_waiting,
};

/// A home whose wall clock is set by the test, and that has this config.
struct Stage {
    home: Home,
    clock: PathBuf,
}

impl Stage {
    fn new(config: &str) -> Self {
        let home = Home::new();
        configure(&home, config);
        let clock = home.scratch().join("clock");
        let stage = Self { home: home.env("OUTLAST_FAKE_CLOCK_FILE", &clock), clock };
        stage.set_clock(0);
        stage
    }

    fn set_clock(&self, hours: i64) {
        let part = self.clock.with_extension("part");
        fs::write(&part, (hours * 3_600_000).to_string()).expect("the scratch directory is ours");
        fs::rename(part, &self.clock).expect("the scratch directory is ours");
    }

    fn crash_and_start(&self) {
        self.home.crash_daemon();
        self.home.ok(&["daemon", "start"]);
    }

    /// Dies so often that the next one is held.
    fn storm(&self) {
        for _ in 0..6 {
            self.crash_and_start();
        }
    }

    fn hang_up(&self) {
        kill(self.home.daemon_pid(), "HUP");
    }

    fn holding(&self) -> Value {
        self.home.json(&["daemon", "status", "--json"])["holding"].clone()
    }
}

/// Fails at first, and waits an hour then; says who it is when it is tried again.
const LATER: &str = r#"[ "$OUTLAST_ATTEMPT" -gt 1 ] || exit 1
echo "$OUTLAST_RUN_ID" >>"$HOME/order"
say done x"#;

/// A loop that has failed once and waits for an hour.
fn waiting(home: &Home, file: &str, flags: &[&str]) -> String {
    let id = start(home, file, flags);
    until_waiting(home, &id, "backoff");
    id
}

/// A loop file as `hosted::file` writes it, with a delay of an hour.
fn patient_file(home: &Home) -> String {
    let path = file(home, "later", LATER, "limits: {run_timeout_ms: 0}");
    let text = fs::read_to_string(&path).expect("it was just written");
    let hour = "retry: {initial_backoff_ms: 3600000, max_backoff_ms: 3600000}";
    let text = text.replace(crate::hosted::RETRY, hour);
    fs::write(&path, text).expect("the scratch directory is ours");
    path
}

const ONE_AT_A_TIME: &str = "[supervision]\nresumes_at_once = 1\nresume_gap_ms = 86400000\n";

#[test]
fn after_a_restart_one_goes_on_at_a_time_the_urgent_first_and_what_lives_at_once() {
    let stage = Stage::new(ONE_AT_A_TIME);
    let home = &stage.home;
    let file = patient_file(home);
    let waiting: Vec<String> = ["0", "0", "7", "0"]
        .into_iter()
        .map(|priority| waiting(home, &file, &["--priority", priority]))
        .collect();
    let living: Vec<String> = (0..3).map(|_| home.start("sleep 600")).collect();
    let pids: Vec<u32> = living.iter().map(|id| home.pid(id)).collect();
    stage.set_clock(2);
    stage.crash_and_start();
    for id in &living {
        until("what lives is adopted", || (home.count(id, "AttemptAdopted") == 1).then_some(()));
    }
    assert!(pids.into_iter().all(is_alive));
    let urgent = &waiting[2];
    assert_eq!(home.wait(urgent), 0);
    for id in waiting.iter().filter(|id| *id != urgent) {
        let run = until_waiting(home, id, "slot");
        assert_eq!(str_of(&run, "reason_code"), "resume_held");
        assert_eq!(home.count(id, "TurnStarted"), 1);
    }
    assert_eq!(left(home, "order"), [urgent.as_str()]);
    // A new run waits for no other.
    assert_eq!(home.wait(&home.start("true")), 0);
    configure(home, "[supervision]\nresumes_at_once = 1\nresume_gap_ms = 0\n");
    stage.hang_up();
    for id in &waiting {
        assert_eq!(home.wait(id), 0);
    }
    // By the journal: which of two commands is at its work first is for the kernel to say.
    let others: Vec<&String> = waiting.iter().filter(|id| *id != urgent).collect();
    let started_at = |id: &&String| {
        let events = home.events(id);
        let last = events.iter().rfind(|event| event["kind"] == "TurnStarted");
        last.expect("it was started")["at"].as_str().map(str::to_owned)
    };
    let mut by_start = others.clone();
    by_start.sort_by_key(started_at);
    assert_eq!(by_start, others, "the oldest first");
    assert_eq!(left(home, "order").len(), waiting.len());
}

#[test]
fn a_run_that_is_held_back_after_a_restart_can_be_stopped_and_a_person_lets_it_go() {
    let stage = Stage::new(ONE_AT_A_TIME);
    let home = &stage.home;
    let file = patient_file(home);
    let [first, stopped, paused] = [(); 3].map(|()| waiting(home, &file, &[]));
    home.ok(&["pause", &paused]);
    stage.set_clock(2);
    stage.crash_and_start();
    assert_eq!(home.wait(&first), 0);
    until_waiting(home, &stopped, "slot");
    home.ok(&["stop", &stopped]);
    assert_eq!(str_of(&home.show(&stopped), "state"), "stopped");
    home.ok(&["resume", &paused]);
    assert_eq!(home.wait(&paused), 0);
    assert_eq!(left(home, "order"), [first, paused]);
}

#[test]
fn a_daemon_that_dies_too_often_says_so_adopts_what_lives_and_answers() {
    let stage = Stage::new("");
    let home = &stage.home;
    let living = home.start("sleep 600");
    let pid = home.pid(&living);
    assert_eq!(stage.holding(), Value::Null);
    stage.storm();
    let holding = stage.holding();
    assert!(str_of(&holding, "why").contains("daemons ended unexpectedly"), "{holding}");
    assert!(str_of(&holding, "until").ends_with('Z'), "{holding}");
    let page = home.ok(&["daemon", "status"]);
    assert!(page.lines().any(|line| line.starts_with("holding    resumes runs in ")), "{page}");
    let doctor = home.output(&["doctor"]);
    assert_eq!(doctor.status.code(), Some(1));
    assert!(text(&doctor.stdout).contains("nothing is resumed until"), "{}", text(&doctor.stdout));
    until("it is adopted", || {
        let status = home.json(&["daemon", "status", "--json"]);
        let adopted = of_kind(home, &living, "AttemptAdopted");
        adopted.iter().any(|event| event["epoch"] == status["epoch"]).then_some(())
    });
    assert!(is_alive(pid));
    assert_eq!(home.wait(&home.start("true")), 0);
    // Long after the hold a single death is no storm any more.
    stage.set_clock(1);
    stage.crash_and_start();
    assert_eq!(stage.holding(), Value::Null);
}

#[test]
fn a_restore_while_nothing_was_resumed_was_told_as_an_unreachable_daemon() {
    let stage = Stage::new("");
    let home = &stage.home;
    repository(home);
    let agent = r#"echo x >"t$OUTLAST_TURN"
[ $OUTLAST_TURN = 1 ] && { say continue x; exit; }
printf '{"status":"continue","summary":"x","wait":{"message":true}}' >"$OUTLAST_RESPONSE_FILE""#;
    let file = file(home, "loop", agent, "workspace: {strategy: worktree}");
    let id = start(home, &file, &["--name", "w"]);
    let dir = PathBuf::from(str_of(&until_waiting(home, &id, "message"), "workspace"));
    stage.storm();
    assert!(stage.holding().is_object(), "nothing is resumed");
    let said = home.ok(&["restore", "w", "--at", "1"]);
    assert!(said.contains("to the end of turn 1"), "{said}");
    assert!(dir.join("t1").exists() && !dir.join("t2").exists());
    home.ok(&["stop", "w"]);
}

/// A storm that holds a run, and both ways out of it.
#[test]
fn what_a_storm_holds_back_goes_on_when_its_time_has_come_or_a_person_starts_the_daemon_anew() {
    for way_out in ["time", "person"] {
        let stage = Stage::new("");
        let home = &stage.home;
        let mut gate = Gate::new(home, "gate");
        let agent = format!(
            "echo $OUTLAST_TURN >>\"$HOME/turns\"\n[ $OUTLAST_TURN = 2 ] && say done x && exit\n{}; say continue x",
            gate.pass()
        );
        let id = begin(home, &agent, "");
        until("the first turn works", || (left(home, "turns").len() == 1).then_some(()));
        stage.storm();
        gate.open();
        // The turn that was alive is committed, and the next one is not started.
        let run = until_waiting(home, &id, "slot");
        assert_eq!(
            (&run["turns_committed"], str_of(&run, "reason_code")),
            (&1.into(), "resume_held")
        );
        until("it is counted", || (stage.holding()["runs"] == 1).then_some(()));
        assert_eq!(home.wait(&home.start("true")), 0, "a run that a client asks for is not held");
        assert_eq!(left(home, "turns").len(), 1);
        if way_out == "time" {
            stage.set_clock(1);
            stage.hang_up();
        } else {
            home.ok(&["daemon", "stop"]);
            home.ok(&["daemon", "start"]);
        }
        assert_eq!(home.wait(&id), 0, "{way_out}");
        assert_eq!(stage.holding(), Value::Null);
    }
}

#[test]
fn a_record_of_starts_that_cannot_be_read_holds_as_a_storm_would() {
    let stage = Stage::new("");
    let home = &stage.home;
    home.ok(&["daemon", "start"]);
    home.crash_daemon();
    let record = home.state().join("starts.json");
    assert!(record.exists());
    fs::write(&record, "{\"unclean_ms\": [17").expect("it is ours");
    home.ok(&["daemon", "start"]);
    assert!(str_of(&stage.holding(), "until").ends_with('Z'));
    let log = home.ok(&["daemon", "logs"]);
    assert!(log.contains("cannot read how often daemons were started"), "{log}");
    assert_eq!(home.wait(&home.start("true")), 0);
}

/// Daemons that die at one point of a resume, one after the other, and then one that lives.
fn dies_at(hook: &str, deaths: usize) {
    let home = Home::new();
    configure(&home, BEARS_ALL);
    let token = home.scratch().join("token");
    let home = home.env("OUTLAST_CRASH_TOKEN", &token).env("OUTLAST_CRASH_AT", hook);
    let agent = "echo $OUTLAST_ATTEMPT >>\"$HOME/executed\"; exit 1";
    fs::write(&token, "").expect("the scratch directory is ours");
    let id = begin(&home, agent, "limits: {max_attempts: 3}");
    let mut died = 0;
    while died < deaths {
        if let Some(lives) = home.daemon_if_up() {
            kill(lives, "KILL");
            until("it is dead", || (!is_alive(lives)).then_some(()));
        }
        fs::write(&token, "").expect("the scratch directory is ours");
        // It may be dead before it has answered, or live because there is nothing left to resume.
        drop(
            home.outlast(&["daemon", "start"]).stdout(Stdio::null()).stderr(Stdio::null()).status(),
        );
        let is_over = until("it dies, or the run is over", || {
            if !token.exists() {
                return Some(false);
            }
            let shown = home.output(&["show", &id, "--json"]);
            let run: Value = serde_json::from_slice(&shown.stdout).ok()?;
            run["ended_at"].is_string().then_some(true)
        });
        if is_over {
            break;
        }
        died += 1;
    }
    let _lives = fs::remove_file(&token);
    assert!(died > 0, "{hook}: no process died");
    assert_eq!(home.wait(&id), 1, "{hook}");
    assert_eq!(left(&home, "executed"), ["1", "2", "3"], "{hook}: {died} daemons died");
    let events = home.events(&id);
    let waits = events.iter().filter(|event| event["cause"] == "backoff");
    let again = events.iter().filter(|event| event["kind"] == "TurnStarted").skip(1);
    for (wait, again) in waits.zip(again) {
        assert!(str_of(again, "at") >= str_of(wait, "until"), "{hook}: {wait}\n{again}");
    }
}

#[test]
fn no_number_of_dying_daemons_starts_an_agent_more_often_than_its_retries_allow() {
    for hook in
        ["daemon.before-append", "daemon.after-append", "daemon.start-sent", "daemon.listening"]
    {
        dies_at(hook, 8);
    }
}

#[test]
fn a_run_whose_conductor_dies_gets_another_and_loses_nothing() {
    let home = Home::new();
    let token = home.scratch().join("token");
    let home = home
        .env("OUTLAST_CRASH_TOKEN", &token)
        .env("OUTLAST_CRASH_AT", "daemon.before-append")
        .env("OUTLAST_CRASH_SIGNAL", "PANIC");
    let mut gate = Gate::new(&home, "gate");
    let neighbour = home.start("sleep 600");
    let id = home.start(&format!("echo said; {}; exit 7", gate.pass()));
    home.pid(&id);
    home.pid(&neighbour);
    let daemon = home.daemon_pid();
    fs::write(&token, "").expect("the scratch directory is ours");
    gate.open();
    assert_eq!(home.wait(&id), 1);
    assert!(!token.exists(), "no process died");
    assert_eq!(home.daemon_pid(), daemon, "the daemon died with it");
    let run = home.show(&id);
    assert_eq!((&run["exit"]["code"], &run["attempt"]), (&7.into(), &1.into()));
    assert_eq!((home.count(&id, "AttemptEnded"), home.ok(&["logs", &id])), (1, "said".to_owned()));
    assert_eq!(home.count(&neighbour, "AttemptAdopted"), 0);
    let log = home.ok(&["daemon", "logs"]);
    assert!(log.contains("its conductor is gone"), "{log}");
}

#[test]
fn a_stop_that_a_conductor_dies_of_is_taken_by_the_next() {
    let home = Home::new();
    let token = home.scratch().join("token");
    let home = home
        .env("OUTLAST_CRASH_TOKEN", &token)
        .env("OUTLAST_CRASH_AT", "daemon.before-append")
        .env("OUTLAST_CRASH_SIGNAL", "PANIC");
    let id = home.start("sleep 600");
    let pid = home.pid(&id);
    fs::write(&token, "").expect("the scratch directory is ours");
    home.ok(&["stop", "--now", &id]);
    assert!(!token.exists(), "no process died");
    assert!(!is_alive(pid));
    assert_eq!(str_of(&home.show(&id), "state"), "stopped");
    assert_eq!(home.count(&id, "StopRequested"), 1);
}

#[test]
fn a_hang_up_has_the_config_read_again() {
    let home = Home::new();
    configure(&home, "[concurrency]\nmax_runs = 1\n");
    let mut gate = Gate::new(&home, "gate");
    let first = home.start(&gate.pass());
    home.pid(&first);
    let second = home.start("true");
    until_state(&home, &second, "queued");
    configure(&home, "[concurrency]\nmax_runs = 2\n");
    let daemon = home.daemon_pid();
    kill(daemon, "HUP");
    assert_eq!(home.wait(&second), 0);
    assert_eq!(home.daemon_pid(), daemon, "a hang-up is no reason to go");
    gate.open();
    assert_eq!(home.wait(&first), 0);
}
