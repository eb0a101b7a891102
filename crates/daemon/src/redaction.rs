//! Secrets of a run, kept out of its journal: whatever a step, a client or the host says to a run goes through here first.
//!
//! The values come from the run's environment file, and what was read of it is used again only while the file is the same
//! ([`KnownSecrets`](crate::known_secrets::KnownSecrets)). If that file cannot be read, what was said is withheld.

use std::io;

use outlast_engine::{
    Answer, End, Input, Report, Response, Run, RunId, RunSpec, State, Step, TreeNews,
};
use outlast_home::layout::{AttemptDir, RunDir};
use outlast_secrets::Secrets;
use outlast_wire::shim::EnvVar;

use crate::ground::Ground;
use crate::known_secrets::Stamp;
use crate::response;
use crate::world::{files, host};

/// A kernel takes less of an environment than this.
const LARGEST_ENV: usize = 64 << 20;

/// What stands for words that cannot be looked through.
const WITHHELD: &str =
    "[withheld: the run's environment cannot be read, so it is not known what is secret in this]";

/// What it means that a run has no file of its environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absent {
    /// It went with the run's end: there are no secrets but a step's own.
    Gone,
    /// It was removed from a run that goes on: it is not known what is secret, but for what was read before.
    Lost,
}

impl Absent {
    fn of(run: &Run) -> Self {
        let is_over = run.has_ended() || matches!(run.state, State::Finishing { .. });
        if is_over { Self::Gone } else { Self::Lost }
    }
}

/// The secrets of a run, and of one step of it.
pub(crate) fn secrets(
    ground: &Ground,
    dir: &RunDir,
    spec: &RunSpec,
    of: Option<(&RunId, Step)>,
    absent: Absent,
) -> io::Result<Secrets> {
    if !spec.secrets.redact {
        return Ok(Secrets::default());
    }
    // Looked at before it is read, so that a change in between is seen the next time.
    let stamp = stamp(dir)?;
    let step = of.map(|(_, step)| step);
    if let Some(known) = stamp.as_ref().and_then(|stamp| ground.secrets.get(stamp, step)) {
        return Ok(known);
    }
    let mut env = match files::read_regular(&dir.env(), LARGEST_ENV) {
        // The parser's words quote values, so they are not passed on.
        Ok(bytes) => serde_json::from_slice::<Vec<EnvVar>>(&bytes).map_err(|_| {
            io::Error::new(io::ErrorKind::InvalidData, "it is no list of variables")
        })?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => match absent {
            Absent::Gone => Vec::new(),
            Absent::Lost => return ground.secrets.last(&dir.env(), step).ok_or(error),
        },
        Err(error) => return Err(error),
    };
    if let Some((id, step)) = of {
        let token = std::ffi::OsString::from(ground.tokens.of(id, step)?);
        env.push(EnvVar { name: "OUTLAST_TOKEN".into(), value: token.into() });
    }
    let vars = env.iter().map(|var| (var.name.as_os_str(), var.value.as_os_str()));
    let secrets = Secrets::of(&spec.secrets, vars, &[]);
    if let Some(stamp) = stamp {
        ground.secrets.keep(stamp, step, secrets.clone());
    }
    Ok(secrets)
}

/// The environment file as it is now; `None` if there is none, or what is there is no file.
fn stamp(dir: &RunDir) -> io::Result<Option<Stamp>> {
    match Stamp::of(dir.env()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found,
    }
}

/// Takes the secrets of the run out of what it is told. Fails only for what the host lacks: then nothing was changed.
pub(crate) fn hide_in_input(ground: &Ground, run: &Run, input: &mut Input) -> io::Result<()> {
    let step = match &*input {
        Input::Reported(report) => Some(report.step),
        _ => run.live().map(outlast_engine::Attempt::step),
    };
    let texts = texts_of_input(input);
    if texts.is_empty() {
        return Ok(());
    }
    let dir = ground.layout.run(run.id.as_str());
    let of = step.map(|step| (&run.id, step));
    texts.hide(known(secrets(ground, &dir, &run.spec, of, Absent::of(run)), run)?);
    Ok(())
}

/// A message as the journal of the run would have it.
pub(crate) fn without_secrets(ground: &Ground, run: &Run, text: String) -> io::Result<String> {
    let (message, from) = (String::new(), String::new());
    let mut input = Input::Sent { message, from, text, by: None };
    hide_in_input(ground, run, &mut input)?;
    let Input::Sent { text, .. } = input else { unreachable!("it is the same input") };
    Ok(text)
}

/// The same of what was found of an attempt whose run is rebuilt.
pub(crate) fn hide_in_report(secrets: Option<&Secrets>, report: &mut Report) {
    texts_of_report(report).hide(secrets.cloned());
}

