//! The plan, held against each thing that it promises.

use proptest::prelude::*;

use super::*;

const NOW: Time = Time(1_000_000);

fn id(text: &str) -> RunId {
    RunId(text.to_owned())
}

fn ids(names: &[&str]) -> BTreeSet<RunId> {
    names.iter().map(|name| id(name)).collect()
}

fn named(runs: &[RunId]) -> Vec<&str> {
    runs.iter().map(RunId::as_str).collect()
}

/// Runs of one readiness, the first the oldest.
fn all(readiness: Readiness, names: &[&str]) -> Vec<Desired> {
    let age = |index: usize| Time(u64::try_from(index).unwrap());
    let desired = |(index, name): (usize, &&str)| Desired {
        run: id(name),
        readiness,
        priority: 0,
        since: age(index),
    };
    names.iter().enumerate().map(desired).collect()
}

fn pending(names: &[&str]) -> Observed {
    Observed { pending: ids(names), seated: ids(names), ..Observed::default() }
}

/// What is there after the plan was carried out. A run that is read again cannot be read.
fn carry_out(
    plan: &Plan,
    observed: &Observed,
    backoff: &Backoff,
    now: Time,
) -> (Observed, Backoff) {
    let (mut observed, mut backoff) = (observed.clone(), backoff.clone());
    observed.seated.extend(plan.seat.iter().cloned());
    for run in plan.adopt.iter().chain(&plan.start) {
        observed.pending.remove(run);
    }
    observed.starting.extend(plan.start.iter().map(|run| (run.clone(), now)));
    observed.recent.extend(plan.start.iter().map(|_| now));
    for run in &plan.retry {
        let failure =
            backoff.failures.entry(run.clone()).or_insert(Failure { times: 0, last: now });
        *failure = Failure { times: failure.times + 1, last: now };
    }
    (observed, backoff)
}

fn plan(desired: &[Desired], observed: &Observed) -> Plan {
    reconcile(desired, observed, &Backoff::default(), NOW)
}

#[test]
fn what_is_wanted_and_has_nobody_gets_a_conductor_and_what_has_one_gets_no_other() {
    let desired = all(Readiness::Resting, &["a", "b", "c"]);
    let observed = Observed { seated: ids(&["b"]), ..Observed::default() };
    let plan = plan(&desired, &observed);
    assert_eq!(named(&plan.seat), ["a", "c"]);
    assert_eq!(Plan { seat: Vec::new(), ..plan }, Plan::default());
}

#[test]
fn what_is_over_is_ignored() {
    let observed = Observed { pending: ids(&["a"]), alive: ids(&["a"]), ..Observed::default() };
    assert_eq!(plan(&all(Readiness::Ended, &["a"]), &observed), Plan::default());
}

#[test]
fn what_is_alive_is_adopted_at_once_and_never_started() {
    let names = ["a", "b", "c", "d", "e", "f", "g"];
    for readiness in [Readiness::Eager, Readiness::Resting] {
        let observed = Observed { alive: ids(&names), pending: ids(&names), ..Observed::default() };
        let plan = plan(&all(readiness, &names), &observed);
        assert_eq!((named(&plan.seat), named(&plan.adopt)), (names.to_vec(), names.to_vec()));
        assert_eq!((plan.start, plan.delays), (Vec::new(), Vec::new()));
    }
}

#[test]
fn what_is_alive_and_lost_its_conductor_is_adopted_at_once_unless_that_has_failed() {
    let observed = Observed { alive: ids(&["a"]), ..Observed::default() };
    for (times, seated) in [(1, vec!["a"]), (2, vec![])] {
        let failures = [(id("a"), Failure { times, last: NOW })].into();
        let backoff = Backoff { failures, ..Backoff::default() };
        let plan = reconcile(&all(Readiness::Eager, &["a"]), &observed, &backoff, NOW);
        assert_eq!(named(&plan.seat), seated);
    }
}

