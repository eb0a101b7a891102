//! Which runs a verb is for, beside those that it names: by state and by label.

use clap::Args;

use super::parse_label;

#[derive(Debug, Default, Args)]
pub(crate) struct Pick {
    /// The runs in this state
    #[arg(long, value_name = "STATE")]
    pub(crate) state: Option<String>,
    /// The runs with this label; may be given more than once
    #[arg(long, value_name = "K=V", value_parser = parse_label)]
    pub(crate) label: Vec<(String, String)>,
}
