//! A step whose shim is gone or cannot be asked: its exit can no longer be seen, its processes still can.
//!
//! Nothing is polled: each process that is left is waited for. A shim whose directory is gone lives on without a way
//! to it; it leaves once its tree is empty, and is ended if it does not.

use outlast_engine::{Custody, End, EndCause, Report, Started, StopMode, Survivor, Time, TreeNews};
use outlast_wire::shim::Record;
use outlast_wire::words::TroubleCode;

use super::{
    At, Effect, GRACE_MS, News, Seen, Signal, StepMonitor, Surroundings, Then, Unposted, Who,
};
use crate::records;

/// How long a KILL may take to show before the stop is called incomplete.
const KILL_WITHIN_MS: u64 = 10_000;

/// How long a shim may take to leave after its tree. Longer than one takes that looks for a daemon first.
const LEAVE_WITHIN_MS: u64 = 20_000;

/// Between two tries to look at processes when the system does not let us.
const LOOK_AGAIN_MS: u64 = 1_000;

/// Rounds of KILL: each kills what the processes of the last one had started meanwhile.
const ROUNDS: u8 = 16;

#[derive(Debug)]
pub(super) struct Orphan {
    records: Vec<Record>,
    main: Option<Who>,
    limit: Option<(Time, EndCause)>,
    ended: Ended,
    /// Its end was known before we tried to end what is left of it.
    had_ended: bool,
    stage: Stage,
    /// Who was seen last.
    seen: Seen,
}

#[derive(Debug)]
enum Stage {
    Looking,
    /// Looking was not possible.
    LookingAgain {
        until_ms: u64,
    },
    /// Until one of these is gone, a limit is reached or an order comes.
    Waiting {
        limit: Option<Time>,
        /// When a shim that is alone has had its time.
        shim_until_ms: Option<u64>,
        /// The main process alone, out of its session and with another environment: looked at now and then.
        look_at_ms: Option<u64>,
    },
    Ending {
        becomes: Ended,
        round: Round,
    },
    /// Looking was not possible, so nothing was signalled.
    EndingAgain {
        becomes: Ended,
        round: Round,
        until_ms: u64,
    },
    /// Until the signalled processes are gone, or have had their time.
    Dying {
        becomes: Ended,
        round: Round,
        until_ms: u64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Round {
    Term,
    Kill(u8),
}

/// Whether we have tried to end the tree, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    NotTried,
    ByOrder,
    For(EndCause),
}

impl Ended {
    /// A shim that saw the end and was not asked for it takes it for the command's own.
    fn is_cause_of(self, report: &mut Report) {
        let ours = match self {
            Self::NotTried => None,
            Self::ByOrder => Some(EndCause::Stopped),
            Self::For(cause) => Some(cause),
        };
        if let Some(End::Exited { cause, .. }) = &mut report.end {
            *cause = cause.or(ours);
        }
    }
}

impl Orphan {
    pub(super) fn wake_in(&self, around: &dyn Surroundings) -> Option<u64> {
        let left_ms = |until_ms: u64| until_ms.saturating_sub(around.awake_ms());
        match &self.stage {
            Stage::Looking | Stage::Ending { .. } => None,
            Stage::LookingAgain { until_ms }
            | Stage::EndingAgain { until_ms, .. }
            | Stage::Dying { until_ms, .. } => Some(left_ms(*until_ms)),
            Stage::Waiting { limit, shim_until_ms, look_at_ms } => {
                let limit_in = limit.map(|at| at.ms_since(around.steady()));
                let times = shim_until_ms.iter().chain(look_at_ms).copied().map(left_ms);
                times.chain(limit_in).min()
            }
        }
    }

    fn is_reached(&self, around: &dyn Surroundings) -> Option<EndCause> {
        self.limit.filter(|(at, _)| *at <= around.steady()).map(|(_, cause)| cause)
    }
}

impl StepMonitor {
    pub(super) fn orphan(&mut self, records: Vec<Record>, around: &dyn Surroundings) -> At {
        let of_records = records::identity(&records).map(|it| Who { pid: it.pid, start: it.start });
        let limit = match self.taken_over {
            Some(Some(cause)) => Some((Time(0), cause)),
            Some(None) | None => self.limit_of_orphan(&records, around),
        };
        let main = of_records.or_else(|| self.known_process());
        let (ended, had_ended) = (Ended::NotTried, false);
        let (stage, seen) = (Stage::Looking, Seen::default());
        self.look_for(Orphan { records, main, limit, ended, had_ended, stage, seen })
    }

    fn look_for(&mut self, orphan: Orphan) -> At {
        self.effects.push(Effect::LookForProcesses { main: orphan.main });
        At::Orphaned(Orphan { stage: Stage::Looking, ..orphan })
    }

