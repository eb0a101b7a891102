//! Calls under keys: which caller may make them, what is answered from the journal, and where what they wrote is kept.
//!
//! Whether a call is made is the engine's to say. Nothing is answered before the journal has the intent or the result.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use outlast_engine::{
    CallAsked, CallEnd, CallOutput, CallResultSaid, CallVerdict, Exit, Fact, Input, KeyedCall,
    LONGEST_CALL_TEXT, LONGEST_KEY, LONGEST_ORDER_ID, MOST_CALLS, Performer, Run, RunId, Step,
    ToolClass, Verb,
};
use outlast_wire::OsText;
use outlast_wire::api::{
    BeginCall, CallAnswer, CallClass, CallResult, CallRow, CallState, EndCall, LARGEST_CALL_OUTPUT,
    ResolveCall,
};
use outlast_wire::codes::Code;
use sha2::{Digest, Sha256};

use super::callers::Caller;
use super::find::snapshot_of;
use super::orders::{Given, by, said};
use super::tell::{not_taken, order_id, refuse_ended, tell};
use crate::lanes::blocking;
use crate::redaction;
use crate::refusal::{Answer, Refusal, bad_request};
use crate::supervisor::Supervisor;
use crate::world::files::{self, Lasting};
use crate::world::process::{self, Who};

/// What is longer than this is kept in a file beside the run's.
const LONGEST_INLINE: usize = 8 << 10;

/// Numbers the files of results within one daemon.
static FILES: AtomicU64 = AtomicU64::new(0);

/// The attempt that a call comes from, as its token proves.
pub(crate) struct Attempt {
    pub(crate) run: RunId,
    pub(crate) turn: u32,
    pub(crate) attempt: u32,
}

/// The attempt whose token came with the request, if it is one of this run.
pub(crate) fn attempt_of(supervisor: &Supervisor, caller: &Caller, run: &str) -> Answer<Attempt> {
    let token = caller.token.as_deref().unwrap_or_default();
    let of = supervisor.ground.tokens.attempt_of(token)?;
    match of {
        Some((id, turn, attempt)) if id.as_str() == run => Ok(Attempt { run: id, turn, attempt }),
        Some((id, ..)) => {
            let message = format!("this token is of run {id}, and not of {run}");
            Err(Refusal::new(Code::NeedsToken, message).hint("a run makes its own calls only"))
        }
        None => {
            let message = format!("only a live attempt of run {run} makes calls for it");
            Err(Refusal::new(Code::NeedsToken, message)
                .hint("call from inside a script that Outlast runs:\noutlast run -- SCRIPT"))
        }
    }
}

pub(crate) async fn begin(
    supervisor: &Arc<Supervisor>,
    caller: &Caller,
    run: &str,
    asked: BeginCall,
) -> Answer<CallAnswer> {
    let at = attempt_of(supervisor, caller, run)?;
    let before = snapshot_of(supervisor, &at.run).await?.run;
    let asked = checked(&before, &at, caller, asked)?;
    let gone = performer_gone(&before, &asked.key)?;
    let numbers = (at.turn, at.attempt);
    let verdict = before.weigh_call(numbers, &asked, gone);
    if verdict != CallVerdict::Make {
        return answer(supervisor, &before, &asked, verdict).await;
    }
    let input = Input::CallBegan {
        turn: at.turn,
        attempt: at.attempt,
        asked: Box::new(asked.clone()),
        gone,
    };
    let after = tell(supervisor, &at.run, input).await?;
    match after.weigh_call(numbers, &asked, gone) {
        // The run changed in that moment.
        CallVerdict::Make => Err(not_taken(&at.run)),
        verdict => answer(supervisor, &after, &asked, verdict).await,
    }
}

