//! What the verbs take that are about money and tokens: `usage`, `budgets`.

use clap::Args;
use outlast_workflow::money::micros;

/// Report the tokens and money that a live attempt has used
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # from within an attempt
  outlast usage --input 1200 --output 300 --cost 0.0125
  # for the live attempt of a run
  outlast usage nightly --cost 0.5

Each report is the total since the attempt began, not an increment. It
counts at once: an attempt that exceeds its run's limit of tokens or money
is ended.")]
#[command(override_usage = "outlast usage [RUN] <--input|--output|--cached|--cost>...")]
#[command(group = clap::ArgGroup::new("amount").required(true).multiple(true))]
pub(crate) struct Usage {
    /// The run, by name or id; default: OUTLAST_RUN_ID
    pub(crate) run: Option<String>,
    /// Input tokens
    #[arg(long, value_name = "N", group = "amount")]
    pub(crate) input: Option<u64>,
    /// Output tokens
    #[arg(long, value_name = "N", group = "amount")]
    pub(crate) output: Option<u64>,
    /// Cached input tokens
    #[arg(long, value_name = "N", group = "amount")]
    pub(crate) cached: Option<u64>,
    /// Money in US dollars
    #[arg(long, value_name = "USD", group = "amount", value_parser = parse_usd)]
    pub(crate) cost: Option<f64>,
    /// Print the run's total usage as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// List budgets that runs share, and what is left of them
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast budgets
  outlast budgets --json | jq -r '.[] | select(.left.cost_usd < 1) | .name'

Budgets are set in config.toml, as [budgets.NAME].")]
pub(crate) struct Budgets {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Read as it is written first: nothing below a millionth is lost without a word.
fn parse_usd(text: &str) -> Result<f64, String> {
    let wrong = || "an amount in US dollars with at most 6 decimals, like 2.50".to_owned();
    micros(text).ok_or_else(wrong)?;
    text.replace('_', "").parse().map_err(|_| wrong())
}
