//! What the verbs take that are about money and tokens: `usage`, `budgets`.

use clap::Args;
use outlast_workflow::money::micros;

/// Report what a live attempt has used up so far
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast usage --input 1200 --output 300 --cost 0.0125    from within an attempt
  outlast usage k3m --cost 0.5                             of the attempt that is alive

Each report is of everything since the attempt began, not of what came since the last one. It counts at
once: an attempt that goes beyond its run's tokens or money is ended.")]
#[command(group = clap::ArgGroup::new("amount").required(true).multiple(true))]
pub(crate) struct Usage {
    /// Its id, the first 3 or more characters of it, or its name; without one: OUTLAST_RUN_ID
    pub(crate) run: Option<String>,
    /// Tokens that were read anew
    #[arg(long, value_name = "N", group = "amount")]
    pub(crate) input: Option<u64>,
    /// Tokens that were written
    #[arg(long, value_name = "N", group = "amount")]
    pub(crate) output: Option<u64>,
    /// Tokens that were read from a cache
    #[arg(long, value_name = "N", group = "amount")]
    pub(crate) cached: Option<u64>,
    /// Money in US dollars
    #[arg(long, value_name = "USD", group = "amount", value_parser = parse_usd)]
    pub(crate) cost: Option<f64>,
    /// Print what the run has used up as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// List the budgets that runs share, and what is left of them
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast budgets
  outlast budgets --json | jq -r '.[] | select(.left.cost_usd < 1) | .name'

They are [budgets] in config.toml.")]
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