/// What the engine says of the call, as the caller is told.
async fn answer(
    supervisor: &Arc<Supervisor>,
    run: &Arc<Run>,
    asked: &CallAsked,
    verdict: CallVerdict,
) -> Answer<CallAnswer> {
    let key = &asked.key;
    let known = run.keyed.get(key);
    let tries = known.map_or(0, |known| known.tries);
    match verdict {
        CallVerdict::Make | CallVerdict::NotLive => {
            refuse_ended(run)?;
            let message = format!("the attempt that makes the call {key} is not alive");
            Err(Refusal::new(Code::NotLive, message)
                .hint("calls are made by the attempt that is at work"))
        }
        CallVerdict::Begun(call) => Ok(CallAnswer { key: key.clone(), call, tries, result: None }),
        CallVerdict::Stored(end) => {
            let result = Some(stored(supervisor, run, end).await?);
            let call = known.map_or(0, |known| known.begun);
            Ok(CallAnswer { key: key.clone(), call, tries, result })
        }
        CallVerdict::Conflict => {
            let was = known.map_or("", |known| known.command.as_str());
            let message = format!("the key {key} belongs to another call: {was}");
            Err(Refusal::new(Code::KeyConflict, message)
                .hint("the same key needs the same command and class; choose another key"))
        }
        CallVerdict::Open => {
            let message = format!("another process of this attempt is making the call {key}");
            Err(Refusal::new(Code::CallIsOpen, message).hint("ask again when it has ended"))
        }
        CallVerdict::Doubtful => {
            let message = format!(
                "the end of the call {key} was not observed, and a call of class unsafe is not made twice"
            );
            // Until then the order is refused: the attempt may still say what became of the call.
            let when = match known.is_some_and(|call| call.is_unknown(run)) {
                true => "then",
                false => "once this attempt has ended,",
            };
            Err(Refusal::new(Code::CallInDoubt, message).hint(format!(
                "look whether its effect is there; {when} say so, or have it made again:\n\
                 outlast call --run {0} --key {key} --resolve made\n\
                 outlast call --run {0} --key {key} --resolve again",
                run.id
            )))
        }
        CallVerdict::Full => {
            let message = format!("this turn has made {MOST_CALLS} calls under keys");
            Err(Refusal::new(Code::TooManyCalls, message).hint("do more in each call"))
        }
    }
}

/// The request, with the whole key and the process that makes the call.
fn checked(run: &Run, at: &Attempt, caller: &Caller, asked: BeginCall) -> Answer<CallAsked> {
    let is_whole = asked.key.starts_with(&format!("{}/", run.id));
    let key = if is_whole { asked.key } else { format!("{}{}", run.key_base(at.turn), asked.key) };
    refuse_other_turn(run, at.turn, &key)?;
    let is_fit = !key.ends_with('/') && key.len() <= LONGEST_KEY;
    if !is_fit || key.chars().any(char::is_control) {
        let message = format!(
            "a key has at most {LONGEST_KEY} bytes with the run's id, and no control characters"
        );
        return Err(bad_request(message));
    }
    let is_short = |text: &str| !text.is_empty() && text.len() <= LONGEST_ORDER_ID;
    if !is_short(&asked.ticket) || !is_short(&asked.digest) {
        let message = format!("a ticket and a digest have 1 to {LONGEST_ORDER_ID} bytes");
        return Err(bad_request(message));
    }
    let end = asked.command.floor_char_boundary(LONGEST_CALL_TEXT);
    let pid = caller.peer.and_then(|peer| peer.pid);
    let performer = pid.and_then(|pid| {
        let start = outlast_home::process::start_of(pid)?;
        Some(Performer { pid, start })
    });
    Ok(CallAsked {
        key,
        class: class(asked.class),
        digest: asked.digest,
        command: asked.command[..end].to_owned(),
        ticket: asked.ticket,
        performer,
        retries_failed: asked.retry_failed,
    })
}

