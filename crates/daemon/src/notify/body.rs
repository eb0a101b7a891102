//! The words of a notice: what the run knows of itself, and the last lines of its output. And of a batch, and of
//! a test.

use outlast_engine::{Notice, NoticeKind, Run, StateName, Time};
use outlast_home::layout::Layout;
use outlast_store::Waiting;
use outlast_wire::api;

use super::text;
use crate::world::host;
use crate::{tail, view};
use outlast_conduct::fenced_run::Tell;

/// The most of the output that a notice carries, in bytes.
const TAIL: usize = 2000;

/// The most of what a run has to say, in bytes.
const SUMMARY: usize = 16 << 10;

/// Lines that a batch has of what is in it.
const BATCH_LINES: usize = 5;

pub(crate) struct Words<'a> {
    pub(crate) layout: &'a Layout,
}

impl Tell for Words<'_> {
    fn body(&self, run: &Run, notice: &Notice) -> String {
        let data = api::NoticeData {
            run: run.id.0.clone(),
            name: run.spec.name.clone(),
            state: notice.state.into(),
            reason_code: notice.reason_code.clone(),
            exit: notice.exit,
            summary: notice.summary.as_ref().map(|summary| text::clipped(summary, SUMMARY)),
            turn: notice.turn,
            output_tail: self.tail(run, notice),
            usage: Some(view::usage(run)),
            duration_ms: run.started_at.map(|start| notice.at.ms_since(start)),
            host: Some(host::name()),
            question: question(run, notice).map(|text| text::clipped(&text, SUMMARY)),
            dir: Some(run.spec.asked_in.as_ref().unwrap_or(&run.spec.dir).clone()),
            asks: asks(run, notice),
            links: None,
        };
        let told = api::Notice {
            id: notice.id.clone(),
            kind: notice.kind.word().to_owned(),
            timestamp: view::rfc3339(notice.at),
            data,
        };
        serde_json::to_string(&told).expect("a notice is plain data")
    }
}

impl Words<'_> {
    fn tail(&self, run: &Run, notice: &Notice) -> String {
        if notice.turn == 0 {
            return String::new();
        }
        let dir = self.layout.run(run.id.as_str()).attempt(notice.turn, notice.attempt);
        tail::of_output(&dir, TAIL)
    }
}

/// The question that a person is asked by this notice.
fn asks(run: &Run, notice: &Notice) -> Option<api::NoticeAsks> {
    question(run, notice)?;
    let open = run.asks()?;
    Some(api::NoticeAsks { seq: open.seq, kind: open.kind.word().to_owned() })
}

/// What a person is asked by this notice.
fn question(run: &Run, notice: &Notice) -> Option<String> {
    match notice.kind {
        NoticeKind::Asked => notice.summary.clone(),
        NoticeKind::Blocked => view::blocked(run)?.question,
        NoticeKind::Completed
        | NoticeKind::Failed
        | NoticeKind::Stopped
        | NoticeKind::Exhausted
        | NoticeKind::Warning
        | NoticeKind::Matched
        | NoticeKind::Heartbeat
        | NoticeKind::Emitted => None,
    }
}

/// What is told at once: one notice, or many as one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Telling {
    /// The same however often it is told.
    pub(super) id: String,
    pub(super) kind: String,
    /// The run it is about; of a batch, the first.
    pub(super) run: String,
    /// As JSON.
    pub(super) body: String,
    pub(super) content: Content,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Content {
    One(Box<api::Notice>),
    Many(Box<api::NoticeBatch>),
}

impl Telling {
    pub(super) fn one(waiting: &Waiting) -> Result<Self, String> {
        let notice = read(waiting)?;
        Ok(Self {
            id: notice.id.clone(),
            kind: notice.kind.clone(),
            run: notice.data.run.clone(),
            body: waiting.body.clone(),
            content: Content::One(Box::new(notice)),
        })
    }

