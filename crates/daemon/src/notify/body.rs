//! The words of a notice: what the run knows of itself, and the last lines of its output.

use outlast_engine::{Notice, Run};
use outlast_wire::api;
use outlast_wire::layout::Layout;

use crate::driver::Tell;
use crate::{tail, view};

/// The most of the output that a notice carries, in bytes.
const TAIL: usize = 2000;

pub(crate) struct Words<'a> {
    pub(crate) layout: &'a Layout,
}

impl Tell for Words<'_> {
    fn body(&self, run: &Run, notice: &Notice) -> String {
        let data = api::NoticeData {
            run: run.id.0.clone(),
            name: run.spec.name.clone(),
            state: notice.state.word().to_owned(),
            reason_code: notice.reason_code.clone(),
            exit: notice.exit.map(view::exit),
            summary: notice.summary.clone(),
            turn: notice.turn,
            output_tail: self.tail(run, notice),
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
