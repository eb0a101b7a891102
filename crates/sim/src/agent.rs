//! What commands do in this world: agents that answer, crash or hang, and the host's own that say yes or no.

use outlast_engine::{
    Answer, Exit, Impediment, NeverStarted, Response, RunSpec, Step, Time, ToolCall, TurnStatus,
    Usage, Wait,
};

use crate::rng::Rng;
use crate::tree::Main;
use crate::world::{Key, World};

/// Whether the command that begins now would never end by itself; some have answered before they hang.
pub(crate) fn draw_endless(world: &mut World, key: Key) -> bool {
    let is_loop = world.runs[key.run].spec.workflow.is_some();
    let is_attempt = matches!(key.step, Step::Attempt { .. });
    let is_endless = world.rng.chance(if is_loop { 70 } else { 250 });
    if is_endless && is_attempt && is_loop && world.rng.chance(300) {
        answer(world, key);
    }
    is_endless
}

/// How many calls under keys the command that begins now makes.
pub(crate) fn draw_calls(world: &mut World, key: Key) -> u32 {
    let is_attempt = matches!(key.step, Step::Attempt { .. });
    if !is_attempt || !world.rng.chance(500) {
        return 0;
    }
    u32::try_from(world.rng.between(1, 3)).expect("small")
}

/// The main process of a step ends by itself.
pub(crate) fn end_by_itself(world: &mut World, key: Key) {
    let exit = match key.step {
        Step::Attempt { .. } => end_attempt(world, key),
        Step::Errand { .. } => {
            Some(if world.rng.chance(120) { Exit::Code(1) } else { Exit::Code(0) })
        }
    };
    world.site(key).tree.main = Main::Dead(exit);
}

fn end_attempt(world: &mut World, key: Key) -> Option<Exit> {
    let is_loop = world.runs[key.run].spec.workflow.is_some();
    if world.rng.chance(600) {
        world.runs[key.run].version += 1;
    }
    let answers = world.rng.chance(if is_loop { 850 } else { 80 });
    if answers {
        answer(world, key);
    }
    let exits: &[Exit] = match world.site(key).said {
        Answer::Given(_)
        | Answer::Bad { .. }
        | Answer::NoProgram { .. }
        | Answer::Impeded { .. } => {
            &[Exit::Code(0), Exit::Code(0), Exit::Code(0), Exit::Code(3), Exit::Signal(9)]
        }
        Answer::None => {
            &[Exit::Code(0), Exit::Code(0), Exit::Code(1), Exit::Code(7), Exit::Signal(11)]
        }
    };
    world.rng.pick(exits)
}

/// Something keeps the agent from its turn.
fn impeded(rng: &mut Rng, now: u64) -> Answer {
    let by = rng.pick(&[
        Impediment::Provider,
        Impediment::Provider,
        Impediment::Login,
        Impediment::Question,
        Impediment::Approval,
    ]);
    let by = by.unwrap_or(Impediment::Provider);
    let is_told = by == Impediment::Provider && rng.chance(500);
    let until = is_told.then(|| Time(now + rng.below(300_000)));
    let is_question = matches!(by, Impediment::Question | Impediment::Approval);
    let question = is_question.then(|| a_question(rng));
    Answer::Impeded { by, until, why: "simulated".to_owned(), question }
}

/// The agent's own name of a question: one of few, so that it is often one that was asked.
pub(crate) fn a_question(rng: &mut Rng) -> String {
    format!("q{}", rng.below(3))
}

fn answer(world: &mut World, key: Key) {
    let (now, is_quiet) = (world.now, world.is_quiet);
    let spec = &world.runs[key.run].spec;
    let answer = if world.rng.chance(80) {
        let why = "simulated".to_owned();
        // Some are drivers that could not start their agent.
        match now % 4 {
            0 => Answer::NoProgram { code: NeverStarted::CommandNotFound, why },
            _ => Answer::Bad { why },
        }
    } else if !is_quiet && world.rng.chance(60) {
        impeded(&mut world.rng, now)
    } else {
        let mut response = response(spec, &mut world.rng, now, is_quiet);
        let known = world.runs[key.run].known.run();
        if known.is_some_and(|known| known.live_children() > 0) && world.rng.chance(700) {
            response =
                Response { status: TurnStatus::Continue, wait: Some(Wait::Children), ..response };
        }
        Answer::Given(Box::new(response))
    };
    let site = world.site(key);
    site.said = answer.clone();
    if site.exists {
        site.response = answer;
    }
}

fn response(spec: &RunSpec, rng: &mut Rng, now: u64, is_quiet: bool) -> Response {
    let status = match rng.below(if is_quiet { 140 } else { 100 }) {
        0..=6 => TurnStatus::Blocked,
        7..=9 => TurnStatus::Failed,
        10..=24 => TurnStatus::Done,
        25..=99 => TurnStatus::Continue,
        _ => TurnStatus::Done,
    };
    let text = |rng: &mut Rng, chance| rng.chance(chance).then(|| format!("text {}", rng.below(3)));
    Response {
        status,
        summary: text(rng, 700).unwrap_or_default(),
        next_task: text(rng, 300),
        tool_calls: tool_calls(spec, rng),
        usage: rng.chance(600).then(|| usage(rng)),
        wait: wait(rng, now),
    }
}

fn tool_calls(spec: &RunSpec, rng: &mut Rng) -> Vec<ToolCall> {
    if spec.tools.is_empty() || rng.chance(500) {
        return Vec::new();
    }
    let count = rng.between(1, 3);
    let call = |_| {
        let tool = &spec.tools[rng.index(spec.tools.len())];
        let name = if rng.chance(100) { "unheard of".to_owned() } else { tool.name.clone() };
        let key = rng.chance(600).then(|| format!("key {}", rng.below(2)));
        ToolCall { name, input: "{}".to_owned(), key }
    };
    (0..count).map(call).collect()
}

fn usage(rng: &mut Rng) -> Usage {
    let mut some = |most| rng.chance(800).then(|| rng.below(most));
    Usage {
        input_tokens: some(200),
        output_tokens: some(100),
        cached_tokens: some(50),
        cost_usd_micros: some(1_000),
    }
}

fn wait(rng: &mut Rng, now: u64) -> Option<Wait> {
    match rng.below(100) {
        0..=11 => Some(Wait::Until(Time(now + rng.below(300_000)))),
        12 => Some(Wait::RateLimit(Time(now + rng.below(300_000)))),
        13..=19 => Some(Wait::Message),
        20..=22 => Some(Wait::Children),
        _ => None,
    }
}