#[test]
fn what_cannot_be_read_is_read_again_later_and_never_forgotten() {
    let desired = all(Readiness::Unreadable, &["a"]);
    let (mut observed, mut backoff, mut now) = (Observed::default(), Backoff::default(), NOW);
    let mut waits = Vec::new();
    for _ in 0..10 {
        let plan = reconcile(&desired, &observed, &backoff, now);
        assert_eq!((named(&plan.retry), plan.seat.len()), (vec!["a"], 0));
        (observed, backoff) = carry_out(&plan, &observed, &backoff, now);
        let later = reconcile(&desired, &observed, &backoff, now);
        assert_eq!(later.delays[0].why, Why::Unreadable);
        let until = later.look_again_at.expect("it is not forgotten");
        waits.push(until.ms_since(now) / 1000);
        now = until;
    }
    assert_eq!(waits, [5, 10, 20, 40, 80, 160, 320, 600, 600, 600]);
}

#[test]
fn who_lost_its_conductor_gets_another_after_a_delay_that_doubles_to_a_cap() {
    let desired = all(Readiness::Eager, &["a"]);
    for (times, delay_ms) in [(1, 5_000), (2, 10_000), (3, 20_000), (8, 600_000), (90, 600_000)] {
        let failures = [(id("a"), Failure { times, last: NOW })].into();
        let backoff = Backoff { failures, ..Backoff::default() };
        let at = |ms| reconcile(&desired, &Observed::default(), &backoff, NOW.plus_ms(ms));
        let early = at(delay_ms - 1);
        assert_eq!((early.seat.len(), early.start.len()), (0, 0), "{times} failures");
        assert_eq!(
            (early.delays[0].why, early.delays[0].until),
            (Why::Failed, NOW.plus_ms(delay_ms))
        );
        assert_eq!(named(&at(delay_ms).seat), ["a"], "{times} failures");
    }
}

#[test]
fn four_are_started_at_once_and_the_others_after_a_gap() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let desired = all(Readiness::Eager, &names);
    let (mut observed, backoff) = (pending(&names), Backoff::default());
    let first = plan(&desired, &observed);
    assert_eq!(named(&first.start), ["a", "b", "c", "d"]);
    assert_eq!(first.look_again_at, Some(NOW.plus_ms(500)));
    (observed, _) = carry_out(&first, &observed, &backoff, NOW);
    observed.starting.clear();
    let too_early = reconcile(&desired, &observed, &backoff, NOW.plus_ms(499));
    assert_eq!((too_early.start.len(), too_early.look_again_at), (0, Some(NOW.plus_ms(500))));
    let second = reconcile(&desired, &observed, &backoff, NOW.plus_ms(500));
    assert_eq!(named(&second.start), ["e", "f"]);
}

#[test]
fn they_need_not_come_together_to_be_counted_together() {
    let desired = all(Readiness::Eager, &["e", "f"]);
    let mut observed = pending(&["e", "f"]);
    observed.recent = vec![NOW, NOW.plus_ms(100), NOW.plus_ms(200)];
    let at = |ms| reconcile(&desired, &observed, &Backoff::default(), NOW.plus_ms(ms));
    assert_eq!((named(&at(300).start), at(300).look_again_at), (vec!["e"], Some(NOW.plus_ms(500))));
    assert_eq!(named(&at(500).start), ["e", "f"]);
}

#[test]
fn who_is_on_the_way_counts_until_it_is_there_or_has_taken_too_long() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let desired = all(Readiness::Eager, &names);
    let mut observed = pending(&["e", "f"]);
    observed.starting = ids(&["a", "b", "c", "d"]).into_iter().map(|run| (run, NOW)).collect();
    observed.recent = vec![NOW; 4];
    let at = |observed: &Observed, ms| {
        reconcile(&desired, observed, &Backoff::default(), NOW.plus_ms(ms))
    };
    let full = at(&observed, 1_000);
    assert_eq!((full.start.len(), full.look_again_at), (0, Some(NOW.plus_ms(30_000))));
    assert_eq!(named(&at(&observed, 30_000).start), ["e", "f"]);
    observed.starting.remove(&id("c"));
    assert_eq!(named(&at(&observed, 1_000).start), ["e"]);
}

