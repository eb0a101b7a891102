//! Being attached to a run without a terminal of its own: its output as it comes, then its outcome.
//!
//! Whatever ends the watching, the run keeps running.

use std::cell::Cell;
use std::io::IsTerminal;
use std::time::Duration;

use outlast_client::follow::{Output, Piece, Selection, Until};
use outlast_client::problem::{DETACHED, Problem};
use outlast_client::session::Session;
use outlast_client::wait;
use outlast_wire::api::RunView;
use outlast_wire::words::StateName;
use tokio::time::sleep;

use crate::Answer;
use crate::output::bytes::{self, Target};
use crate::output::colour::Colour;
use crate::output::page::quoted;
use crate::output::{self, lines, outcome};
use crate::printer::Printer;
use crate::progress::Progress;
use crate::signals::Detach;
use crate::world::World;

/// A short run is over before it is worth a second connection to hear of its rest.
const BEFORE_WATCHING: Duration = Duration::from_millis(250);
/// How long the output of a run that rests, or has ended, may be quiet before it counts as all there is.
const QUIET_REST: Duration = Duration::from_millis(300);
const QUIET_END: Duration = Duration::from_secs(5);

/// Shows the output of a run until it ends, rests, or a signal asks the client to leave; and of a loop how it gets on.
pub(crate) async fn attach(
    world: &World,
    session: Session<'_>,
    run: &Watched,
    progress: &Progress<'_>,
    mut detach: Detach,
) -> Answer {
    welcome(world, run);
    let Watched { id, tail, .. } = run;
    let selection = Selection { until: Until::RunEnds, tail: *tail, ..Selection::default() };
    let mut output = Output::new(session, id, selection);
    let mut printer = Printer::default();
    let pulse = Pulse::default();
    let watched = async {
        tokio::select! {
            biased;
            result = show(&mut output, &mut printer, &pulse, progress) => result?,
            result = watch(world, id, &pulse) => result?,
        }
        let view = wait::for_rest(&world.client, id).await?;
        progress.last_words(&view).await;
        Ok(view)
    };
    let watched = tokio::select! {
        biased;
        () = detach.asked() => None,
        view = watched => Some(view),
        () = progress.follow() => unreachable!("it listens for as long as it is asked to"),
    };
    progress.leave();
    match watched {
        Some(view) => Ok(concluded(&view?)),
        None => Ok(detached(run)),
    }
}

/// The run that is watched.
#[derive(Debug, Clone)]
pub(crate) struct Watched {
    /// A name may pass to another run.
    pub(crate) id: String,
    /// What it is called, as it can be typed.
    pub(crate) called: String,
    /// Only so many of the lines that are there already.
    pub(crate) tail: Option<u64>,
}

impl Watched {
    pub(crate) fn new(id: &str, name: Option<&str>) -> Self {
        Self { id: id.to_owned(), called: quoted(name.unwrap_or(id)), tail: None }
    }
}

/// Which run this is and how to leave it, for a person at a terminal.
fn welcome(world: &World, run: &Watched) {
    if !std::io::stderr().is_terminal() || world.is_dumb() {
        return;
    }
    let Watched { id, called, .. } = run;
    let name = if called == id { id.clone() } else { format!("{called} ({id})") };
    let line = format!("run {name} · ctrl-\\ leaves it running");
    let line = lines::fitting(&line, bytes::columns(Target::Stderr));
    output::tell_exactly(&Colour::Dim.paint(&line, world.colours()));
}

/// The exit code of a run whose output has been shown, and a word on it if it did not complete.
pub(crate) async fn conclude(world: &World, run: &Watched, mut detach: Detach) -> Answer {
    let view = tokio::select! {
        biased;
        () = detach.asked() => return Ok(detached(run)),
        view = wait::for_rest(&world.client, &run.id) => view?,
    };
    Ok(concluded(&view))
}

fn concluded(view: &RunView) -> u8 {
    outcome::report(view);
    if let Some(sum) = outcome::sum(view) {
        output::tell(&sum);
    }
    wait::status(view)
}

pub(crate) fn detached(run: &Watched) -> u8 {
    let Watched { called, .. } = run;
    output::tell(&format!("outlast: detached; {called} keeps running"));
    output::tell_hint(&format!("outlast attach {called}\noutlast stop {called}"));
    DETACHED
}

/// Prints output until its end.
async fn show(
    output: &mut Output<'_>,
    printer: &mut Printer,
    pulse: &Pulse,
    progress: &Progress<'_>,
) -> Result<(), Problem> {
    loop {
        let piece = output.next().await?;
        if piece == Piece::End {
            return Ok(());
        }
        let (target, bytes) = printer.render(piece);
        pulse.writing.set(true);
        progress.show(target, bytes).await?;
        pulse.writing.set(false);
        pulse.pieces.set(pulse.pieces.get() + 1);
    }
}

/// Returns once the run has ended or rests and its output has been quiet for a while.
async fn watch(world: &World, run: &str, pulse: &Pulse) -> Result<(), Problem> {
    sleep(BEFORE_WATCHING).await;
    let view: RunView = wait::for_rest(&world.client, run).await?;
    let quiet = if view.state == StateName::Blocked { QUIET_REST } else { QUIET_END };
    loop {
        let before = pulse.pieces.get();
        sleep(quiet).await;
        if pulse.pieces.get() == before && !pulse.writing.get() {
            return Ok(());
        }
    }
}

/// Signs of life of the output.
#[derive(Debug, Default)]
struct Pulse {
    pieces: Cell<u64>,
    writing: Cell<bool>,
}
