//! `outlast doctor --bundle`: what a person who helps needs, in one file, and nothing that is private.
//!
//! Everything in it is chosen: words of our own, numbers and times. Text that a person or a program has written (tasks,
//! arguments, output, labels, settings) is never looked through for secrets, because it is not taken at all.
//! Nothing is sent anywhere.

mod events;
mod log;
mod scrub;
mod system;

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use outlast_client::connection::Connection;
use outlast_client::dial::try_connect;
use outlast_client::problem::Problem;
use outlast_home::layout::Layout;
use outlast_wire::api::{DoctorReport, Finding};
use outlast_wire::version::{API, BUILD, SHIM};
use serde_json::{Map, Value, json};
use tar::{Builder, Header};

use self::scrub::Scrub;
use super::ask;
use crate::output::figures;
use crate::world::World;

/// The newest runs, whose events are told.
const MOST_RUNS: usize = 100;
/// So many runs are listed.
const MOST_ROWS: usize = 5000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    LeftOut,
    Kept,
}

pub(super) fn refuse_existing(path: &Path) -> Result<(), Problem> {
    match path.symlink_metadata() {
        Ok(_) => Err(Problem::refusal("exists", format_args!("{} exists already", path.display()))
            .hint("name another file; this one was left as it is")),
        Err(_) => Ok(()),
    }
}

/// Writes the bundle and says what is in it.
pub(super) async fn write(
    world: &World,
    path: &Path,
    report: &DoctorReport,
    names: Names,
) -> Result<String, Problem> {
    let layout = world.client.layout()?;
    let scrub = Scrub::new(world);
    let mut files = vec![
        json_file("doctor.json", &doctor(report, &scrub)),
        json_file("system.json", &system::facts(layout)),
        json_file("config.json", &config(layout)),
        ("daemon.log".to_owned(), log::tail(&layout.daemon_log(), &scrub)),
    ];
    // One that is not there, or does not answer, is told of by the findings.
    let (version, runs) = match try_connect(layout).await {
        Ok(Some(mut connection)) => from_daemon(&mut connection, names).await,
        Ok(None) | Err(_) => (json!({ "daemon": null }), Vec::new()),
    };
    files.push(json_file("version.json", &versions(version)));
    files.extend(runs);
    files.insert(0, ("README.txt".to_owned(), readme(names).into_bytes()));
    pack(path, &files, world).map_err(|error| {
        Problem::failure(format_args!("cannot write {}: {error}", path.display()))
    })?;
    Ok(told(path, files.len()))
}

fn told(path: &Path, files: usize) -> String {
    let size = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    format!(
        "wrote {} ({}, {files} files, readable by you alone)\n\
         it has findings, versions, facts about this system, the config's keys and numbers, the daemon's log without \
         quoted text, and what happened to runs without any text\n\
         nothing was sent anywhere; look into it before you share it: tar -xzOf {} | less",
        path.display(),
        figures::bytes(size),
        path.display()
    )
}

fn readme(names: Names) -> String {
    let names = match names {
        Names::LeftOut => "Names of runs are left out.",
        Names::Kept => "Names of runs are in it, as was asked for.",
    };
    format!(
        "A report of `outlast doctor --bundle`, version {BUILD}. Nothing was sent anywhere.\n\n\
         doctor.json    what was found\n\
         system.json    kernel, file system, free space, service manager\n\
         config.json    the keys and numbers of config.toml, without texts and names\n\
         daemon.log     the end of the daemon's log, without quoted text, paths and addresses\n\
         version.json   versions of this program and of the daemon\n\
         runs.jsonl     states, times and figures of runs, without tasks, commands and labels\n\
         events/        what happened to the newest runs: kinds, times and numbers\n\n{names}\n\
         Tasks, prompts, arguments, output, messages, labels, environments and secrets are not in it.\n"
    )
}

fn json_file(name: &str, value: &Value) -> (String, Vec<u8>) {
    (name.to_owned(), format!("{value:#}\n").into_bytes())
}

fn versions(daemon: Value) -> Value {
    json!({ "version": BUILD, "api": API, "shim": SHIM, "daemon": daemon["daemon"] })
}

fn doctor(report: &DoctorReport, scrub: &Scrub) -> Value {
    let told = |finding: &Finding| {
        json!({
            "level": finding.level,
            "subject": finding.subject,
            "message": message(finding, scrub),
        })
    };
    let findings: Vec<Value> = report.findings.iter().map(told).collect();
    json!({ "healthy": report.healthy, "findings": findings })
}

