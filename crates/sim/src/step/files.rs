//! What is written before a step begins, and what is found when it has ended.

use outlast_conduct::steps::Ending;
use outlast_engine::{
    Answer, Exit, LeftOut, Made, Message, Purpose, RefusedCall, RunSpec, Snapshot, Step, ToolCall,
    ToolClass, unavailable,
};

use super::StepDriver;
use crate::options::Sabotage;
use crate::world::{Key, WorkspaceFiles, World};

impl StepDriver {
    /// What the step is given; every daemon would give it the same. Answers how a loop's first attempt finds its
    /// workspace.
    pub(super) fn write_request(&self, world: &mut World) -> Option<String> {
        let is_first = self.key.step == Step::Attempt { turn: 1, attempt: 1 };
        let baseline = if is_first { self.digest(world) } else { None };
        if is_first {
            world.runs[self.key.run].workspace = WorkspaceFiles::Whole;
        }
        let (unread, given) = (self.run().inbox.unread.iter(), self.run().given());
        let id = |message: &Message| message.id.clone();
        world.site(self.key).given = if world.is_sabotaged(Sabotage::TellsTooMuch) {
            unread.map(|message| id(message)).collect()
        } else {
            given.map(id).collect()
        };
        if !self.has_command() {
            let what = format!("{}: there is no command for it", self.key);
            world.broke(Some(self.key.run), what);
        }
        baseline
    }

    /// True if the command of the step can be had from the run.
    fn has_command(&self) -> bool {
        let Step::Errand { errand } = self.key.step else { return true };
        let known = self.run().errand.as_ref().filter(|known| known.number == errand);
        match known.map(|known| &known.purpose) {
            Some(Purpose::Tool { call, .. }) => {
                let calls = self.run().settling.as_ref().map_or(0, |settling| settling.calls.len());
                usize::try_from(*call).is_ok_and(|call| call < calls)
            }
            Some(_) => true,
            None => false,
        }
    }

    /// What the step has left.
    pub(super) fn look_at_end(&self, world: &mut World, exit: Exit) -> Ending {
        match self.key.step {
            Step::Errand { .. } => Ending {
                answer: Answer::None,
                refused: Vec::new(),
                workspace: None,
                tail: "simulated".to_owned(),
                made: self.made(world, exit),
            },
            Step::Attempt { .. } => {
                let answer = self.response(world, exit);
                let refused = refused(&self.run().spec, &answer);
                let (workspace, tail) = (self.digest(world), String::new());
                Ending { answer, refused, workspace, tail, made: None }
            }
        }
    }

    /// What an errand that keeps the workspace, or puts it back, has left in its record.
    fn made(&self, world: &World, exit: Exit) -> Option<Made> {
        let Step::Errand { errand } = self.key.step else { return None };
        let known = self.run().errand.as_ref().filter(|known| known.number == errand)?;
        let failed = || Made::Failed { code: "io".to_owned(), why: "simulated".to_owned() };
        match &known.purpose {
            Purpose::Snapshot { .. } | Purpose::Restore { .. } if exit != Exit::Code(0) => {
                Some(failed())
            }
            Purpose::Snapshot { cause } => {
                let version = world.runs[self.key.run].version;
                let (commit, tree) = (format!("c{errand}"), format!("version {version}"));
                let is_same =
                    self.run().snapshots.since.as_ref().is_some_and(|since| since.tree == tree);
                let snapshot = Snapshot {
                    cause: *cause,
                    commit,
                    tree,
                    head: None,
                    branch: None,
                    files: u64::from(!is_same),
                    added: 0,
                    deleted: 0,
                    bytes: 1,
                    left_out: LeftOut::default(),
                    own_store: true,
                    progress: None,
                };
                Some(Made::Snapshot { snapshot: Box::new(snapshot), is_same })
            }
            Purpose::Restore { .. } => {
                Some(Made::Restored { written: 1, removed: 0, kept: Vec::new() })
            }
            Purpose::Checkout
            | Purpose::Hook { .. }
            | Purpose::Ready { .. }
            | Purpose::Done { .. }
            | Purpose::Tool { .. } => None,
        }
    }

    /// A kind that has to answer and did not is as bad as one that answered badly.
    fn response(&self, world: &mut World, exit: Exit) -> Answer {
        let must_answer = self.run().spec.agent.kind == "file";
        let key = self.response_of(world);
        let is_loop = self.run().spec.workflow.is_some();
        if is_loop && !world.site(key).has_spec {
            return Answer::Bad { why: "its files are gone".to_owned() };
        }
        match world.site(key).response.clone() {
            Answer::None if must_answer && exit == Exit::Code(0) => {
                Answer::Bad { why: "no response was written".to_owned() }
            }
            answer => answer,
        }
    }

    /// The attempt whose answer is read: this one's, if nothing is broken.
    fn response_of(&self, world: &mut World) -> Key {
        let Step::Attempt { turn, attempt } = self.key.step else { return self.key };
        let before = Step::Attempt { turn, attempt: attempt.saturating_sub(1) };
        let is_shared = world.is_sabotaged(Sabotage::SharesResponse)
            && world.site(self.key).response == Answer::None
            && attempt > 1;
        Key { step: if is_shared { before } else { self.key.step }, ..self.key }
    }

    fn digest(&self, world: &World) -> Option<String> {
        let spec = &self.run().spec;
        let is_wanted = spec.workflow.is_some() && spec.limits.no_progress_turns.is_some();
        is_wanted.then(|| format!("version {}", world.runs[self.key.run].version))
    }
}

fn refused(spec: &RunSpec, answer: &Answer) -> Vec<RefusedCall> {
    let Answer::Given(response) = answer else { return Vec::new() };
    let refusal = |(at, call)| {
        let why = refusal(spec, call)?;
        let call = u32::try_from(at).unwrap_or(u32::MAX);
        Some(RefusedCall { call, reason_code: why.clone(), why })
    };
    response.tool_calls.iter().enumerate().filter_map(refusal).collect()
}

fn refusal(spec: &RunSpec, call: &ToolCall) -> Option<String> {
    let Some(tool) = spec.tools.iter().find(|tool| tool.name == call.name) else {
        return Some("unknown_tool".to_owned());
    };
    let is_unkeyed = tool.class == ToolClass::Keyed && call.key.is_none();
    unavailable(tool, spec.model_class).or(is_unkeyed.then(|| "missing_key".to_owned()))
}
