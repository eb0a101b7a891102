//! Guards: what the commands of sinks and polls run below. How a guard is spoken to, what it ends and what it leaves
//! alone; and that a command is bounded, told and heard as before.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use outlast_wire::guard::{Ended, Guarded};
use outlast_wire::shim::{EnvVar, Exit, NeverStarted, SoftLimits};

use crate::harness::{Background, Home, is_alive, kill, str_of, until};
use crate::hosted::{configure, put, until_left};
use crate::notices::until_settled;
use crate::triggered::trigger;

/// The guards of this home that live.
pub(crate) fn guards(home: &Home) -> Vec<u32> {
    let is_guard = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).nth(1) == Some(b"__guard") && is_alive(*pid)
    };
    home.processes().into_iter().filter(is_guard).collect()
}

/// A guard, as a daemon starts it.
struct Guard {
    process: Background,
    socket: UnixStream,
}

impl Guard {
    fn start(home: &Home) -> Self {
        let (socket, theirs) = UnixStream::pair().expect("a pair");
        let mut guard = home.outlast(&["__guard"]);
        guard.stdin(OwnedFd::from(theirs)).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self { process: Background(guard.spawn().expect("it starts")), socket }
    }

    fn of(home: &Home, argv: &[&str], stdin: &[u8]) -> Self {
        let mut guard = Self::start(home);
        guard.say(&order(home, argv, stdin.len()).encode().expect("it is not too long"));
        guard.say(stdin);
        guard
    }

    fn sh(home: &Home, script: &str) -> Self {
        Self::of(home, &["sh", "-c", script], b"")
    }

    fn say(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).expect("it listens");
    }

    fn hear(&mut self) -> Ended {
        let mut said = Vec::new();
        self.socket.read_to_end(&mut said).expect("it answers");
        serde_json::from_slice(&said).expect("an answer")
    }

    fn printed(&mut self) -> String {
        let mut printed = String::new();
        let stdout = self.process.0.stdout.as_mut().expect("it is piped");
        stdout.read_to_string(&mut printed).expect("it is text");
        printed
    }

    fn pid(&self) -> u32 {
        self.process.0.id()
    }

    /// The daemon goes away; returns when the guard has, too.
    fn lose_its_daemon(self) {
        drop(self.socket);
        assert_eq!(self.process.code(), 0);
    }
}

fn order(home: &Home, argv: &[&str], stdin_bytes: usize) -> Guarded {
    let var =
        |name: &str, value: std::ffi::OsString| EnvVar { name: name.into(), value: value.into() };
    Guarded {
        argv: argv.iter().map(|word| (*word).to_owned()).collect(),
        dir: home.scratch(),
        env: vec![
            var("PATH", std::env::var_os("PATH").unwrap_or_default()),
            var("HOME", home.scratch().into()),
            var("OUTLAST_HOME", home.path().into()),
        ],
        soft_limits: SoftLimits { open_files: Some(123), processes: None },
        stdin_bytes: stdin_bytes as u64,
    }
}

fn parent_of(pid: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it is alive");
    let (_, fields) = stat.rsplit_once(')').expect("a whole line");
    fields.split_whitespace().nth(1).and_then(|it| it.parse().ok()).expect("a parent")
}

/// A shell line that leaves word of a process in another session, once it runs.
fn left(name: &str) -> String {
    format!(
        "setsid sh -c 'trap \"\" TERM; echo $$ >{name}.part; mv {name}.part {name}; exec sleep 600' &"
    )
}

fn pid_left(home: &Home, name: &str) -> u32 {
    until_left(home, name)[0].parse().expect("a pid")
}

#[test]
fn a_guard_feeds_its_command_and_says_how_it_ended() {
    let home = Home::new();
    let script = "cat; pwd; ulimit -n; echo ${OUTLAST_HOME_NAME-none}; exit 3";
    let mut guard = Guard::of(&home, &["sh", "-c", script], b"told\n");
    assert_eq!(guard.hear(), Ended::Exited(Exit::Code(3)));
    assert_eq!(guard.printed(), format!("told\n{}\n123\nnone\n", home.scratch().display()));
    assert_eq!(guard.process.code(), 0);
    assert_eq!(Guard::sh(&home, "kill -9 $$").hear(), Ended::Exited(Exit::Signal(9)));
    let much = vec![b'x'; 1 << 20];
    assert_eq!(Guard::of(&home, &["true"], &much).hear(), Ended::Exited(Exit::Code(0)));
    let mut counts = Guard::of(&home, &["wc", "-c"], &much);
    assert_eq!(counts.hear(), Ended::Exited(Exit::Code(0)));
    assert_eq!(counts.printed().trim(), "1048576");
    let why = |argv: &[&str]| match Guard::of(&home, argv, b"x").hear() {
        Ended::NeverStarted { code, .. } => code,
        Ended::Exited(exit) => panic!("{argv:?}: {exit:?}"),
    };
    assert_eq!(why(&["no-such-program"]), NeverStarted::CommandNotFound);
    assert_eq!(why(&["/etc/passwd"]), NeverStarted::NotExecutable);
    assert_eq!(why(&[]), NeverStarted::BadSpec);
}

#[test]
fn a_guard_that_is_told_half_of_it_starts_nothing() {
    let home = Home::new();
    let whole = order(&home, &["touch", "ran"], 4).encode().expect("it is not too long");
    for said in [&b""[..], &whole[..2], &whole[..20], &[&whole[..], b"tol"].concat()] {
        let mut guard = Guard::start(&home);
        guard.say(said);
        drop(guard.socket);
        assert_eq!(guard.process.code(), 65);
    }
    assert!(!home.scratch().join("ran").exists());
}