    pub(super) fn watch_over(
        &mut self,
        orphan: Orphan,
        news: News,
        around: &dyn Surroundings,
    ) -> At {
        let now_ms = around.awake_ms();
        match (&orphan.stage, news) {
            (Stage::Looking, News::Seen(seen)) => self.looked(orphan, seen, around),
            (Stage::LookingAgain { until_ms }, News::Woke) if now_ms >= *until_ms => {
                self.look_for(orphan)
            }
            (Stage::Waiting { .. }, News::Gone) => self.look_for(orphan),
            (Stage::Waiting { limit, shim_until_ms, look_at_ms }, News::Woke) => {
                let is_shims_time = shim_until_ms.is_some_and(|at_ms| now_ms >= at_ms);
                let is_time = limit.is_some_and(|at| around.steady() >= at)
                    || look_at_ms.is_some_and(|at_ms| now_ms >= at_ms);
                if is_shims_time {
                    // It owns nothing any more, and cannot be told so.
                    let to = orphan.seen.shims.clone();
                    self.effects.push(Effect::Signal { to, signal: Signal::Kill });
                }
                if is_shims_time || is_time { self.look_for(orphan) } else { At::Orphaned(orphan) }
            }
            (Stage::Ending { becomes, round }, News::Seen(seen)) => {
                let (becomes, round) = (*becomes, *round);
                match seen {
                    Ok(seen) => self.strike(orphan, becomes, round, seen, around),
                    Err(error) => {
                        let until_ms = self.cannot_look(&error, around);
                        let stage = Stage::EndingAgain { becomes, round, until_ms };
                        At::Orphaned(Orphan { stage, ..orphan })
                    }
                }
            }
            (Stage::EndingAgain { becomes, round, until_ms }, News::Woke)
                if now_ms >= *until_ms =>
            {
                let (becomes, round) = (*becomes, *round);
                self.end(orphan, becomes, round)
            }
            (Stage::Dying { becomes, round, .. }, News::Gone) => {
                let next = match round {
                    Round::Term => Round::Kill(0),
                    Round::Kill(number) => Round::Kill(number + 1),
                };
                let becomes = *becomes;
                self.end(orphan, becomes, next)
            }
            (Stage::Dying { becomes, round, until_ms }, News::Woke) if now_ms >= *until_ms => {
                let becomes = *becomes;
                match round {
                    Round::Term => self.end(orphan, becomes, Round::Kill(0)),
                    Round::Kill(_) => self.has_ended(orphan, becomes),
                }
            }
            // An answer or a wake-up that came too late for what it was meant for.
            (_, _) => At::Orphaned(orphan),
        }
    }

    /// An order is acted on while the monitor waits, and otherwise when it decides next.
    pub(super) fn order_orphan(&mut self, mut orphan: Orphan) -> At {
        if !matches!(orphan.stage, Stage::Waiting { .. }) {
            return At::Orphaned(orphan);
        }
        self.is_stop_news = false;
        if orphan.ended == Ended::ByOrder {
            orphan.ended = Ended::NotTried;
        }
        self.look_for(orphan)
    }

    fn looked(
        &mut self,
        mut orphan: Orphan,
        seen: Result<Seen, String>,
        around: &dyn Surroundings,
    ) -> At {
        // That processes cannot be listed does not mean that they are gone.
        let seen = match seen {
            Ok(seen) => seen,
            Err(error) => {
                let until_ms = self.cannot_look(&error, around);
                return At::Orphaned(Orphan { stage: Stage::LookingAgain { until_ms }, ..orphan });
            }
        };
        if let (None, Some(main)) = (orphan.main, seen.noted.or(seen.leader)) {
            orphan.main = Some(main);
            return self.look_for(orphan);
        }
        // A shim that came to at last may have seen the end.
        if seen.records.len() > orphan.records.len() {
            orphan.records.clone_from(&seen.records);
        }
        if seen.is_over() {
            self.effects.push(Effect::Trouble(None));
        }
        let cause = if orphan.had_ended { Ended::NotTried } else { orphan.ended };
        let line = records::line(&orphan.records);
        if seen.is_over() && records::is_over(&orphan.records) {
            let step = self.task.step;
            let mut report = records::report(step, Custody::Nobody, &orphan.records, 0);
            cause.is_cause_of(&mut report);
            return self.post(Unposted { report, line, then: Then::Done }, around);
        }
        let report = self.report_left(&orphan, &seen, cause, around);
        let is_over = seen.is_over();
        orphan.seen = seen;
        let then = if is_over { Then::Done } else { Then::Decide(orphan) };
        self.post(Unposted { report, line, then }, around)
    }

    /// Says so, and when to look again.
    fn cannot_look(&mut self, error: &str, around: &dyn Surroundings) -> u64 {
        let message = format!("cannot look for its processes: {error}");
        self.say_trouble(TroubleCode::Unreachable, message);
        around.awake_ms() + LOOK_AGAIN_MS
    }

