//! `outlast resume`: let runs go on that are paused or blocked.

use outlast_client::ask::{Ask, run_path};
use outlast_client::run_id;
use outlast_client::session::Session;
use outlast_wire::api::{HoldView, OrderRun, ResumeAll, RunView};

use super::pause::superseded_line;
use super::{each, errors_as};
use crate::args::Resume;
use crate::world::World;
use crate::{Answer, output};

pub(crate) async fn resume(world: &World, args: Resume) -> Answer {
    let mut session = Session::new(&world.client);
    if args.all {
        let order = ResumeAll { id: Some(run_id::new()?) };
        let hold: HoldView = session.call(&Ask::post("/v1/daemon/resume", &order)).await?;
        if args.json {
            output::print_json(&hold)?;
        } else {
            let line = superseded_line(&hold);
            output::print_line(line.as_deref().unwrap_or("what was paused with all goes on"))?;
        }
        return Ok(0);
    }
    each(&args.runs, errors_as(args.json), async |run| {
        let view: RunView = session.call(&Ask::get(&run_path(run, ""))).await?;
        let order = OrderRun { id: Some(run_id::new()?), seq: args.seq.or(Some(view.seq)) };
        let ask = Ask::post(&run_path(&view.id, "/resume"), &order);
        let view: RunView = session.call(&ask).await?;
        if args.json {
            output::print_json(&view)?;
        } else {
            output::print_line(&format!("{} goes on", view.id))?;
        }
        Ok(0)
    })
    .await
}
