//! What the verbs take that show what is on record: `ps`, `show`, `tree`, `logs`, `events`.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use outlast_wire::words::StateName;

use super::parse_label;
use crate::duration::{self, Since};

/// List runs: those that need a person first, then what goes on; the newest first among equals
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast ps                       runs that have not ended
  outlast ps -a                    all of them
  outlast ps --state failed        those that failed
  outlast ps --label repo=web      those with a label
  outlast ps -a --sort newest      in the order that they were started
  outlast ps -a --trigger nightly  those that a schedule or another trigger made
  outlast ps -a --json | jq '.[].id'")]
pub(crate) struct Ps {
    /// Also show runs that have ended
    #[arg(short, long)]
    pub(crate) all: bool,
    /// Only runs in this state
    #[arg(long, value_name = "STATE", value_parser = state())]
    pub(crate) state: Option<StateName>,
    /// Only runs with this label; may be given more than once
    #[arg(long, value_name = "K=V", value_parser = parse_label)]
    pub(crate) label: Vec<(String, String)>,
    /// What comes first; with --json the newest, unless this says otherwise
    #[arg(long, value_name = "ORDER")]
    pub(crate) sort: Option<Sort>,
    /// Only runs that this trigger made
    #[arg(long, value_name = "NAME")]
    pub(crate) trigger: Option<String>,
    /// Print a JSON array
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sort {
    /// What needs a person, then what runs, waits, is queued, has ended
    NeedsMe,
    Newest,
}

/// Show all that is known about a run
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast show k3m
  outlast show nightly --json | jq .exit
  outlast show k3m --turn 2       what its second turn was asked, did, answered and checked")]
pub(crate) struct Show {
    /// Its id, the first 3 or more characters of it, or its name
    pub(crate) run: String,
    /// Look into one turn: its attempts, their prompts and responses, what a driven agent said and did, checks, hooks
    /// and tools
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) turn: Option<u32>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show a run and those that were made as its children
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast tree k3m
  outlast tree k3m --json | jq '.children[].state'
  outlast run -d --parent k3m -- make check      make a child of it")]
pub(crate) struct Tree {
    /// Its id, the first 3 or more characters of it, or its name
    pub(crate) run: String,
    /// Print JSON: a row as `ps` has it, with its `children`
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print what a run has written, byte for byte
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast logs k3m                          all of it
  outlast logs -f --tail 20 k3m             the last 20 lines and what comes
  outlast logs k3m --since 10m              of the last 10 minutes
  outlast logs k3m --stream stderr 2>err    only standard error
  outlast logs k3m --attempt 2              of the second attempt
  outlast logs k3m --turn 3 --raw           what an agent and Outlast said to each other, as it was")]
pub(crate) struct Logs {
    /// Its id, the first 3 or more characters of it, or its name
    pub(crate) run: String,
    /// Go on with what comes, until the run ends
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
    /// Only what came after a time (RFC 3339), or in the last such while (10m)
    #[arg(long, value_name = "TIME", value_parser = duration::parse_since)]
    pub(crate) since: Option<Since>,
    /// Only the last lines
    #[arg(long, value_name = "LINES")]
    pub(crate) tail: Option<u64>,
    /// Each line from and to an agent that is driven, as it was: `transcript.jsonl`
    #[arg(long, conflicts_with_all = ["stream", "since", "timestamps"])]
    pub(crate) raw: bool,
    /// Begin each line with the time it came at
    #[arg(long)]
    pub(crate) timestamps: bool,
}

/// Print what has happened to a run
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast events k3m
  outlast events -f --json k3m | jq -c 'select(.kind == \"StateChanged\")'
  outlast events k3m --after 12")]
pub(crate) struct Events {
    /// Its id, the first 3 or more characters of it, or its name
    pub(crate) run: String,
    /// Go on with what happens, until the run ends
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Only what came after this number
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    pub(crate) after: u64,
    /// Print one JSON object a line
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