#[test]
fn a_guard_stays_for_as_long_as_anything_of_its_command_lives() {
    let home = Home::new();
    // Its command's children have no parent of their own any more.
    let mut guard = Guard::sh(&home, &format!("( {} ) ; ( {} )", left("one"), left("two")));
    assert_eq!(guard.hear(), Ended::Exited(Exit::Code(0)));
    let (one, two) = (pid_left(&home, "one"), pid_left(&home, "two"));
    for pid in [one, two] {
        until("it is its child", || (parent_of(pid) == guard.pid()).then_some(()));
    }
    kill(one, "KILL");
    until("it is reaped", || {
        (!std::path::Path::new(&format!("/proc/{one}")).exists()).then_some(())
    });
    assert!(is_alive(guard.pid()));
    kill(two, "KILL");
    assert_eq!(guard.process.code(), 0);
}

#[test]
fn a_command_whose_daemon_goes_away_ends_with_all_that_it_started() {
    let home = Home::new();
    let script = format!("( {} ); echo $$ >main.part; mv main.part main; sleep 600", left("deaf"));
    let guard = Guard::sh(&home, &script);
    let (deaf, main) = (pid_left(&home, "deaf"), pid_left(&home, "main"));
    guard.lose_its_daemon();
    assert!(!is_alive(deaf) && !is_alive(main));
}

#[test]
fn a_daemon_that_a_command_has_started_outlives_it() {
    let home = Home::new();
    let program = env!("CARGO_BIN_EXE_outlast");
    let script = format!("'{program}' run -d -- sleep 600 >id.part; mv id.part id; sleep 600");
    let guard = Guard::sh(&home, &script);
    let id = until_left(&home, "id")[0].clone();
    let (daemon, run, pid) = (home.daemon_pid(), home.pid(&id), guard.pid());
    let Guard { process, socket } = guard;
    drop(socket);
    let shim = home.shim_pid(&id);
    until("only the daemon is left of its tree", || {
        let below = home.processes().into_iter().filter(|it| parent_of_living(*it) == Some(pid));
        below.eq([daemon]).then_some(())
    });
    assert!([daemon, shim, run].into_iter().all(is_alive));
    home.ok(&["stop", "--now", &id]);
    home.ok(&["daemon", "stop"]);
    assert_eq!(process.code(), 0, "it was there for the daemon");
}

fn parent_of_living(pid: u32) -> Option<u32> {
    is_alive(pid).then(|| std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()).flatten()?;
    Some(parent_of(pid))
}

#[test]
fn a_sink_that_takes_too_long_dies_with_all_that_it_started() {
    let home = Home::new();
    let script = home.scratch().join("slow.sh");
    put(
        &script,
        &format!(
            "cd \"$HOME\"; ( {} )\nuntil [ -s far ]; do sleep 0.02; done\nsleep 600\n",
            left("far")
        ),
    );
    let line = format!("sh '{}'", script.display());
    configure(
        &home,
        &format!("[sinks.slow]\nkind = \"cmd\"\ncommand = \"{line}\"\ntimeout_ms = 2000\n"),
    );
    home.ok(&["run", "-d", "--notify", "slow", "--", "true"]);
    let far = pid_left(&home, "far");
    until("it has failed", || {
        let sink = home.json(&["sink", "ls", "--json"])[0].clone();
        sink["problem"].as_str().is_some_and(|it| it.contains("took longer")).then_some(())
    });
    until("it is dead", || (!is_alive(far)).then_some(()));
}

#[test]
fn a_sink_that_leaves_a_process_with_its_pipe_is_told_and_the_process_is_left_alone() {
    let home = Home::new();
    let script = home.scratch().join("leaves.sh");
    put(&script, &format!("cd \"$HOME\"; ulimit -n >limit; yes >&2 & {}\n", left("behind")));
    let sink = format!("cmd:sh '{}'", script.display());
    let mut limited = home.command("sh");
    limited.args(["-c", "ulimit -S -n 321; exec \"$0\" daemon start"]);
    let started = limited.arg(env!("CARGO_BIN_EXE_outlast")).output().expect("it starts");
    assert!(started.status.success(), "{started:?}");
    let id = home.ok(&["run", "-d", "--notify", &sink, "--", "true"]);
    assert_eq!(until_settled(&home, &id)["notices"]["delivered"], 1);
    assert_eq!(until_left(&home, "limit"), ["321"], "not what the daemon has raised it to");
    let behind = pid_left(&home, "behind");
    let guard = guards(&home);
    assert_eq!(guard.len(), 1, "{guard:?}");
    assert_eq!(parent_of(behind), guard[0]);
    home.ok(&["daemon", "stop"]);
    assert!(is_alive(behind) && is_alive(guard[0]));
}

#[test]
fn a_poll_that_prints_too_much_is_refused_and_leaves_no_guard() {
    let home = Home::new();
    let poll = "head -c 3000000 /dev/zero | tr '\\0' x";
    home.ok(&["trigger", "add", "huge", "--poll", poll, "--every", "1h", "--", "true"]);
    let trouble = until("it is shown", || {
        Some(trigger(&home, "huge")["trouble"].clone()).filter(|it| it["code"] == "poll_failed")
    });
    assert!(str_of(&trouble, "message").contains("more than 1048576 bytes"), "{trouble}");
    until("no guard is left", || guards(&home).is_empty().then_some(()));
}
