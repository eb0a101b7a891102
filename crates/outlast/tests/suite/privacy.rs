//! Another user of the machine can neither look in nor reach in, and nothing is left lying about: no
//! environment of a run that has ended, no secret in the journal, no process of a test that has failed.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use outlast_wire::shim::{Decoder, Frame, News, Order, Role};
use rustix::fs::{Gid, Uid};

use crate::harness::{Gate, Home, skip, str_of, text, until};

const NOBODY: u32 = 65534;

const SECRET: &str = "s3cr3t-Xq7vT2-never-on-disk";

/// Where a failing test says which directory was its own.
const TELL: &str = "OUTLAST_TEST_TELL";

/// Every file and directory below `dir`, without following links.
pub(crate) fn tree(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display())) {
        let path = entry.expect("the directory can be read").path();
        if path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
            found.extend(tree(&path));
        }
        found.push(path);
    }
    found
}

fn names(paths: &[PathBuf]) -> BTreeSet<String> {
    let name = |path: &PathBuf| text(path.file_name().expect("it has a name").as_encoded_bytes());
    paths.iter().map(name).collect()
}

/// A home with a run that lives, one that lives in a terminal, one that has ended and one that was killed.
fn busy(home: &Home) -> String {
    // The mask of the process that starts the daemon is not what keeps others out.
    let mut loose = home.command("sh");
    loose.args(["-c", "umask 000; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_outlast")]);
    let live = loose.args(["run", "-d", "--", "sh", "-c", "echo out; exec sleep 600"]).output();
    let live = text(&live.expect("there is a sh").stdout).trim_end().to_owned();
    home.pid(&live);
    let terminal = home.ok(&["run", "-d", "--tty", "--", "sleep", "600"]);
    home.pid(&terminal);
    assert_eq!(home.wait(&home.start("echo done")), 0);
    let killed = home.start("echo killed; exec sleep 600");
    home.pid(&killed);
    home.ok(&["stop", "--now", &killed]);
    // What a crash leaves is as private: a log that was not moved, a socket that no process listens on.
    home.crash_daemon();
    home.ok(&["daemon", "start"]);
    until("the run is adopted", || (home.count(&live, "AttemptAdopted") == 1).then_some(()));
    live
}

#[test]
fn everything_on_disk_is_its_users_alone() {
    let home = Home::new();
    busy(&home);
    let found = assert_private(&[home.state(), home.path().join("run")]);
    let expected = [
        "ctl.sock",
        "daemon.env.json",
        "daemon.lock",
        "daemon.log",
        "daemon.sock",
        "env.json",
        "events.jsonl",
        "outlast.db",
        "outlast.db-shm",
        "outlast.db-wal",
        "output.idx",
        "output.log",
        "runs",
        "shim.lock",
        "spec.json",
    ];
    let seen = names(&found);
    let unseen: Vec<&str> = expected.into_iter().filter(|name| !seen.contains(*name)).collect();
    assert!(unseen.is_empty(), "no test has looked at {unseen:?}, but only at {seen:?}");
}

/// Everything in these directories, which no other user may look at.
fn assert_private(roots: &[PathBuf]) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = roots.iter().flat_map(|root| tree(root)).collect();
    found.extend(roots.iter().cloned());
    for path in &found {
        // A shim that leaves takes its socket along.
        let Ok(metadata) = path.symlink_metadata() else { continue };
        let mode = metadata.permissions().mode() & 0o7777;
        let is_private = if metadata.is_dir() {
            mode == 0o700
        } else if metadata.file_type().is_socket() {
            mode & 0o077 == 0
        } else {
            mode == 0o600
        };
        assert!(is_private, "{} has mode {mode:o}", path.display());
    }
    found
}

