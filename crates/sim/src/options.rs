//! How a simulation is run, and how its world is broken on purpose.

#[derive(Debug, Clone)]
pub struct Options {
    /// Steps with faults, after which the world is left in peace.
    pub steps: u32,
    /// Rounds of peace within which everything has to come to its end. In a round every daemon, shim and process steps once.
    pub quiet_rounds: u32,
    /// Requests for runs that clients make in one seed, at most.
    pub clients: usize,
    /// A world that breaks its word, to see that this is noticed.
    pub sabotage: Option<Sabotage>,
}

impl Default for Options {
    fn default() -> Self {
        Self { steps: 1_600, quiet_rounds: 3_600, clients: 4, sabotage: None }
    }
}

/// One broken part. The simulator must fail with any of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sabotage {
    /// The child does not wait until its start is written down.
    NoBarrier,
    /// The store takes appends of daemons that have been replaced.
    StaleEpochsWrite,
    /// A shim starts its command for a daemon that has been replaced.
    StaleEpochsStart,
    /// Shims ignore each other's lock.
    NoLock,
    /// A daemon takes an end that no shim saw for a success.
    LostIsSuccess,
    /// A client is told that its run exists before it does.
    AnswersEarly,
    /// A stop is acknowledged before it is durable.
    StopsEarly,
    /// A step monitor that has said "no shim could be started" goes on, and may start one.
    GivesUpAndGoesOn,
    /// A step monitor says "no shim could be started" without writing it down where a late shim would see it.
    GivesUpUnfenced,
    /// A step monitor reads the records some time after it has found the lock free.
    RecordsAfterLock,
    /// A run whose creator hung up, or whose append had an uncertain answer, is not conducted.
    HangUpForgets,
    /// A shim admits the same survivors only once, however often it is told to stop them.
    AdmitsOnce,
    /// A turn's own limits end with its shim.
    LimitsDieWithShim,
    /// A run that is to be stopped is started first.
    StartsToStop,
    /// What an agent answered is not on disk when its end is.
    ForgetsResponse,
    /// An attempt that is launched late is given messages that came after it was meant.
    TellsTooMuch,
    /// An attempt that has answered is taken for ended while it lives.
    CommitsUnseen,
    /// A turn's attempts write their answers to one place.
    SharesResponse,
    /// A step whose end no shim saw is said never to have run.
    LostNeverRan,
    /// A daemon plans its restart without looking at what is alive.
    StartsTheLiving,
    /// A daemon that is started does not look for ends of children that parents have yet to hear of.
    ForgetsChildren,
    /// A step without files is taken for one that was never launched.
    AbsenceIsEvidence,
    /// A run that is held back after a restart is let go whatever is planned.
    LetsAllGo,
    /// An append whose fate is not known is made again after whatever is in the journal now.
    AppendsAgain,
    /// An append whose fate is not known is taken for made.
    TrustsLostAppends,
    /// A daemon that was replaced goes on under its follower's epoch.
    TakesEpochBack,
    /// What a starting turn may use up is not reserved.
    ForgetsReservations,
    /// A sink is not told that it has something to send.
    ForgetsSinks,
    /// A child is made before its parent has made room for it.
    ChildFirst,
    /// A caller makes its effect before the journal has its intent.
    CallsUnwritten,
    /// A call that has a result is made again.
    ForgetsResults,
    /// An unsafe call whose end was not observed is made again.
    DoubtIsNone,
}

impl Sabotage {
    pub const ALL: [Self; 32] = [
        Self::NoBarrier,
        Self::StaleEpochsWrite,
        Self::StaleEpochsStart,
        Self::NoLock,
        Self::LostIsSuccess,
        Self::AnswersEarly,
        Self::StopsEarly,
        Self::GivesUpAndGoesOn,
        Self::GivesUpUnfenced,
        Self::RecordsAfterLock,
        Self::HangUpForgets,
        Self::AdmitsOnce,
        Self::LimitsDieWithShim,
        Self::StartsToStop,
        Self::ForgetsResponse,
        Self::TellsTooMuch,
        Self::CommitsUnseen,
        Self::SharesResponse,
        Self::LostNeverRan,
        Self::StartsTheLiving,
        Self::ForgetsChildren,
        Self::AbsenceIsEvidence,
        Self::LetsAllGo,
        Self::AppendsAgain,
        Self::TrustsLostAppends,
        Self::TakesEpochBack,
        Self::ForgetsReservations,
        Self::ForgetsSinks,
        Self::ChildFirst,
        Self::CallsUnwritten,
        Self::ForgetsResults,
        Self::DoubtIsNone,
    ];
}
