//! What each order does, by who gives it and what state the attempt is in.
//!
//! Every order is safe to repeat. An order that its giver may not give is refused, and the connection
//! is closed.

use std::time::{Duration, Instant};

use outlast_wire::shim::{EndCause, Frame, NeverStarted, News, Order, Refusal, Role, Window};
use outlast_wire::version;

use crate::attempt::{Attempt, Stage};
use crate::command::Failure;
use crate::connection::{Peer, Seat, View};
use crate::screen;

impl Attempt {
    pub(crate) fn obey(&mut self, id: u64, frame: Frame<Order>, now: Instant) {
        let Some(peer) = self.control.get(id).map(|connection| connection.peer) else { return };
        match (peer, frame) {
            (Peer::Stranger, Frame::Message(Order::Hello { proto: _, epoch, role }))
            | (
                Peer::Daemon { .. },
                Frame::Message(Order::Hello { proto: _, epoch, role: role @ Role::Daemon }),
            ) => {
                self.hello(id, epoch, role, now);
            }
            // What a viewer says comes from a client, through the daemon: it does not speak for the daemon.
            (Peer::Viewer(_) | Peer::Daemon { .. }, Frame::Message(Order::Hello { .. })) => {
                self.control.dismiss(id, Refusal::Protocol, "you have said who you are", now);
            }
            (Peer::Stranger, _) => {
                self.control.dismiss(id, Refusal::Protocol, "say hello first", now);
            }
            (Peer::Daemon { .. }, Frame::Message(Order::Start { turn, attempt, epoch })) => {
                self.start_ordered(id, (turn, attempt), epoch, now);
            }
            (Peer::Daemon { .. }, Frame::Message(Order::Stop { grace_ms })) => {
                self.stop_ordered(Duration::from_millis(grace_ms), now);
            }
            (_, Frame::Message(Order::WatchOutput { after })) => self.watch_ordered(id, after),
            // Who came to look stays one who looks.
            (Peer::Viewer(_), Frame::Message(Order::Attach { window }))
                if self.control.seat(id) == Seat::Whole =>
            {
                self.attach_ordered(id, window, now);
            }
            (Peer::Viewer(_), Frame::Message(Order::Watch { keys })) => {
                self.watch_screen_ordered(id, keys, now);
            }
            (Peer::Viewer(_), Frame::Message(Order::Resize { window }))
                if self.control.seat(id) == Seat::Whole =>
            {
                self.resize(window);
            }
            (Peer::Viewer(_), Frame::Bytes(keys)) if self.control.seat(id) != Seat::Looks => {
                self.press(&keys);
            }
            (
                Peer::Viewer(_),
                Frame::Bytes(_)
                | Frame::Message(
                    Order::Attach { .. }
                    | Order::Resize { .. }
                    | Order::Start { .. }
                    | Order::Stop { .. },
                ),
            )
            | (
                Peer::Daemon { .. },
                Frame::Bytes(_)
                | Frame::Message(Order::Attach { .. } | Order::Watch { .. } | Order::Resize { .. }),
            ) => {
                self.control.dismiss(id, Refusal::Protocol, "not yours to ask for", now);
            }
        }
    }

    fn hello(&mut self, id: u64, epoch: u64, role: Role, now: Instant) {
        if role == Role::Daemon && !self.control.is_daemons(id) {
            let message = "only the process that holds the daemon's lock is the daemon";
            return self.control.dismiss(id, Refusal::NotTheDaemon, message, now);
        }
        let is_accepted = match role {
            Role::Daemon => self.control.accepts_epoch(epoch),
            Role::Viewer => self.control.accepts_viewer(epoch),
        };
        if !is_accepted {
            let message = "a daemon of a higher epoch was here";
            return self.control.dismiss(id, Refusal::StaleEpoch, message, now);
        }
        let news = self.introduction();
        let Some(connection) = self.control.get(id) else { return };
        connection.welcome(match role {
            Role::Daemon => Peer::Daemon { epoch },
            Role::Viewer => Peer::Viewer(View::Detached),
        });
        connection.send(news);
        if let Some(problem) = self.disk.problem() {
            connection.send(News::Disk { problem: Some(problem.to_owned()) });
        }
        if role == Role::Daemon {
            self.control.retire_older(epoch, now);
            self.daemon_came(now);
        }
    }