/// The client's mask is its command's, as under nohup, and decides nothing about our own files.
#[test]
fn a_mask_is_the_commands_and_our_files_are_private_under_any() {
    for mask in ["0000", "0077", "0027"] {
        let home = Home::new();
        let made = home.scratch().join("made");
        let script = format!("umask; : >'{}'", made.display());
        let mut client = home.command("sh");
        let typed = format!("umask {mask}; exec \"$0\" \"$@\"");
        client.args(["-c", &typed, env!("CARGO_BIN_EXE_outlast"), "run", "-d", "--"]);
        let output = client.args(["sh", "-c", &script]).output().expect("there is a sh");
        let id = text(&output.stdout).trim_end().to_owned();
        assert_eq!(home.wait(&id), 0, "{}", text(&output.stderr));
        assert_eq!(home.ok(&["logs", &id]), mask);
        let mode = fs::metadata(&made).expect("the command made it").permissions().mode() & 0o777;
        let masked = u32::from_str_radix(mask, 8).expect("a mask is a number");
        assert_eq!(mode, 0o666 & !masked, "under {mask}");
        assert_private(&[home.state(), home.path().join("run")]);
    }
}

/// Two users with one /tmp, the same names and the same keys, each with an Outlast of its own.
#[test]
fn two_users_with_the_same_names_never_meet() {
    if !rustix::process::geteuid().is_root() {
        skip("only root can become another user");
        return;
    }
    // So long that the socket's own path would not fit into an address.
    let name = "a-name-that-is-much-longer-than-any-address-of-a-socket-".repeat(2);
    let homes = [0, NOBODY].map(|user| {
        let home = Home::within(&std::env::temp_dir(), &name);
        for dir in [home.scratch(), home.path()] {
            std::os::unix::fs::chown(dir, Some(user), Some(user)).expect("root may");
        }
        (home, user)
    });
    let program = homes[0].0.scratch().join("outlast");
    crate::programs::copy(&program);
    fs::set_permissions(homes[0].0.scratch(), Permissions::from_mode(0o755)).expect("it is ours");
    let act = |(home, user): &(Home, u32), args: &[&str]| {
        let mut command = home.command(program.to_str().expect("our paths are text"));
        command.args(args).env("TMPDIR", std::env::temp_dir()).uid(*user).gid(*user);
        let output = command.output().expect("it may be executed by all");
        assert!(output.status.success(), "{args:?} as {user}: {}", text(&output.stderr));
        text(&output.stdout).trim_end().to_owned()
    };
    let starting = ["run", "-d", "--name", "same", "--key", "same", "--", "sh", "-c"];
    let ids =
        homes.each_ref().map(|it| act(it, &[&starting[..], &["id -u; exec sleep 600"]].concat()));
    assert_ne!(ids[0], ids[1]);
    for (at, it) in homes.iter().enumerate() {
        until("its command has said who it is", || {
            (act(it, &["logs", "same"]) == it.1.to_string()).then_some(())
        });
        let listed: serde_json::Value =
            serde_json::from_str(&act(it, &["ps", "--json"])).expect("a list");
        let listed: Vec<&str> =
            listed.as_array().expect("a list").iter().map(|row| str_of(row, "id")).collect();
        assert_eq!(listed, [ids[at].as_str()]);
        act(it, &["stop", "--now", "same"]);
        assert_private(&[it.0.state()]);
    }
    for (home, user) in &homes {
        let owners = tree(&home.state()).into_iter();
        let strangers: Vec<PathBuf> = owners
            .filter(|path| {
                use std::os::unix::fs::MetadataExt;
                path.symlink_metadata().is_ok_and(|metadata| metadata.uid() != *user)
            })
            .collect();
        assert!(strangers.is_empty(), "not of {user}: {strangers:?}");
    }
}

/// What `act` gives when another user does it. The thread's user is changed, not the process's.
fn as_nobody<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let nobody = scope.spawn(|| {
            let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
            rustix::thread::set_thread_groups(&[]).expect("root may");
            rustix::thread::set_thread_res_gid(group, group, group).expect("root may");
            rustix::thread::set_thread_res_uid(user, user, user).expect("root may");
            act()
        });
        nobody.join().expect("it says what it met")
    })
}