/// A key of the whole run does not have the form of a turn's: `RUN/tTURN/KEY` names a call of that turn alone.
fn refuse_other_turn(run: &Run, turn: u32, key: &str) -> Answer<()> {
    let base = run.key_base(turn);
    let rest = key.strip_prefix(run.id.as_str()).and_then(|rest| rest.strip_prefix("/t"));
    let number = rest.and_then(|rest| rest.split_once('/')).map(|(number, _)| number);
    let is_of_turn =
        number.is_some_and(|it| !it.is_empty() && it.bytes().all(|b| b.is_ascii_digit()));
    if !is_of_turn || key.starts_with(&base) {
        return Ok(());
    }
    let message = format!("the key {key} has the form of another turn's keys; this is turn {turn}");
    Err(bad_request(message).hint(format!(
        "a key of the whole run is {}/NAME, where NAME does not begin with tNUMBER/",
        run.id
    )))
}

/// The number of the open intent under this key, if the process that had it is known to have ended.
fn performer_gone(run: &Run, key: &str) -> Answer<Option<u64>> {
    let Some(known) = run.keyed.get(key).filter(|known| known.end.is_none()) else {
        return Ok(None);
    };
    let Some(Performer { pid, start }) = known.performer else { return Ok(None) };
    let is_alive = process::is_alive(Who { pid, start })?;
    Ok((!is_alive).then_some(known.begun))
}

pub(crate) async fn end(
    supervisor: &Arc<Supervisor>,
    caller: &Caller,
    run: &str,
    ended: EndCall,
) -> Answer<CallAnswer> {
    let at = attempt_of(supervisor, caller, run)?;
    let before = snapshot_of(supervisor, &at.run).await?.run;
    let (key, call) = (ended.key.clone(), ended.call);
    if has_result(&before, &key, call) {
        refuse_other_end(&before, &key, &ended)?;
    } else {
        refuse_ended(&before)?;
        let said = to_keep(supervisor, &before, &at, ended).await?;
        let (is_void, input) = (said.exit.is_none(), Input::CallEnded(Box::new(said)));
        let after = tell(supervisor, &at.run, input).await?;
        let is_freed = is_void && after.keyed.get(&key).is_none_or(|known| known.end.is_none());
        if !has_result(&after, &key, call) && !is_freed {
            let message = format!("no call {call} under the key {key} is open");
            return Err(Refusal::new(Code::NotTaken, message)
                .hint("it was made again meanwhile, or a person has said what became of it"));
        }
    }
    Ok(CallAnswer { key, call, tries: 0, result: None })
}

/// The end that is in the journal may be told again. Another exit code is another end, and was not taken.
fn refuse_other_end(run: &Run, key: &str, ended: &EndCall) -> Answer<()> {
    let known = run.keyed.get(key).and_then(|known| known.end.as_ref());
    let taken = known.map(|end| codes(end.exit));
    if taken.is_none_or(|taken| taken == (ended.result.exit_code, ended.result.signal)) {
        return Ok(());
    }
    let message = format!("the call {} under the key {key} has another result already", ended.call);
    Err(Refusal::new(Code::NotTaken, message).hint("ask for the call again to get its result"))
}

fn has_result(run: &Run, key: &str, call: u64) -> bool {
    run.keyed.get(key).is_some_and(|known| known.begun == call && known.end.is_some())
}

