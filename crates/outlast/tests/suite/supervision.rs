//! The daemon as a supervisor: what it finds at its start, what it does when it dies too often, and that there
//! is one of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use crate::harness::{Gate, Home, is_alive, kill, lines, str_of, text, until};
use crate::hosted::{
    BEARS_ALL, begin, configure, file, left, of_kind, start, until_state, until_waiting,
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
    // Whoever is new waits for nobody.
    assert_eq!(home.wait(&home.start("true")), 0);
    configure(home, "[supervision]\nresumes_at_once = 1\nresume_gap_ms = 0\n");
    stage.hang_up();
    for id in &waiting {
        assert_eq!(home.wait(id), 0);
    }
    let others: Vec<&String> = waiting.iter().filter(|id| *id != urgent).collect();
    assert_eq!(left(home, "order")[1..].iter().collect::<Vec<_>>(), others, "the oldest first");
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
    assert!(str_of(&holding, "why").contains("daemons have ended unasked"), "{holding}");
    assert!(str_of(&holding, "until").ends_with('Z'), "{holding}");
    let page = home.ok(&["daemon", "status"]);
    assert!(page.lines().any(|line| line.starts_with("holding ")), "{page}");
    let doctor = home.output(&["doctor"]);
    assert_eq!(doctor.status.code(), Some(1));
    assert!(text(&doctor.stdout).contains("held back until"), "{}", text(&doctor.stdout));
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
        assert_eq!(home.wait(&home.start("true")), 0, "whoever asks is not held");
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
    assert!(died > 0, "{hook}: nobody died");
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
    assert!(!token.exists(), "nobody died");
    assert_eq!(home.daemon_pid(), daemon, "the daemon died with it");
    let run = home.show(&id);
    assert_eq!((&run["exit"]["code"], &run["attempt"]), (&7.into(), &1.into()));
    assert_eq!((home.count(&id, "AttemptEnded"), home.ok(&["logs", &id])), (1, "said".to_owned()));
    assert_eq!(home.count(&neighbour, "AttemptAdopted"), 0);
    let log = home.ok(&["daemon", "logs"]);
    assert!(log.contains("its conductor is gone"), "{log}");
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

#[test]
fn what_has_ended_is_started_again_by_no_daemon() {
    let home = Home::new();
    let executed = home.scratch().join("executed");
    let ends = ["exit 0", "exit 3", "kill -9 $$"].map(|end| {
        let id = home.start(&format!("echo x >>'{}'; {end}", executed.display()));
        home.wait(&id);
        id
    });
    let journals = ends.each_ref().map(|id| home.events(id));
    for _ in 0..3 {
        home.crash_daemon();
        home.ok(&["daemon", "start"]);
    }
    assert_eq!(ends.each_ref().map(|id| home.events(id)), journals);
    assert_eq!(lines(&executed), 3);
}

#[test]
fn a_run_that_was_adopted_is_adopted_again_after_the_next_crash() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let id = home.start(&format!("{}; exit 7", gate.pass()));
    let pid = home.pid(&id);
    for times in 1..=3 {
        home.crash_daemon();
        home.ok(&["daemon", "start"]);
        until("it is adopted", || (home.count(&id, "AttemptAdopted") == times).then_some(()));
        assert_eq!(home.pid(&id), pid);
    }
    gate.open();
    assert_eq!(home.wait(&id), 1);
    assert_eq!(home.show(&id)["exit"]["code"], 7);
    assert_eq!((home.count(&id, "TurnStarted"), home.count(&id, "RunEnded")), (1, 1));
}

#[test]
fn a_lock_that_names_a_living_stranger_keeps_no_daemon_from_starting() {
    let home = Home::new();
    home.ok(&["daemon", "start"]);
    home.crash_daemon();
    let lock = home.state().join("daemon.lock");
    let mut holder: Value = serde_json::from_str(&fs::read_to_string(&lock).expect("it was held"))
        .expect("it says who held it");
    // A pid that was used again, as after a power cut: this test's own.
    holder["pid"] = std::process::id().into();
    fs::write(&lock, holder.to_string()).expect("it is ours");
    home.ok(&["daemon", "start"]);
    assert_ne!(home.daemon_pid(), std::process::id());
}

#[test]
fn without_a_daemon_status_and_stop_say_so_and_start_none() {
    let home = Home::new();
    let status = home.output(&["daemon", "status"]);
    assert_eq!((status.status.code(), text(&status.stdout)), (Some(7), "not running\n".to_owned()));
    let status = home.output(&["daemon", "status", "--json"]);
    let status: Value = serde_json::from_slice(&status.stdout).expect("it is JSON");
    assert_eq!((&status["running"], &status["pid"]), (&false.into(), &Value::Null));
    assert_eq!(home.ok(&["daemon", "stop"]), "not running");
    assert_eq!(home.daemon_if_up(), None);
    home.ok(&["daemon", "start"]);
    assert!(home.ok(&["daemon", "status"]).contains(&home.daemon_pid().to_string()));
    home.ok(&["daemon", "stop"]);
    assert_eq!(home.daemon_if_up(), None);
}

#[test]
fn a_daemon_that_is_terminated_leaves_in_order_and_its_runs_go_on() {
    for signal in ["TERM", "INT"] {
        let home = Home::new();
        let id = home.start("sleep 600");
        let pid = home.pid(&id);
        let daemon = home.daemon_pid();
        kill(daemon, signal);
        until("it has gone", || (!is_alive(daemon)).then_some(()));
        assert!(!home.path().join("run/daemon.sock").exists(), "{signal} left the socket");
        assert!(home.state().join("daemon.stopped").exists(), "a shim would start another");
        assert!(is_alive(pid));
        home.ok(&["daemon", "start"]);
        until("it is adopted", || (home.count(&id, "AttemptAdopted") == 1).then_some(()));
    }
}

