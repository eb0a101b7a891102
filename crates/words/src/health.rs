//! How a run is doing, in a word.

use crate::vocabulary::vocabulary;

vocabulary! {
    Health {
        Healthy "healthy"
        /// Nothing was heard of it for a while.
        Silent "silent"
        /// It was silent for so long that it is being started anew.
        Stalled "stalled"
        /// It is started again and again, and gets nowhere.
        Thrashing "thrashing"
        /// Only a person can set it going again.
        WaitingHuman "waiting_human"
        RateLimited "rate_limited"
        /// Most of one of its limits is used up.
        NearLimit "near_limit"
        /// Its process lives, its shim does not: output and exit can no longer be seen.
        Orphaned "orphaned"
        /// Its shim lives and does not answer.
        Unreachable "unreachable"
    }
}
