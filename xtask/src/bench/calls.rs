//! Calls under keys: what the journal of a call costs, one after another, at once, and when the result is there; and the
//! MCP server that agents make them through.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use outlast_wire::api::TOKEN_HEADER;
use serde_json::{Value, json};

use super::context::Context;
use super::floor;
use super::row::{Row, Target, median, ms, shown};
use crate::private::Private;
use crate::process::{self, Memory};

/// So many processes make calls at once, in so many runs.
const AT_ONCE: usize = 512;
const RUNS: usize = 64;

pub(super) fn measure(context: &Context) -> Result<Vec<Row>> {
    let outlast = context.outlast()?;
    outlast.start_daemon()?;
    let runs = (0..RUNS).map(|_| Inside::start(&outlast)).collect::<Result<Vec<_>>>()?;
    let (rounds, calls, each) = if context.is_quick { (3, 200, 4) } else { (5, 600, 8) };
    let mut rates = Vec::new();
    for round in 0..rounds {
        let place = context.scratch.join(format!("calls{round}"));
        std::fs::create_dir(&place)?;
        // Each is measured in the same minute on the same disk, because the disk changes its mind.
        let disk = floor::sync_rate(&place, 2 * calls)? / 2.0;
        let one = one_rate(&runs[round], round, calls)?;
        rates.push((disk, one, many_rate(&runs, round, each)?));
    }
    let middle = |of: fn(&(f64, f64, f64)) -> f64| median(rates.iter().map(of).collect());
    let (disk, one, many) = (middle(|it| it.0), middle(|it| it.1), middle(|it| it.2));
    let alone = format!("{one:.0}/s one after another, two write+fdatasync {disk:.0}/s");
    let together = format!("{many:.0}/s by {AT_ONCE} at once in {RUNS} runs, {one:.0}/s alone");
    let mut rows = vec![
        Row::ratio("call-one", middle(|it| it.1 / it.0), Target::AtLeast(0.8), alone),
        Row::ratio("call-many", middle(|it| it.2 / it.1), Target::AtLeast(6.0), together),
        memoised(context, &runs[0])?,
    ];
    rows.extend(server(context, &outlast, &runs[0])?);
    rows.push(in_a_loop(context, &outlast)?);
    outlast.ask(&["stop", "--now", "--all"])?;
    Ok(rows)
}

/// A run that goes on, and what a process inside of it has.
struct Inside {
    env: BTreeMap<String, String>,
    socket: std::path::PathBuf,
}

impl Inside {
    fn start(outlast: &Private) -> Result<Self> {
        let id = outlast.start_run(&["sleep", "3600"])?;
        // The process has its environment once it is the command.
        let env = crate::interrupt::wait_for("a token", Duration::from_secs(20), || {
            let Some(pid) = outlast.show(&id)?["pid"].as_u64() else { return Ok(None) };
            Ok(Some(environment(pid)?).filter(|env| env.contains_key("OUTLAST_TOKEN")))
        })?;
        Ok(Self { env, socket: outlast.home().join("run/daemon.sock") })
    }

    fn connect(&self) -> Result<Connection> {
        let stream = UnixStream::connect(&self.socket).context("the daemon's socket")?;
        let reader = BufReader::new(stream.try_clone()?);
        let (run, token) = (self.env["OUTLAST_RUN_ID"].clone(), self.env["OUTLAST_TOKEN"].clone());
        Ok(Connection { stream, reader, run, token })
    }
}

fn environment(pid: u64) -> Result<BTreeMap<String, String>> {
    let read = std::fs::read(format!("/proc/{pid}/environ")).context("its environment")?;
    let pairs = read.split(|byte| *byte == 0).filter_map(|pair| {
        let (name, value) = std::str::from_utf8(pair).ok()?.split_once('=')?;
        Some((name.to_owned(), value.to_owned()))
    });
    Ok(pairs.collect())
}

struct Connection {
    stream: UnixStream,
    reader: BufReader<UnixStream>,
    run: String,
    token: String,
}

impl Connection {
    fn post(&mut self, path: &str, body: &Value) -> Result<Value> {
        let body = body.to_string();
        let head = format!(
            "POST /v1/runs/{}{path} HTTP/1.1\r\nHost: outlast\r\nContent-Type: application/json\r\n\
             {TOKEN_HEADER}: {}\r\nContent-Length: {}\r\n\r\n",
            self.run,
            self.token,
            body.len()
        );
        self.stream.write_all(format!("{head}{body}").as_bytes())?;
        let (mut status, mut length, mut line) = (String::new(), 0, String::new());
        loop {
            line.clear();
            ensure!(self.reader.read_line(&mut line)? > 0, "the daemon has hung up");
            let text = line.trim_end().to_ascii_lowercase();
            if status.is_empty() {
                status.clone_from(&text);
            } else if let Some(value) = text.strip_prefix("content-length:") {
                length = value.trim().parse().context("a length")?;
            } else if text.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body)?;
        let answer: Value = serde_json::from_slice(&body).context("an answer")?;
        ensure!(status.contains(" 20"), "{status}: {answer}");
        Ok(answer)
    }

