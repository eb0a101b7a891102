//! What every store promises, asked of each of them.

#![expect(clippy::unwrap_used, reason = "a test that is wrong panics")]

mod common;

use std::sync::mpsc;
use std::thread;

use common::{Held, create_run, creation, id, keyed, labelled, named, spec};
use outlast_engine::{Input, Origin, Row, RunId, RunSpec, StateName, StopMode, Time};
use outlast_store::{
    Account, Amount, Append, Counts, Cursor, Delivery, Entry, Error, Filter, Journal, Ledger,
    Memory, Notes, Outbox, Outgoing, Remove, Resolved, Settlement, Sqlite, Tally, Trigger,
    TriggerChange, Triggers, Used,
};
use tempfile::TempDir;

/// A store that can be opened again while it is open.
trait Place: Sync {
    type Store: Journal;
    fn new() -> Self;
    fn open(&self) -> Self::Store;
}

struct OnDisk(TempDir);

impl Place for OnDisk {
    type Store = Sqlite;

    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn open(&self) -> Sqlite {
        Sqlite::open(&self.0.path().join("outlast.db")).unwrap()
    }
}

struct InMemory(Memory);

impl Place for InMemory {
    type Store = Memory;

    fn new() -> Self {
        Self(Memory::new())
    }

    fn open(&self) -> Memory {
        self.0.clone()
    }
}

