//! The tools of the run, as the agent's own CLI calls them: a process, two children, calls under keys, a question to a
//! person and the report of done; everything dies in the middle of a call.

use anyhow::Result;
use serde_json::{Value, json};

use super::lab::{Lab, Plan, Setup, rests};
use super::model::{Step, Tokens, Tool};
use super::settle::Login;

fn ours(text: &str, name: &'static str, input: Value) -> Step {
    let costs = Tokens { input: 50, output: 10, cached: 0 };
    Step::uses(text, Tool::Ours { name, input }).costs(costs)
}

pub(super) fn run(setup: &Setup<'_>) -> Result<Lab> {
    // What ends while the model answers would interrupt the answer: all of them end while the long call is at work.
    let then = |rest: &str| format!("until test -e go; do sleep 0.1; done; {rest}");
    let background = then("echo the-last-line; exit 3");
    let (one, two) = (then("echo from-one"), then("echo from-two"));
    let slow = "echo slow >>slow.txt; until test -e never; do sleep 0.1; done";
    let first = vec![
        ours("A process.", "proc_start", json!({ "command": background, "name": "back" })),
        ours("One child.", "run_spawn", json!({ "key": "one", "command": one })),
        ours("Another.", "run_spawn", json!({ "key": "two", "command": two })),
        ours("A step.", "call", json!({ "key": "quick", "command": "echo quick >>quick.txt" })),
        ours("A long one.", "call", json!({ "key": "slow", "command": slow })),
        // From here on it is the second attempt.
        ours(
            "The step again.",
            "call",
            json!({ "key": "quick", "command": "echo quick >>quick.txt" }),
        ),
        ours("A question.", "ask_human", json!({ "question": "Which colour?" })),
        Step::says("I wait for the colour."),
    ];
    let second = vec![
        ours("It is done.", "report_done", json!({ "summary": "painted blue" })),
        Step::says("The end."),
    ];
    let plan = Plan {
        name: "tools",
        login: Login::Key,
        turns: vec![first, second],
        approvals: "{mode: allow}",
        check: "test -s quick.txt",
    };
    Ok(Lab::start(setup, plan)?.live(|lab| {
        lab.until("the long call is at work", 90, |view| {
            (rests(view) || !lab.file("slow.txt").is_empty()).then_some(())
        })?;
        std::fs::write(lab.project.join("go"), "")?;
        lab.until("the process and both children have ended", 60, |view| {
            (rests(view) || count(lab, "ChildSettled") == 3).then_some(())
        })?;
        lab.reboot()?;
        let view =
            lab.until("the question is asked", 150, |view| rests(view).then(|| view.clone()))?;
        lab.expect_state(&view, "blocked", None);
        told_of_calls(lab);
        lab.outlast.ask(&["answer", &lab.run, "blue"])?;
        let view = lab.until("the run ends", 120, |view| {
            view["ended_at"].is_string().then(|| view.clone())
        })?;
        lab.expect_state(&view, "completed", None);
        let summary = view["summary"].as_str().unwrap_or_default().to_owned();
        lab.expect(summary == "painted blue", format!("the summary is {summary:?}"));
        audit(lab);
        Ok(())
    }))
}

fn count(lab: &Lab, kind: &str) -> usize {
    let events = lab.outlast.events(&lab.run).unwrap_or_default();
    events.iter().filter(|event| event["kind"] == kind).count()
}

/// The resumed agent is told which call has a result and which is of unknown outcome.
fn told_of_calls(lab: &mut Lab) {
    let asked = lab.asked();
    let prompts: Vec<&str> = asked.iter().flat_map(|it| &it.prompts).map(String::as_str).collect();
    let note = prompts.iter().rfind(|text| text.contains("Calls with known results")).copied();
    let note = note.unwrap_or_default().to_owned();
    let (known, unknown) = note.split_once("Calls of unknown outcome").unwrap_or((&note, ""));
    let (known, unknown) = (known.contains("/quick"), unknown.contains("/slow"));
    lab.expect(known, "the second attempt is not told of the call that has a result");
    lab.expect(unknown, "the second attempt is not told of the call of unknown outcome");
    let quick = lab.file("quick.txt");
    lab.expect(quick == "quick\n", format!("the quick call was made again: {quick:?}"));
}

fn audit(lab: &mut Lab) {
    let bodies: Vec<String> = lab.asked().into_iter().map(|it| it.body).collect();
    let is_told = |text: &str| bodies.iter().any(|body| body.contains(text));
    let (last, colour) = (is_told("the-last-line"), is_told("blue"));
    lab.expect(last, "no request has the last lines of the process that ended");
    lab.expect(colour, "no request has the answer of the person");
    let events = lab.outlast.events(&lab.run).unwrap_or_default();
    let of = |kind: &str| events.iter().filter(|event| event["kind"] == kind).count();
    let (spawned, settled) = (of("ChildSpawned"), of("ChildSettled"));
    let (begun, ended) = (of("CallBegun"), of("CallEnded"));
    let listed = events.iter().filter(|event| event["what"] == "tools_listed").count();
    lab.expect(
        (spawned, settled) == (3, 3),
        format!("{spawned} children were meant and {settled} have ended, not 3"),
    );
    lab.expect(
        (begun, ended) == (2, 1),
        format!("{begun} calls were begun and {ended} ended, not 2 and 1"),
    );
    lab.expect(listed >= 3, format!("the tools were listed {listed} times in three attempts"));
    let slow = lab.file("slow.txt");
    lab.expect(slow == "slow\n", format!("the long call was made again: {slow:?}"));
}
