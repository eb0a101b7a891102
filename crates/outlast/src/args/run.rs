//! What `run` takes.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use outlast_wire::api::AskedQueue;
use outlast_wire::words::Strategy;

use super::parse_label;
use super::start::parse_queue;
use crate::duration;
use crate::money::{self, Micros};

/// The headings under which the help lists the options.
const PLACE: &str = "Place and identity";
const AGENT: &str = "Agent";
const LIMITS: &str = "Limits and retries";
const NOTICES: &str = "Notices";
const TREE: &str = "Runs below it";

/// Start a command, a loop file or an agent, and watch it
#[derive(Debug, Args)]
#[command(override_usage = "outlast run [OPTIONS] [--] COMMAND [ARG]...
       outlast run [OPTIONS] -f WORKFLOW.md
       outlast run [OPTIONS] --agent KIND --task TEXT")]
#[command(after_help = "\
Examples:
  # start and watch; ctrl-\\ leaves it running
  outlast run ./long-job.sh
  # start, print the id, return
  outlast run -d --name nightly make check
  # the loop that a file describes
  outlast run -f WORKFLOW.md
  # with a task and limits
  outlast run -d -f WORKFLOW.md --task 'fix #42' --max-turns 20 --max-cost 5
  # an agent, without a file
  outlast run --agent claude --task 'fix the tests' --approvals deny \\
    --allow Edit --allow Bash
  # try up to 4 times
  outlast run --retry 3 --backoff 30s ./flaky.sh
  # with a terminal of its own
  outlast run -t htop
  # a second call with the same key starts no second run
  outlast run -d --key build-42 make -j8

Options of outlast come before the command; -- may stand between them.
The command gets this environment and directory, as with nohup. The agent of
a loop file gets the environment that the file allows, and --env. Options
here override the file.

