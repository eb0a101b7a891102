//! What `schedule` and `trigger` and their verbs take.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::Run;
use crate::duration;

/// Start runs by the clock
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast schedule add nightly --cron '0 3 * * *' --tz Europe/Berlin -- make check
  outlast schedule add triage --every 15m -f WORKFLOW.md --max-cost 2
  outlast schedule ls
  outlast schedule next nightly
  outlast ps -a --trigger nightly")]
pub(crate) struct Schedule {
    #[command(subcommand)]
    pub(crate) command: ScheduleCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ScheduleCommand {
    Add(Box<ScheduleAdd>),
    /// List schedules
    #[command(
        after_help = "Examples:\n  outlast schedule ls\n  outlast schedule ls --json | jq '.[].next_at'"
    )]
    Ls(TriggerLs),
    Next(ScheduleNext),
    /// Make a run of it now, once, whatever it waits for
    #[command(after_help = "Examples:\n  outlast schedule run nightly")]
    Run(TriggerNow),
    /// Make no runs until it is resumed
    #[command(after_help = "Examples:\n  outlast schedule pause nightly")]
    Pause(TriggerName),
    /// Go on from now; what a pause passed over is not made up for
    #[command(after_help = "Examples:\n  outlast schedule resume nightly")]
    Resume(TriggerName),
    /// Remove it; the runs that it made go on
    #[command(after_help = "Examples:\n  outlast schedule rm nightly")]
    Rm(TriggerName),
}

/// Start runs of what comes in: webhooks, files in a folder, items of a tracker
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast trigger add issues --webhook --filter /action=opened -f WORKFLOW.md --task '{{ item.issue.title }}'
  outlast trigger add inbox --folder ~/inbox -- sh -c 'convert \"$(jq -r .item.path $OUTLAST_TRIGGER_FILE)\"'
  outlast trigger add tracker --poll 'gh issue list --json id,title' --every 5m -f WORKFLOW.md
  outlast trigger ls")]
pub(crate) struct Trigger {
    #[command(subcommand)]
    pub(crate) command: TriggerCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TriggerCommand {
    Add(Box<TriggerAdd>),
    /// List triggers, schedules among them
    #[command(
        after_help = "Examples:\n  outlast trigger ls\n  outlast trigger ls --json | jq '.[] | select(.trouble)'"
    )]
    Ls(TriggerLs),
    /// Make a run of it now, once, as if something had come
    #[command(
        after_help = "Examples:\n  outlast trigger run issues --item '{\"title\":\"try it\"}'"
    )]
    Run(TriggerNow),
    /// Make no runs until it is resumed; what comes by a webhook is kept
    #[command(after_help = "Examples:\n  outlast trigger pause issues")]
    Pause(TriggerName),
    /// Go on, with what has come meanwhile
    #[command(after_help = "Examples:\n  outlast trigger resume issues")]
    Resume(TriggerName),
    /// Remove it; the runs that it made go on
    #[command(after_help = "Examples:\n  outlast trigger rm issues")]
    Rm(TriggerName),
}

#[derive(Debug, Args)]
#[command(about = "Add a schedule", long_about = None)]
#[command(
    mut_args(without_single),
    after_help = "\
Examples:
  outlast schedule add nightly --cron '0 3 * * *' --tz Europe/Berlin -- make check
  outlast schedule add triage --every 15m --overlap queue -f WORKFLOW.md
  outlast schedule add once --at 2026-12-24T18:00 --task 'say happy holidays' -f WORKFLOW.md

An occurrence makes at most one run, whatever dies and whatever is done to the clock. A time that a
change of clocks leaves out happens right after it; one that comes twice happens once."
)]
pub(crate) struct ScheduleAdd {
    /// What it is called
    #[arg(value_name = "NAME")]
    pub(crate) trigger: String,
    #[command(flatten)]
    pub(crate) when: When,
    /// The time zone; this machine's when absent
    #[arg(long, value_name = "ZONE")]
    pub(crate) tz: Option<String>,
    /// What happens to an occurrence while a run of it is open
    #[arg(long, default_value = "skip")]
    pub(crate) overlap: Overlap,
    /// What happens to occurrences at which no daemon was there
    #[arg(long, default_value = "once")]
    pub(crate) missed: Missed,
    #[command(flatten)]
    pub(crate) run: Run,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct When {
    /// Minute, hour, day, month and weekday; or @hourly, @daily, @weekly, @monthly, @yearly
    #[arg(long, value_name = "EXPR")]
    pub(crate) cron: Option<String>,
    /// Again and again after this long
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_limit)]
    pub(crate) every: Option<Duration>,
    /// Once, at this time
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<String>,
}

#[derive(Debug, Args)]
#[command(about = "Add a trigger", long_about = None)]
#[command(
    mut_args(without_single),
    after_help = "\
Examples:
  outlast trigger add issues --webhook --filter /action=opened -f WORKFLOW.md
  outlast trigger add inbox --folder ~/inbox --overlap queue -- ./import.sh
  outlast trigger add tracker --poll ./open-issues.sh --every 5m -f WORKFLOW.md --task '{{ item.title }}'

