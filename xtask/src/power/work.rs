//! What is done while everything is recorded: real commands, loops, tools, hooks, orders, notices, triggers.
//!
//! Whatever a client was told is written down with one write, so that its place among the recorded calls is
//! known: after it was told, and before anything that followed.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::private::Private;
use crate::{interrupt, process};

/// Clients that start runs at the same time, so that their appends are committed together.
const CLIENTS: usize = 4;
/// So often is asked again where calls are made to fail.
const TRIES: u32 = 20;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    binary: PathBuf,
    /// A directory with `home` in it; `told` and `notices` are written here
    scratch: PathBuf,
    rounds: u32,
    /// Whether calls are made to fail meanwhile
    #[arg(long)]
    faulty: bool,
}

/// Where clients write down what they were told, and where the command of the sink writes what it was.
pub(super) fn told_in(scratch: &Path) -> [PathBuf; 2] {
    [scratch.join("told"), scratch.join("notices")]
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let outlast = Private::new(&args.binary, args.scratch.join("home"))?;
    let work = Work::new(&outlast, &args.scratch, args.faulty)?;
    for round in 1..=args.rounds {
        work.round(round).with_context(|| format!("round {round}"))?;
        // Once as a person would, once as a crash does, once not at all, so that the log grows long.
        if round % 3 == 1 {
            work.order(&["daemon", "stop"], None)?;
        } else if round % 3 == 2 {
            outlast.kill_daemon()?;
        }
    }
    // So that nothing of the recording is still on its way.
    work.order(&["daemon", "start"], None)?;
    work.settle()?;
    work.order(&["daemon", "stop"], None)?;
    process_end(&args.scratch)
}

/// A shim goes on for a moment after its last word.
fn process_end(scratch: &Path) -> Result<()> {
    interrupt::wait_for("the last shim is gone", std::time::Duration::from_secs(60), || {
        let left = process::ours(scratch);
        Ok(left.iter().all(|pid| !process::is_alive(*pid)).then_some(()))
    })
}

struct Work<'a> {
    outlast: &'a Private,
    scratch: PathBuf,
    sink: String,
    told: Mutex<File>,
    started: AtomicU32,
    is_faulty: bool,
}

impl<'a> Work<'a> {
    fn new(outlast: &'a Private, scratch: &Path, is_faulty: bool) -> Result<Self> {
        let [told, notices] = told_in(scratch);
        let told = OpenOptions::new().append(true).create(true).open(told)?;
        fs::create_dir_all(scratch.join("work"))?;
        let sink = format!("cmd:cat >>'{}'", notices.display());
        let (started, told) = (AtomicU32::new(0), Mutex::new(told));
        Ok(Self { outlast, scratch: scratch.to_owned(), sink, told, started, is_faulty })
    }

    fn round(&self, round: u32) -> Result<()> {
        self.commands()?;
        self.steered(round)?;
        self.triggers(round)?;
        self.loops(round)?;
        self.settle()
    }