    /// All of a batch, which has at least one.
    pub(super) fn many(id: &str, batch: &[Waiting]) -> Result<Self, String> {
        let notices: Vec<api::Notice> = batch.iter().map(read).collect::<Result<_, _>>()?;
        let last = notices.last().ok_or("a batch of nothing")?;
        let mut lines: Vec<String> = notices.iter().take(BATCH_LINES).map(text::title).collect();
        if notices.len() > BATCH_LINES {
            lines.push(format!("and {} more", notices.len() - BATCH_LINES));
        }
        let told = api::NoticeBatch {
            id: id.to_owned(),
            kind: "run.batch".to_owned(),
            timestamp: last.timestamp.clone(),
            data: api::BatchData {
                count: u32::try_from(notices.len()).unwrap_or(u32::MAX),
                summary: lines.join("\n"),
                ids: notices.iter().map(|notice| notice.id.clone()).collect(),
            },
        };
        Ok(Self {
            id: told.id.clone(),
            kind: told.kind.clone(),
            run: notices[0].data.run.clone(),
            body: serde_json::to_string(&told).expect("a batch is plain data"),
            content: Content::Many(Box::new(told)),
        })
    }

    /// Tells nothing but that telling works.
    pub(super) fn test(id: &str, now: Time) -> Self {
        let notice = api::Notice {
            id: id.to_owned(),
            kind: "sink.test".to_owned(),
            timestamp: view::rfc3339(now),
            data: api::NoticeData {
                run: "test".to_owned(),
                name: None,
                state: StateName::Completed.into(),
                reason_code: None,
                exit: None,
                summary: Some("a test, sent by outlast sink test".to_owned()),
                turn: 0,
                output_tail: String::new(),
                usage: None,
                duration_ms: None,
                host: Some(host::name()),
                question: None,
                dir: None,
                asks: None,
                links: None,
            },
        };
        Self {
            id: notice.id.clone(),
            kind: notice.kind.clone(),
            run: notice.data.run.clone(),
            body: serde_json::to_string(&notice).expect("a notice is plain data"),
            content: Content::One(Box::new(notice)),
        }
    }

    /// The same with links that answer its question, for a sink that may have them.
    pub(super) fn linked(&self, links: api::NoticeLinks) -> Self {
        let Content::One(notice) = &self.content else { return self.clone() };
        let mut notice = notice.clone();
        notice.data.links = Some(links);
        let body = serde_json::to_string(&notice).expect("a notice is plain data");
        Self { body, content: Content::One(notice), ..self.clone() }
    }

    /// The notice, if it is one.
    pub(super) fn notice(&self) -> Option<&api::Notice> {
        match &self.content {
            Content::One(notice) => Some(notice),
            Content::Many(_) => None,
        }
    }

    /// The directory that the run of one notice was started in.
    pub(super) fn dir(&self) -> Option<&str> {
        match &self.content {
            Content::One(notice) => notice.data.dir.as_deref(),
            Content::Many(_) => None,
        }
    }

    pub(super) fn title(&self) -> String {
        match &self.content {
            Content::One(notice) => text::title(notice),
            Content::Many(batch) => format!("{} notices at once", batch.data.count),
        }
    }

    /// What there is to say beyond the title.
    pub(super) fn message(&self) -> String {
        match &self.content {
            Content::One(notice) => text::message(notice),
            Content::Many(batch) => batch.data.summary.clone(),
        }
    }
}

fn read(waiting: &Waiting) -> Result<api::Notice, String> {
    serde_json::from_str(&waiting.body)
        .map_err(|error| format!("notice {} cannot be read: {error}", waiting.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_that_an_older_version_left_is_told_as_it_is() {
        let body = r#"{"id":"k3m/t1.a1/9","type":"run.failed","timestamp":"2026-11-15T12:00:00Z","data":{"run":"k3m",
            "name":"nightly","state":"failed","reason_code":null,"exit":{"code":3},"summary":"no","turn":1,"output_tail":""}}"#;
        let waiting = Waiting {
            id: "k3m/t1.a1/9".to_owned(),
            run: outlast_engine::RunId("k3m".to_owned()),
            kind: "run.failed".to_owned(),
            at: Time(0),
            body: body.to_owned(),
            tries: 0,
            next_at: None,
            since: None,
            batch: None,
        };
        let telling = Telling::one(&waiting).expect("it is read");
        assert_eq!((telling.body.as_str(), telling.dir()), (body, None));
        assert_eq!(
            (telling.title(), telling.message()),
            ("nightly failed: exit 3".to_owned(), "no".to_owned())
        );
    }
}
