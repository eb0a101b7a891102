//! What the verbs take that show what is on record: `ps`, `show`, `tree`, `logs`, `events`.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use outlast_wire::words::StateName;

use super::parse_label;
use crate::duration::{self, Since};

/// List runs: those that need a person first, then live ones
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # runs that have not ended
  outlast ps
  # all runs, also those that have ended
  outlast ps -a
  # runs that failed
  outlast ps --state failed
  # runs with a label
  outlast ps --label repo=web
  # the newest first
  outlast ps -a --sort newest
  # runs that a schedule or another trigger started
  outlast ps -a --trigger nightly
  # what runs, and what ended in the last 12 hours
  outlast ps --since 12h
  # the 5 newest, ended or not; ids only, for a script
  outlast ps -q -n 5
  # columns of your choice, or a template
  outlast ps --format id,state,command
  outlast ps -a --format '{{.id}}\\t{{.ended_at}}'
  # as JSON, for a script
  outlast ps -a --json | jq '.[].id'")]
pub(crate) struct Ps {
    /// Also list runs that have ended
    #[arg(short, long)]
    pub(crate) all: bool,
    /// Only runs in this state
    #[arg(long, value_name = "STATE", value_parser = state())]
    pub(crate) state: Option<StateName>,
    /// Only runs with this label; may be given more than once
    #[arg(long, value_name = "K=V", value_parser = parse_label)]
    pub(crate) label: Vec<(String, String)>,
    /// The order: runs that need a person first, or the newest first (the default with --json)
    #[arg(long, value_name = "ORDER")]
    pub(crate) sort: Option<Sort>,
    /// Only runs that this trigger or schedule started
    #[arg(long, value_name = "NAME")]
    pub(crate) trigger: Option<String>,
    /// Also list runs that ended since a time (22:00, yesterday, 2026-11-15), or in the last while (12h)
    #[arg(long, value_name = "TIME", value_parser = duration::parse_since)]
    pub(crate) since: Option<Since>,
    /// Only the N newest runs, also ended ones
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) last: Option<u64>,
    /// Print only ids, one per line
    #[arg(short, long, conflicts_with_all = ["json", "format"])]
    pub(crate) quiet: bool,
    /// Print these columns (id,name,state), or a template per run ({{.id}} {{.name}}); json is --json
    #[arg(long, value_name = "FORMAT", conflicts_with = "json")]
    pub(crate) format: Option<String>,
    /// Print a JSON array
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sort {
    /// Runs that need a person, then running, waiting, queued and ended ones
    NeedsMe,
    /// The newest first
    Newest,
}

/// Show everything about a run, or about one of its turns
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast show nightly
  outlast show nightly --json | jq .exit
  # prompt, response, checks and tools of the second turn
  outlast show nightly --turn 2
  # what it may use, and has used
  outlast show nightly --limits
  # the newest run
  outlast show @last")]
pub(crate) struct Show {
    #[arg(help = super::RUN_OR_ONLY, default_value = super::ONLY, hide_default_value = true)]
    pub(crate) run: String,
    /// Show one turn: its attempts, prompts, responses, checks, hooks and tools
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) turn: Option<u32>,
    /// Show every limit with what is used of it, and every time
    #[arg(long, conflicts_with_all = ["turn", "json"])]
    pub(crate) limits: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show a run and its children as a tree
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast tree nightly
  outlast tree nightly --json | jq '.children[].state'
  # start a child of a run
  outlast run -d --parent nightly -- make check")]