    /// Several clients at once; the end of each command is told to a sink.
    fn commands(&self) -> Result<()> {
        let scripts = ["echo out; exit 3", "test \"$OUTLAST_ATTEMPT\" -ge 2", "echo fine"];
        thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|client| {
                    scope.spawn(move || {
                        let script = scripts[client % scripts.len()];
                        let options = ["--retry", "2", "--backoff", "20ms", "--notify", &self.sink];
                        let options = if client == 0 { &options[4..] } else { &options[..] };
                        let id = self.start(&[options, &["--", "sh", "-c", script]].concat())?;
                        self.await_end(&id)
                    })
                })
                .collect();
            clients
                .into_iter()
                .try_for_each(|client| client.join().expect("a client does not panic"))
        })
    }

    /// Orders to runs that live: stop, pause, resume; and one run that is removed.
    fn steered(&self, round: u32) -> Result<()> {
        let id = self.start(&["--", "sleep", "600"])?;
        self.order(&["stop", "--now", &id], Some(json!({ "told": "stopped", "run": id })))?;
        self.await_end(&id)?;
        let id = self.start(&["--name", &format!("gone{round}"), "--", "true"])?;
        self.await_end(&id)?;
        // Said before, because from here on it may be gone.
        self.tell(&json!({ "told": "removing", "run": id }))?;
        self.order(&["rm", &id], Some(json!({ "told": "removed", "run": id })))
    }

    fn triggers(&self, round: u32) -> Result<()> {
        let name = format!("yearly{round}");
        let add = ["schedule", "add", &name, "--every", "8760h", "--", "sh", "-c", "echo made"];
        self.order(&add, Some(json!({ "told": "trigger", "name": name })))?;
        self.order(&["trigger", "run", &name], None)
    }

    fn loops(&self, round: u32) -> Result<()> {
        let hosted = "limits: {no_progress_turns: 0}\nhooks: {before_run: 'echo before', after_turn: 'echo swept'}\nchecks: {done: ['true']}\n\
            tools:\n  - name: tell\n    command: ['sh', '-c', 'cat; echo heard']\n    class: idempotent";
        let calls = r#""tool_calls":[{"name":"tell","input":{"n":1}},{"name":"tell","input":{},"key":"k"}]"#;
        let turns = format!(
            "if [ \"$OUTLAST_TURN\" -lt 5 ]; then respond '{{\"status\":\"continue\",\"summary\":\"x\",{calls}}}'; \
             else say done y; fi"
        );
        let worker = self.a_loop("worker", &turns, hosted)?;
        let asks = "if [ \"$OUTLAST_TURN\" = 1 ]; then say blocked 'which?'; else say done z; fi";
        let asker = self.a_loop("asker", asks, "")?;
        let emits = "output: {require_approval_before_emit: true}";
        let emitter = self.a_loop("emitter", "say done 'the text'", emits)?;
        let waits = "if [ \"$OUTLAST_TURN\" = 1 ]; then \
            respond '{\"status\":\"continue\",\"summary\":\"w\",\"wait\":{\"message\":true}}'; else say done m; fi";
        let waiter = self.a_loop("waiter", waits, "")?;

        self.await_state(&asker, "blocked")?;
        let text = format!("the blue one, round {round}");
        let told = json!({ "told": "order", "run": asker, "text": text });
        self.order(&["answer", &asker, &text], Some(told))?;
        self.await_state(&waiter, "waiting")?;
        let text = format!("wake up, round {round}");
        let told = json!({ "told": "order", "run": waiter, "text": text });
        self.order(&["send", &waiter, &text], Some(told))?;
        self.await_state(&emitter, "blocked")?;
        let told = json!({ "told": "order", "run": emitter, "text": "\"Answered\"" });
        self.order(&["answer", &emitter, "--approve"], Some(told))?;
        for id in [worker, asker, emitter, waiter] {
            self.await_end(&id)?;
        }
        Ok(())
    }

    fn a_loop(&self, name: &str, agent: &str, settings: &str) -> Result<String> {
        let words = r#"
respond() { printf '%s' "$1" >"$OUTLAST_RESPONSE_FILE.part" && mv "$OUTLAST_RESPONSE_FILE.part" "$OUTLAST_RESPONSE_FILE"; }
say() { respond "{\"status\":\"$1\",\"summary\":\"$2\"}"; }
"#;
        let script = self.scratch.join(format!("{name}.sh"));
        fs::write(&script, format!("{words}\n{agent}\n"))?;
        let file = self.scratch.join(format!("{name}.md"));
        let front = format!(
            "agent: {{kind: exec, command: [sh, '{}']}}\nretry: {{initial_backoff_ms: 10, max_backoff_ms: 20}}\n{settings}",
            script.display()
        );
        fs::write(&file, format!("---\n{front}\n---\nDo it: {{{{ task }}}}\n"))?;
        let work = self.scratch.join("work").display().to_string();
        self.start(&["--dir", &work, "-f", &file.display().to_string(), "--notify", &self.sink])
    }

    fn start(&self, args: &[&str]) -> Result<String> {
        let key = format!("power-{}", self.started.fetch_add(1, Ordering::Relaxed));
        let id =
            self.again(|| self.outlast.ask(&[&["run", "-d", "--key", &key], args].concat()))?;
        self.tell(&json!({ "told": "run", "run": id }))?;
        Ok(id)
    }

    fn await_state(&self, id: &str, state: &str) -> Result<()> {
        let view = interrupt::wait_for(
            &format!("{id} is {state}"),
            std::time::Duration::from_secs(120),
            || Ok(Some(self.again(|| self.outlast.show(id))?).filter(|view| view["state"] == state)),
        )?;
        self.tell(&json!({ "told": "state", "run": id, "seq": view["seq"] }))
    }

    fn await_end(&self, id: &str) -> Result<()> {
        self.again(|| {
            let status = self.outlast.output(&["wait", id, "--timeout", "120s"])?.status;
            ensure!(matches!(status.code(), Some(0 | 1 | 5)), "wait {id}: {status}");
            Ok(())
        })?;
        self.tell(&json!({ "told": "end", "run": id }))?;
        self.seen(id)
    }

    /// What a client has read of a journal can never have been otherwise.
    fn seen(&self, id: &str) -> Result<()> {
        let events = self.again(|| self.outlast.events(id))?;
        let kinds: Vec<&Value> = events.iter().map(|event| &event["kind"]).collect();
        self.tell(&json!({ "told": "events", "run": id, "kinds": kinds }))
    }

    /// Until nothing is left to do, the notices included.
    fn settle(&self) -> Result<()> {
        interrupt::wait_for("everything rests", std::time::Duration::from_secs(120), || {
            let listed = self.again(|| self.outlast.ask_json(&["ps", "--json"]))?;
            Ok(listed.as_array().is_some_and(Vec::is_empty).then_some(()))
        })
    }

    /// An order is known to be taken only if it was acknowledged. Where calls are made to fail it is given
    /// again, and one that is refused in the end was taken the first time.
    fn order(&self, args: &[&str], told: Option<Value>) -> Result<()> {
        let given = self.again(|| self.outlast.ask(args));
        match told {
            Some(told) if given.is_ok() => self.tell(&told),
            _ if self.is_faulty => Ok(()),
            _ => given.map(drop),
        }
    }

    fn again<T>(&self, mut act: impl FnMut() -> Result<T>) -> Result<T> {
        let tries = if self.is_faulty { TRIES } else { 1 };
        let mut tried = act();
        for _ in 1..tries {
            if tried.is_ok() {
                break;
            }
            interrupt::check()?;
            interrupt::pause(std::time::Duration::from_millis(50));
            tried = act();
        }
        tried
    }

    fn tell(&self, what: &Value) -> Result<()> {
        let mut file = self.told.lock().expect("no client panics");
        file.write_all(format!("{what}\n").as_bytes()).context("writing down what was told")
    }
}
