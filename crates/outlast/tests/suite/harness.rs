//! A private Outlast for one test: its own home, its own daemon, and nothing left afterwards.
//!
//! Everything a test starts carries `OUTLAST_HOME` with the test's own directory in its environment, so that
//! is how whatever is left is found and ended when the test is over, passed or not.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// How long a test waits for what must happen. Only a failing test takes as long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Home {
    dir: TempDir,
    env: Vec<(String, OsString)>,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self::named("home")
    }

    /// A home whose path holds `name`, however long.
    pub(crate) fn named(name: &str) -> Self {
        Self::within(Path::new(env!("CARGO_TARGET_TMPDIR")), name)
    }

    /// A home below `base`, for a test that another user has to be able to get near to.
    pub(crate) fn within(base: &Path, name: &str) -> Self {
        let dir = TempDir::with_prefix_in("t", base).expect("this directory takes ours");
        std::fs::create_dir_all(dir.path().join(name)).expect("the test's directory is ours");
        Self { dir, env: vec![("OUTLAST_HOME_NAME".to_owned(), name.into())] }
    }

    /// Sets a variable for every program this home starts, the daemon among them.
    pub(crate) fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.env.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn path(&self) -> PathBuf {
        let (_, name) = self.env.first().expect("every home has a name");
        self.dir.path().join(name)
    }

    /// A directory for the test's own files.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.dir.path().to_owned()
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.path().join("state")
    }

    pub(crate) fn attempt_dir(&self, id: &str, turn: u32, attempt: u32) -> PathBuf {
        self.state().join("runs").join(id).join(format!("t{turn}.a{attempt}"))
    }

    /// The built program, in an environment that holds nothing but what it needs.
    pub(crate) fn outlast<S: AsRef<std::ffi::OsStr>>(&self, args: &[S]) -> Command {
        // A bench measures another build than the one that the tests are made with.
        let other = std::env::var("OUTLAST_PROGRAM").ok();
        let program = other.as_deref().unwrap_or(env!("CARGO_BIN_EXE_outlast"));
        let mut command = self.command(program);
        command.args(args);
        command
    }

    /// Any program, in that environment.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
            .env("HOME", self.dir.path())
            .env("OUTLAST_HOME", self.path())
            // The repository that these tests are in is not theirs.
            .env("GIT_CEILING_DIRECTORIES", self.dir.path().parent().unwrap_or(self.dir.path()))
            .env("LANG", "C.UTF-8");
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command.current_dir(self.dir.path()).stdin(Stdio::null());
        command
    }

    pub(crate) fn output<S: AsRef<std::ffi::OsStr>>(&self, args: &[S]) -> Output {
        self.outlast(args).output().expect("the program starts")
    }

    /// What the command prints; it must succeed.
    pub(crate) fn ok<S: AsRef<std::ffi::OsStr> + std::fmt::Debug>(&self, args: &[S]) -> String {
        let output = self.output(args);
        assert!(output.status.success(), "{args:?}: {}\n{}", output.status, text(&output.stderr));
        text(&output.stdout).trim_end().to_owned()
    }

    /// What the command says on stderr; it must fail with `code`.
    pub(crate) fn fails<S: AsRef<std::ffi::OsStr> + std::fmt::Debug>(
        &self,
        code: i32,
        args: &[S],
    ) -> String {
        let output = self.output(args);
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        text(&output.stderr)
    }

    /// Starts a run of a shell script and leaves it.
    pub(crate) fn start(&self, script: &str) -> String {
        self.ok(&["run", "-d", "--", "sh", "-c", script])
    }

    pub(crate) fn json<S: AsRef<std::ffi::OsStr> + std::fmt::Debug>(&self, args: &[S]) -> Value {
        let printed = self.ok(args);
        serde_json::from_str(&printed)
            .unwrap_or_else(|error| panic!("{args:?} printed {printed:?}: {error}"))
    }

    pub(crate) fn show(&self, id: &str) -> Value {
        self.json(&["show", id, "--json"])
    }

    pub(crate) fn events(&self, id: &str) -> Vec<Value> {
        let lines = self.ok(&["events", id, "--json"]);
        lines.lines().map(|line| serde_json::from_str(line).expect("an event is JSON")).collect()
    }

    pub(crate) fn kinds(&self, id: &str) -> Vec<String> {
        self.events(id).iter().map(|event| str_of(event, "kind").to_owned()).collect()
    }

    pub(crate) fn count(&self, id: &str, kind: &str) -> usize {
        self.kinds(id).iter().filter(|known| *known == kind).count()
    }

    /// The exit code of `wait`.
    pub(crate) fn wait(&self, id: &str) -> i32 {
        let output = self.output(&["wait", id, "--timeout", "60s"]);
        output.status.code().expect("wait is not killed")
    }

    pub(crate) fn daemon_pid(&self) -> u32 {
        let status = self.json(&["daemon", "status", "--json"]);
        pid_of(&status, "pid").expect("a daemon runs")
    }

    /// The pid of the daemon that answers, if one does.
    pub(crate) fn daemon_if_up(&self) -> Option<u32> {
        let output = self.output(&["daemon", "status", "--json"]);
        let status: Value = serde_json::from_slice(&output.stdout).ok()?;
        pid_of(&status, "pid").filter(|_| status["running"] == true)
    }

    /// Kills the daemon as a crash would, and returns when it is dead.
    pub(crate) fn crash_daemon(&self) -> u32 {
        let pid = self.daemon_pid();
        kill(pid, "KILL");
        until("the daemon is dead", || (!is_alive(pid)).then_some(()));
        pid
    }

    /// Waits until the run's command exists, and says its pid.
    pub(crate) fn pid(&self, id: &str) -> u32 {
        until("the command runs", || pid_of(&self.show(id), "pid"))
    }

    pub(crate) fn shim_pid(&self, id: &str) -> u32 {
        until("a shim holds the run", || pid_of(&self.show(id), "shim_pid"))
    }

    /// Runs the program in the background; ended with the test.
    pub(crate) fn spawn<S: AsRef<std::ffi::OsStr>>(&self, args: &[S]) -> Background {
        let child = self.outlast(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        Background(child.expect("the program starts"))
    }

    /// Every living process that belongs to this home.
    pub(crate) fn processes(&self) -> Vec<u32> {
        carrying(&self.mark("OUTLAST_HOME"))
    }

    /// What is in the environment of everything that `name` tells this home.
    pub(crate) fn mark(&self, name: &str) -> Vec<u8> {
        [name.as_bytes(), b"=", self.path().as_os_str().as_encoded_bytes()].concat()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        end_all(&self.mark("OUTLAST_HOME"));
    }
}

