//! One run, followed: what happens to it and what it writes, until the person looks elsewhere.

use outlast_client::follow::{Output, Piece, Selection, Until};
use outlast_client::journal::Journal;
use outlast_client::problem::Problem;
use outlast_client::session::Session;
use tokio::sync::mpsc;

use super::model::{Event, Followed};
use super::words;
use crate::world::World;

/// So many of the last lines are read at first.
const TAIL: u64 = 2000;

pub(crate) struct Trail {
    pub(crate) following: u64,
    pub(crate) run: String,
    /// Only what happened after this event is told.
    pub(crate) after: u64,
    /// Only this turn's output.
    pub(crate) turn: Option<u64>,
}

impl Trail {
    pub(crate) async fn follow(self, world: &World, send: mpsc::Sender<Event>) {
        let (happened, wrote) =
            tokio::join!(self.happenings(world, &send), self.writings(world, &send));
        for problem in [happened.err(), wrote.err()].into_iter().flatten() {
            self.say(&send, Followed::Broke { why: words(&problem) }).await;
        }
    }

    async fn happenings(&self, world: &World, send: &mpsc::Sender<Event>) -> Result<(), Problem> {
        let mut journal = Journal::new(Session::again(&world.client), &self.run, self.after);
        while let Some(event) = journal.next().await? {
            self.say(send, Followed::Happened(Box::new(event))).await;
        }
        Ok(())
    }

    async fn writings(&self, world: &World, send: &mpsc::Sender<Event>) -> Result<(), Problem> {
        let turn = self.turn.and_then(|turn| u32::try_from(turn).ok());
        let selection =
            Selection { turn, tail: Some(TAIL), until: Until::RunEnds, ..Selection::default() };
        let mut output = Output::new(Session::again(&world.client), &self.run, selection);
        loop {
            let piece = output.next().await?;
            let is_end = piece == Piece::End;
            self.say(send, Followed::Wrote(piece)).await;
            if is_end {
                return Ok(());
            }
        }
    }

    async fn say(&self, send: &mpsc::Sender<Event>, news: Followed) {
        // The listener ends this task when it leaves.
        let _left = send.send(Event::Followed { following: self.following, news }).await;
    }
}
