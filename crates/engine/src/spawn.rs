//! Whether a run may have another child, what the child is given, and what a key stands for.
//!
//! A key is a name for work below one run. Asking for it again gives the child that has it: one that goes on, or one that
//! has completed. One that failed is made again as often as the asker declares; one whose end was not observed is in
//! doubt, and nothing is run until the asker says what to do.

use crate::children::Child;
use crate::pots::lower;
use crate::{Channel, MOST_CHILDREN, Pot, ReasonCode, Room, Run, RunId, Verdict, Word};

/// A child that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpawnAsk {
    /// The id that it would have.
    pub child: RunId,
    pub key: Option<String>,
    /// Of what it is asked to do: the same key with another digest is a conflict.
    pub digest: String,
    pub wants: RoomWanted,
    pub again: Again,
}

/// How much of one of its parent's pots a child wants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Want {
    /// So much: its asker said so, or it is a limit of its own.
    AtMost(u64),
    /// So much where there is a ceiling; otherwise it has none.
    Usually(u64),
    /// There was no word on it: half of what is free, where there is a ceiling.
    #[default]
    Half,
}

impl Want {
    /// What a child gets of a pot; `None` is no ceiling.
    fn of(self, pot: &Pot) -> Option<u64> {
        match (self, pot.free()) {
            (Self::AtMost(wanted), None) => Some(wanted),
            (Self::Usually(_) | Self::Half, None) => None,
            (Self::AtMost(wanted) | Self::Usually(wanted), Some(free)) => Some(wanted.min(free)),
            (Self::Half, Some(free)) => Some(free.div_ceil(2)),
        }
    }

    fn is_nothing(self) -> bool {
        matches!(self, Self::AtMost(0) | Self::Usually(0))
    }
}

/// How much of its parent's pots a child wants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RoomWanted {
    pub turns: Want,
    pub tokens: Want,
    pub cost_usd_micros: Want,
    /// Runs below it; none unless it says so.
    pub runs: Option<u64>,
    pub depth: Option<u64>,
    pub width: Option<u64>,
}

/// What is declared about a key whose child did not complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Again {
    /// So many runs are made under one key; the last failure is the result then.
    pub tries: u32,
    pub lost: Lost,
}

impl Default for Again {
    fn default() -> Self {
        Self { tries: 3, lost: Lost::Doubt }
    }
}

/// What is to be done about a child whose end was not observed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Lost {
    /// Refuse until the asker says one of the others.
    #[default]
    Doubt,
    /// Make it again, as if it had failed.
    Again,
    /// Take its end as the result.
    Keep,
}

impl Lost {
    pub const ALL: [Self; 3] = [Self::Doubt, Self::Again, Self::Keep];

    pub const fn word(self) -> &'static str {
        match self {
            Self::Doubt => "doubt",
            Self::Again => "again",
            Self::Keep => "keep",
        }
    }

    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|lost| lost.word() == word)
    }
}

/// What an asker gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// A new child with this much room; `try_number` counts the runs under its key.
    New { granted: Room, try_number: u32 },
    /// The child that has the key, or the id.
    Same(RunId),
}

/// Why a run gets no child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CannotSpawn {
    HasEnded(Verdict),
    IsEnding,
    /// The key is that of a child that was asked to do something else.
    Conflict(RunId),
    /// The end of the child that has the key was not observed.
    InDoubt(RunId),
    /// No more levels below it.
    TooDeep,
    /// So many children go on already.
    TooWide(u64),
    /// So many children in all.
    TooMany,
    Spent {
        channel: Channel,
        pot: Pot,
    },
}

impl Run {
    /// What an asker for a child gets of this run, as it is now.
    pub fn admit(&self, ask: &SpawnAsk) -> Result<Admission, CannotSpawn> {
        if self.children.contains_key(&ask.child) {
            return Ok(Admission::Same(ask.child.clone()));
        }
        let mut try_number = 1;
        if let Some(key) = &ask.key
            && let Some((id, last)) = self.of_key(key)
        {
            match self.by_key(id, last, ask)? {
                Some(id) => return Ok(Admission::Same(id)),
                None => try_number = last.try_number + 1,
            }
        }
        self.refuse_child()?;
        Ok(Admission::New { granted: self.grant(&ask.wants)?, try_number })
    }