/// The result without the run's secrets, with what is long in files that are durable before the journal names them.
async fn to_keep(
    supervisor: &Arc<Supervisor>,
    run: &Arc<Run>,
    at: &Attempt,
    ended: EndCall,
) -> Answer<CallResultSaid> {
    let step = Step::Attempt { turn: at.turn, attempt: at.attempt };
    let EndCall { key, call, result } = ended;
    let exit = match (result.exit_code, result.signal) {
        (Some(code), _) => Some(Exit::Code(code)),
        (None, Some(signal)) => Some(Exit::Signal(signal)),
        (None, None) => None,
    };
    let lengths = [&result.stdout, &result.stderr].map(|it| it.0.len());
    if lengths.into_iter().any(|length| length > LARGEST_CALL_OUTPUT) {
        let message = format!("more than {LARGEST_CALL_OUTPUT} bytes of a stream are not kept");
        return Err(bad_request(message));
    }
    use std::os::unix::ffi::OsStringExt;
    let streams = [result.stdout.0.into_vec(), result.stderr.0.into_vec()];
    let left_out = [result.stdout_left_out, result.stderr_left_out];
    let ground = supervisor.ground.clone();
    let lengths = lengths.map(|length| u64::try_from(length).unwrap_or(u64::MAX));
    let streams = match redaction::is_known(&ground, run, step) {
        true => redaction::hide_in_output(&ground, run, step, streams)?,
        false => {
            let run = run.clone();
            blocking(move || Ok(redaction::hide_in_output(&ground, &run, step, streams)?)).await?
        }
    };
    let [stdout, stderr] = match streams {
        None => withheld(lengths, left_out),
        Some(streams) if streams.iter().all(|bytes| is_short_text(bytes)) => {
            kept(streams, left_out, None)?
        }
        Some(streams) => {
            let dir = supervisor.ground.layout.run(run.id.as_str()).calls();
            // Two clients may tell the same end at once, each with a file of its own; the journal names one of them.
            let number = FILES.fetch_add(1, Ordering::Relaxed);
            let name = format!("{call}.{}-{number}", supervisor.ground.epoch);
            blocking(move || Ok(kept(streams, left_out, Some((&dir, &name)))?)).await?
        }
    };
    Ok(CallResultSaid { key, begun: call, exit, why: result.why, stdout, stderr })
}

/// True for what the journal itself keeps.
fn is_short_text(bytes: &[u8]) -> bool {
    bytes.len() <= LONGEST_INLINE && std::str::from_utf8(bytes).is_ok()
}

/// What the journal has of streams that cannot be looked through for secrets: an empty one has none.
fn withheld(lengths: [u64; 2], left_out: [u64; 2]) -> [CallOutput; 2] {
    let of = |at: usize| {
        let bytes = lengths[at].saturating_add(left_out[at]);
        let (is_withheld, text) = (bytes > 0, (bytes == 0).then(String::new));
        CallOutput { bytes, left_out: bytes, is_withheld, text, ..CallOutput::default() }
    };
    [of(0), of(1)]
}

/// What the journal has of both streams. What is no short text is kept in a file of the directory, by this name.
fn kept(
    streams: [Vec<u8>; 2],
    left_out: [u64; 2],
    place: Option<(&Path, &str)>,
) -> std::io::Result<[CallOutput; 2]> {
    let [out, err] = streams;
    let keep = |bytes: Vec<u8>, left_out: u64, stream: &str| -> std::io::Result<CallOutput> {
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let mut kept = CallOutput {
            bytes: length.saturating_add(left_out),
            left_out,
            ..CallOutput::default()
        };
        match (place, is_short_text(&bytes)) {
            (Some((dir, name)), false) => {
                files::private_dir(dir)?;
                let name = format!("{name}.{stream}");
                files::write_whole(&dir.join(&name), &bytes, Lasting::Power)?;
                (kept.file, kept.sha256) = (Some(name), Some(sha256(&bytes)));
            }
            _ => kept.text = Some(String::from_utf8(bytes).expect("it is short text")),
        }
        Ok(kept)
    };
    Ok([keep(out, left_out[0], "stdout")?, keep(err, left_out[1], "stderr")?])
}

/// The result that the journal has of a call.
async fn stored(supervisor: &Arc<Supervisor>, run: &Arc<Run>, end: CallEnd) -> Answer<CallResult> {
    let (supervisor, id) = (supervisor.clone(), run.id.clone());
    blocking(move || {
        let found = supervisor.ground.store.events(&id, end.seq.saturating_sub(1), 1)?;
        let (exit_code, signal) = codes(end.exit);
        let Some(Fact::CallEnded { why, stdout, stderr, .. }) = found.first().map(|it| &it.fact)
        else {
            // A person said that it was made; what it wrote is not known.
            return Ok(CallResult { exit_code, signal, ..CallResult::default() });
        };
        let dir = supervisor.ground.layout.run(id.as_str()).calls();
        let read = |output: &CallOutput| -> Answer<OsText> {
            use std::os::unix::ffi::OsStringExt;
            if output.is_withheld {
                let message =
                    "the output of the call was not kept: it was not known what in it is secret";
                return Err(Refusal::new(Code::OutputUnreadable, message).hint(
                    "the call was made and is not made again; its exit code is in the journal",
                ));
            }
            let bytes = match (&output.text, &output.file) {
                (Some(text), _) => text.clone().into_bytes(),
                (None, Some(name)) => whole(&dir.join(name), output)?,
                (None, None) => Vec::new(),
            };
            Ok(OsText(std::ffi::OsString::from_vec(bytes)))
        };
        Ok(CallResult {
            exit_code,
            signal,
            why: why.clone(),
            stdout: read(stdout)?,
            stderr: read(stderr)?,
            stdout_left_out: stdout.left_out,
            stderr_left_out: stderr.left_out,
        })
    })
    .await
}

