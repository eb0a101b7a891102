//! The files that an attempt of a driven agent leaves.

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use outlast_agents::adapter::{
    Afresh, Context, Ended, Event, MOST_EVENTS, Orders, Session, Spent, Stamped,
};
use outlast_home::layout::AttemptDir;
use outlast_home::regular;
use outlast_secrets::Secrets;
use serde::Serialize;

/// Of a transcript so much is kept; the events go on.
const MOST_TRANSCRIPT: u64 = 256 << 20;

#[derive(Debug)]
pub(crate) struct Record {
    events: File,
    event_bytes: u64,
    transcript: File,
    transcript_bytes: u64,
    end: PathBuf,
    session_file: PathBuf,
    session: Option<Session>,
    kind: String,
    turn: Option<u32>,
    /// The turn in which the conversation began that a copy is made of.
    began_in: Option<u32>,
    /// Where a copy of a conversation was wanted and a new one began.
    afresh: Vec<Afresh>,
    heartbeat: Option<PathBuf>,
    secrets: Secrets,
}

/// Which way a line went.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) enum Way {
    #[serde(rename = "<")]
    FromAgent,
    #[serde(rename = ">")]
    ToAgent,
}

#[derive(Serialize)]
struct Line<'a> {
    at_ms: u64,
    dir: Way,
    line: Cow<'a, str>,
}

impl Record {
    /// From here on the conversation that the attempt goes on with is one of this turn.
    pub(crate) fn open(dir: &AttemptDir, orders: &Orders, secrets: Secrets) -> io::Result<Self> {
        let append = |path: &Path| {
            let mut options = OpenOptions::new();
            options.create(true).append(true).mode(0o600);
            regular::open_with(&mut options, path)
        };
        let before = last_session(orders);
        let afresh = before.as_ref().map(|it| it.afresh.clone()).unwrap_or_default();
        let session = before.filter(|it| {
            orders.turn.fork.is_none() && Some(&it.id) == orders.turn.session.as_ref()
        });
        let record = Self {
            events: append(&dir.agent_events())?,
            event_bytes: 0,
            transcript: append(&dir.transcript())?,
            transcript_bytes: 0,
            end: dir.agent_end(),
            session_file: orders.session_file.clone(),
            session: session.map(|session| Session {
                last_turn: orders.turn_number.or(session.last_turn),
                ..session
            }),
            kind: orders.kind.clone(),
            turn: orders.turn_number,
            began_in: orders.turn.fork.as_ref().and_then(|mark| mark.began_in),
            afresh,
            heartbeat: orders.heartbeat.clone(),
            secrets,
        };
        record.keep_session(Lasting::Process)?;
        Ok(record)
    }

    /// The conversation that the attempt was to go on with is left, and the next one is new.
    pub(crate) fn leave_conversation(&mut self) {
        self.session = None;
    }

    /// A copy was to be gone on with; a new conversation begins instead.
    pub(crate) fn begin_afresh(&mut self, why: &str) {
        self.afresh.push(Afresh { turn: self.turn, why: why.to_owned() });
        (self.session, self.began_in) = (None, None);
    }

