//! An agent's turn without Outlast: one process, and a client that says what the driver said, as soon as it can.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// What the driver said in one turn, and to which program.
pub(super) struct AgentAlone {
    argv: Vec<String>,
    env: Vec<(String, String)>,
    dir: PathBuf,
    said: Vec<String>,
    /// The conversation that the driver's turn was in: this one has another.
    conversation: Option<String>,
}

impl AgentAlone {
    /// `attempt` is the directory of the attempt that the driver left.
    pub(super) fn like(
        attempt: &Path,
        argv: Vec<String>,
        env: Vec<(String, String)>,
        dir: &Path,
    ) -> Result<Self> {
        let text = std::fs::read_to_string(attempt.join("transcript.jsonl"))?;
        let lines = text.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
        let of = |dir: &str| -> Vec<String> {
            let of = lines.iter().filter(|it| it["dir"] == dir);
            of.filter_map(|it| it["line"].as_str().map(str::to_owned)).collect()
        };
        let conversation = of("<").iter().find_map(|line| thread_of(line));
        Ok(Self { argv, env, dir: dir.to_owned(), said: of(">"), conversation })
    }

    /// From its start to its end.
    pub(super) fn turn(&self) -> Result<Duration> {
        let begin = Instant::now();
        let mut command = Command::new(&self.argv[0]);
        command.args(&self.argv[1..]).current_dir(&self.dir);
        command.env_clear().envs(self.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut agent = command.spawn().with_context(|| format!("starting {}", self.argv[0]))?;
        let mut input = agent.stdin.take().context("it has an input")?;
        let mut lines = BufReader::new(agent.stdout.take().context("it has an output")?).lines();
        let mut own: Option<String> = None;
        for said in &self.said {
            let said = match (&self.conversation, &own) {
                (Some(theirs), Some(own)) => said.replace(theirs.as_str(), own),
                _ => said.clone(),
            };
            writeln!(input, "{said}")?;
            let id = serde_json::from_str::<Value>(&said)?["id"].clone();
            // The next line may need what this one is answered with.
            while !id.is_null() {
                let line = lines.next().context("it ended before its turn")??;
                own = own.or_else(|| thread_of(&line));
                if serde_json::from_str::<Value>(&line)?["id"] == id {
                    break;
                }
            }
        }
        loop {
            let line = lines.next().context("it ended before its turn")??;
            let line: Value = serde_json::from_str(&line)?;
            if line["method"] == "turn/completed" || line["type"] == "result" {
                break;
            }
        }
        drop(input);
        // What it still says is read, so that it need not wait.
        lines.try_for_each(|line| line.map(drop))?;
        let status = agent.wait()?;
        ensure!(status.success(), "{} ended with {status}", self.argv[0]);
        Ok(begin.elapsed())
    }
}

/// Codex names its conversation in the answer that opens it.
fn thread_of(line: &str) -> Option<String> {
    let line: Value = serde_json::from_str(line).ok()?;
    line["result"]["thread"]["id"].as_str().map(str::to_owned)
}