    fn introduction(&self) -> News {
        News::Hello {
            proto: version::SHIM,
            build: version::BUILD.to_owned(),
            pid: std::process::id(),
            run: self.spec.run.clone(),
            turn: self.spec.turn,
            attempt: self.spec.attempt,
            records: self.records.all().to_vec(),
            output_bytes: self.output_bytes(),
            watches: true,
        }
    }

    fn start_ordered(&mut self, id: u64, which: (u32, u32), epoch: u64, now: Instant) {
        if which != (self.spec.turn, self.spec.attempt) {
            let message = format!("this is turn {} attempt {}", self.spec.turn, self.spec.attempt);
            return self.control.dismiss(id, Refusal::OtherAttempt, message, now);
        }
        if !self.control.accepts_epoch(epoch) {
            let message = "a daemon of a higher epoch was here";
            return self.control.dismiss(id, Refusal::StaleEpoch, message, now);
        }
        match self.stage {
            // A daemon that was frozen when it launched us may thaw long after another has seen to this step.
            Stage::Gate if self.control.is_replaced(id) => {
                let message = "another process holds the daemon's lock";
                self.control.dismiss(id, Refusal::NotTheDaemon, message, now);
            }
            Stage::Gate => self.start(epoch, now),
            Stage::Bygone | Stage::Live(_) | Stage::Over { .. } => {}
        }
    }

    fn stop_ordered(&mut self, grace: Duration, now: Instant) {
        match self.stage {
            Stage::Gate => self.never_start(
                Failure::new(NeverStarted::Stopped, "stopped before it was started"),
                now,
            ),
            Stage::Live(_) => self.end(EndCause::Stopped, grace, now),
            Stage::Bygone | Stage::Over { .. } => {}
        }
    }

    /// Answered at the end of the round, also if there is more than that already.
    fn watch_ordered(&mut self, id: u64, after: u64) {
        if let Some(connection) = self.control.get(id) {
            connection.watch = Some(after);
        }
    }

    fn attach_ordered(&mut self, id: u64, window: Window, now: Instant) {
        if self.window.is_none() {
            return self.control.dismiss(id, Refusal::NoTerminal, "this run has no terminal", now);
        }
        self.resize(window);
        if let Some(connection) = self.control.get(id) {
            connection.peer = Peer::Viewer(View::Behind);
        }
    }

    fn watch_screen_ordered(&mut self, id: u64, keys: bool, now: Instant) {
        let Some(window) = self.window else {
            return self.control.dismiss(id, Refusal::NoTerminal, "this run has no terminal", now);
        };
        let Some(connection) = self.control.get(id) else { return };
        if connection.seat == Seat::Whole && connection.peer != Peer::Viewer(View::Detached) {
            let message = "you are attached to it already";
            return self.control.dismiss(id, Refusal::Protocol, message, now);
        }
        connection.seat = if keys { Seat::Keys } else { Seat::Looks };
        connection.send(News::Window { window: screen::clamp(window) });
        connection.peer = Peer::Viewer(View::Behind);
    }

    /// The latest to say so decides the size.
    fn resize(&mut self, window: Window) {
        if self.window.is_none() {
            return;
        }
        self.window = Some(window);
        self.control.tell_window(screen::clamp(window));
        if let Stage::Live(live) = &mut self.stage
            && let Some(terminal) = &mut live.terminal
        {
            terminal.resize(window);
        }
    }

    fn press(&mut self, keys: &[u8]) {
        if let Stage::Live(live) = &mut self.stage
            && let Some(terminal) = &mut live.terminal
        {
            terminal.press(keys);
        }
    }
}