#[test]
fn who_is_at_work_takes_nobodys_turn_to_start() {
    let alive = ["a", "b", "c", "d", "e"];
    let eager = ["v", "w", "x", "y", "z"];
    let desired = all(Readiness::Eager, &[alive, eager].concat());
    let observed = Observed { alive: ids(&alive), ..pending(&[alive, eager].concat()) };
    let plan = plan(&desired, &observed);
    assert_eq!(
        (named(&plan.adopt), named(&plan.start)),
        (alive.to_vec(), vec!["v", "w", "x", "y"])
    );
}

#[test]
fn the_order_is_by_priority_and_then_by_age() {
    let mut desired = all(Readiness::Eager, &["old", "middle", "young", "urgent"]);
    desired[3].priority = 5;
    desired.reverse();
    let observed = pending(&["old", "middle", "young", "urgent"]);
    assert_eq!(named(&plan(&desired, &observed).start), ["urgent", "old", "middle", "young"]);
}

#[test]
fn in_a_storm_nothing_is_started_and_what_lives_is_adopted() {
    let names = ["alive", "eager", "resting"];
    let until = NOW.plus_ms(30_000);
    let backoff = Backoff { storm_until: Some(until), ..Backoff::default() };
    let observed = Observed { alive: ids(&["alive"]), pending: ids(&names), ..Observed::default() };
    let mut desired = all(Readiness::Eager, &names);
    desired[2].readiness = Readiness::Resting;
    let during = reconcile(&desired, &observed, &backoff, NOW);
    assert_eq!((named(&during.seat), during.start.len()), (names.to_vec(), 0));
    assert!(during.adopt.is_empty(), "its next turn waits as well");
    assert_eq!(during.look_again_at, Some(until));
    let after = reconcile(&desired, &observed, &backoff, until);
    assert_eq!((named(&after.adopt), named(&after.start)), (vec!["alive"], vec!["eager"]));
}

#[test]
fn who_was_made_just_now_is_not_held_in_a_storm() {
    let backoff = Backoff { storm_until: Some(NOW.plus_ms(30_000)), ..Backoff::default() };
    let observed = Observed { seated: ids(&["new"]), ..Observed::default() };
    let plan = reconcile(&all(Readiness::Eager, &["new"]), &observed, &backoff, NOW);
    assert_eq!(plan, Plan::default());
}

fn readinesses() -> impl Strategy<Value = Readiness> {
    prop_oneof![
        Just(Readiness::Ended),
        Just(Readiness::Resting),
        Just(Readiness::Eager),
        Just(Readiness::Unreadable)
    ]
}

fn some_of() -> impl Strategy<Value = BTreeSet<RunId>> {
    proptest::collection::btree_set((0..12_u8).prop_map(|number| id(&format!("r{number}"))), 0..12)
}

fn times() -> impl Strategy<Value = Time> {
    (NOW.0 - 700_000..NOW.0 + 700_000).prop_map(Time)
}

fn worlds() -> impl Strategy<Value = (Vec<Desired>, Observed, Backoff)> {
    let desired = proptest::collection::vec((readinesses(), -2..3_i32, 0..5_u64), 12);
    let starting = proptest::collection::btree_map(
        (0..12_u8).prop_map(|number| id(&format!("r{number}"))),
        times(),
        0..6,
    );
    let failures = (some_of(), 1..9_u32, times());
    let storm = proptest::option::of(times());
    let recent = proptest::collection::vec(times(), 0..6);
    (desired, (some_of(), some_of(), some_of()), starting, failures, storm, recent).prop_map(
        |(
            desired,
            (seated, alive, pending),
            mut starting,
            (failed, times, last),
            storm,
            recent,
        )| {
            // A run is held back until it is released, and starting only after that.
            starting.retain(|run, _| !pending.contains(run));
            let desired =
                desired.into_iter().enumerate().map(|(number, (readiness, priority, age))| {
                    Desired {
                        run: id(&format!("r{number}")),
                        readiness,
                        priority,
                        since: Time(age),
                    }
                });
            let failures = failed.into_iter().map(|run| (run, Failure { times, last })).collect();
            (
                desired.collect(),
                Observed { seated, alive, pending, starting, recent },
                Backoff { rules: Rules::default(), storm_until: storm, failures },
            )
        },
    )
}