/// What a file has kept of a stream, if it is what was written: a part of a result is none.
fn whole(path: &Path, output: &CallOutput) -> Answer<Vec<u8>> {
    let damaged = |what: &str| {
        let message =
            format!("the stored output of the call is damaged: {} {what}", path.display());
        Refusal::new(Code::OutputUnreadable, message)
            .hint("the call was made and is not made again; its exit code is in the journal")
    };
    let bytes = files::read_regular(path, 2 * LARGEST_CALL_OUTPUT)
        .map_err(|error| damaged(&format!("cannot be read: {error}")))?;
    let kept = output.bytes.saturating_sub(output.left_out);
    if u64::try_from(bytes.len()).ok() != Some(kept) {
        return Err(damaged(&format!("has {} bytes, and {kept} were written", bytes.len())));
    }
    if output.sha256.as_ref().is_some_and(|digest| *digest != sha256(&bytes)) {
        return Err(damaged("is not what was written"));
    }
    Ok(bytes)
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Says what became of a call whose end was not observed. The order answers one doubt, and counts once.
pub(crate) async fn resolve(
    supervisor: &Arc<Supervisor>,
    caller: Caller,
    id: &RunId,
    asked: ResolveCall,
) -> Answer<CallRow> {
    let order = order_id(asked.id.clone())?;
    let said = said(supervisor, &(&asked.key, asked.was_made, asked.seq))?;
    let before = snapshot_of(supervisor, id).await?.run;
    let open = doubt(&before, &asked.key, asked.seq);
    let (key, seq) = match open {
        Some((key, call)) => (key.to_owned(), Some(call.begun)),
        None => (asked.key.clone(), asked.seq),
    };
    let was_made = asked.was_made;
    let given = Given { id: order.clone(), seq, verb: Verb::Resolve { was_made }, said };
    let refuse = |run: &Run, seq| refuse_resolve(run, &asked.key, seq);
    let input = |order| Input::CallResolved { key, was_made, order };
    given.give(supervisor, caller, id, refuse, input).await?;
    let after = snapshot_of(supervisor, id).await?.run;
    let answered = after.orders.get(&order).and_then(|taken| taken.order.answers);
    let Some(seq) = answered else { return Err(not_taken(id)) };
    resolved(supervisor, id, seq, was_made).await
}

/// The call in doubt under this key, or under what follows the turn in it, or with this number.
fn doubt<'r>(run: &'r Run, key: &str, seq: Option<u64>) -> Option<(&'r str, &'r KeyedCall)> {
    let is_it = |(known, call): &(&str, &KeyedCall)| {
        let short = known.strip_prefix(&run.key_base(call.turn));
        let is_named = *known == key || short == Some(key);
        call.is_unknown(run) && is_named && seq.is_none_or(|seq| seq == call.begun)
    };
    run.keyed.iter().find(is_it)
}

/// True if the attempt that is at work has made this call, and its end is not known.
fn is_open(run: &Run, key: &str) -> bool {
    run.keyed.iter().any(|(known, call)| {
        let short = known.strip_prefix(&run.key_base(call.turn));
        (known == key || short == Some(key)) && call.end.is_none() && !call.is_unknown(run)
    })
}

