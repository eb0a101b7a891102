//! What `run` takes.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use outlast_wire::words::Strategy;

use super::parse_label;
use crate::duration;
use crate::money::{self, Micros};

/// Start a run, and watch it unless -d is given
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast run -- ./long-job.sh                      start and watch; ctrl-\\ leaves it running
  outlast run -d --name nightly -- make check       start, print the id, return
  outlast run -d --key build-42 -- make             asking again with the same key makes no second run
  outlast run --retry 3 --backoff 30s -- ./flaky    try up to 4 times
  outlast run -t -- htop                            with a terminal of its own
  outlast run -f WORKFLOW.md                        the loop that a file describes
  outlast run -d -f WORKFLOW.md --task 'fix #42' --max-turns 20 --max-cost 5
  outlast run --agent claude --task 'fix the tests' --approvals deny --allow Edit --allow Bash

A command gets this environment and directory, as under nohup; the agent of a loop file gets what
the file allows and what --env sets. Options come before what the file says.
Exit codes when watching: 0 completed, 1 failed, 2 refused, 3 blocked, 4 exhausted, 5 stopped,
6 outcome unknown, 7 daemon unreachable, 130 detached.")]
pub(crate) struct Run {
    /// The loop file that says what the run is
    #[arg(short, long, value_name = "WORKFLOW.md")]
    pub(crate) file: Option<PathBuf>,
    /// Print the run's id and return once the run is safe on disk
    #[arg(short, long)]
    pub(crate) detach: bool,
    /// A name for the run
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Make at most one run for this key, however often this is called
    #[arg(long)]
    pub(crate) key: Option<String>,
    /// Give the command a terminal
    #[arg(short, long)]
    pub(crate) tty: bool,
    /// The kind of agent that executes the turns: exec, file, or one that `outlast agents` lists
    #[arg(long, value_name = "KIND")]
    pub(crate) agent: Option<String>,
    /// What becomes of an agent's question whether it may use a tool: a person decides, no, or yes
    #[arg(long, value_name = "MODE", value_parser = ["park", "deny", "allow"])]
    pub(crate) approvals: Option<String>,
    /// A tool that the agent may use without a question; may be given more than once
    #[arg(long, value_name = "TOOL")]
    pub(crate) allow: Vec<String>,
    /// The model that the agent uses, in its vendor's words
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// How much effort the model makes, in its vendor's words
    #[arg(long, value_name = "EFFORT")]
    pub(crate) effort: Option<String>,
    /// Set an environment variable on top of the current environment
    #[arg(long, value_name = "K=V", value_parser = clap::builder::OsStringValueParser::new())]
    pub(crate) env: Vec<OsString>,
    /// Run in this directory instead of the current one
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Where the turns work: here, in a directory of their own, or in a git worktree
    #[arg(long, value_name = "STRATEGY", value_parser = strategy())]
    pub(crate) workspace: Option<Strategy>,
    /// End the run after this many turns
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turns: Option<u32>,
    /// End the run when its turns have used this many tokens
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_tokens: Option<u64>,
    /// End the run when its turns have cost this much
    #[arg(long, value_name = "USD", value_parser = money::parse_limit)]
    pub(crate) max_cost: Option<Micros>,
    /// Among runs that wait for a slot, the higher goes first
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) priority: Option<i32>,
    /// End an attempt that takes longer than this
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_limit)]
    pub(crate) turn_timeout: Option<Duration>,
    /// End an attempt that is silent for longer than this
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_limit)]
    pub(crate) stall: Option<Duration>,
    /// End the run when it has taken longer than this, whatever it is doing
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_limit)]
    pub(crate) run_timeout: Option<Duration>,
    /// Try a failed attempt again up to this many times
    #[arg(long, value_name = "N")]
    pub(crate) retry: Option<u32>,
    /// The delay before the first retry; it doubles up to 5 minutes
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) backoff: Option<Duration>,
    /// Tell this sink of the run's end: a name from the config, cmd:COMMAND, webhook:URL, run:RUN, …
    #[arg(long, value_name = "SINK")]
    pub(crate) notify: Vec<String>,
    /// Tell the sinks of lines of output that match this regular expression
    #[arg(long, value_name = "PATTERN")]
    pub(crate) watch: Vec<String>,
    /// Tell the sinks this often that there is new output, if there is
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_limit)]
    pub(crate) heartbeat: Option<Duration>,
    /// Make it a child of this run, which hears of its end and can wait for it
    #[arg(long, value_name = "RUN")]
    pub(crate) parent: Option<String>,
    /// A label to find the run by
    #[arg(long, value_name = "K=V", value_parser = parse_label)]
    pub(crate) label: Vec<(String, String)>,
    /// What the run is for, in words
    #[arg(long, value_name = "TEXT")]
    pub(crate) task: Option<String>,
    /// With -d, print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The command and its arguments; needed without a loop file or an agent that knows its own
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

fn strategy() -> impl TypedValueParser<Value = Strategy> {
    let words = PossibleValuesParser::new(Strategy::WORDS);
    words.map(|word| Strategy::of(&word).expect("the parser lets only these words pass"))
}
