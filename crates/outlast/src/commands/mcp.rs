//! `outlast mcp`: the MCP server of the run that it is started in.

use outlast_home::trim;
use outlast_mcp::{Http, Owner};

use crate::Answer;
use crate::args::Mcp;
use crate::output;
use crate::world::World;

pub(crate) async fn mcp(world: &World, args: &Mcp) -> Answer {
    // The tasks of the server end with this process.
    let own = outlast_client::world::World::new(world.client.env.clone());
    let owner = Owner::of(Box::leak(Box::new(own)))?;
    // There is one beside each agent, for as long as the agent: it does not keep what only the start has needed.
    trim::give_back();
    if args.http {
        let http = Http::bind(owner, args.port).await?;
        output::print_line(&http.url())?;
        http.serve().await?;
    } else {
        outlast_mcp::serve(owner).await;
    }
    Ok(0)
}