/// Asks the daemon's socket a question and returns what comes back before it is closed.
fn ask_daemon(socket: &Path) -> io::Result<Vec<u8>> {
    let question = b"GET /v1/runs HTTP/1.1\r\nHost: outlast\r\nConnection: close\r\n\r\n";
    converse(socket, question)
}

/// Says Hello to a shim as `role` and returns what comes back within its first frame.
fn greet_shim(socket: &Path, epoch: u64, role: Role) -> io::Result<Option<News>> {
    let hello =
        Frame::Message(Order::Hello { proto: 1, epoch, role }).encode().expect("it is short");
    let mut stream = UnixStream::connect(socket)?;
    stream.write_all(&hello)?;
    match Decoder::default().read(&mut stream)? {
        Some(Frame::Message(news)) => Ok(Some(news)),
        Some(Frame::Bytes(_)) => panic!("a shim greets with a message"),
        None => Ok(None),
    }
}

fn converse(socket: &Path, question: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = UnixStream::connect(socket)?;
    stream.write_all(question)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(answer)
}

/// Turned away: a connection that is closed without a word, whichever side notices first.
fn is_nothing<T: Default + PartialEq>(answer: &io::Result<T>) -> bool {
    match answer {
        Ok(answer) => *answer == T::default(),
        Err(error) => matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset),
    }
}

fn kind<T>(answer: io::Result<T>) -> Option<ErrorKind> {
    answer.err().map(|error| error.kind())
}

struct Sockets {
    daemon: PathBuf,
    shim: PathBuf,
}

/// A home that others can get near to, with a program in it that they can execute.
struct Exposed {
    home: Home,
    program: PathBuf,
    live: String,
    sockets: Sockets,
}

impl Exposed {
    /// `None` for a test that cannot become another user.
    fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            skip("only root can become another user");
            return None;
        }
        let home = Home::within(&std::env::temp_dir(), "home");
        for dir in [home.scratch(), home.path()] {
            fs::set_permissions(dir, Permissions::from_mode(0o755)).expect("it is ours");
        }
        let program = crate::programs::link(&home.scratch().join("outlast"));
        let live = home.start("echo private; exec sleep 600");
        home.pid(&live);
        let shim = home.attempt_dir(&live, 1, 1).join("ctl.sock");
        let sockets = Sockets { daemon: home.path().join("run/daemon.sock"), shim };
        Some(Self { home, program, live, sockets })
    }

    /// As a person might who wants to share: every directory and both sockets, for all.
    fn open_up(&self) {
        let everything = tree(&self.home.path());
        let directories = everything.into_iter().filter(|path| path.is_dir());
        let paths = directories.chain([self.sockets.daemon.clone(), self.sockets.shim.clone()]);
        paths.for_each(|path| {
            fs::set_permissions(path, Permissions::from_mode(0o777)).expect("it is ours");
        });
    }

    /// The program itself, as the other user would use it.
    fn outlast_as_nobody(&self, args: &[&str]) -> Output {
        let mut command = self.home.command(self.program.to_str().expect("our paths are text"));
        command
            .args(args)
            .env("OUTLAST_NO_AUTOSTART", "1")
            .current_dir("/")
            .uid(NOBODY)
            .gid(NOBODY);
        command.output().expect("it may be executed by all")
    }

    fn epoch(&self) -> u64 {
        self.home.json(&["daemon", "status", "--json"])["epoch"].as_u64().expect("a number")
    }
}