    pub(crate) fn conversation(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    pub(crate) fn is_in_conversation(&self) -> bool {
        self.session.is_some()
    }

    /// Writes an event down. A name of the conversation is durable before anything follows from it.
    pub(crate) fn event(&mut self, event: &Event) -> io::Result<()> {
        if let Event::Context { used, window } = event {
            self.fill(*used, *window)?;
        }
        let is_needed = matches!(
            event,
            Event::Session { .. }
                | Event::Spent(_)
                | Event::Asked(_)
                | Event::Decided { .. }
                | Event::Ended(_)
        );
        if self.event_bytes > MOST_EVENTS && !is_needed {
            self.beat();
            return Ok(());
        }
        let stamped = Stamped { at_ms: now_ms(), event: event.clone() };
        let mut line = serde_json::to_string(&stamped).map_err(io::Error::other)?;
        line.push('\n');
        let line = self.secrets.hide_json(line.as_bytes());
        self.event_bytes += line.len() as u64;
        self.events.write_all(&line)?;
        if let Event::Session { id } = event {
            self.converse(id)?;
        }
        self.beat();
        Ok(())
    }

    fn converse(&mut self, id: &str) -> io::Result<()> {
        let before = self.session.as_ref();
        if before.is_some_and(|session| session.id == id) {
            return Ok(());
        }
        // An agent that goes on under another name has begun no new one.
        let began_in = before.map_or(self.began_in.or(self.turn), |session| session.began_in);
        let began_ms = before.map_or(Some(now_ms()), |session| session.began_ms);
        let begun = Session::begun(&self.kind, id, self.turn);
        let session = Session { began_in, began_ms, afresh: self.afresh.clone(), ..begun };
        // A name that no program should be given is not kept: the next attempt begins anew.
        if !session.is_sound() {
            return Ok(());
        }
        self.session = Some(session);
        self.keep_session(Lasting::Power)
    }

    /// A window that was said once holds until another one is, and no context that was asked is empty.
    fn fill(&mut self, used: u64, window: Option<u64>) -> io::Result<()> {
        let Some(session) = self.session.as_mut().filter(|_| used > 0) else { return Ok(()) };
        let window = window.or(session.context.and_then(|context| context.window));
        let context = Some(Context { used, window });
        if session.context == context {
            return Ok(());
        }
        session.context = context;
        self.keep_session(Lasting::Process)
    }

    fn keep_session(&self, lasting: Lasting) -> io::Result<()> {
        let Some(session) = &self.session else { return Ok(()) };
        let session = serde_json::to_vec(session).map_err(io::Error::other)?;
        write_whole(&self.session_file, &session, lasting)
    }

    /// When the conversation that is gone on with began, in milliseconds since 1970.
    pub(crate) fn began_ms(&self) -> Option<u64> {
        self.session.as_ref()?.began_ms
    }

    /// What the conversation of this name had used up before this attempt.
    pub(crate) fn spent_before(&self, session: Option<&str>) -> Option<Spent> {
        self.session.as_ref().filter(|it| Some(it.id.as_str()) == session)?.spent
    }

    /// A line as it was; what is not text is shown as such.
    pub(crate) fn line(&mut self, dir: Way, line: &[u8]) -> io::Result<()> {
        if self.transcript_bytes > MOST_TRANSCRIPT {
            return Ok(());
        }
        let hidden = self.secrets.hide_json(line);
        let line = Line { at_ms: now_ms(), dir, line: String::from_utf8_lossy(&hidden) };
        let mut bytes = serde_json::to_vec(&line).map_err(io::Error::other)?;
        bytes.push(b'\n');
        self.transcript_bytes += bytes.len() as u64;
        self.transcript.write_all(&bytes)
    }

    /// Text that may be shown.
    pub(crate) fn hide<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.secrets.hide(text)
    }

    /// The same of a text that may have been cut in the middle of a secret.
    pub(crate) fn hide_cut(&self, text: &str) -> String {
        let Some(start) = text.strip_suffix('…') else { return self.hide(text).into_owned() };
        let mut redactor = self.secrets.redactor();
        let mut shown = String::from_utf8_lossy(redactor.feed(start.as_bytes())).into_owned();
        shown.push('…');
        shown
    }

    /// The agent works, whether it says so or not.
    pub(crate) fn beat(&self) {
        let Some(path) = &self.heartbeat else { return };
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true).mode(0o600);
        let touched = regular::open_with(&mut options, path);
        // One that cannot be touched costs a restart at worst.
        let _silence =
            touched.and_then(|file| file.set_modified(SystemTime::UNIX_EPOCH + since_1970()));
    }

    /// The end has what counts of the events, so they are not made to survive the machine.
    pub(crate) fn end(&mut self, ended: &Ended) -> io::Result<()> {
        if let (Some(session), Some(spent)) = (&mut self.session, &ended.spent) {
            session.spent = Some(session.spent.map_or(*spent, |before| before.and(spent)));
        }
        // What the next turn decides by is not older than the end of this one: its new name is made to last together
        // with the name of the end.
        self.keep_session(Lasting::Bytes)?;
        let ended = serde_json::to_string(ended).map_err(io::Error::other)?;
        write_whole(&self.end, &self.secrets.hide_json(ended.as_bytes()), Lasting::Power)
    }
}

/// The conversation of the last attempt. The daemon has read the file just before.
fn last_session(orders: &Orders) -> Option<Session> {
    let bytes = regular::read(&orders.session_file).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Whether a file has to survive the machine, or only this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lasting {
    Power,
    /// Whatever name it has after a crash, its bytes are whole.
    Bytes,
    Process,
}

/// There whole or not at all.
fn write_whole(path: &Path, bytes: &[u8], lasting: Lasting) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::other("a file needs a name"));
    };
    let beside = parent.join(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
    let mut options = OpenOptions::new();
    options.create(true).truncate(true).write(true).mode(0o600);
    let mut file = regular::open_with(&mut options, &beside)?;
    file.write_all(bytes)?;
    if matches!(lasting, Lasting::Power | Lasting::Bytes) {
        file.sync_data()?;
    }
    std::fs::rename(&beside, path)?;
    if lasting == Lasting::Power { File::open(parent)?.sync_all() } else { Ok(()) }
}

fn now_ms() -> u64 {
    u64::try_from(since_1970().as_millis()).unwrap_or(u64::MAX)
}

#[expect(clippy::disallowed_methods, reason = "events are stamped here")]
fn since_1970() -> std::time::Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
