//! `outlast resume`: let runs go on that are paused or blocked.

use outlast_wire::api::HoldView;

use super::{each, errors_as, order};
use crate::args::Resume;
use crate::ask::{Ask, run_path};
use crate::session::Session;
use crate::world::World;
use crate::{Answer, output};

pub(crate) async fn resume(world: &World, args: Resume) -> Answer {
    let mut session = Session::new(world);
    if args.all {
        let hold: HoldView = session.call(&Ask::order("/v1/daemon/resume")).await?;
        if args.json {
            output::print_json(&hold)?;
        } else {
            output::print_line("what was paused with all goes on")?;
        }
        return Ok(0);
    }
    each(&args.runs, errors_as(args.json), async |run| {
        let ask = Ask::order(&run_path(run, "/resume"));
        let view = order(&mut session, run, &ask, "not_paused").await?;
        if args.json {
            output::print_json(&view)?;
        } else {
            output::print_line(&format!("{} goes on", view.id))?;
        }
        Ok(0)
    })
    .await
}
