//! A snapshot and a restore, each held against `git status` of the same repository, and what a turn's snapshot adds to it.
//!
//! Measures the step itself, `outlast __snapshot`, as a run makes it: durable, with its ref. A turn's commit does not wait
//! for it: the engine's journal has the commit before the errand begins.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::context::Context;
use super::row::{Row, Target, median};
use crate::interrupt;

const DIRECTORIES: usize = 1050;
const CHANGED: usize = 10;

pub(super) fn measure(context: &Context) -> Result<Vec<Row>> {
    let (files, rounds) = if context.is_quick { (5_000, 3) } else { (50_000, 11) };
    let base = tempfile::Builder::new()
        .prefix("snapshots-")
        .tempdir_in(&context.scratch)
        .context("a scratch directory")?;
    let mut scene = Scene::new(base.path(), &context.binary, files)?;
    scene.take()?;
    let (mut taking, mut restoring) = (Vec::new(), Vec::new());
    let mut grown = 0;
    let objects = scene.work.join(".git/objects");
    for round in 0..rounds {
        interrupt::check()?;
        let from = scene.last.clone().context("the first snapshot")?;
        scene.change(round)?;
        let status = scene.status()?;
        let before = size(&objects)?;
        taking.push(timed(|| scene.take())? / status);
        grown += size(&objects)?.saturating_sub(before);
        // The files of this round are in a snapshot now, as they are before a run goes back.
        restoring.push(timed(|| scene.restore(&from))? / status);
        scene.take()?;
    }
    let kib = grown as f64 / 1024.0 / f64::from(u32::try_from(rounds)?);
    let when = format!("{files} files, {CHANGED} changed, {rounds} rounds, by git status in turn");
    let (taking, restoring) = (median(taking), median(restoring));
    Ok(vec![
        Row::ratio("snapshot", taking, Target::AtMost(1.6), when.clone()),
        Row::ratio("snapshot-restore", restoring, Target::AtMost(2.5), when.clone()),
        Row::figure(
            "snapshot-growth",
            kib,
            "KiB",
            Target::AtMost(160.0),
            format!("a turn: {when}"),
        ),
    ])
}

struct Scene {
    base: PathBuf,
    work: PathBuf,
    binary: PathBuf,
    last: Option<Value>,
    date: u64,
}

impl Scene {
    fn new(base: &Path, binary: &Path, files: usize) -> Result<Self> {
        let work = base.join("work");
        for at in 0..DIRECTORIES {
            fs::create_dir_all(work.join(format!("d{at}"))).context("making a directory")?;
        }
        for at in 0..files {
            let path = work.join(format!("d{}/f{at}", at % DIRECTORIES));
            fs::write(path, format!("file {at}\n")).context("writing a file")?;
        }
        let scene = Self {
            base: base.to_owned(),
            work,
            binary: binary.to_owned(),
            last: None,
            date: 1_700_000_000,
        };
        scene.git(&["init", "--quiet"])?;
        scene.git(&["add", "-A"])?;
        let who = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"];
        let commit = ["commit", "--quiet", "-m", "all"];
        scene.git(&who.iter().chain(&commit).copied().collect::<Vec<_>>())?;
        Ok(scene)
    }

    fn git(&self, args: &[&str]) -> Result<()> {
        let mut git = Command::new("git");
        git.current_dir(&self.work).env("GIT_CONFIG_GLOBAL", "/dev/null");
        // So many new objects would have git pack them beside the measurement.
        git.args(["-c", "gc.auto=0", "-c", "maintenance.auto=false"]).args(args);
        let output = git.output().context("starting git")?;
        ensure!(output.status.success(), "git {args:?}: {output:?}");
        Ok(())
    }

    fn status(&self) -> Result<f64> {
        timed(|| self.git(&["status", "--porcelain"]))
    }

    fn change(&self, round: usize) -> Result<()> {
        for at in 0..CHANGED {
            let name = match at {
                0 | 1 => format!("d{at}/new{round}"),
                _ => format!("d{0}/f{0}", (round * CHANGED + at) % DIRECTORIES),
            };
            fs::write(self.work.join(name), format!("changed in round {round}\n"))
                .context("changing a file")?;
        }
        Ok(())
    }

    fn take(&mut self) -> Result<()> {
        self.date += 1;
        let made = self.carry_out(&json!("take"))?;
        let taken = made.get("taken").with_context(|| format!("no snapshot: {made}"))?;
        self.last = Some(json!({
            "commit": taken["commit"], "tree": taken["tree"], "head": taken["head"],
        }));
        Ok(())
    }

    fn restore(&self, to: &Value) -> Result<()> {
        let made = self.carry_out(&json!({"restore": {"to": to["commit"], "head": null}}))?;
        let restored = made.get("restored").with_context(|| format!("not restored: {made}"))?;
        let files = restored["written"].as_u64().zip(restored["removed"].as_u64());
        let files = files.map(|(written, removed)| written + removed);
        ensure!(files == Some(CHANGED as u64), "not all files went back: {made}");
        Ok(())
    }

    fn carry_out(&self, todo: &Value) -> Result<Value> {
        let step = self.base.join("step");
        fs::create_dir_all(&step).context("making a step")?;
        let orders = json!({
            "run": "bench", "git_dir": self.base.join("snap.git"), "dir": self.work,
            "store": "repository", "max_file": 50_000_000, "bytes_left": 2_000_000_000_u64,
            "last": self.last, "since": self.last.as_ref().map(|last| last["tree"].clone()),
            "date_s": self.date, "message": "bench", "todo": todo,
        });
        fs::write(step.join("snapshot.json"), orders.to_string()).context("writing orders")?;
        let mut command = Command::new(&self.binary);
        let output = command.arg("__snapshot").arg(&step).output().context("starting it")?;
        let made = fs::read(step.join("made.json"));
        let made = made.with_context(|| format!("it left nothing: {output:?}"))?;
        serde_json::from_slice(&made).context("its record")
    }
}

fn timed(body: impl FnOnce() -> Result<()>) -> Result<f64> {
    let began = Instant::now();
    body()?;
    Ok(began.elapsed().as_secs_f64())
}

/// What the files below a directory take on disk.
fn size(dir: &Path) -> Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let mut sum = 0;
    for entry in fs::read_dir(dir).context("reading a directory")? {
        let entry = entry.context("reading a directory")?;
        let found = entry.metadata().context("looking at a file")?;
        sum += if found.is_dir() { size(&entry.path())? } else { found.blocks() * 512 };
    }
    Ok(sum)
}