fn refuse_resolve(run: &Run, key: &str, seq: Option<u64>) -> Answer<()> {
    let id = &run.id;
    let taken = seq.and_then(|seq| run.orders.answer_to(seq));
    if let Some(taken) = taken.filter(|taken| matches!(taken.verb, Verb::Resolve { .. })) {
        let (done, event) = (taken.verb.done(), taken.seq);
        let message = format!("the call {key} of run {id} was {done}{} (event {event})", by(taken));
        return Err(Refusal::new(Code::AlreadyAnswered, message)
            .hint(format!("outlast call --run {id} --list")));
    }
    refuse_ended(run)?;
    if doubt(run, key, seq).is_some() {
        return Ok(());
    }
    if let Some((_, open)) = doubt(run, key, None) {
        let message =
            format!("the call {key} of run {id} was made again since: event {}", open.begun);
        return Err(
            Refusal::new(Code::StaleOrder, message).hint(format!("outlast call --run {id} --list"))
        );
    }
    if is_open(run, key) {
        let message = format!("the attempt of run {id} that made the call {key} has not ended");
        return Err(Refusal::new(Code::CallIsOpen, message).hint(format!(
            "say it once the attempt has ended; to see how far it is:\noutlast show {id}"
        )));
    }
    let message = format!("run {id} has no call {key} whose end was not observed");
    Err(Refusal::new(Code::UnknownCall, message).hint(format!("outlast call --run {id} --list")))
}

/// The call that an order was about, as the order left it.
async fn resolved(
    supervisor: &Arc<Supervisor>,
    id: &RunId,
    seq: u64,
    was_made: bool,
) -> Answer<CallRow> {
    let (store, run) = (supervisor.ground.store.clone(), id.clone());
    let found = blocking(move || Ok(store.events(&run, seq.saturating_sub(1), 1)?)).await?;
    let Some(Fact::CallBegun { turn, attempt, asked }) = found.into_iter().next().map(|it| it.fact)
    else {
        return Err(not_taken(id));
    };
    let (state, exit_code) =
        if was_made { (CallState::Done, Some(0)) } else { (CallState::Unknown, None) };
    let CallAsked { key, command, class, .. } = *asked;
    let (class, tries, signal) = (class_of(class), 1, None);
    Ok(CallRow { key, seq, command, class, state, turn, attempt, tries, exit_code, signal })
}

/// The calls of a run under keys, as far as they are of use.
pub(crate) fn rows(run: &Run) -> Vec<CallRow> {
    run.keyed.iter().map(|(key, call)| row(run, key, call)).collect()
}

fn row(run: &Run, key: &str, call: &KeyedCall) -> CallRow {
    let (exit_code, signal) = call.end.map_or((None, None), |end| codes(end.exit));
    let state = match call.end {
        Some(CallEnd { exit: Exit::Code(0), .. }) => CallState::Done,
        Some(_) => CallState::Failed,
        None if call.is_unknown(run) => CallState::Unknown,
        None => CallState::Open,
    };
    CallRow {
        key: key.to_owned(),
        seq: call.begun,
        command: call.command.clone(),
        class: class_of(call.class),
        state,
        turn: call.turn,
        attempt: call.attempt,
        tries: call.tries,
        exit_code,
        signal,
    }
}

fn codes(exit: Exit) -> (Option<i32>, Option<i32>) {
    match exit {
        Exit::Code(code) => (Some(code), None),
        Exit::Signal(signal) => (None, Some(signal)),
    }
}

fn class(class: CallClass) -> ToolClass {
    match class {
        CallClass::Read => ToolClass::Read,
        CallClass::Idempotent => ToolClass::Idempotent,
        CallClass::Keyed => ToolClass::Keyed,
        CallClass::Unsafe => ToolClass::Unsafe,
    }
}

pub(super) fn class_of(class: ToolClass) -> CallClass {
    match class {
        ToolClass::Read => CallClass::Read,
        ToolClass::Idempotent => CallClass::Idempotent,
        ToolClass::Keyed => CallClass::Keyed,
        ToolClass::Unsafe => CallClass::Unsafe,
    }
}