pub(crate) struct Tree {
    #[arg(help = super::RUN_OR_ONLY, default_value = super::ONLY, hide_default_value = true)]
    pub(crate) run: String,
    /// Print JSON: a row as in ps --json, with its children
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show what turns changed in the workspace
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # all that a run has done
  outlast diff nightly
  # what turn 3 changed, as a list of files
  outlast diff nightly 3 --stat
  # from the end of turn 1 to the end of turn 4, below one directory
  outlast diff nightly 1..4 -- src
  # what happened in the workspace since the last turn
  outlast diff nightly now")]
pub(crate) struct Diff {
    #[arg(help = super::RUN)]
    pub(crate) run: String,
    /// What turn N changed, or from the end of turn A to that of turn B: N, A..B, A..now; 0 is before the first turn
    #[arg(value_name = "N | A..B")]
    pub(crate) turns: Option<String>,
    /// List the files with their lines
    #[arg(long, conflicts_with_all = ["name_only"])]
    pub(crate) stat: bool,
    /// List the names of the files
    #[arg(long)]
    pub(crate) name_only: bool,
    /// Print JSON: the files with their lines, and the diff unless --stat or --name-only is given
    #[arg(long)]
    pub(crate) json: bool,
    /// Paths below the workspace
    #[arg(last = true, value_name = "PATH")]
    pub(crate) paths: Vec<String>,
}

/// Print the output of a run
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # all of it
  outlast logs nightly
  # the last 20 lines, then new ones as they come
  outlast logs -f -n 20 nightly
  # the newest run
  outlast logs @last
  # the last 10 minutes
  outlast logs nightly --since 10m
  # only standard error, into a file
  outlast logs nightly --stream stderr 2>err
  # one attempt
  outlast logs nightly --attempt 2
  # the messages between Outlast and an agent in turn 3
  outlast logs nightly --turn 3 --raw")]
pub(crate) struct Logs {
    #[arg(help = super::RUN_OR_ONLY, default_value = super::ONLY, hide_default_value = true)]
    pub(crate) run: String,
    /// Keep printing new output until the run ends
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Only this turn
    #[arg(long, value_name = "N")]
    pub(crate) turn: Option<u32>,
    /// Only this attempt
    #[arg(long, value_name = "N")]
    pub(crate) attempt: Option<u32>,
    /// Only this stream
    #[arg(long)]
    pub(crate) stream: Option<Stream>,
    /// Only output since a time (22:00, yesterday, 2026-11-15), or of the last while (10m)
    #[arg(long, value_name = "TIME", value_parser = duration::parse_since)]
    pub(crate) since: Option<Since>,
    /// Only the last lines
    #[arg(short = 'n', long, value_name = "LINES")]
    pub(crate) tail: Option<u64>,
    /// The messages between Outlast and an agent, unchanged (transcript.jsonl)
    #[arg(long, conflicts_with_all = ["stream", "since", "timestamps"])]
    pub(crate) raw: bool,
    /// Begin each line with its time
    #[arg(long)]
    pub(crate) timestamps: bool,
}

/// Print what happened to a run, or to all runs
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast events nightly
  # the events of all runs as they happen
  outlast events -f
  # follow changes of state, as JSON
  outlast events -f --json nightly | jq -c 'select(.kind == \"StateChanged\")'
  # only events after number 12
  outlast events nightly --after 12")]
pub(crate) struct Events {
    /// The run, by its name or id, or @last; all runs when absent
    pub(crate) run: Option<String>,
    /// The events of all runs, in the order of writing
    #[arg(long, conflicts_with = "run")]
    pub(crate) all: bool,
    /// Follow a run until it ends, or all runs until ctrl-c
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Only events after this number: `seq` for one run, `cursor` for all runs
    #[arg(long, value_name = "NUMBER")]
    pub(crate) after: Option<u64>,
    /// Only the last N events; 100 when all runs are meant
    #[arg(short = 'n', long, value_name = "N", conflicts_with = "after")]
    pub(crate) tail: Option<u64>,
    /// Print every event with its number, kind and fields
    #[arg(short, long, conflicts_with = "json")]
    pub(crate) verbose: bool,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

fn state() -> impl TypedValueParser<Value = StateName> {
    let words = PossibleValuesParser::new(StateName::WORDS);
    words.map(|word| StateName::of(&word).expect("the parser lets only these words pass"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}