#[test]
fn another_user_gets_no_further_than_the_directory() {
    let Some(exposed) = Exposed::new() else { return };
    let Sockets { daemon, shim } = &exposed.sockets;
    assert_eq!(as_nobody(|| kind(ask_daemon(daemon))), Some(ErrorKind::PermissionDenied));
    assert_eq!(
        as_nobody(|| kind(greet_shim(shim, 1, Role::Viewer))),
        Some(ErrorKind::PermissionDenied)
    );
    let database = exposed.home.state().join("outlast.db");
    assert_eq!(as_nobody(|| kind(fs::read(&database))), Some(ErrorKind::PermissionDenied));
    assert_eq!(
        as_nobody(|| kind(fs::read_dir(exposed.home.state()))),
        Some(ErrorKind::PermissionDenied)
    );
    for args in
        [&["ps"][..], &["show", &exposed.live], &["daemon", "status"], &["run", "-d", "--", "true"]]
    {
        let output = exposed.outlast_as_nobody(args);
        assert_eq!(output.status.code(), Some(7), "{args:?}: {}", text(&output.stderr));
        assert!(output.stdout.is_empty(), "{args:?}: {}", text(&output.stdout));
    }
}

#[test]
fn another_user_is_turned_away_also_where_the_door_stands_open() {
    let Some(exposed) = Exposed::new() else { return };
    exposed.open_up();
    let Sockets { daemon, shim } = &exposed.sockets;
    // The same questions from ourselves are answered, so it is the asker that is refused below.
    let epoch = exposed.epoch();
    assert!(ask_daemon(daemon).expect("we are answered").starts_with(b"HTTP/1.1 200"));
    let ours = greet_shim(shim, epoch, Role::Viewer).expect("we are answered");
    assert!(matches!(ours, Some(News::Hello { .. })), "{ours:?}");

    let answer = as_nobody(|| ask_daemon(daemon));
    assert!(is_nothing(&answer), "{answer:?}");
    // As a daemon of a later epoch it would take the run over.
    for (epoch, role) in [(epoch, Role::Viewer), (u64::MAX, Role::Daemon)] {
        let answer = as_nobody(|| greet_shim(shim, epoch, role));
        assert!(is_nothing(&answer), "{answer:?}");
    }
    let output = exposed.outlast_as_nobody(&["daemon", "status"]);
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stdout));

    let files: Vec<PathBuf> =
        tree(&exposed.home.path()).into_iter().filter(|path| path.is_file()).collect();
    assert!(names(&files).contains("env.json"), "{files:?}");
    for file in files {
        assert_eq!(
            as_nobody(|| kind(fs::read(&file))),
            Some(ErrorKind::PermissionDenied),
            "{}",
            file.display()
        );
    }
    // Nothing of this has reached the run: its own daemon still has it.
    assert_eq!(str_of(&exposed.home.show(&exposed.live), "state"), "running");
    exposed.home.ok(&["stop", "--now", &exposed.live]);
    assert_eq!(str_of(&exposed.home.show(&exposed.live), "state"), "stopped");
    assert!(exposed.home.ok(&["daemon", "logs"]).contains("another user was turned away"));
}

/// The files below this home that hold the secret.
fn holders(home: &Home) -> BTreeSet<String> {
    let holds = |path: &PathBuf| {
        let bytes = fs::read(path).unwrap_or_default();
        bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes())
    };
    names(
        &tree(&home.path())
            .into_iter()
            .filter(|path| path.is_file())
            .filter(holds)
            .collect::<Vec<_>>(),
    )
}

fn env_file(home: &Home, id: &str) -> PathBuf {
    home.state().join("runs").join(id).join("env.json")
}

#[test]
fn a_secret_stands_beside_its_run_and_nowhere_else() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let variable = format!("TOKEN={SECRET}");
    let script = format!("{}; test ${{#TOKEN}} -eq {}", gate.pass(), SECRET.len());
    let id = home.ok(&["run", "-d", "--env", &variable, "--", "sh", "-c", &script]);
    home.pid(&id);
    assert_eq!(holders(&home), BTreeSet::from(["env.json".to_owned()]));
    // What is not moved out of the log yet counts as the database too.
    home.crash_daemon();
    home.ok(&["daemon", "start"]);
    assert!(home.state().join("outlast.db-wal").exists());
    assert_eq!(holders(&home), BTreeSet::from(["env.json".to_owned()]));
    gate.open();
    assert_eq!(home.wait(&id), 0, "the command did not get its secret");
    assert!(!env_file(&home, &id).exists());
    assert_eq!(holders(&home), BTreeSet::new());
    home.ok(&["daemon", "stop"]);
    assert_eq!(holders(&home), BTreeSet::new());
}