proptest! {
    #[test]
    fn whatever_is_there_the_plan_keeps_its_promises((desired, observed, backoff) in worlds()) {
        let plan = reconcile(&desired, &observed, &backoff, NOW);
        let readiness = |run: &RunId| {
            desired.iter().find(|wanted| wanted.run == *run).expect("it was wanted").readiness
        };
        for run in &plan.start {
            prop_assert!(!observed.alive.contains(run), "{run} is alive and started");
            prop_assert_eq!(readiness(run), Readiness::Eager);
            prop_assert!(observed.pending.contains(run));
        }
        for run in &plan.seat {
            prop_assert!(!observed.seated.contains(run), "{run} is seated twice");
            prop_assert!(matches!(readiness(run), Readiness::Eager | Readiness::Resting));
        }
        prop_assert!(plan.adopt.iter().all(|run| observed.alive.contains(run)));
        prop_assert!(plan.start.len() <= backoff.rules.at_once);
        let is_storm = backoff.storm_until.is_some_and(|until| until > NOW);
        prop_assert!(!is_storm || plan.start.is_empty());
        prop_assert!(plan.delays.iter().all(|delay| delay.until > NOW));
        for wanted in desired.iter().filter(|wanted| wanted.readiness == Readiness::Unreadable) {
            let is_kept = plan.retry.contains(&wanted.run)
                || plan.delays.iter().any(|delay| delay.run == wanted.run);
            prop_assert!(is_kept, "{} is forgotten", wanted.run);
        }
    }

    #[test]
    fn asked_twice_it_answers_the_same_and_carried_out_it_has_nothing_to_add(
        (desired, observed, backoff) in worlds()
    ) {
        let plan = reconcile(&desired, &observed, &backoff, NOW);
        prop_assert_eq!(&plan, &reconcile(&desired, &observed, &backoff, NOW));
        let (observed, backoff) = carry_out(&plan, &observed, &backoff, NOW);
        let again = reconcile(&desired, &observed, &backoff, NOW);
        let nothing: Vec<RunId> = Vec::new();
        prop_assert_eq!(
            (&again.seat, &again.adopt, &again.start, &again.retry),
            (&nothing, &nothing, &nothing, &nothing)
        );
    }

    /// Which is why the daemon asks only about runs that are held back, or have no conductor.
    #[test]
    fn whoever_is_conducted_and_free_changes_nothing_for_the_others(
        (desired, observed, backoff) in worlds()
    ) {
        let is_settled = |wanted: &&Desired| {
            let run = &wanted.run;
            wanted.readiness != Readiness::Unreadable
                && observed.seated.contains(run)
                && !observed.pending.contains(run)
        };
        let others: Vec<Desired> =
            desired.iter().filter(|wanted| !is_settled(wanted)).cloned().collect();
        prop_assert_eq!(
            reconcile(&desired, &observed, &backoff, NOW),
            reconcile(&others, &observed, &backoff, NOW)
        );
    }

    #[test]
    fn everybody_is_let_go_in_the_end((desired, observed, backoff) in worlds()) {
        let (mut observed, mut backoff, mut now) = (observed, backoff, NOW);
        for _ in 0..200 {
            let plan = reconcile(&desired, &observed, &backoff, now);
            (observed, backoff) = carry_out(&plan, &observed, &backoff, now);
            let Some(at) = plan.look_again_at else { break };
            now = at;
        }
        let is_left = |wanted: &&Desired| {
            wanted.readiness == Readiness::Eager && observed.pending.contains(&wanted.run)
        };
        prop_assert_eq!(desired.iter().filter(is_left).count(), 0);
    }
}