/// True if [`hide_in_output`] of this step reads no file.
pub(crate) fn is_known(ground: &Ground, run: &Run, step: Step) -> bool {
    let stamp = stamp(&ground.layout.run(run.id.as_str()));
    let known = stamp.ok().flatten().and_then(|it| ground.secrets.get(&it, Some(step)));
    !run.spec.secrets.redact || known.is_some()
}

/// What a call of an attempt wrote, without the run's secrets. `None` if it cannot be known what is secret.
pub(crate) fn hide_in_output(
    ground: &Ground,
    run: &Run,
    step: Step,
    mut streams: [Vec<u8>; 2],
) -> io::Result<Option<[Vec<u8>; 2]>> {
    let dir = ground.layout.run(run.id.as_str());
    let read = secrets(ground, &dir, &run.spec, Some((&run.id, step)), Absent::of(run));
    Ok(match known(read, run)? {
        Some(secrets) => {
            for bytes in &mut streams {
                if let std::borrow::Cow::Owned(hidden) = secrets.hide_bytes(bytes) {
                    *bytes = hidden;
                }
            }
            Some(streams)
        }
        None => None,
    })
}

/// Takes the secrets of a run out of what an attempt of it has written where its answer is looked for.
pub(crate) fn hide_in_files(ground: &Ground, run: &Run, dir: &AttemptDir, step: Step) {
    // Most commands write no answer.
    if matches!(dir.response().symlink_metadata(), Err(error) if error.kind() == io::ErrorKind::NotFound)
    {
        return;
    }
    let run_dir = ground.layout.run(run.id.as_str());
    let cleaned = secrets(ground, &run_dir, &run.spec, Some((&run.id, step)), Absent::of(run))
        .and_then(|secrets| response::hide(&dir.response(), &secrets));
    if let Err(error) = cleaned {
        let path = dir.response();
        tracing::error!(run = %run.id, path = %path.display(), %error, "cannot take secrets out of the response");
    }
}

/// `None` if it cannot be known what is secret.
fn known(read: io::Result<Secrets>, run: &Run) -> io::Result<Option<Secrets>> {
    match read {
        Ok(secrets) => Ok(Some(secrets)),
        Err(error) if host::failure(&error).is_some() => Err(error),
        Err(error) => {
            tracing::error!(run = %run.id, %error, "cannot read the run's environment; what it is told is withheld");
            Ok(None)
        }
    }
}

/// Words that were said to a run.
#[derive(Default)]
struct Texts<'i> {
    plain: Vec<&'i mut String>,
    /// Those that are JSON and stay so.
    json: Vec<&'i mut String>,
}

impl Texts<'_> {
    fn is_empty(&self) -> bool {
        self.plain.iter().chain(&self.json).all(|text| text.is_empty())
    }

    fn hide(self, secrets: Option<Secrets>) {
        let Some(secrets) = secrets else {
            self.plain.into_iter().for_each(|text| WITHHELD.clone_into(text));
            return self.json.into_iter().for_each(|text| *text = format!("{WITHHELD:?}"));
        };
        for text in self.plain {
            secrets.hide_in(text);
        }
        for text in self.json {
            if let std::borrow::Cow::Owned(hidden) = secrets.hide_json(text.as_bytes()) {
                *text = String::from_utf8_lossy(&hidden).into_owned();
            }
        }
    }
}

/// Every input is listed, so that a new one is thought of.
fn texts_of_input(input: &mut Input) -> Texts<'_> {
    let plain = match input {
        Input::Reported(report) => return texts_of_report(report),
        Input::Answered { message, .. } => message.iter_mut().map(|(_, text)| text).collect(),
        Input::Sent { from, text, .. } => vec![from, text],
        Input::Asked { asks, .. } => asks.tool.iter_mut().chain([&mut asks.text]).collect(),
        Input::ChildEnded(end) => vec![&mut end.text, &mut end.summary],
        Input::Noted(note) => vec![&mut note.text],
        Input::CallBegan { asked, .. } => vec![&mut asked.command],
        // What the call wrote went through `hide_in_output`.
        Input::CallEnded(said) => said.why.iter_mut().collect(),
        Input::WorkspaceRefused { why } | Input::WorkspaceKept { why } => vec![why],
        Input::WorkspaceDiscarded { problem } => problem.iter_mut().collect(),
        // Lines of the output, which has no secrets in it.
        Input::Matched { .. }
        | Input::Adopted { .. }
        | Input::StopAsked { .. }
        | Input::StopTreeAsked { .. }
        | Input::PauseAsked(_)
        | Input::TerminalAsked { .. }
        | Input::ResumeAsked(_)
        | Input::RestoreAsked { .. }
        | Input::RaiseAsked { .. }
        | Input::PredecessorEnded { .. }
        | Input::PauseAllNow
        | Input::HeartbeatDue { .. }
        | Input::SpawnAsked(_)
        | Input::ChildMade { .. }
        | Input::ChildUnmade { .. }
        | Input::WorkspaceMade { .. }
        | Input::RemovalAsked
        | Input::WorkspaceRemoved { .. }
        | Input::UsageReported { .. }
        | Input::Withdrew { .. }
        | Input::CallResolved { .. }
        | Input::Gave { .. }
        | Input::JournalRestored { .. }
        | Input::Woke
        | Input::Finished => Vec::new(),
    };
    Texts { plain, json: Vec::new() }
}

