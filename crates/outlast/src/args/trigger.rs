//! What `schedule` and `trigger` and their verbs take.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::Run;
use crate::duration;

/// Start runs at set times
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # every night at 3
  outlast schedule add nightly --cron '0 3 * * *' -- make check
  # every 15 minutes
  outlast schedule add triage --every 15m -f WORKFLOW.md --max-cost 2
  # at 4 from now on: a schedule is changed by adding it again
  outlast schedule add nightly --replace --cron '0 4 * * *' -- make check
  outlast schedule ls
  # the next times
  outlast schedule next nightly
  # the runs that it started
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
    /// Show one schedule: when it runs, its last run, what went wrong
    #[command(after_help = "Examples:\n  outlast schedule show nightly")]
    Show(TriggerName),
    Next(ScheduleNext),
    /// Start its run now, once
    #[command(after_help = "Examples:\n  outlast schedule run nightly")]
    Run(TriggerNow),
    /// Start no runs until it is resumed
    #[command(after_help = "Examples:\n  outlast schedule pause nightly")]
    Pause(TriggerNames),
    /// Resume a paused schedule; times that passed meanwhile are skipped
    #[command(after_help = "Examples:\n  outlast schedule resume nightly")]
    Resume(TriggerNames),
    /// Remove schedules; the runs that they started keep running
    #[command(after_help = "Examples:\n  outlast schedule rm nightly weekly")]
    Rm(TriggerNames),
}

/// Start runs from webhooks, files in a folder or a polled command
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # one run per issue that is opened; the hook's body is {{ item }}
  outlast trigger add issues --webhook --filter /action=opened \\
    -f WORKFLOW.md --task '{{ item.issue.title }}'
  # one run per new file in a folder
  outlast trigger add inbox --folder ~/inbox -- ./import.sh
  # one run per new item that a command prints
  outlast trigger add tracker --every 5m -f WORKFLOW.md \\
    --poll 'gh issue list --json id,title'
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
    /// Show one trigger: its address, its last run, what went wrong
    #[command(after_help = "Examples:\n  outlast trigger show issues")]
    Show(TriggerName),
    /// Start a run now, with an item of your own
    #[command(after_help = "\
Examples:
  outlast trigger run issues --item '{\"title\":\"try it\"}'
  outlast trigger run issues --item @delivery.json")]
    Run(TriggerNow),
    /// Start no runs until it is resumed; webhook deliveries are kept
    #[command(after_help = "Examples:\n  outlast trigger pause issues")]
    Pause(TriggerNames),
    /// Resume a paused trigger, and run what has come meanwhile
    #[command(after_help = "Examples:\n  outlast trigger resume issues")]
    Resume(TriggerNames),
    /// Remove triggers; the runs that they started keep running
    #[command(after_help = "Examples:\n  outlast trigger rm issues inbox")]
    Rm(TriggerNames),
}

#[derive(Debug, Args)]
#[command(about = "Add a schedule", long_about = None)]
#[command(
    mut_args(without_single),
    override_usage = "\
outlast schedule add [OPTIONS] NAME <--cron|--every|--at> -- COMMAND...
       outlast schedule add [OPTIONS] NAME <--cron|--every|--at> -f WORKFLOW.md",
    after_help = "\
Examples:
  # every night at 3 in Berlin
  outlast schedule add nightly --cron '0 3 * * *' --tz Europe/Berlin \\
    -- make check
  # every 15 minutes; wait while the run before is not over
  outlast schedule add triage --every 15m --overlap queue -f WORKFLOW.md
  # once
  outlast schedule add once --at 2026-12-24T18:00 -- echo happy holidays
  outlast schedule add tonight --at 23:59 -- make check
  # change one
  outlast schedule add nightly --replace --cron '0 4 * * *' -- make check

Each time starts at most one run, also when the daemon or the machine
crashes or the clock is changed. A time that is skipped when clocks go
forward counts right after the gap; one that comes twice counts once.

The runs are called NAME-1, NAME-2, …; NAME means the newest of them."
)]
pub(crate) struct ScheduleAdd {
    /// A name for the schedule
    #[arg(value_name = "NAME")]
    pub(crate) trigger: String,
    #[command(flatten)]
    pub(crate) when: When,
    /// Replace the schedule of this name, if there is one
    #[arg(long)]
    pub(crate) replace: bool,
    /// The time zone; default: the machine's
    #[arg(long, value_name = "ZONE")]
    pub(crate) tz: Option<String>,
    /// If the last run has not ended at the next time: skip that time, queue a run, or start one in parallel
    #[arg(long, default_value = "skip")]
    pub(crate) overlap: Overlap,
    /// Times that passed while no daemon ran: skip them, run once for all, or run for each of up to 100
    #[arg(long, default_value = "once")]
    pub(crate) missed: Missed,
    #[command(flatten)]
    pub(crate) run: Run,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct When {
    /// Minute, hour, day, month, weekday; or @hourly, @daily, @weekly, …
    #[arg(long, value_name = "EXPR")]
    pub(crate) cron: Option<String>,
    /// At this interval
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_limit)]
    pub(crate) every: Option<Duration>,
    /// Once: 23:59 (today or tomorrow), 2026-12-24T18:00 or 2026-12-24T18:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<String>,
}

