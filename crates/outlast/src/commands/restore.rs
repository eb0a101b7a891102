//! `outlast restore`: the workspace of a run goes back to the end of a turn.

use std::time::Duration;

use outlast_client::ask::{Ask, run_path};
use outlast_client::run_id;
use outlast_client::session::Session;
use outlast_wire::api::{RestoreRun, RestoredView, RunView};

use crate::Answer;
use crate::args::Restore;
use crate::output::{self, figures, printable};
use crate::world::World;

/// Files are read and written: the daemon gives up after about as long.
const LONGEST: Duration = Duration::from_secs(1300);

pub(crate) async fn restore(world: &World, args: Restore) -> Answer {
    let mut session = Session::new(&world.client);
    // By its id: a name may be another run's by the time that a lost answer is asked for again.
    let run: RunView = session.call(&Ask::get(&run_path(&args.run, ""))).await?;
    let order = RestoreRun { id: Some(run_id::new()?), turn: args.at };
    let ask = Ask::post(&run_path(&run.id, "/restore"), &order).long_poll(LONGEST);
    let view: RestoredView = session.call(&ask).await?;
    if args.json {
        output::print_json(&view)?;
        return Ok(0);
    }
    output::print(&page(&run, &view))?;
    Ok(0)
}

fn page(run: &RunView, view: &RestoredView) -> String {
    let count = |files: u64| figures::count(usize::try_from(files).unwrap_or(usize::MAX), "file");
    let turn = match view.turn {
        0 => "to before the first turn".to_owned(),
        turn => format!("to the end of turn {turn}"),
    };
    let (written, removed) = (count(view.written), count(view.removed));
    let called = output::called(run);
    let mut page = format!(
        "put the workspace of {called} back {turn}: {written} written, {removed} removed\n"
    );
    page.push_str(&format!("what was found is kept: {}\n", view.wreck));
    for path in &view.kept {
        page.push_str(&format!("left alone: {}\n", printable(path)));
    }
    page
}