/// Ends every process that has this variable. A shim starts a daemon again, so this goes on until none is left.
pub(crate) fn end_all(mark: &[u8]) {
    let started = Instant::now();
    loop {
        let left = carrying(mark);
        if left.is_empty() || started.elapsed() > PATIENCE {
            break;
        }
        for pid in left {
            kill(pid, "KILL");
        }
        nap();
    }
}

/// Every process but ours that has this variable in its environment.
fn carrying(mark: &[u8]) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("there is a /proc");
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != std::process::id())
        .filter(|pid| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == mark)
        })
        .collect()
}

/// A FIFO that holds a script up until the test lets it go on.
pub(crate) struct Gate {
    path: PathBuf,
    /// Open for both, so that neither side ever waits for the other to open it.
    file: File,
}

impl Gate {
    pub(crate) fn new(home: &Home, name: &str) -> Self {
        let path = home.scratch().join(name);
        let made = Command::new("mkfifo").arg(&path).status().expect("there is a mkfifo");
        assert!(made.success());
        let file = OpenOptions::new().read(true).write(true).open(&path).expect("it was just made");
        Self { path, file }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What a script says to be held up here.
    pub(crate) fn pass(&self) -> String {
        format!("read -r _ <'{}'", self.path.display())
    }

    /// Lets one script pass once.
    pub(crate) fn open(&mut self) {
        self.file.write_all(b"\n").expect("a FIFO has room for a byte");
    }
}

pub(crate) struct Background(pub(crate) Child);

impl Background {
    pub(crate) fn code(mut self) -> i32 {
        self.0.wait().expect("it is our child").code().expect("it is not killed")
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _already_gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// Waits for what must come true.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(started.elapsed() < PATIENCE, "waited too long: {what}");
        nap();
    }
}

/// Between two looks at another process, of which there is no event.
pub(crate) fn nap() {
    std::thread::sleep(Duration::from_millis(5));
}

/// Sends a signal by name; a process that is gone already is fine.
pub(crate) fn kill(pid: u32, signal: &str) {
    // The shell's own `kill`: a machine need not have the program.
    let script = format!("kill -{signal} {pid}");
    let killed = Command::new("sh").args(["-c", &script]).stderr(Stdio::null()).status();
    killed.expect("there is a sh");
}

/// A zombie is dead, unless it is a leader whose other threads are still about to end.
pub(crate) fn is_alive(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start().chars().next());
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    !matches!(state, Some(Some('Z' | 'X'))) || threads > 1
}

/// Says on standard error why a test tests nothing here.
#[expect(
    clippy::print_stderr,
    reason = "a test that is skipped in silence looks as if it had passed"
)]
pub(crate) fn skip(why: &str) {
    eprintln!("skipped: {why}");
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(crate) fn str_of<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("{key} is not text in {value}"))
}

fn pid_of(value: &Value, key: &str) -> Option<u32> {
    value[key].as_u64().and_then(|pid| u32::try_from(pid).ok())
}

/// How many lines a file has; a file that is not there has none.
pub(crate) fn lines(path: &Path) -> usize {
    std::fs::read_to_string(path).map_or(0, |text| text.lines().count())
}