#[derive(Debug, Args)]
#[command(about = "Add a trigger", long_about = None)]
#[command(
    mut_args(without_single),
    override_usage = "\
outlast trigger add [OPTIONS] NAME <--webhook|--folder|--poll> -- COMMAND
       outlast trigger add [OPTIONS] NAME <--webhook|--folder|--poll> -f FILE",
    after_help = "\
Examples:
  outlast trigger add issues --webhook --filter /action=opened \\
    -f WORKFLOW.md
  outlast trigger add inbox --folder ~/inbox --overlap queue -- ./import.sh
  outlast trigger add tracker --poll ./open-issues.sh --every 5m \\
    -f WORKFLOW.md --task '{{ item.title }}'

Each delivery, file or item is stored first and starts exactly one run, even
if it comes twice. The run finds it in the file $OUTLAST_TRIGGER_FILE; a
task or prompt has it as {{ item }}.

The runs are called NAME-1, NAME-2, …; NAME means the newest of them."
)]
pub(crate) struct TriggerAdd {
    /// A name for the trigger
    #[arg(value_name = "NAME")]
    pub(crate) trigger: String,
    #[command(flatten)]
    pub(crate) source: Source,
    /// Replace the trigger of this name, if there is one; a webhook keeps its secret
    #[arg(long)]
    pub(crate) replace: bool,
    /// With --webhook: the signing secret, or env:NAME; default: a new one
    #[arg(long, value_name = "SECRET", requires = "webhook")]
    pub(crate) secret: Option<String>,
    /// With --webhook: only deliveries whose JSON body matches: /action=opened, /a!=b, /title~^fix
    #[arg(long, value_name = "CONDITION", requires = "webhook")]
    pub(crate) filter: Vec<String>,
    /// With --webhook: the header that holds a delivery's id
    #[arg(long, value_name = "HEADER", requires = "webhook")]
    pub(crate) id_header: Option<String>,
    /// With --webhook: accept equal bodies as different deliveries, even if only the body is signed
    #[arg(long, requires = "webhook")]
    pub(crate) equal_bodies: bool,
    /// With --folder: leave the files where they are
    #[arg(long, requires = "folder")]
    pub(crate) leave: bool,
    /// With --poll: how often
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_limit, requires = "poll")]
    pub(crate) every: Option<Duration>,
    /// With --poll: how long the command may take
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_limit, requires = "poll")]
    pub(crate) poll_timeout: Option<Duration>,
    /// If an item comes before the last run has ended: skip it, queue it, or start a run in parallel
    #[arg(long, default_value = "parallel")]
    pub(crate) overlap: Overlap,
    #[command(flatten)]
    pub(crate) run: Run,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Source {
    /// Requests that are posted to /hooks/NAME
    #[arg(long)]
    pub(crate) webhook: bool,
    /// New files in this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Items that this command prints: JSON objects with an id, as an array or one per line
    #[arg(long, value_name = "COMMAND")]
    pub(crate) poll: Option<String>,
}

/// Print the next times of a schedule
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast schedule next nightly
  # of one that does not exist yet
  outlast schedule next --cron '30 2 * * *' --tz Europe/Berlin -n 10")]
pub(crate) struct ScheduleNext {
    /// The name of the schedule
    #[arg(value_name = "NAME", required_unless_present_any = ["cron", "every", "at"])]
    pub(crate) trigger: Option<String>,
    /// Minute, hour, day, month, weekday; or @hourly, @daily, @weekly, …
    #[arg(long, value_name = "EXPR", conflicts_with_all = ["trigger", "every", "at"])]
    pub(crate) cron: Option<String>,
    /// At this interval
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_limit, conflicts_with_all = ["trigger", "at"])]
    pub(crate) every: Option<Duration>,
    /// Once, at this time
    #[arg(long, value_name = "TIME", conflicts_with = "trigger")]
    pub(crate) at: Option<String>,
    /// The time zone; default: the machine's
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
    /// The name of the schedule or trigger
    #[arg(value_name = "NAME")]
    pub(crate) trigger: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TriggerNames {
    /// The names of schedules or triggers
    #[arg(value_name = "NAME", required = true)]
    pub(crate) triggers: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TriggerNow {
    /// The name of the schedule or trigger
    #[arg(value_name = "NAME")]
    pub(crate) trigger: String,
    /// The item that the run gets: JSON, @FILE, or @- for standard input
    #[arg(long, value_name = "JSON|@FILE")]
    pub(crate) item: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Overlap {
    /// Start no run
    Skip,
    /// Start a run when that one has ended
    Queue,
    /// Start a run at once
    Parallel,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Missed {
    /// Start no run
    Skip,
    /// Start one run for all of them
    Once,
    /// Start a run for each, up to 100
    All,
}

/// Options that belong to a single run.
const OF_ONE: [&str; 7] = ["detach", "name", "key", "tty", "parent", "tries", "lost"];

/// What belongs to a single run is not offered where many are made; the daemon refuses it.
fn without_single(arg: clap::Arg) -> clap::Arg {
    match arg.get_id().as_str() {
        id if OF_ONE.contains(&id) => arg.hide(true),
        "json" => arg.help("Print JSON"),
        // The name comes first here, so the command needs its --: a forgotten name must not be its first word.
        "command" => arg.trailing_var_arg(false).last(true),
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
            Self::Show(of) => of.json,
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
            Self::Show(of) => of.json,
            Self::Pause(of) | Self::Resume(of) | Self::Rm(of) => of.json,
        }
    }
}