fn texts_of_report(report: &mut Report) -> Texts<'_> {
    let mut texts = texts_of_answer(&mut report.answer);
    texts.plain.push(&mut report.tail);
    texts.plain.extend(report.refused.iter_mut().map(|call| &mut call.why));
    if let Some(End::NeverStarted { why, .. }) = &mut report.end {
        texts.plain.push(why);
    }
    // The command lines of processes that are left.
    if let TreeNews::Left { survivors, .. } = &mut report.tree {
        texts.plain.extend(survivors.iter_mut().map(|survivor| &mut survivor.command));
    }
    texts.plain.retain(|text| !text.is_empty());
    texts
}

fn texts_of_answer(answer: &mut Answer) -> Texts<'_> {
    let mut texts = Texts::default();
    match answer {
        Answer::None => {}
        Answer::Bad { why } | Answer::NoProgram { why, .. } | Answer::Impeded { why, .. } => {
            texts.plain.push(why);
        }
        Answer::Given(response) => {
            let Response { summary, next_task, tool_calls, .. } = &mut **response;
            texts.plain.push(summary);
            texts.plain.extend(next_task);
            for call in tool_calls {
                texts.plain.push(&mut call.name);
                texts.plain.extend(&mut call.key);
                texts.json.push(&mut call.input);
            }
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use outlast_engine::{Custody, RefusedCall, Survivor, Time, ToolCall, TurnStatus};
    use outlast_secrets::SecretRules;

    use super::*;

    const SECRET: &str = "s3cr3t-Xq7vT2";

    fn secrets() -> Secrets {
        let env = [(OsStr::new("A_TOKEN"), OsStr::new(SECRET))];
        Secrets::of(&SecretRules::default(), env, &[])
    }

    /// A report that has the secret wherever a text can be.
    fn report() -> Report {
        let said = || format!("it is {SECRET}.");
        let call = ToolCall {
            name: said(),
            input: format!(r#"{{"a":"\u0073{}","n":1}}"#, &SECRET[1..]),
            key: Some(said()),
        };
        let response = Response {
            status: TurnStatus::Continue,
            summary: said(),
            next_task: Some(said()),
            tool_calls: vec![call],
            usage: None,
            wait: None,
        };
        let survivor = Survivor { pid: 1, start: 1, command: said() };
        Report {
            answer: Answer::Given(Box::new(response)),
            refused: vec![RefusedCall { call: 0, reason_code: "x".to_owned(), why: said() }],
            tail: said(),
            end: Some(End::NeverStarted {
                at: Time(1),
                code: outlast_engine::NeverStarted::BadSpec,
                why: said(),
            }),
            tree: TreeNews::Left { survivors: vec![survivor], stop_failed: false },
            ..Report::of(Step::Attempt { turn: 1, attempt: 1 }, Custody::Shim)
        }
    }

    #[test]
    fn no_text_of_a_report_keeps_a_secret() {
        let mut hidden = report();
        hide_in_report(Some(&secrets()), &mut hidden);
        let told = format!("{hidden:?}");
        assert!(!told.contains(SECRET) && !told.contains(&SECRET[1..]), "{told}");
        assert_eq!(told.matches("[A_TOKEN]").count(), 9, "{told}");
        let Answer::Given(response) = hidden.answer else { panic!("{told}") };
        assert_eq!(response.tool_calls[0].input, r#"{"a":"[A_TOKEN]","n":1}"#);
    }

    #[test]
    fn what_cannot_be_looked_through_is_withheld() {
        let mut hidden = report();
        hide_in_report(None, &mut hidden);
        let told = format!("{hidden:?}");
        assert!(!told.contains(SECRET), "{told}");
        let Answer::Given(response) = hidden.answer else { panic!("{told}") };
        let input: serde_json::Value =
            serde_json::from_str(&response.tool_calls[0].input).expect("it is JSON");
        assert_eq!(input.as_str(), Some(WITHHELD));
    }
}