Exit codes: 0 completed, 1 failed, 2 refused, 3 blocked, 4 exhausted,
5 stopped, 6 outcome unknown, 7 daemon unreachable, 130 detached;
with -d: 0 started.")]
pub(crate) struct Run {
    /// Run the loop that this file describes
    #[arg(short, long, value_name = "WORKFLOW.md")]
    pub(crate) file: Option<PathBuf>,
    /// Start it, print its id and return
    #[arg(short, long)]
    pub(crate) detach: bool,
    /// A name for the run
    #[arg(short, long)]
    pub(crate) name: Option<String>,
    /// Start at most one run with this key, however often this is called
    #[arg(long, help_heading = PLACE)]
    pub(crate) key: Option<String>,
    /// Give the command a terminal
    #[arg(short, long)]
    pub(crate) tty: bool,
    /// The kind of agent: exec, file, or one that `outlast agents` lists
    #[arg(long, value_name = "KIND", help_heading = AGENT)]
    pub(crate) agent: Option<String>,
    /// When the agent asks to use a tool: ask a person (park), deny, or allow
    #[arg(long, value_name = "MODE", value_parser = ["park", "deny", "allow"], help_heading = AGENT)]
    pub(crate) approvals: Option<String>,
    /// A tool that the agent may use without asking; may be repeated
    #[arg(long, value_name = "TOOL", help_heading = AGENT)]
    pub(crate) allow: Vec<String>,
    /// The model, by its vendor's name
    #[arg(long, value_name = "MODEL", help_heading = AGENT)]
    pub(crate) model: Option<String>,
    /// The model's reasoning effort, by its vendor's name
    #[arg(long, value_name = "EFFORT", help_heading = AGENT)]
    pub(crate) effort: Option<String>,
    /// Set an environment variable; may be repeated
    #[arg(short, long, value_name = "K=V", help_heading = PLACE)]
    #[arg(value_parser = clap::builder::OsStringValueParser::new())]
    pub(crate) env: Vec<OsString>,
    /// Run in this directory instead of the current one
    #[arg(long, visible_alias = "cwd", value_name = "DIR", help_heading = PLACE)]
    pub(crate) dir: Option<PathBuf>,
    /// Where the run works: in place, in a new directory, or in a git worktree
    #[arg(long, value_name = "STRATEGY", value_parser = strategy(), help_heading = PLACE)]
    pub(crate) workspace: Option<Strategy>,
    /// End the run after this many turns
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = LIMITS)]
    pub(crate) max_turns: Option<u32>,
    /// End the run when it has used this many tokens
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = LIMITS)]
    pub(crate) max_tokens: Option<u64>,
    /// End the run when it has cost this much
    #[arg(long, value_name = "USD", value_parser = money::parse_limit, help_heading = LIMITS)]
    pub(crate) max_cost: Option<Micros>,
    /// Among queued runs, the higher number starts first
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = LIMITS)]
    pub(crate) priority: Option<i32>,
    /// Start it in this queue: one run at a time, or NAME:N for N
    #[arg(long, value_name = "NAME[:N]", value_parser = parse_queue, help_heading = LIMITS)]
    pub(crate) queue: Option<AskedQueue>,
    /// End an attempt that takes longer than this
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_limit, help_heading = LIMITS)]
    pub(crate) turn_timeout: Option<Duration>,
    /// End an attempt that prints nothing for longer than this
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_limit, help_heading = LIMITS)]
    pub(crate) stall: Option<Duration>,
    /// End the run when it has taken longer than this
    #[arg(long, visible_alias = "timeout", value_name = "DURATION", help_heading = LIMITS)]
    #[arg(value_parser = duration::parse_limit)]
    pub(crate) run_timeout: Option<Duration>,
    /// Retry a failed attempt up to this many times
    #[arg(long, value_name = "N", help_heading = LIMITS)]
    pub(crate) retry: Option<u32>,
    /// The delay before the first retry; it doubles up to 5 minutes
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, help_heading = LIMITS)]
    pub(crate) backoff: Option<Duration>,
    /// Send a notice to this sink when the run ends: a name from config.toml, or cmd:COMMAND, webhook:URL, run:RUN, …
    #[arg(long, value_name = "SINK", help_heading = NOTICES)]
    pub(crate) notify: Vec<String>,
    /// Send a notice for output lines that match this regular expression
    #[arg(long, value_name = "PATTERN", help_heading = NOTICES)]
    pub(crate) watch: Vec<String>,
    /// Send a notice at this interval while there is new output
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_limit, help_heading = NOTICES)]
    pub(crate) heartbeat: Option<Duration>,
    /// Start it as a child of this run, which is told when the child ends
    #[arg(long, value_name = "RUN", help_heading = PLACE)]
    pub(crate) parent: Option<String>,
    #[command(flatten)]
    pub(crate) tree: TreeArgs,
    /// A label to find the run by; may be repeated
    #[arg(long, value_name = "K=V", value_parser = parse_label, help_heading = PLACE)]
    pub(crate) label: Vec<(String, String)>,
    /// The task, in words
    #[arg(long, value_name = "TEXT")]
    pub(crate) task: Option<String>,
    /// With -d, print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The command and its arguments
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// What holds for a run and those below it, and what a child's key stands for.
#[derive(Debug, Args)]
pub(crate) struct TreeArgs {
    /// With --parent and --key: after a failed run start another, up to this many in all
    #[arg(long, value_name = "N", requires = "parent", requires = "key", help_heading = TREE)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) tries: Option<u32>,
    /// With --parent and --key, if it is not known how the last run ended: refuse, start another, or keep that one
    #[arg(long, value_name = "WHAT", requires = "parent", requires = "key", help_heading = TREE)]
    #[arg(value_parser = PossibleValuesParser::new(["doubt", "again", "keep"]))]
    pub(crate) lost: Option<String>,
    /// When this run ends, leave its children, stop them, or wait for them
    #[arg(long, value_name = "POLICY", help_heading = TREE)]
    #[arg(value_parser = PossibleValuesParser::new(["leave", "stop", "wait"]))]
    pub(crate) children: Option<String>,
    /// At most this many turns for this run and those below it together
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = TREE)]
    pub(crate) tree_turns: Option<u64>,
    /// At most this many runs below this one in all
    #[arg(long, value_name = "N", help_heading = TREE)]
    pub(crate) tree_runs: Option<u64>,
    /// At most this many levels of runs below this one
    #[arg(long, value_name = "N", help_heading = TREE)]
    pub(crate) tree_depth: Option<u64>,
    /// At most this many live children of one run
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = TREE)]
    pub(crate) tree_width: Option<u64>,
}

fn strategy() -> impl TypedValueParser<Value = Strategy> {
    let words = PossibleValuesParser::new(Strategy::WORDS);
    words.map(|word| Strategy::of(&word).expect("the parser lets only these words pass"))
}
