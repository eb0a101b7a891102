//! A run told as a story: news in, the journal printed.
#![expect(dead_code, reason = "each test binary tells other stories")]

use std::sync::Arc;

use outlast_engine::{
    Agent, Answer, BootId, Budget, Context, Custody, End, EndCause, Event, Exit, Fact, Input,
    Limits, Nearing, NeverStarted, OnInterrupt, Order, PauseAll, Report, Response, Retry, Run,
    RunId, RunSpec, Seen, Slot, Started, Step, Survivor, Time, TreeNews, TurnStatus, Word,
    Workflow, check, create,
};

pub(crate) struct Story {
    pub(crate) id: RunId,
    pub(crate) events: Vec<Event>,
    pub(crate) now: Time,
    pub(crate) boot: BootId,
    pub(crate) booted_at_ms: Option<i64>,
    pub(crate) slot: Slot,
    pub(crate) pause_all: PauseAll,
    pub(crate) word: Option<Arc<Order>>,
    pub(crate) budget: Budget,
    pub(crate) nearing: Vec<Nearing>,
    pub(crate) seen: Seen,
    pub(crate) build: Option<&'static str>,
}

impl Story {
    pub(crate) fn of(spec: RunSpec) -> Self {
        Self::begun(spec, Time(1_000_000), None)
    }

    /// On a line of time that can be moved.
    pub(crate) fn on_a_line(spec: RunSpec) -> Self {
        Self::begun(spec, Time(360_000_000), Some(0))
    }

    fn begun(spec: RunSpec, now: Time, booted_at_ms: Option<i64>) -> Self {
        let id = RunId("k3v9d2m7q0xa".to_owned());
        let mut story = Self {
            id,
            events: Vec::new(),
            now,
            boot: BootId("boot-1".to_owned()),
            booted_at_ms,
            slot: Slot::Free,
            pause_all: PauseAll::Off,
            word: None,
            budget: Budget::Room,
            nearing: Vec::new(),
            seen: Seen::default(),
            build: None,
        };
        story.events = create(&story.id, spec, &story.context());
        story
    }

    pub(crate) fn context(&self) -> Context {
        Context {
            booted_at_ms: self.booted_at_ms,
            slot: self.slot,
            pause_all: self.pause_all,
            word: self.word.clone(),
            budget: self.budget.clone(),
            nearing: self.nearing.clone(),
            seen: self.seen,
            build: self.build,
            ..Context::new(self.now, self.boot.clone())
        }
    }

    pub(crate) fn run(&self) -> Run {
        Run::replay(&self.id, &self.events).expect("a story is legal")
    }

    pub(crate) fn tell(&mut self, input: Input) -> &mut Self {
        self.now = self.now.plus_ms(10);
        let news = self.run().handle(&input, &self.context());
        self.events.extend(news);
        assert_eq!(check(&self.id, &self.events), []);
        self
    }

    pub(crate) fn report(&mut self, change: impl FnOnce(&mut Report)) -> &mut Self {
        let run = self.run();
        let started = Some(Started { at: self.now, pid: 41, start: 7 });
        let step = match run.live_errand() {
            Some(errand) => Step::Errand { errand: errand.number },
            None => run.attempt.as_ref().expect("a turn has started").step(),
        };
        let mut report = Report { started, ..Report::of(step, Custody::Shim) };
        change(&mut report);
        self.tell(Input::Reported(Box::new(report)))
    }

    /// The current attempt ends with this answer.
    pub(crate) fn answers(&mut self, response: Response) -> &mut Self {
        let at = self.now.plus_ms(3);
        self.report(|report| {
            report.end = Some(End::Exited { at, exit: Exit::Code(0), cause: None });
            report.tree = TreeNews::Empty;
            report.answer = Answer::Given(Box::new(response));
        })
    }

    /// It answers, and this is what the workspace then looks like.
    pub(crate) fn answers_in(&mut self, response: Response, workspace: &str) -> &mut Self {
        let at = self.now.plus_ms(3);
        self.report(|report| {
            report.end = Some(End::Exited { at, exit: Exit::Code(0), cause: None });
            report.tree = TreeNews::Empty;
            report.answer = Answer::Given(Box::new(response));
            report.workspace = Some(workspace.to_owned());
        })
    }

    /// The current step is ended by its shim.
    pub(crate) fn is_ended_for(&mut self, cause: EndCause) -> &mut Self {
        let at = self.now.plus_ms(3);
        self.report(|report| {
            report.end = Some(End::Exited { at, exit: Exit::Signal(15), cause: Some(cause) });
            report.tree = TreeNews::Empty;
        })
    }