What comes is kept before a run is made of it, and makes one run however often it comes. A run finds
it in $OUTLAST_TRIGGER_FILE, and a task or prompt as {{ item }}."
)]
pub(crate) struct TriggerAdd {
    /// What it is called
    #[arg(value_name = "NAME")]
    pub(crate) trigger: String,
    #[command(flatten)]
    pub(crate) source: Source,
    /// Of --webhook: what deliveries are signed with, or env:NAME for where it stands; made when absent
    #[arg(long, value_name = "SECRET", requires = "webhook")]
    pub(crate) secret: Option<String>,
    /// Of --webhook: only deliveries whose JSON body is like this: /action=opened, /a!=b, /title~^fix
    #[arg(long, value_name = "CONDITION", requires = "webhook")]
    pub(crate) filter: Vec<String>,
    /// Of --webhook: the header that names a delivery
    #[arg(long, value_name = "HEADER", requires = "webhook")]
    pub(crate) id_header: Option<String>,
    /// Of --webhook: deliveries with equal bodies are different ones, also where the signature covers the body alone
    #[arg(long, requires = "webhook")]
    pub(crate) equal_bodies: bool,
    /// Of --folder: leave the files where they are
    #[arg(long, requires = "folder")]
    pub(crate) leave: bool,
    /// Of --poll: how often
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_limit, requires = "poll")]
    pub(crate) every: Option<Duration>,
    /// Of --poll: how long it may take
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_limit, requires = "poll")]
    pub(crate) poll_timeout: Option<Duration>,
    /// What happens to what comes while a run of it is open
    #[arg(long, default_value = "parallel")]
    pub(crate) overlap: Overlap,
    #[command(flatten)]
    pub(crate) run: Run,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Source {
    /// What is posted to /hooks/NAME
    #[arg(long)]
    pub(crate) webhook: bool,
    /// Files that are put into this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// What this command prints: JSON objects with an id, as an array or one a line
    #[arg(long, value_name = "COMMAND")]
    pub(crate) poll: Option<String>,
}

/// Print when a schedule comes next
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast schedule next nightly
  outlast schedule next --cron '30 2 * * *' --tz Europe/Berlin -n 10")]
pub(crate) struct ScheduleNext {
    /// A schedule that there is
    #[arg(value_name = "NAME", required_unless_present_any = ["cron", "every", "at"])]
    pub(crate) trigger: Option<String>,
    /// Minute, hour, day, month and weekday; or @hourly and its like
    #[arg(long, value_name = "EXPR", conflicts_with_all = ["trigger", "every", "at"])]
    pub(crate) cron: Option<String>,
    /// Again and again after this long
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_limit, conflicts_with_all = ["trigger", "at"])]
    pub(crate) every: Option<Duration>,
    /// Once, at this time
    #[arg(long, value_name = "TIME", conflicts_with = "trigger")]
    pub(crate) at: Option<String>,
    /// The time zone; this machine's when absent
    #[arg(long, value_name = "ZONE", conflicts_with = "trigger")]
    pub(crate) tz: Option<String>,
    /// How many times
    #[arg(short = 'n', long, value_name = "N", default_value_t = 5)]
    pub(crate) count: u32,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TriggerLs {
    /// Print a JSON array
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TriggerName {
    /// What it is called
    #[arg(value_name = "NAME")]
    pub(crate) trigger: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TriggerNow {
    /// What it is called
    #[arg(value_name = "NAME")]
    pub(crate) trigger: String,
    /// What the run is told has come
    #[arg(long, value_name = "JSON")]
    pub(crate) item: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Overlap {
    /// No run is made of it
    Skip,
    /// It waits until that run has ended
    Queue,
    /// It is made beside it
    Parallel,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Missed {
    /// They are passed over
    Skip,
    /// One run is made for all of them
    Once,
    /// All are made up for, up to 100
    All,
}

/// What belongs to a single run is not offered where many are made; the daemon refuses it.
fn without_single(arg: clap::Arg) -> clap::Arg {
    match arg.get_id().as_str() {
        "detach" | "name" | "key" | "tty" | "parent" => arg.hide(true),
        "json" => arg.help("Print JSON"),
        _ => arg,
    }
}

impl ScheduleCommand {
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Add(add) => add.run.json,
            Self::Ls(ls) => ls.json,
            Self::Next(next) => next.json,
            Self::Run(now) => now.json,
            Self::Pause(of) | Self::Resume(of) | Self::Rm(of) => of.json,
        }
    }
}

impl TriggerCommand {
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Add(add) => add.run.json,
            Self::Ls(ls) => ls.json,
            Self::Run(now) => now.json,
            Self::Pause(of) | Self::Resume(of) | Self::Rm(of) => of.json,
        }
    }
}