fn message(finding: &Finding, scrub: &Scrub) -> String {
    match finding.subject.as_str() {
        // Quotes what a person wrote.
        "config" => place(&finding.message),
        "run" => scrub.text(without_detail(&finding.message)),
        _ => scrub.text(&finding.message),
    }
}

/// Which run, and by which code; how its trouble was put may be the words of a loop file, or of git.
fn without_detail(message: &str) -> &str {
    let ends = |(at, _): &(usize, &str)| {
        let told = &message[..*at];
        told.contains(" since ") || told.ends_with(" is in quarantine")
    };
    let detail = message.match_indices(": ").find(ends);
    detail.map_or(message, |(at, _)| &message[..at])
}

/// The line that is meant, without a word of it.
fn place(message: &str) -> String {
    let line = message.split(':').find_map(|part| part.parse::<usize>().ok());
    line.map_or_else(|| "[left out]".to_owned(), |line| format!("line {line}: [left out]"))
}

/// Its keys and numbers; of one that is no TOML only that.
fn config(layout: &Layout) -> Value {
    match std::fs::read_to_string(layout.config_file()) {
        Ok(text) => match outlast_workflow::config_outline(&text) {
            Some(outline) => json!({ "config": outline }),
            None => json!({ "unreadable": "it is no TOML", "bytes": text.len() }),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => json!({ "config": null }),
        Err(error) => json!({ "unreadable": error.kind().to_string() }),
    }
}

/// What only the daemon knows: itself, the runs, and what happened to the newest of them.
async fn from_daemon(connection: &mut Connection, names: Names) -> (Value, Vec<(String, Vec<u8>)>) {
    let status: Value = ask(connection, "/v1/daemon").await.unwrap_or(Value::Null);
    let known = ["pid", "version", "epoch", "started_at", "runs"];
    let daemon = json!({ "daemon": picked(&status, &known) });
    let list = format!("/v1/runs?all=true&most={MOST_ROWS}");
    let rows: Vec<Value> = ask(connection, &list).await.unwrap_or_default();
    let lines: String = rows.iter().map(|row| format!("{}\n", run(row, names))).collect();
    let mut files = vec![("runs.jsonl".to_owned(), lines.into_bytes())];
    for id in rows.iter().filter_map(|row| row["id"].as_str()).take(MOST_RUNS) {
        let path = format!("/v1/runs/{id}/events?after=0");
        let Ok(events) = ask::<Vec<Value>>(connection, &path).await else { continue };
        files.push((format!("events/{id}.jsonl"), events::lines(&events)));
    }
    (daemon, files)
}

/// A run without a word of its owner's.
fn run(row: &Value, names: Names) -> Value {
    const FIGURES: [&str; 14] = [
        "id",
        "state",
        "reason_code",
        "health",
        "turn",
        "attempt",
        "created_at",
        "started_at",
        "ended_at",
        "exit",
        "survivors",
        "max_turns",
        "cost_usd",
        "tokens",
    ];
    let mut kept = picked(row, &FIGURES);
    kept["trouble"] = picked(&row["trouble"], &["code", "since"]);
    if names == Names::Kept {
        kept["name"] = row["name"].clone();
    }
    kept
}

fn picked(value: &Value, keys: &[&str]) -> Value {
    let Some(fields) = value.as_object() else { return Value::Null };
    let kept = keys.iter().filter_map(|key| Some(((*key).to_owned(), fields.get(*key)?.clone())));
    Value::Object(kept.collect::<Map<_, _>>())
}

/// A new file, readable by its owner alone; half of one is removed again.
fn pack(path: &Path, files: &[(String, Vec<u8>)], world: &World) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let packed = put_all(file, files, u64::try_from(world.now().as_second()).unwrap_or(0));
    if packed.is_err() {
        // What went wrong with the writing is what is told.
        drop(std::fs::remove_file(path));
    }
    packed
}

fn put_all(file: File, files: &[(String, Vec<u8>)], at: u64) -> io::Result<()> {
    let mut archive = Builder::new(GzEncoder::new(file, Compression::default()));
    for (name, content) in files {
        let mut header = Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(at);
        archive.append_data(&mut header, format!("outlast-report/{name}"), &content[..])?;
    }
    archive.into_inner()?.finish()?.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_run_in_trouble_the_code_is_told_and_not_the_words() {
        let cases = [
            (
                "k3m: unreadable since 2026-11-16T00:00:00.000Z: S: S",
                "k3m: unreadable since 2026-11-16T00:00:00.000Z",
            ),
            ("k3m is in quarantine: S", "k3m is in quarantine"),
            ("k3m: event 5: the turn has not started", "k3m: event 5: the turn has not started"),
        ];
        for (message, told) in cases {
            assert_eq!(without_detail(message), told);
        }
    }
}
