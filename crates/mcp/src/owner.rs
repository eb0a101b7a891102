//! The run that the server belongs to, as the environment of its attempt says.

use std::path::PathBuf;

use outlast_client::ask::{Ask, run_path};
use outlast_client::problem::Problem;
use outlast_client::session::Session;
use outlast_client::world::World;
use serde_json::Value;

/// No run has more runs above it.
const DEEPEST: usize = 16;

/// The label that has the whole key of a run that was started here.
pub(crate) const KEY_LABEL: &str = "outlast.key";

/// The attempt whose agent started this server.
pub struct Owner<'w> {
    pub(crate) world: &'w World,
    pub(crate) run: String,
    pub(crate) turn: u32,
    pub(crate) attempt: u32,
    pub(crate) workspace: Option<PathBuf>,
    pub(crate) response: Option<PathBuf>,
    pub(crate) request: Option<PathBuf>,
}

/// What a tool answers, or why it does not.
pub(crate) type Done = Result<Value, Problem>;

impl<'w> Owner<'w> {
    /// An error if this process was not started inside an attempt.
    pub fn of(world: &'w World) -> Result<Self, Problem> {
        let text = |name: &str| world.var(name).and_then(|it| it.to_str()).map(str::to_owned);
        let number = |name: &str| text(name)?.parse().ok();
        let found = (text("OUTLAST_RUN_ID"), number("OUTLAST_TURN"), number("OUTLAST_ATTEMPT"));
        let (Some(run), Some(turn), Some(attempt)) = found else {
            let message = "this server belongs to the attempt of a run, and this is none";
            return Err(Problem::refusal("not_in_a_run", message)
                .hint("an agent that `outlast run` started is given it by itself"));
        };
        let path = |name: &str| world.var(name).map(PathBuf::from);
        Ok(Self {
            world,
            run,
            turn,
            attempt,
            workspace: path("OUTLAST_WORKSPACE"),
            response: path("OUTLAST_RESPONSE_FILE"),
            request: path("OUTLAST_REQUEST_FILE"),
        })
    }

    /// What a client of this server has to know: the same that the run itself is known by.
    pub(crate) fn token(&self) -> Option<String> {
        self.world.var("OUTLAST_TOKEN").and_then(|it| it.to_str()).map(str::to_owned)
    }

    pub(crate) fn session(&self) -> Session<'w> {
        Session::new(self.world)
    }

    /// The whole key of work that belongs to this turn.
    pub(crate) fn key(&self, key: &str) -> String {
        let whole = format!("{}/", self.run);
        if key.starts_with(&whole) {
            return key.to_owned();
        }
        format!("{}/t{}/{key}", self.run, self.turn)
    }

    /// The rows of all runs below this one, the children first.
    pub(crate) async fn below(&self) -> Result<Vec<Value>, Problem> {
        let tree: Value = self.session().call(&Ask::get(&run_path(&self.run, "/tree"))).await?;
        let mut rows = Vec::new();
        let mut level: Vec<Value> = children(&tree);
        for _ in 0..DEEPEST {
            let next = level.iter().flat_map(children).collect();
            rows.append(&mut level);
            level = next;
        }
        Ok(rows)
    }

    /// The id of a run below this one. What is not below it does not exist for its agent.
    pub(crate) async fn find(&self, asked: &str) -> Result<String, Problem> {
        let rows = self.below().await?;
        let (whole, process) = (self.key(asked), self.key(&format!("proc/{asked}")));
        let is_it = |row: &&Value| {
            let has = |name: &str, value: &str| row[name].as_str() == Some(value);
            let key = row["labels"][KEY_LABEL].as_str();
            has("id", asked)
                || has("name", asked)
                || [asked, &whole, &process].into_iter().any(|it| key == Some(it))
        };
        // The newest of several with one name.
        let found = rows.iter().filter(is_it).max_by_key(|row| row["created_at"].as_str());
        let id = found.and_then(|row| row["id"].as_str());
        id.map(str::to_owned).ok_or_else(|| {
            Problem::refusal("unknown_run", format_args!("no run below this one is {asked:?}"))
                .hint("proc_list and run_status list them")
        })
    }
}

fn children(row: &Value) -> Vec<Value> {
    row["children"].as_array().cloned().unwrap_or_default()
}