#[test]
fn a_daemon_keeps_nothing_open_of_runs_that_are_over() {
    let home = Home::new();
    let open = |pid: u32| fs::read_dir(format!("/proc/{pid}/fd")).expect("it is ours").count();
    assert_eq!(home.wait(&home.start("true")), 0);
    let daemon = home.daemon_pid();
    // Clients come and go meanwhile; what a run would leave open is there for good.
    let before = until("the last client is gone", || {
        let once = open(daemon);
        (once == open(daemon)).then_some(once)
    });
    let runs: Vec<String> = (0..20).map(|number| home.start(&format!("echo {number}"))).collect();
    for (number, id) in runs.iter().enumerate() {
        assert_eq!(home.wait(id), 0);
        assert_eq!(home.ok(&["logs", id]), number.to_string(), "what is closed can be read");
    }
    until("nothing more is open than before", || (open(daemon) <= before + 2).then_some(()));
}

#[test]
fn daemon_start_starts_another_when_the_one_that_took_its_call_dies() {
    let home = Home::new();
    home.ok(&["daemon", "start"]);
    let dying = home.daemon_pid();
    kill(dying, "STOP");
    let mut start = home.outlast(&["daemon", "start"]);
    start.env("OUTLAST_NO_AUTOSTART", "1").stdout(Stdio::piped()).stderr(Stdio::piped());
    let start = start.spawn().expect("it starts");
    let fds = PathBuf::from(format!("/proc/{}/fd", start.id()));
    until("it has called the daemon that does not answer", || has_socket(&fds).then_some(()));
    kill(dying, "KILL");
    let said = start.wait_with_output().expect("it is our child");
    assert!(said.status.success(), "{}", text(&said.stderr));
    assert!(text(&said.stdout).starts_with("started, pid "), "{}", text(&said.stdout));
    assert_ne!(home.daemon_pid(), dying);
}

fn has_socket(fds: &Path) -> bool {
    let Ok(entries) = fs::read_dir(fds) else { return false };
    let target = |entry: fs::DirEntry| fs::read_link(entry.path()).ok();
    entries
        .flatten()
        .filter_map(target)
        .any(|target| target.to_string_lossy().starts_with("socket:"))
}

#[test]
fn a_descendant_that_goes_on_writing_does_not_keep_a_run_running() {
    let home = Home::new();
    let script = "(while :; do echo more; sleep 0.05; done) & echo last; exit 3";
    let id = home.start(script);
    assert_eq!(home.wait(&id), 1);
    let run = home.show(&id);
    assert_eq!((str_of(&run, "state"), &run["exit"]["code"]), ("failed", &3.into()));
    assert!(run["survivors"].as_array().is_some_and(|left| !left.is_empty()), "{run}");
    home.ok(&["stop", &id]);
    assert_eq!(home.show(&id)["survivors"].as_array().map(Vec::len), Some(0));
}

#[test]
fn a_command_that_closes_its_output_early_runs_until_it_exits() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let id = home.start(&format!("echo all; exec >/dev/null 2>&1; {}; exit 4", gate.pass()));
    let pid = home.pid(&id);
    until("what it wrote is there", || (home.ok(&["logs", &id]) == "all").then_some(()));
    assert_eq!(str_of(&home.show(&id), "state"), "running");
    gate.open();
    assert_eq!(home.wait(&id), 1);
    assert_eq!(home.show(&id)["exit"]["code"], 4);
    until("it is reaped", || (!Path::new(&format!("/proc/{pid}")).exists()).then_some(()));
}

#[test]
fn a_command_that_reads_finds_an_end_and_not_our_terminal() {
    let home = Home::new();
    let id = home.start("cat; echo read all of it");
    assert_eq!(home.wait(&id), 0);
    assert_eq!(home.ok(&["logs", &id]), "read all of it");
}

#[test]
fn stopping_what_has_ended_changes_nothing() {
    let home = Home::new();
    let id = home.start("exit 3");
    assert_eq!(home.wait(&id), 1);
    let before = home.events(&id);
    home.ok(&["stop", &id]);
    home.ok(&["stop", "--now", &id]);
    assert_eq!(home.events(&id), before);
    let run = home.show(&id);
    assert_eq!((str_of(&run, "state"), &run["exit"]["code"]), ("failed", &3.into()));
}

#[test]
fn a_stop_that_meets_the_exit_makes_one_end() {
    let home = Home::new();
    for _ in 0..5 {
        let mut gate = Gate::new(&home, &format!("gate{}", home.processes().len()));
        let id = home.start(&format!("{}; exit 0", gate.pass()));
        home.pid(&id);
        let stopping = home.spawn(&["stop", "--now", &id]);
        gate.open();
        assert_eq!(stopping.code(), 0);
        home.wait(&id);
        let ends = of_kind(&home, &id, "AttemptEnded");
        let run = home.show(&id);
        assert_eq!((ends.len(), home.count(&id, "RunEnded")), (1, 1));
        let states = ["completed", "stopped"];
        assert!(states.contains(&str_of(&run, "state")), "{run}");
        fs::remove_file(gate.path()).expect("it is ours");
    }
}
