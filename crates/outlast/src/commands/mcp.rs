//! `outlast mcp`: the MCP server of the run that it is started in.

use outlast_mcp::Owner;

use crate::Answer;
use crate::world::World;

pub(crate) async fn mcp(world: &World) -> Answer {
    // The tasks of the server end with this process.
    let own = outlast_client::world::World::new(world.client.env.clone());
    let owner = Owner::of(Box::leak(Box::new(own)))?;
    outlast_mcp::serve(owner).await;
    Ok(0)
}