macro_rules! each_store_promises {
    ($($case:ident),* $(,)?) => {
        mod sqlite { $(#[test] fn $case() { super::$case::<super::OnDisk>(); })* }
        mod memory { $(#[test] fn $case() { super::$case::<super::InMemory>(); })* }
    };
}

each_store_promises! {
    an_id_whose_notices_are_remembered_is_not_used_again,
    an_epoch_is_taken_above_one_that_was_used_elsewhere,
    a_notice_that_is_there_already_is_not_written_twice,
    reads_back_what_was_appended,
    pages_through_events,
    events_of_all_runs_are_read_in_the_order_of_writing,
    a_number_of_a_removed_event_is_not_given_again,
    refuses_a_gap_and_an_empty_append,
    refuses_a_writer_that_is_behind,
    refuses_to_continue_an_unknown_run,
    refuses_to_create_a_run_twice,
    a_second_handle_fences_the_first,
    a_key_is_taken_for_good,
    a_name_is_free_again_once_its_run_ended,
    fifty_threads_with_one_key_make_one_run,
    fifty_threads_with_one_name_make_one_run,
    rows_follow_the_events,
    resolves_ids_names_and_prefixes,
    lists_what_the_filter_asks_for,
    pages_are_the_list,
    a_list_begins_behind_a_run_and_ends_before_one,
    lists_open_runs_oldest_first,
    lists_the_children_of_a_run_oldest_first,
    counts_by_what_runs_are_up_to,
    a_census_counts_states_by_agent,
    removes_a_run_whole,
    a_refused_append_harms_nobody_in_its_group,
    many_runs_at_once_lose_nothing,
    a_sound_store_has_no_problems,
    unknown_runs_are_said_to_be_unknown,
    what_was_spent_stays_in_the_ledger,
    a_refused_append_spends_nothing,
    a_note_lasts_until_it_is_taken_back,
    notes_are_set_together,
    a_change_of_a_trigger_and_its_note_are_written_together,
    a_trigger_is_added_once_and_removed_whole,
    triggers_are_read_and_counted_page_by_page,
    what_comes_twice_is_kept_once,
    what_is_marked_is_kept_once_within_its_time,
    a_settled_delivery_stays_settled_and_known,
    a_stale_daemon_changes_no_trigger,
    a_delivery_and_how_far_its_trigger_came_are_one,
    the_oldest_settled_deliveries_are_forgotten,
    runs_are_found_by_their_trigger,
}

fn fresh<P: Place>() -> (P, P::Store, u64) {
    let place = P::new();
    let store = place.open();
    let epoch = store.take_epoch().unwrap();
    (place, store, epoch)
}

fn reads_back_what_was_appended<P: Place>() {
    let (_place, store, epoch) = fresh::<P>();
    let (append, mut held) = creation(&id("aaaa00000001"), named("nightly"), epoch);
    let mut written = append.events.clone();
    store.append_wait(append).unwrap();
    for _ in 0..5 {
        let append = held.append_of(&held.next_news());
        written.extend(append.events.clone());
        held.run = held.after(&append.events);
        store.append_wait(append).unwrap();
    }
    assert_eq!(store.events(&held.id(), 0, usize::MAX).unwrap(), written);
    assert_eq!(store.row(&held.id()).unwrap(), Some(held.run.row()));
}

fn events_of_all_runs_are_read_in_the_order_of_writing<P: Place>() {
    let (_place, store, epoch) = fresh::<P>();
    let mut one = create_run(&store, "aaaa00000001", named("nightly"), epoch).unwrap();
    let mut two = create_run(&store, "aaaa00000002", spec(), epoch).unwrap();
    one.complete(&store);
    two.complete(&store);
    let all = store.written(0, usize::MAX).unwrap();
    let numbers: Vec<u64> = all.events.iter().map(|it| it.number).collect();
    assert!(numbers.is_sorted_by(|one, other| one < other), "{numbers:?}");
    for held in [&one, &two] {
        let its = all.events.iter().filter(|it| it.run == held.id());
        let its: Vec<_> = its.map(|it| it.event.clone()).collect();
        assert_eq!(its, store.events(&held.id(), 0, usize::MAX).unwrap());
    }
    let last = all.events.last().unwrap();
    assert_eq!((&last.run, &last.name), (&two.id(), &None));
    assert_eq!(all.events[0].name.as_deref(), Some("nightly"));
    // In pages, until there are no more.
    let (mut paged, mut at) = (Vec::new(), 0);
    loop {
        let page = store.written(at, 2).unwrap();
        if page.last == at {
            break;
        }
        assert!(page.events.len() <= 2);
        at = page.last;
        paged.extend(page.events);
    }
    assert_eq!(paged, all.events);
    let before = store.written_before(3).unwrap();
    assert_eq!(store.written(before, 99).unwrap().events, all.events[all.events.len() - 3..]);
    assert_eq!(store.written_before(all.events.len()).unwrap(), 0);
}

fn a_number_of_a_removed_event_is_not_given_again<P: Place>() {
    let (place, store, epoch) = fresh::<P>();
    let mut removed = create_run(&store, "aaaa00000001", spec(), epoch).unwrap();
    removed.complete(&store);
    let seen = store.written(0, usize::MAX).unwrap().last;
    store.remove(&removed.id(), epoch, Remove::Ended).unwrap();
    let held = create_run(&store, "aaaa00000002", spec(), epoch).unwrap();
    let news = store.written(seen, usize::MAX).unwrap();
    assert_eq!(news.events.len(), store.events(&held.id(), 0, usize::MAX).unwrap().len());
    // Also for the next daemon, and when nothing was written in between.
    store.remove(&held.id(), epoch, Remove::Any).unwrap();
    drop(store);
    let store = place.open();
    let epoch = store.take_epoch().unwrap();
    let held = create_run(&store, "aaaa00000003", spec(), epoch).unwrap();
    let later = store.written(news.last, usize::MAX).unwrap();
    assert_eq!(later.events.len(), store.events(&held.id(), 0, usize::MAX).unwrap().len());
}

fn a_list_begins_behind_a_run_and_ends_before_one<P: Place>() {
    let (_place, store, epoch) = fresh::<P>();
    let names = ["aaaa00000001", "aaaa00000002", "aaaa00000003", "aaaa00000004"];
    for name in names {
        create_run(&store, name, spec(), epoch).unwrap();
    }
    let cursor = |name: &str| store.cursor(&id(name)).unwrap();
    let listed = |before: Option<Cursor>, after: Option<Cursor>| {
        let mut ids = Vec::new();
        let filter = Filter { all: true, after, ..Filter::default() };
        store.visit_page(&filter, before, 99, &mut |row: Row| ids.push(row.id.0)).unwrap();
        ids
    };
    assert_eq!(listed(cursor(names[2]), None), [names[1], names[0]]);
    assert_eq!(listed(None, cursor(names[2])), [names[3]]);
    assert_eq!(listed(cursor(names[3]), cursor(names[0])), [names[2], names[1]]);
    assert_eq!(cursor("zzzz00000009"), None);
}

fn pages_through_events<P: Place>() {
    let (_place, store, epoch) = fresh::<P>();
    let mut held = create_run(&store, "aaaa00000001", spec(), epoch).unwrap();
    held.complete(&store);
    let all = store.events(&held.id(), 0, usize::MAX).unwrap();
    assert!(all.len() > 5, "{all:?}");
    assert_eq!(store.events(&held.id(), 2, 2).unwrap(), all[2..4]);
    assert_eq!(store.events(&held.id(), held.run.seq(), 10).unwrap(), []);
    assert_eq!(store.events(&held.id(), 0, 0).unwrap(), []);
}

fn refuses_a_gap_and_an_empty_append<P: Place>() {
    let (_place, store, epoch) = fresh::<P>();
    let (mut append, _) = creation(&id("aaaa00000001"), spec(), epoch);
    let empty = Append { events: Vec::new(), ..append.clone() };
    append.events.remove(1);
    let gap = Error::Conflict { run: id("aaaa00000001"), expected: 2, found: 3 };
    assert_eq!(store.append_wait(append), Err(gap));
    assert_eq!(
        store.append_wait(empty),
        Err(Error::Conflict { run: id("aaaa00000001"), expected: 1, found: 0 })
    );
    assert_eq!(store.row(&id("aaaa00000001")).unwrap(), None);
}

fn refuses_a_writer_that_is_behind<P: Place>() {
    let (_place, store, epoch) = fresh::<P>();
    let mut held = create_run(&store, "aaaa00000001", spec(), epoch).unwrap();
    let behind = held.append_of(&held.started());
    held.tell(
        &store,
        &Input::StopAsked { mode: StopMode::Now, order: outlast_engine::Order::default() },
    )
    .unwrap();
    let (expected, found) = (behind.expected_seq, held.run.seq());
    assert_eq!(store.append_wait(behind), Err(Error::Conflict { run: held.id(), expected, found }));
    assert_eq!(store.row(&held.id()).unwrap(), Some(held.run.row()));
}

fn refuses_to_continue_an_unknown_run<P: Place>() {
    let (_place, store, epoch) = fresh::<P>();
    let (_, held) = creation(&id("aaaa00000001"), spec(), epoch);
    let answer = store.append_wait(held.append_of(&held.started()));
    assert_eq!(answer, Err(Error::UnknownRun { run: held.id() }));
}

fn refuses_to_create_a_run_twice<P: Place>() {
    let (_place, store, epoch) = fresh::<P>();
    let held = create_run(&store, "aaaa00000001", spec(), epoch).unwrap();
    let again = create_run(&store, "aaaa00000001", spec(), epoch).map(|held| held.id());
    assert_eq!(again, Err(Error::Conflict { run: held.id(), expected: 0, found: held.run.seq() }));
}

fn a_second_handle_fences_the_first<P: Place>() {
    let (place, first, old) = fresh::<P>();
    let mut held = create_run(&first, "aaaa00000001", spec(), old).unwrap();
    let second = place.open();
    let new = second.take_epoch().unwrap();
    assert!(new > old);
    let stale = Error::StaleEpoch { held: old, current: new };
    assert_eq!(first.append_wait(held.append_of(&held.started())), Err(stale.clone()));
    assert_eq!(first.remove(&held.id(), old, Remove::Any), Err(stale));
    held.epoch = new;
    held.tell(&second, &held.started()).unwrap();
    assert_eq!(first.row(&held.id()).unwrap(), Some(held.run.row()));
}

fn a_key_is_taken_for_good<P: Place>() {
    let (_place, store, epoch) = fresh::<P>();
    let mut held = create_run(&store, "aaaa00000001", keyed("k"), epoch).unwrap();
    held.complete(&store);
    let again = create_run(&store, "aaaa00000002", keyed("k"), epoch).map(|held| held.id());
    assert_eq!(again, Err(Error::KeyTaken { key: "k".to_owned(), by: held.id() }));
    create_run(&store, "aaaa00000003", keyed("other"), epoch).unwrap();
    store.remove(&held.id(), epoch, Remove::Ended).unwrap();
    create_run(&store, "aaaa00000002", keyed("k"), epoch).unwrap();
}

fn a_name_is_free_again_once_its_run_ended<P: Place>() {
    let (_place, store, epoch) = fresh::<P>();
    let mut held = create_run(&store, "aaaa00000001", named("n"), epoch).unwrap();
    let again = create_run(&store, "aaaa00000002", named("n"), epoch).map(|held| held.id());
    assert_eq!(again, Err(Error::NameTaken { name: "n".to_owned(), by: held.id() }));
    held.complete(&store);
    create_run(&store, "aaaa00000002", named("n"), epoch).unwrap();
}

fn fifty_threads_with_one_key_make_one_run<P: Place>() {
    let (_place, store, epoch) = fresh::<P>();
    let answers = at_once(50, |n| {
        create_run(&store, &format!("aaaa{n:08}"), keyed("k"), epoch).map(|held| held.id())
    });
    let winner = only_winner(&answers);
    let taken = Error::KeyTaken { key: "k".to_owned(), by: winner };
    assert!(answers.iter().filter_map(|answer| answer.as_ref().err()).all(|error| *error == taken));
    assert_eq!(store.counts().unwrap().live, 1);
}

fn fifty_threads_with_one_name_make_one_run<P: Place>() {
    let (_place, store, epoch) = fresh::<P>();
    let answers = at_once(50, |n| {
        create_run(&store, &format!("aaaa{n:08}"), named("n"), epoch).map(|held| held.id())
    });
    let winner = only_winner(&answers);
    let taken = Error::NameTaken { name: "n".to_owned(), by: winner.clone() };
    assert!(answers.iter().filter_map(|answer| answer.as_ref().err()).all(|error| *error == taken));
    assert_eq!(store.open_runs().unwrap(), [winner]);
}

fn rows_follow_the_events<P: Place>() {
    let (_place, store, epoch) = fresh::<P>();
    let spec = labelled(&[("team", "a \"b\"\n"), ("", "ü")]);
    let mut held = create_run(&store, "aaaa00000001", spec, epoch).unwrap();
    for _ in 0..20 {
        held.tell(&store, &held.next_news()).unwrap();
        assert_eq!(store.row(&held.id()).unwrap(), Some(held.run.row()));
    }
    held.complete(&store);
    let row = store.row(&held.id()).unwrap().unwrap();
    assert_eq!(row, held.run.row());
    assert_eq!((row.state, row.is_open), (StateName::Completed, false));
}

fn resolves_ids_names_and_prefixes<P: Place>() {
    let (_place, store, epoch) = fresh::<P>();
    let mut first = create_run(&store, "abc000000001", named("nightly"), epoch).unwrap();
    first.complete(&store);
    create_run(&store, "abc000000002", named("nightly"), epoch).unwrap();
    create_run(&store, "xyz000000001", named("abc000000001"), epoch).unwrap();
    let one = |text: &str| Ok(Resolved::One(id(text)));
    assert_eq!(store.resolve("abc000000001"), one("abc000000001"), "an id beats a name");
    assert_eq!(store.resolve("nightly"), one("abc000000002"), "the newest of a name");
    assert_eq!(store.resolve("xyz"), one("xyz000000001"));
    assert_eq!(
        store.resolve("abc"),
        Ok(Resolved::Many(vec![id("abc000000001"), id("abc000000002")]))
    );
    assert_eq!(store.resolve("xy"), Ok(Resolved::None), "too short");
    assert_eq!(store.resolve("xyzz"), Ok(Resolved::None));
    assert_eq!(store.resolve("night"), Ok(Resolved::None), "names have no prefixes");
    assert_eq!(store.resolve(""), Ok(Resolved::None));
    assert_eq!(store.resolve("%yz"), Ok(Resolved::None));
    (3..9)
        .for_each(|n| drop(create_run(&store, &format!("abc00000000{n}"), spec(), epoch).unwrap()));
    let Resolved::Many(some) = store.resolve("abc").unwrap() else { panic!("eight are meant") };
    assert_eq!(some.len(), 5);
}

fn pages_are_the_list<P: Place>() {
    let (_place, store, epoch) = fresh::<P>();
    let long = "x".repeat(100_000);
    for n in 0..20 {
        let color = if n % 3 == 0 { "red" } else { "blue" };
        let labels = labelled(&[("c", color), ("long", if n < 10 { &long } else { "" })]);
        create_run(&store, &format!("aaaa000000{n:02}"), labels, epoch).unwrap();
    }
    let red = vec![("c".to_owned(), "red".to_owned())];
    for labels in [Vec::new(), red] {
        let filter = Filter { all: true, labels, ..Filter::default() };
        assert_eq!(page(&store, &filter, None, 0), (Vec::new(), None));
        for most in [1, 3, 7, 100] {
            let (mut paged, mut before) = (Vec::new(), None);
            loop {
                let (rows, next) = page(&store, &filter, before, most);
                assert!(rows.len() <= most.min(13), "long labels end a page before");
                paged.extend(rows);
                // A run that is removed meanwhile is still where the list goes on.
                before = next;
                if before.is_none() {
                    break;
                }
            }
            assert_eq!(paged, store.rows(&filter).unwrap(), "{most} at a time");
        }
    }
    // A run that is removed meanwhile is where the list goes on nevertheless.
    let (first, next) = page(&store, &Filter::default(), None, 5);
    store.remove(&first[4].id, epoch, Remove::Any).unwrap();
    let (second, _) = page(&store, &Filter::default(), next, 1);
    assert_eq!(second[0].id, id("aaaa00000014"));
}

fn page(
    store: &impl Journal,
    filter: &Filter,
    before: Option<Cursor>,
    most: usize,
) -> (Vec<Row>, Option<Cursor>) {
    let mut rows = Vec::new();
    let next = store.visit_page(filter, before, most, &mut |row| rows.push(row)).unwrap();
    (rows, next)
}

fn lists_what_the_filter_asks_for<P: Place>() {
    let (_place, store, epoch) = fresh::<P>();
    let (red, blue) = (labelled(&[("c", "red"), ("n", "1")]), labelled(&[("c", "blue")]));
    create_run(&store, "aaaa00000001", red.clone(), epoch).unwrap();
    create_run(&store, "aaaa00000002", blue, epoch).unwrap();
    create_run(&store, "aaaa00000003", red, epoch).unwrap().complete(&store);
    let list = |filter: Filter| {
        let rows = store.rows(&filter).unwrap();
        rows.iter().map(|row| row.id.as_str()[11..].to_owned()).collect::<String>()
    };
    let label = |key: &str, value: &str| vec![(key.to_owned(), value.to_owned())];
    assert_eq!(list(Filter::default()), "21");
    assert_eq!(list(Filter { all: true, ..Filter::default() }), "321");
    assert_eq!(list(Filter { all: true, most: Some(2), ..Filter::default() }), "32");
    assert_eq!(
        list(Filter { all: true, labels: label("c", "red"), most: Some(2), ..Filter::default() }),
        "31"
    );
    assert_eq!(list(Filter { labels: label("c", "blue"), ..Filter::default() }), "2");
    assert_eq!(list(Filter { all: true, labels: label("c", ""), ..Filter::default() }), "");
    assert_eq!(
        list(Filter { all: true, state: Some(StateName::Completed), ..Filter::default() }),
        "3"
    );
    assert_eq!(list(Filter { state: Some(StateName::Completed), ..Filter::default() }), "");
    assert_eq!(list(Filter { most: Some(0), ..Filter::default() }), "");
}

fn lists_the_children_of_a_run_oldest_first<P: Place>() {
    let (_place, store, epoch) = fresh::<P>();
    let child_of = |parent: &str| RunSpec { parent: Some(id(parent)), ..spec() };
    let [parent, first, second] = ["cccc00000003", "bbbb00000002", "aaaa00000001"];
    create_run(&store, parent, spec(), epoch).unwrap();
    create_run(&store, first, child_of(parent), epoch).unwrap().complete(&store);
    create_run(&store, second, child_of(parent), epoch).unwrap();
    create_run(&store, "dddd00000004", child_of(first), epoch).unwrap();
    let children = store.children(&id(parent)).unwrap();
    let ids: Vec<RunId> = children.iter().map(|row| row.id.clone()).collect();
    assert_eq!(ids, [id(first), id(second)]);
    assert_eq!(children[0].state, StateName::Completed);
    assert_eq!(store.children(&id(second)).unwrap(), []);
}

fn lists_open_runs_oldest_first<P: Place>() {
    let (_place, store, epoch) = fresh::<P>();
    let ids = ["zzzz00000001", "mmmm00000001", "aaaa00000001"];
    let mut held: Vec<Held> =
        ids.iter().map(|text| create_run(&store, text, spec(), epoch).unwrap()).collect();
    assert_eq!(store.open_runs().unwrap(), ids.map(id));
    held[1].complete(&store);
    assert_eq!(store.open_runs().unwrap(), [id(ids[0]), id(ids[2])]);
}

fn counts_by_what_runs_are_up_to<P: Place>() {
    let (_place, store, epoch) = fresh::<P>();
    assert_eq!(store.counts().unwrap(), Counts::default());
    create_run(&store, "aaaa00000001", spec(), epoch).unwrap();
    create_run(&store, "aaaa00000002", spec(), epoch).unwrap().complete(&store);
    let (mut blocked, _) = creation(&id("aaaa00000003"), spec(), epoch);
    blocked.row.state = StateName::Blocked;
    store.append_wait(blocked).unwrap();
    assert_eq!(store.counts().unwrap(), Counts { live: 1, resting: 1, ended: 1 });
}

fn a_census_counts_states_by_agent<P: Place>() {
    let (_place, store, epoch) = fresh::<P>();
    let of_kind = |kind: &str| {
        let spec = spec();
        let agent = outlast_engine::Agent { kind: kind.to_owned(), ..spec.agent.clone() };
        outlast_engine::RunSpec { agent, ..spec }
    };
    create_run(&store, "aaa000000001", of_kind("exec"), epoch).unwrap();
    create_run(&store, "aaa000000002", of_kind("exec"), epoch).unwrap();
    create_run(&store, "aaa000000003", of_kind("file"), epoch).unwrap();
    let mut census = store.census().unwrap();
    census.sort();
    let told: Vec<_> = census
        .iter()
        .map(|it| (it.state.word(), it.agent.as_deref().unwrap_or_default(), it.runs))
        .collect();
    assert_eq!(told, [("running", "exec", 2), ("running", "file", 1)]);
}

fn removes_a_run_whole<P: Place>() {
    let (_place, store, epoch) = fresh::<P>();
    let mut held = create_run(&store, "aaaa00000001", spec(), epoch).unwrap();
    let other = create_run(&store, "aaaa00000002", spec(), epoch).unwrap();
    let run = held.id();
    assert_eq!(
        store.remove(&run, epoch, Remove::Ended),
        Err(Error::StillOpen { run: run.clone() })
    );
    held.complete(&store);
    store.remove(&run, epoch, Remove::Ended).unwrap();
    assert_eq!(store.row(&run).unwrap(), None);
    assert_eq!(store.events(&run, 0, 10), Err(Error::UnknownRun { run: run.clone() }));
    assert_eq!(store.remove(&run, epoch, Remove::Any), Err(Error::UnknownRun { run }));
    store.remove(&other.id(), epoch, Remove::Any).unwrap();
    assert_eq!(store.rows(&Filter { all: true, ..Filter::default() }).unwrap(), []);
    assert_eq!(store.check().unwrap(), []);
}

fn a_refused_append_harms_nobody_in_its_group<P: Place>() {
    let (_place, store, epoch) = fresh::<P>();
    let (answers, answered) = mpsc::channel();
    for n in 0..300_u64 {
        // Every third one has a key that is taken, and every third one an epoch that no daemon has.
        let spec = if n % 3 == 1 { keyed("k") } else { spec() };
        let epoch = if n % 3 == 2 { epoch + 1 } else { epoch };
        let (append, _) = creation(&id(&format!("aaaa{n:08}")), spec, epoch);
        let answers = answers.clone();
        store.append(append, Box::new(move |answer| answers.send((n, answer)).unwrap()));
    }
    drop(answers);
    let refused = answered.iter().filter(|(n, answer)| {
        let is_wanted = n % 3 == 0 || *n == 1;
        assert_eq!(answer.is_ok(), is_wanted, "{n}: {answer:?}");
        !is_wanted
    });
    assert_eq!(refused.count(), 199);
    assert_eq!(store.open_runs().unwrap().len(), 101);
    assert_eq!(store.check().unwrap(), []);
}

fn many_runs_at_once_lose_nothing<P: Place>() {
    let (_place, store, epoch) = fresh::<P>();
    let held = at_once(16, |n| {
        let mut held = create_run(&store, &format!("aaaa{n:08}"), spec(), epoch).unwrap();
        (0..20).for_each(|_| held.tell(&store, &held.next_news()).unwrap());
        held
    });
    for held in &held {
        let events = store.events(&held.id(), 0, usize::MAX).unwrap();
        assert_eq!(outlast_engine::Run::replay(&held.id(), &events).unwrap(), held.run);
    }
    assert_eq!(store.check().unwrap(), []);
}

fn a_sound_store_has_no_problems<P: Place>() {
    let (_place, store, epoch) = fresh::<P>();
    assert_eq!(store.check().unwrap(), []);
    create_run(&store, "aaaa00000001", named("n"), epoch).unwrap().complete(&store);
    let (mut lying, _) = creation(&id("aaaa00000002"), spec(), epoch);
    lying.row.turn = 9;
    store.append_wait(lying).unwrap();
    let problems = store.check().unwrap();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0].run, Some(id("aaaa00000002")));
}

fn unknown_runs_are_said_to_be_unknown<P: Place>() {
    let (_place, store, _epoch) = fresh::<P>();
    let run = id("aaaa00000001");
    assert_eq!(store.row(&run), Ok(None));
    assert_eq!(store.events(&run, 0, 1), Err(Error::UnknownRun { run }));
}

fn at_once<T: Send>(threads: usize, body: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let body = &body;
    thread::scope(|scope| {
        let spawned: Vec<_> = (0..threads).map(|n| scope.spawn(move || body(n))).collect();
        spawned.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn only_winner(answers: &[Result<RunId, Error>]) -> RunId {
    let winners: Vec<_> = answers.iter().filter_map(|answer| answer.as_ref().ok()).collect();
    assert_eq!(winners.len(), 1);
    winners[0].clone()
}

fn amount(tokens: u64, cost_usd_micros: u64) -> Used {
    // Half of the money was not reported.
    let reserved = Amount { tokens: 0, cost_usd_micros: cost_usd_micros / 2 };
    let unreported = u64::from(cost_usd_micros > 1);
    Used { amount: Amount { tokens, cost_usd_micros }, reserved, unreported }
}

/// Appends the next news of a run, by which it has spent something.
fn spend(store: &impl Journal, held: &mut Held, slot: u64, used: Used) -> Result<(), Error> {
    let append = held.append_of(&held.next_news());
    let after = held.after(&append.events);
    store.append_wait(Append { spent: Entry { slot, used }, ..append })?;
    held.run = after;
    Ok(())
}

fn what_was_spent_stays_in_the_ledger<P: Place>() {
    let (place, store, epoch) = fresh::<P>();
    let web = labelled(&[("team", "web")]);
    let mut one = create_run(&store, "aaaa00000001", web.clone(), epoch).unwrap();
    let mut two = create_run(&store, "aaaa00000002", web.clone(), epoch).unwrap();
    let mut bare = create_run(&store, "aaaa00000003", spec(), epoch).unwrap();
    spend(&store, &mut one, 7, amount(100, 5)).unwrap();
    spend(&store, &mut one, 7, amount(20, 0)).unwrap();
    spend(&store, &mut two, 8, amount(3, 9)).unwrap();
    spend(&store, &mut bare, 8, amount(1, 1)).unwrap();
    let account = |labels: &outlast_engine::RunSpec, tokens, cost| Account {
        labels: labels.labels.clone(),
        used: amount(tokens, cost),
    };
    let web_used = amount(120, 5).plus(amount(3, 9));
    let all = [account(&spec(), 1, 1), Account { used: web_used, ..account(&web, 0, 0) }];
    assert_eq!(store.accounts(0).unwrap(), all);
    assert_eq!(store.accounts(8).unwrap(), [account(&spec(), 1, 1), account(&web, 3, 9)]);
    assert_eq!(store.accounts(9).unwrap(), []);
    let by_slot =
        [(7, account(&web, 120, 5)), (8, account(&spec(), 1, 1)), (8, account(&web, 3, 9))];
    assert_eq!(store.accounts_by_slot(0).unwrap(), by_slot);
    assert_eq!(store.accounts_by_slot(8).unwrap(), by_slot[1..]);
    assert_eq!(store.used_by(&one.id()).unwrap(), amount(120, 5));
    store.remove(&one.id(), epoch, Remove::Any).unwrap();
    drop(store);
    assert_eq!(place.open().accounts(0).unwrap(), all, "also of a run that is gone");
}

fn a_refused_append_spends_nothing<P: Place>() {
    let (_place, store, epoch) = fresh::<P>();
    let held = create_run(&store, "aaaa00000001", spec(), epoch).unwrap();
    let mut stale = Held { run: held.run.clone(), epoch: epoch + 1 };
    let refused = spend(&store, &mut stale, 7, amount(100, 5));
    assert!(matches!(refused, Err(Error::StaleEpoch { .. })));
    assert_eq!(store.used_by(&held.id()).unwrap(), Used::default());
}

fn a_note_lasts_until_it_is_taken_back<P: Place>() {
    let (place, store, epoch) = fresh::<P>();
    assert_eq!(store.note("held").unwrap(), None);
    store.set_note("held", Some("1"), epoch).unwrap();
    store.set_note("held", Some("2"), epoch).unwrap();
    let stale = store.set_note("held", None, epoch + 1);
    assert!(matches!(stale, Err(Error::StaleEpoch { .. })));
    drop(store);
    let store = place.open();
    assert_eq!(store.note("held").unwrap().as_deref(), Some("2"));
    store.set_note("held", None, epoch).unwrap();
    store.set_note("held", None, epoch).unwrap();
    assert_eq!(store.note("held").unwrap(), None);
}

fn notes_are_set_together<P: Place>() {
    let (place, store, epoch) = fresh::<P>();
    store.set_notes(&[("held", Some("1")), ("orders", Some("[1]"))], epoch).unwrap();
    store.set_notes(&[("held", None), ("orders", Some("[1,2]"))], epoch).unwrap();
    let stale = store.set_notes(&[("held", Some("3")), ("orders", None)], epoch + 1);
    assert!(matches!(stale, Err(Error::StaleEpoch { .. })));
    drop(store);
    let store = place.open();
    assert_eq!(store.note("held").unwrap(), None);
    assert_eq!(store.note("orders").unwrap().as_deref(), Some("[1,2]"));
}

fn a_change_of_a_trigger_and_its_note_are_written_together<P: Place>() {
    let (place, store, epoch) = fresh::<P>();
    let noted = |change, value: &str| TriggerChange::Noted {
        change: Box::new(change),
        note: "orders".to_owned(),
        value: value.to_owned(),
    };
    store.change_trigger_wait(noted(TriggerChange::Add(trigger("t")), "1"), epoch).unwrap();
    let again = store.change_trigger_wait(noted(TriggerChange::Add(trigger("t")), "2"), epoch);
    assert_eq!(again, Err(Error::TriggerTaken { name: "t".to_owned() }));
    let open = place.open();
    assert_eq!(open.note("orders").unwrap().as_deref(), Some("1"), "neither or both");
    assert_eq!(open.triggers().unwrap(), [trigger("t")]);
    assert_eq!(store.change_trigger_wait(noted(keep(&["1"], None), "3"), epoch), Ok(1));
    let remove = TriggerChange::Remove { trigger: "t".to_owned() };
    store.change_trigger_wait(noted(remove.clone(), "4"), epoch).unwrap();
    let gone = store.change_trigger_wait(noted(remove, "5"), epoch);
    assert_eq!(gone, Err(Error::UnknownTrigger { name: "t".to_owned() }));
    assert_eq!(store.note("orders").unwrap().as_deref(), Some("4"));
}

fn trigger(name: &str) -> Trigger {
    Trigger {
        name: name.to_owned(),
        kind: "schedule".to_owned(),
        spec: "{}".to_owned(),
        state: "0".to_owned(),
        paused: false,
        created_at: Time(5),
    }
}

fn delivery(id: &str) -> Delivery {
    Delivery { id: id.to_owned(), at: Time(7), body: format!("{{\"of\":\"{id}\"}}") }
}

fn keep(ids: &[&str], state: Option<&str>) -> TriggerChange {
    let deliveries = ids.iter().map(|id| delivery(id)).collect();
    TriggerChange::Keep { trigger: "t".to_owned(), deliveries, state: state.map(str::to_owned) }
}

fn settle(id: &str, settled: Settlement) -> TriggerChange {
    TriggerChange::Settle { trigger: "t".to_owned(), id: id.to_owned(), settled }
}

fn waiting(store: &impl Triggers) -> Vec<String> {
    store.deliveries("t", 100).unwrap().into_iter().map(|delivery| delivery.id).collect()
}

fn a_trigger_is_added_once_and_removed_whole<P: Place>() {
    let (place, store, epoch) = fresh::<P>();
    store.change_trigger_wait(TriggerChange::Add(trigger("t")), epoch).unwrap();
    let again = store.change_trigger_wait(TriggerChange::Add(trigger("t")), epoch);
    assert_eq!(again, Err(Error::TriggerTaken { name: "t".to_owned() }));
    store.change_trigger_wait(TriggerChange::Add(trigger("a")), epoch).unwrap();
    let update = |spec: Option<&str>, paused| TriggerChange::Update {
        trigger: "t".to_owned(),
        spec: spec.map(str::to_owned),
        state: None,
        paused,
    };
    store.change_trigger_wait(update(Some("[]"), None), epoch).unwrap();
    store.change_trigger_wait(update(None, Some(true)), epoch).unwrap();
    let changed = Trigger { spec: "[]".to_owned(), paused: true, ..trigger("t") };
    assert_eq!(place.open().triggers().unwrap(), [trigger("a"), changed]);
    assert_eq!(store.change_trigger_wait(keep(&["1"], None), epoch), Ok(1));
    let remove = || TriggerChange::Remove { trigger: "t".to_owned() };
    store.change_trigger_wait(remove(), epoch).unwrap();
    assert_eq!(store.triggers().unwrap(), [trigger("a")]);
    assert!(!store.is_known("t", "1").unwrap());
    let gone = Error::UnknownTrigger { name: "t".to_owned() };
    assert_eq!(store.change_trigger_wait(remove(), epoch), Err(gone.clone()));
    assert_eq!(store.change_trigger_wait(keep(&["1"], None), epoch), Err(gone));
}

fn triggers_are_read_and_counted_page_by_page<P: Place>() {
    let (place, store, epoch) = fresh::<P>();
    for name in ["b", "t", "a", "u"] {
        store.change_trigger_wait(TriggerChange::Add(trigger(name)), epoch).unwrap();
    }
    store.change_trigger_wait(keep(&["1", "2", "3"], None), epoch).unwrap();
    let made = Settlement::Made { run: id("aaaa00000001") };
    store.change_trigger_wait(settle("1", made), epoch).unwrap();
    let origin = Origin { trigger: "b".to_owned(), occurrence: "1".to_owned() };
    let spec = RunSpec { origin: Some(origin), ..spec() };
    create_run(&store, "aaaa00000002", spec, epoch).unwrap();
    let store = place.open();
    let page = |after: &str, most| {
        let page = store.triggers_page(after, most).unwrap();
        page.into_iter().map(|(it, waiting)| (it.name, waiting)).collect::<Vec<_>>()
    };
    let known = |name: &str, waiting| (name.to_owned(), waiting);
    assert_eq!(page("", 2), [known("a", 0), known("b", 0)]);
    assert_eq!(page("b", 2), [known("t", 2), known("u", 0)]);
    assert_eq!(page("u", 2), []);
    assert_eq!(store.trigger("t").unwrap(), Some(trigger("t")));
    assert_eq!(store.trigger("c").unwrap(), None);
    let tallies = store.tallies("b", "t").unwrap();
    assert_eq!((tallies["b"].open, tallies["b"].waiting), (1, 0));
    assert_eq!((tallies["t"].open, tallies["t"].waiting, tallies["t"].made), (0, 2, 1));
    assert!(!tallies.contains_key("a") && !tallies.contains_key("u"));
    assert_eq!(store.tally("a").unwrap(), Tally::default());
}

fn what_comes_twice_is_kept_once<P: Place>() {
    let (place, store, epoch) = fresh::<P>();
    store.change_trigger_wait(TriggerChange::Add(trigger("t")), epoch).unwrap();
    assert_eq!(store.change_trigger_wait(keep(&["1", "2", "1"], None), epoch), Ok(2));
    assert_eq!(store.change_trigger_wait(keep(&["2", "3"], None), epoch), Ok(1));
    assert_eq!(waiting(&place.open()), ["1", "2", "3"]);
    assert_eq!(store.deliveries("t", 1).unwrap(), [delivery("1")]);
    assert_eq!(store.deliveries("elsewhere", 10).unwrap(), []);
    assert!(store.is_known("t", "3").unwrap() && !store.is_known("t", "4").unwrap());
}

fn what_is_marked_is_kept_once_within_its_time<P: Place>() {
    let (place, store, epoch) = fresh::<P>();
    store.change_trigger_wait(TriggerChange::Add(trigger("t")), epoch).unwrap();
    let come = |id: &str, at: u64, mark: &str| {
        let change = TriggerChange::KeepUnlessMarked {
            trigger: "t".to_owned(),
            delivery: Delivery { at: Time(at), ..delivery(id) },
            mark: mark.to_owned(),
            within_ms: 100,
        };
        place.open().change_trigger_wait(change, epoch).unwrap()
    };
    assert_eq!(come("1", 1000, "body a"), 1);
    assert_eq!(come("2", 1099, "body a"), 0, "the same under another name");
    assert_eq!(come("1", 1099, "body b"), 0, "the name is known");
    assert_eq!(come("3", 1099, "body b"), 1, "what was not kept leaves no mark");
    assert_eq!(come("4", 1100, "body a"), 1, "its time is over");
    assert_eq!(come("5", 1199, "body a"), 0, "and begins anew");
    assert_eq!(waiting(&store), ["1", "3", "4"]);
    let tally = store.tally("t").unwrap();
    assert_eq!((tally.waiting, tally.made, tally.skipped, tally.refused), (3, 0, 0, 0));
}

fn a_settled_delivery_stays_settled_and_known<P: Place>() {
    let (place, store, epoch) = fresh::<P>();
    store.change_trigger_wait(TriggerChange::Add(trigger("t")), epoch).unwrap();
    store.change_trigger_wait(keep(&["1", "2", "3", "4"], None), epoch).unwrap();
    let made = || Settlement::Made { run: id("aaaa00000001") };
    let why = |why: &str| why.to_owned();
    store.change_trigger_wait(settle("2", made()), epoch).unwrap();
    store
        .change_trigger_wait(settle("1", Settlement::Skipped { why: why("overlap") }), epoch)
        .unwrap();
    store
        .change_trigger_wait(settle("3", Settlement::Refused { why: why("no such thing") }), epoch)
        .unwrap();
    // What was settled is not settled again, and does not come back.
    store.change_trigger_wait(settle("1", made()), epoch).unwrap();
    assert_eq!(store.change_trigger_wait(keep(&["1", "2", "3"], None), epoch), Ok(0));
    assert_eq!(waiting(&place.open()), ["4"]);
    let tally = store.tally("t").unwrap();
    assert_eq!((tally.waiting, tally.made, tally.skipped, tally.refused), (1, 1, 1, 1));
    assert_eq!(tally.last_made, Some((Time(7), id("aaaa00000001"))));
    assert_eq!(tally.last_refused, Some((Time(7), why("no such thing"))));
    assert!(tally.is_refusing, "the newest was refused");
    store.change_trigger_wait(settle("4", made()), epoch).unwrap();
    assert!(!store.tally("t").unwrap().is_refusing, "a later one was made");
}

fn a_stale_daemon_changes_no_trigger<P: Place>() {
    let (place, store, epoch) = fresh::<P>();
    store.change_trigger_wait(TriggerChange::Add(trigger("t")), epoch).unwrap();
    let newer = place.open().take_epoch().unwrap();
    let stale = Err(Error::StaleEpoch { held: epoch, current: newer });
    assert_eq!(store.change_trigger_wait(keep(&["1"], None), epoch), stale);
    assert_eq!(store.change_trigger_wait(TriggerChange::Add(trigger("u")), epoch), stale);
    assert_eq!(store.change_trigger_wait(keep(&["1"], None), newer), Ok(1));
}

fn a_delivery_and_how_far_its_trigger_came_are_one<P: Place>() {
    let (_place, store, epoch) = fresh::<P>();
    store.change_trigger_wait(TriggerChange::Add(trigger("t")), epoch).unwrap();
    assert_eq!(store.change_trigger_wait(keep(&[], Some("1")), epoch), Ok(0));
    assert_eq!(store.change_trigger_wait(keep(&["1"], Some("2")), epoch), Ok(1));
    assert_eq!(store.triggers().unwrap()[0].state, "2");
    assert_eq!(waiting(&store), ["1"]);
}

fn the_oldest_settled_deliveries_are_forgotten<P: Place>() {
    let (_place, store, epoch) = fresh::<P>();
    store.change_trigger_wait(TriggerChange::Add(trigger("t")), epoch).unwrap();
    store.change_trigger_wait(keep(&["1", "2", "3", "4", "5"], None), epoch).unwrap();
    for one in ["2", "3", "4", "5"] {
        let skipped = Settlement::Skipped { why: "test".to_owned() };
        store.change_trigger_wait(settle(one, skipped), epoch).unwrap();
    }
    let forget = |but| TriggerChange::Forget { trigger: "t".to_owned(), but };
    store.change_trigger_wait(forget(10), epoch).unwrap();
    assert!(store.is_known("t", "2").unwrap());
    store.change_trigger_wait(forget(2), epoch).unwrap();
    let known: Vec<&str> = ["1", "2", "3", "4", "5"]
        .into_iter()
        .filter(|one| store.is_known("t", one).unwrap())
        .collect();
    assert_eq!(known, ["1", "4", "5"]);
}

fn runs_are_found_by_their_trigger<P: Place>() {
    let (_place, store, epoch) = fresh::<P>();
    let origin =
        |trigger: &str| Some(Origin { trigger: trigger.to_owned(), occurrence: "1".to_owned() });
    let of = |trigger: &str| RunSpec { origin: origin(trigger), ..keyed(trigger) };
    let mut first = create_run(&store, "aaaa00000001", of("t"), epoch).unwrap();
    assert_eq!(store.run_of_key("t"), Ok(Some(id("aaaa00000001"))));
    assert_eq!(store.run_of_key("u"), Ok(None));
    create_run(&store, "aaaa00000002", of("u"), epoch).unwrap();
    let other_key = RunSpec { key: None, ..of("t") };
    create_run(&store, "aaaa00000003", other_key, epoch).unwrap();
    create_run(&store, "aaaa00000004", spec(), epoch).unwrap();
    assert_eq!(store.open_runs_of("t"), Ok(2));
    let newest = store.newest_run_of("t").unwrap().map(|(run, _)| run);
    assert_eq!(Ok(newest.map_or(Resolved::None, Resolved::One)), store.resolve("t"));
    assert_ne!(store.resolve("t"), Ok(Resolved::None), "a trigger is its newest run");
    assert_eq!(store.newest_run_of("other"), Ok(None));
    first.complete(&store);
    assert_eq!(store.open_runs_of("t"), Ok(1));
    let filter = Filter { all: true, trigger: Some("t".to_owned()), ..Filter::default() };
    let found: Vec<RunId> = store.rows(&filter).unwrap().into_iter().map(|row| row.id).collect();
    assert_eq!(found, [id("aaaa00000003"), id("aaaa00000001")]);
}

fn told(append: Append, sink: &str) -> Append {
    let notice = Outgoing {
        id: format!("{}/t1.a1/7", append.run),
        sink: sink.to_owned(),
        kind: "run.completed".to_owned(),
        at: Time(1),
        body: "{}".to_owned(),
    };
    Append { outbox: vec![notice], ..append }
}

/// Adversary's finding 21: the id of a removed run was used again while a notice of it was on its way.
fn an_id_whose_notices_are_remembered_is_not_used_again<P: Place>() {
    let place = P::new();
    let store = place.open();
    let epoch = store.take_epoch().unwrap();
    let run = id("aaaa00000001");
    let (append, _) = creation(&run, spec(), epoch);
    store.append_wait(told(append.clone(), "mail")).unwrap();
    store.remove(&run, epoch, Remove::Any).unwrap();
    let error = store.append_wait(append).unwrap_err();
    assert_eq!(error, Error::IdInUse { run });
    assert!(error.is_refusal());
    create_run(&store, "aaaa00000002", spec(), epoch).unwrap();
}

fn a_notice_that_is_there_already_is_not_written_twice<P: Place>() {
    let place = P::new();
    let store = place.open();
    let epoch = store.take_epoch().unwrap();
    let run = id("aaaa00000001");
    let (append, mut held) = creation(&run, spec(), epoch);
    store.append_wait(told(append, "mail")).unwrap();
    let next = held.append_of(&held.next_news());
    held.run = held.after(&next.events);
    store.append_wait(told(next, "mail")).unwrap();
    assert_eq!(store.notice_counts(&run).unwrap().pending, 1);
}

fn an_epoch_is_taken_above_one_that_was_used_elsewhere<P: Place>() {
    let place = P::new();
    let store = place.open();
    assert_eq!(store.epoch().unwrap(), 0);
    assert_eq!(store.take_epoch_above(41).unwrap(), 42);
    assert_eq!(store.take_epoch_above(7).unwrap(), 43);
    assert_eq!((store.take_epoch().unwrap(), store.epoch().unwrap()), (44, 44));
    create_run(&store, "aaaa00000001", spec(), 44).unwrap();
    assert_eq!(store.run_ids().unwrap(), [id("aaaa00000001")]);
}
