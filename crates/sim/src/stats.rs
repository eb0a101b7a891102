//! What a simulation has exercised, so that a report shows it.

use std::fmt;

macro_rules! stats {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct Stats {
            /// A hash of everything that happened, in order.
            pub trace: u64,
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Stats {
            /// Adds another seed's counts.
            pub fn add(&mut self, other: &Self) {
                // In any order, because seeds are run on several cores.
                self.trace = self.trace.wrapping_add(other.trace);
                $(self.$name += other.$name;)*
            }

            fn lines(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name)),*]
            }
        }
    };
}

stats! {
    seeds,
    steps,
    appends,
    runs,
    attempts,
    errands,
    executions,
    turns_committed,
    bad_responses,
    claims,
    calls,
    calls_answered,
    call_intents,
    call_effects,
    call_results,
    results_given_again,
    calls_refused,
    calls_resolved,
    callers_killed,
    cleaned_up,
    restored,
    messages,
    children_heard_of,
    children_meant,
    children_unmade,
    children_refused,
    spend_unknown,
    blocked,
    rests,
    limits_reached,
    workspaces_discarded,
    workspaces_removed,
    completed,
    failed,
    stopped,
    exhausted,
    daemons,
    daemon_crashes,
    overlaps,
    stale_appends_refused,
    stale_daemons_refused,
    lost_acks,
    lost_appends,
    full_disks,
    conflicts,
    shims,
    shim_kills,
    torn_records,
    slow_shims,
    launches_given_up,
    taken_over,
    waits_for_budget,
    notices_sent,
    reboots,
    vanished,
    clock_jumps,
    late_news,
    repeated_news,
    client_retries,
    hang_ups,
    keys_met_again,
    resumes,
    resumes_held,
    stops_acknowledged,
    adopted,
    orphaned,
    lost,
    interrupted,
    never_started,
    timed_out_or_stalled,
    attempts_with_survivors,
    stops_incomplete,
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, count) in self.lines() {
            writeln!(f, "{:<24}{count:>12}", name.replace('_', " "))?;
        }
        write!(f, "{:<24}{:>12x}", "trace", self.trace)
    }
}
