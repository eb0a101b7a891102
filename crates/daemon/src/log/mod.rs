//! The daemon's own log: one JSON object per line, in a few files of bounded size.
//!
//! A log that cannot be written never stops the daemon: lost lines are counted, and the count is logged when there is
//! room.

mod file;
mod line;

use std::io;
use std::sync::Arc;

use outlast_home::layout::Layout;
use outlast_workflow::Log;
use tracing::Level;

use self::file::Files;
use self::line::JsonLine;
use crate::settings::Settings;

/// Sends what the daemon has to say, its last words among it, to its log.
pub(crate) fn start(layout: &Layout) -> io::Result<()> {
    // As the config says it now; a config that is wrong is said to be so once there is a log.
    let rules = Settings::read(layout.config_file())
        .current()
        .map_or_else(|_| Log::default(), |it| it.log.clone());
    let files = Arc::new(Files::open(&layout.daemon_log(), rules.max_bytes, rules.keep)?);
    let level: Level = rules.level.parse().expect("the config takes only levels");
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .event_format(JsonLine)
        .with_writer(file::Writer(files.clone()))
        .finish();
    tracing::subscriber::set_global_default(subscriber).map_err(io::Error::other)?;
    say_panics(files);
    Ok(())
}

/// A panic is a line of the log like any other; where standard error is not the log, it is said there too.
fn say_panics(files: Arc<Files>) {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let payload = panic.payload();
        let what = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let what = what.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(panic = what, place, "panicked");
        if !files.is_standard_error() {
            usual(panic);
        }
    }));
}