    /// The child that has a key: the last one that was made under it.
    pub fn of_key(&self, key: &str) -> Option<(&RunId, &Child)> {
        let has_key = |child: &&Child| child.key.as_deref() == Some(key);
        let children = self.children.iter().filter(|(_, child)| has_key(child));
        children.max_by_key(|(_, child)| child.number)
    }

    /// The child that is the answer, or `None` if another is to be made.
    fn by_key(
        &self,
        id: &RunId,
        last: &Child,
        ask: &SpawnAsk,
    ) -> Result<Option<RunId>, CannotSpawn> {
        // A child from before digests were kept is compared by the daemon.
        if last.digest.as_ref().is_some_and(|digest| *digest != ask.digest) {
            return Err(CannotSpawn::Conflict(id.clone()));
        }
        let Some(end) = &last.end else { return Ok(Some(id.clone())) };
        let may_go_again = last.try_number < ask.again.tries;
        let stays = Ok(Some(id.clone()));
        match end.verdict {
            _ if end.is_unmade() => Ok(None),
            Verdict::Completed | Verdict::Stopped => stays,
            Verdict::Failed if end.is_in_doubt() => match ask.again.lost {
                Lost::Doubt => Err(CannotSpawn::InDoubt(id.clone())),
                Lost::Keep => stays,
                Lost::Again if may_go_again => Ok(None),
                Lost::Again => stays,
            },
            Verdict::Failed | Verdict::Exhausted if may_go_again => Ok(None),
            Verdict::Failed | Verdict::Exhausted => stays,
        }
    }

    fn refuse_child(&self) -> Result<(), CannotSpawn> {
        let (room, live) = (&self.spec.tree.room, self.live_children());
        let live = u64::try_from(live).unwrap_or(u64::MAX);
        match self.state {
            crate::State::Ended { verdict } => return Err(CannotSpawn::HasEnded(verdict)),
            crate::State::Finishing { .. } => return Err(CannotSpawn::IsEnding),
            _ if self.stop.is_some() || self.limit.is_some() => return Err(CannotSpawn::IsEnding),
            _ => {}
        }
        if room.depth == Some(0) {
            return Err(CannotSpawn::TooDeep);
        }
        if let Some(most) = room.width.filter(|most| live >= *most) {
            return Err(CannotSpawn::TooWide(most));
        }
        if self.children.len() >= MOST_CHILDREN { Err(CannotSpawn::TooMany) } else { Ok(()) }
    }

    /// The room that a child gets: never more than is free here.
    fn grant(&self, wants: &RoomWanted) -> Result<Room, CannotSpawn> {
        let of = |channel: Channel, wanted: Want| {
            let pot = self.pot(channel);
            let given = wanted.of(&pot);
            // A child that wants nothing takes nothing.
            if given == Some(0) && !wanted.is_nothing() {
                return Err(CannotSpawn::Spent { channel, pot });
            }
            Ok(given)
        };
        let runs = self.pot(Channel::Runs);
        let below = match runs.free() {
            Some(0) => return Err(CannotSpawn::Spent { channel: Channel::Runs, pot: runs }),
            Some(free) => Some(wants.runs.unwrap_or(0).min(free - 1)),
            None => wants.runs,
        };
        let room = &self.spec.tree.room;
        Ok(Room {
            turns: of(Channel::Turns, wants.turns)?,
            tokens: of(Channel::Tokens, wants.tokens)?,
            cost_usd_micros: of(Channel::Money, wants.cost_usd_micros)?,
            runs: below,
            depth: lower(wants.depth, room.depth.map(|depth| depth.saturating_sub(1))),
            width: lower(wants.width, room.width),
        })
    }
}

/// True if an end with this reason says nothing of what was done.
pub(crate) fn is_unseen(reason_code: Option<&Word<ReasonCode>>) -> bool {
    reason_code.is_some_and(|code| *code == ReasonCode::Lost || *code == ReasonCode::Interrupted)
}