/// However a run ends, its environment goes; while it may be tried again, it stays.
#[test]
fn the_environment_goes_with_the_run() {
    let home = Home::new();
    let secret = format!("TOKEN={SECRET}");
    let start = |args: &[&str]| home.ok(&[&["run", "-d", "--env", &secret][..], args].concat());
    let failed = start(&["--", "sh", "-c", "exit 7"]);
    let never_started = start(&["--", "/no/such/command"]);
    let exhausted = start(&["--run-timeout", "1ms", "--", "sleep", "600"]);
    let waiting = start(&["--retry", "1", "--backoff", "10m", "--", "false"]);
    let stopped = start(&["--", "sleep", "600"]);
    home.pid(&stopped);
    home.ok(&["stop", "--now", &stopped]);
    for (id, code) in [(&failed, 1), (&never_started, 1), (&exhausted, 4), (&stopped, 5)] {
        assert_eq!(home.wait(id), code);
        assert!(!env_file(&home, id).exists(), "{}", home.show(id));
    }
    until("the next attempt is waited for", || {
        (str_of(&home.show(&waiting), "state") == "waiting").then_some(())
    });
    assert!(env_file(&home, &waiting).exists());
    home.ok(&["stop", &waiting]);
    assert!(!env_file(&home, &waiting).exists());
    assert_eq!(holders(&home), BTreeSet::new());
}

#[test]
fn an_end_that_no_daemon_saw_removes_the_environment_too() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let id = home.start(&gate.pass());
    let pid = home.pid(&id);
    home.ok(&["daemon", "stop"]);
    gate.open();
    until("the command has ended", || (!crate::harness::is_alive(pid)).then_some(()));
    assert_eq!(home.wait(&id), 0);
    assert!(!env_file(&home, &id).exists());
}

#[test]
#[ignore = "fails on purpose, for the test below"]
fn fails_on_purpose() {
    let Some(tell) = std::env::var_os(TELL) else { return };
    let home = Home::new();
    let id = home.start("setsid sleep 600 & sleep 600");
    home.pid(&id);
    let _client = home.spawn(&["logs", "-f", &id]);
    fs::write(tell, home.scratch().as_os_str().as_encoded_bytes())
        .expect("the other test reads it");
    panic!("this is the failure");
}

#[test]
fn a_test_that_fails_leaves_no_process_and_no_directory() {
    let scratch =
        tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("the target directory is ours");
    let tell = scratch.path().join("tell");
    let this = std::env::current_exe().expect("we are a program");
    let mut failing = Command::new(this);
    failing.args(["--ignored", "--exact", "privacy::fails_on_purpose"]).env(TELL, &tell);
    let output = failing.output().expect("it starts");
    let printed = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(101), "{printed}");
    assert!(printed.contains("this is the failure"), "{printed}");
    let dir = fs::read_to_string(&tell).expect("it said where it was");
    assert!(!Path::new(&dir).exists(), "{dir} is still there");
    assert_eq!(mentioned_by(&dir), Vec::<String>::new());
}

/// The processes that have this text in their environment or in their arguments.
fn mentioned_by(wanted: &str) -> Vec<String> {
    let pids = fs::read_dir("/proc").expect("there is a /proc").flatten();
    let pids = pids.filter_map(|entry| entry.file_name().into_string().ok()?.parse::<u32>().ok());
    let read =
        |pid: u32, what: &str| text(&fs::read(format!("/proc/{pid}/{what}")).unwrap_or_default());
    let mentions = |pid: &u32| {
        read(*pid, "environ").contains(wanted) || read(*pid, "cmdline").contains(wanted)
    };
    pids.filter(mentions).map(|pid| format!("{pid}: {}", read(pid, "cmdline"))).collect()
}