    /// The intent, nothing, and the result: what the journal takes of a call.
    fn call(&mut self, key: &str) -> Result<()> {
        let begun = self.post("/calls", &begin(key))?;
        let ended = json!({ "key": begun["key"], "call": begun["call"], "exit_code": 0,
            "stdout": "", "stderr": "" });
        self.post("/calls/result", &ended).map(drop)
    }
}

fn begin(key: &str) -> Value {
    json!({ "key": key, "class": "keyed", "digest": "same", "command": "nothing", "ticket": key })
}

fn one_rate(run: &Inside, round: usize, calls: u32) -> Result<f64> {
    let mut connection = run.connect()?;
    connection.call(&format!("first-{round}"))?;
    let begin = Instant::now();
    for call in 0..calls {
        connection.call(&format!("one-{round}-{call}"))?;
    }
    Ok(f64::from(calls) / begin.elapsed().as_secs_f64())
}

fn many_rate(runs: &[Inside], round: usize, each: u32) -> Result<f64> {
    let mut connections: Vec<Connection> =
        (0..AT_ONCE).map(|caller| runs[caller % runs.len()].connect()).collect::<Result<_>>()?;
    let ready = Barrier::new(AT_ONCE + 1);
    let took = thread::scope(|scope| -> Result<Duration> {
        let threads: Vec<_> = connections
            .iter_mut()
            .enumerate()
            .map(|(caller, connection)| {
                let ready = &ready;
                scope.spawn(move || -> Result<()> {
                    ready.wait();
                    (0..each).try_for_each(|call| {
                        connection.call(&format!("many-{round}-{caller}-{call}"))
                    })
                })
            })
            .collect();
        ready.wait();
        let begin = Instant::now();
        for thread in threads {
            thread.join().expect("a caller does not panic")?;
        }
        Ok(begin.elapsed())
    })?;
    let calls = f64::from(each) * f64::from(u32::try_from(AT_ONCE)?);
    Ok(calls / took.as_secs_f64())
}

/// A call whose result is in the journal.
fn memoised(context: &Context, run: &Inside) -> Result<Row> {
    let mut connection = run.connect()?;
    connection.call("stored")?;
    let took = context.median_time(|| {
        let answer = connection.post("/calls", &begin("stored"))?;
        ensure!(answer["result"].is_object(), "there is no result: {answer}");
        Ok(())
    })?;
    let how = format!("{} for a call that has its result", shown(took));
    Ok(Row::figure("call-memoised", ms(took), "ms", Target::AtMost(0.3), how))
}

/// From the start of the MCP server to its answer, and the memory that it has then.
fn server(context: &Context, outlast: &Private, run: &Inside) -> Result<Vec<Row>> {
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "bench", "version": "1" } } });
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    let mut memory = Vec::new();
    let took = context.median_of(context.rounds(), || {
        let begin = Instant::now();
        let mut command = Command::new(outlast.binary());
        command.arg("mcp").env_clear().envs(&run.env);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = command.spawn().context("starting outlast mcp")?;
        let mut input = server.stdin.take().context("its input")?;
        let mut output = BufReader::new(server.stdout.take().context("its output")?);
        let mut line = String::new();
        writeln!(input, "{hello}")?;
        output.read_line(&mut line)?;
        let took = begin.elapsed();
        ensure!(line.contains("serverInfo"), "it says {line}");
        writeln!(input, "{list}")?;
        output.read_line(&mut line)?;
        memory.push(process::memory_mib(server.id(), Memory::Now)?);
        drop(input);
        server.wait()?;
        Ok(took)
    })?;
    let memory = median(memory);
    Ok(vec![
        Row::figure(
            "mcp-initialize",
            ms(took),
            "ms",
            Target::AtMost(100.0),
            "from the start of outlast mcp to its answer".to_owned(),
        ),
        Row::figure(
            "mcp-memory",
            memory,
            "MiB",
            Target::AtMost(6.0),
            "RSS of outlast mcp after tools/list".to_owned(),
        ),
    ])
}

/// A shell loop of calls beside the same loop of the bare command.
fn in_a_loop(context: &Context, outlast: &Private) -> Result<Row> {
    let count: u32 = if context.is_quick { 50 } else { 200 };
    let binary = outlast.binary().display().to_string();
    let time = |line: &str| -> Result<Duration> {
        let script = format!(
            "a=$(date +%s%N); i=0; while [ $i -lt {count} ]; do {line}; i=$((i+1)); done; \
             b=$(date +%s%N); echo $((b-a))"
        );
        let said = outlast.ask(&["run", "--", "sh", "-c", &script])?;
        let nanos: u64 = said.trim().parse().with_context(|| format!("a time: {said}"))?;
        Ok(Duration::from_nanos(nanos) / count)
    };
    let bare = time("/bin/true")?;
    let called = time(&format!("'{binary}' call --key k$i --class read -- /bin/true"))?;
    let over = called.saturating_sub(bare);
    let how = format!(
        "{} a call in a shell loop of {count}, {} for the bare command",
        shown(called),
        shown(bare)
    );
    Ok(Row::figure("call-shell", ms(over), "ms", Target::AtMost(25.0), how))
}