    /// The shim of the current step is gone, and so is what it held.
    pub(crate) fn is_lost(&mut self) -> &mut Self {
        self.report(|report| {
            report.custody = Custody::Nobody;
            report.tree = TreeNews::Empty;
        })
    }

    /// The host had no resources for the current step.
    pub(crate) fn finds_no_resources(&mut self) -> &mut Self {
        let (at, code) = (self.now.plus_ms(3), NeverStarted::NoResources);
        self.report(|report| {
            report.started = None;
            report.end = Some(End::NeverStarted { at, code, why: "fork: try again".to_owned() });
            report.tree = TreeNews::Empty;
        })
    }

    /// What the run is doing, and the last word it gave.
    pub(crate) fn is_at(&self) -> String {
        let run = self.run();
        format!("{} ({}), {}", run.state.name().word(), run.why.reason_code, run.phase())
    }

    pub(crate) fn exits(&mut self, code: i32) -> &mut Self {
        let at = self.now.plus_ms(3);
        self.report(|report| {
            report.end = Some(End::Exited { at, exit: Exit::Code(code), cause: None });
            report.tree = TreeNews::Empty;
        })
    }

    /// The clock was wrong by so much: from here on times are on another line.
    pub(crate) fn clock_is_set(&mut self, by_ms: i64) -> &mut Self {
        self.now = Time(self.now.0.saturating_add_signed(by_ms));
        self.booted_at_ms = self.booted_at_ms.map(|at| at + by_ms);
        self.tell(Input::Woke)
    }

    pub(crate) fn wakes_after(&mut self, ms: u64) -> &mut Self {
        self.now = self.now.plus_ms(ms);
        self.tell(Input::Woke)
    }

    /// One line an event, without what does not matter.
    pub(crate) fn journal(&self) -> String {
        self.events
            .iter()
            .map(|event| format!("{:>2} {}\n", event.seq, line(&event.fact)))
            .collect()
    }
}

fn line(fact: &Fact) -> String {
    match fact {
        Fact::StateChanged { from, to, why, .. } => {
            format!("{} -> {} ({})", from.word(), to.word(), why.reason_code)
        }
        Fact::TurnStarted { turn, attempt, .. } => format!("TurnStarted t{turn}.a{attempt}"),
        Fact::ErrandStarted { errand, purpose, .. } => {
            format!("ErrandStarted e{errand} {}", purpose.label())
        }
        Fact::ErrandEnded { errand, outcome, .. } => format!("ErrandEnded e{errand} {outcome:?}"),
        Fact::LimitReached { limit } => format!("LimitReached {}", limit.word()),
        Fact::AttemptEnded { turn, attempt, outcome, .. } => {
            format!("AttemptEnded t{turn}.a{attempt} {outcome:?}")
        }
        Fact::RunEnded { state, reason_code } => {
            format!("RunEnded {state:?} {}", reason_code.as_ref().map_or("-", Word::as_str))
        }
        Fact::HealthDegraded { health, .. } => format!("HealthDegraded {}", health.word()),
        Fact::HealthRecovered { from } => format!("HealthRecovered {}", from.word()),
        Fact::LimitNeared { limit, .. } => format!("LimitNeared {}", limit.word()),
        other => other.kind().to_owned(),
    }
}

pub(crate) fn command() -> RunSpec {
    let agent = Agent { kind: "exec".to_owned(), command: vec!["true".to_owned()] };
    RunSpec::command(agent, "/".to_owned())
}

pub(crate) fn retried(max_attempts: u32) -> RunSpec {
    RunSpec { retry: Retry { max_attempts, ..Retry::default() }, ..command() }
}

pub(crate) fn survivor() -> Survivor {
    Survivor { pid: 99, start: 12, command: "sleep".to_owned() }
}

pub(crate) fn says(status: TurnStatus) -> Response {
    Response {
        status,
        summary: format!("{} it is", status.word()),
        next_task: None,
        tool_calls: Vec::new(),
        usage: None,
        wait: None,
    }
}

/// A loop as its file makes it, without hooks and checks.
pub(crate) fn a_loop() -> RunSpec {
    let workflow = Workflow {
        path: "/w/WORKFLOW.md".to_owned(),
        sha256: "0".repeat(64),
        prompt: "{{ task }}".to_owned(),
    };
    RunSpec {
        task: Some("improve it".to_owned()),
        workflow: Some(workflow),
        limits: Limits {
            max_turns: Some(20),
            max_stall_restarts: Some(3),
            no_progress_turns: Some(3),
            ..Limits::default()
        },
        retry: Retry { max_attempts: 5, ..Retry::default() },
        on_interrupt: OnInterrupt::Resume,
        ..command()
    }
}