    fn report_left(
        &self,
        orphan: &Orphan,
        seen: &Seen,
        cause: Ended,
        around: &dyn Surroundings,
    ) -> Report {
        // Whether a shim that does not answer has seen an end is not known before it is gone, too. It goes after its
        // tree: one that is alone is waited for, and one whose work was taken over is ended.
        let is_shim_ending = self.taken_over.is_some() && !seen.shims.is_empty();
        let is_guarded = seen.is_main_alive || seen.is_shim_alone() || is_shim_ending;
        let custody = if is_guarded { Custody::Orphan } else { Custody::Nobody };
        let stop_failed = orphan.ended != Ended::NotTried;
        let tree = match seen.left() {
            [] => TreeNews::Empty,
            _ if seen.is_shim_alone() && !stop_failed => TreeNews::Unknown,
            some => TreeNews::Left { survivors: some.to_vec(), stop_failed },
        };
        let ended_for = match orphan.ended {
            Ended::For(cause) => Some(cause),
            Ended::NotTried | Ended::ByOrder => None,
        };
        let mut known = records::report(self.task.step, custody, &orphan.records, 0);
        cause.is_cause_of(&mut known);
        // Found by its marks: when it began was not seen, and it was not later than now.
        let found = orphan.main.filter(|_| seen.is_main_alive);
        let at = around.now();
        let found = found.map(|Who { pid, start }| Started { at, pid, start });
        let started = known.started.or(found);
        Report { tree, ended_for, started, ..known }
    }

    /// What to do about the processes that are left.
    pub(super) fn decide(&mut self, mut orphan: Orphan, around: &dyn Surroundings) -> At {
        // An order that came while the tree was being ended is another one.
        if std::mem::take(&mut self.is_stop_news) && orphan.ended == Ended::ByOrder {
            orphan.ended = Ended::NotTried;
        }
        let is_untried = orphan.ended == Ended::NotTried;
        let reached = orphan.is_reached(around);
        match (self.stop, reached) {
            (Some(mode), _) if orphan.ended != Ended::ByOrder => {
                orphan.had_ended |= is_untried && records::has_ended(&orphan.records);
                let round = match mode {
                    StopMode::Gracefully => Round::Term,
                    StopMode::Now => Round::Kill(0),
                };
                self.end(orphan, Ended::ByOrder, round)
            }
            (None, Some(cause)) if is_untried => {
                orphan.had_ended |= records::has_ended(&orphan.records);
                self.end(orphan, Ended::For(cause), Round::Term)
            }
            _ => self.wait(orphan, around),
        }
    }

    fn wait(&mut self, mut orphan: Orphan, around: &dyn Surroundings) -> At {
        let Seen { tree, shims, .. } = &orphan.seen;
        let these: Vec<Survivor> = tree.iter().chain(shims).cloned().collect();
        let now_ms = around.awake_ms();
        let is_hidden = these.is_empty();
        let is_alone = orphan.seen.is_shim_alone();
        let is_untried = orphan.ended == Ended::NotTried;
        orphan.stage = Stage::Waiting {
            limit: orphan.limit.filter(|_| is_untried).map(|(at, _)| at),
            shim_until_ms: is_alone.then(|| now_ms + LEAVE_WITHIN_MS),
            look_at_ms: is_hidden.then(|| now_ms + LOOK_AGAIN_MS),
        };
        if !is_hidden {
            self.effects.push(Effect::Watch { these, all: false });
        }
        At::Orphaned(orphan)
    }

    /// TERM, grace, KILL, until nothing is left or it has taken too long. The shim goes last: while it lives, all
    /// that its tree starts descends from it.
    fn end(&mut self, orphan: Orphan, becomes: Ended, round: Round) -> At {
        if round == Round::Kill(ROUNDS) {
            return self.has_ended(orphan, becomes);
        }
        self.effects.push(Effect::LookForProcesses { main: orphan.main });
        At::Orphaned(Orphan { stage: Stage::Ending { becomes, round }, ..orphan })
    }

    /// One round, on those who are seen; who is not seen is looked for again before anything is said.
    fn strike(
        &mut self,
        orphan: Orphan,
        becomes: Ended,
        round: Round,
        seen: Seen,
        around: &dyn Surroundings,
    ) -> At {
        let Seen { tree, shims, .. } = seen;
        let (these, signals, within_ms) = match round {
            Round::Term => (tree, [Signal::Term, Signal::Cont].as_slice(), GRACE_MS),
            Round::Kill(_) => {
                let next = if tree.is_empty() { shims } else { tree };
                (next, [Signal::Kill].as_slice(), KILL_WITHIN_MS)
            }
        };
        if these.is_empty() {
            return match round {
                Round::Term => self.end(orphan, becomes, Round::Kill(0)),
                Round::Kill(_) => self.has_ended(orphan, becomes),
            };
        }
        for signal in signals {
            self.effects.push(Effect::Signal { to: these.clone(), signal: *signal });
        }
        self.effects.push(Effect::Watch { these, all: true });
        let until_ms = around.awake_ms() + within_ms;
        At::Orphaned(Orphan { stage: Stage::Dying { becomes, round, until_ms }, ..orphan })
    }

    fn has_ended(&mut self, orphan: Orphan, becomes: Ended) -> At {
        self.look_for(Orphan { ended: becomes, ..orphan })
    }
}
