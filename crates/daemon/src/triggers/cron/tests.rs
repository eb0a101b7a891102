//! Expressions, and the instants they name where clocks change.

use std::collections::BTreeSet;

use super::*;

fn at(text: &str) -> Time {
    time(text.parse().expect("a time"))
}

fn tz(name: &str) -> TimeZone {
    TimeZone::get(name).expect("a zone")
}

/// The first few instants after a time, as UTC.
fn next(cron: &str, zone: &str, after: &str, most: usize) -> Vec<String> {
    let cron = Cron::parse(cron).expect("an expression");
    let instants = cron.after(at(after), &tz(zone)).take(most);
    instants.map(|at| timestamp(at).to_string()).collect()
}

#[test]
fn plain_expressions() {
    let cases = [
        ("30 9 * * *", "2026-01-01T09:30:00Z", "2026-01-02T09:30:00Z"),
        ("30 9 * * *", "2026-01-01T09:29:59.999Z", "2026-01-01T09:30:00Z"),
        ("*/20 * * * *", "2026-01-01T23:40:00Z", "2026-01-02T00:00:00Z"),
        ("5/20 * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z"),
        ("0 9-17/4 * * mon-fri", "2026-01-02T17:00:00Z", "2026-01-05T09:00:00Z"),
        ("0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"),
        ("0 0 13 * fri", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
        ("0 0 * JAN,jul 7", "2026-01-26T00:00:00Z", "2026-07-05T00:00:00Z"),
        ("@hourly", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"),
        ("@weekly", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z"),
        ("@Yearly", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
    ];
    for (cron, after, expected) in cases {
        assert_eq!(next(cron, "UTC", after, 1), [expected], "{cron} after {after}");
    }
    assert_eq!(next("0 0 30 2 *", "UTC", "2026-01-01T00:00:00Z", 1), Vec::<String>::new());
}

#[test]
fn what_is_no_expression_is_refused_with_the_field_that_is_wrong() {
    let cases = [
        ("", "a cron expression has 5 fields, and \"\" has 0"),
        ("0 0 * * * *", "a cron expression has 5 fields, and \"0 0 * * * *\" has 6"),
        ("60 * * * *", "the minute goes from 0 to 59, not to 60"),
        ("* 5-2 * * *", "\"5-2\" is not a range for the hour"),
        ("* * 0 * *", "the day of the month goes from 1 to 31, not to 0"),
        ("* * * foo *", "\"foo\" is not a value for the month"),
        ("*/0 * * * *", "\"*/0\" is not a range for the minute"),
        ("1,,2 * * * *", "\"\" is not a value for the minute"),
        ("+5 * * * *", "\"+5\" is not a value for the minute"),
        ("@sometimes", "\"@sometimes\" is not the name of a schedule"),
    ];
    for (cron, expected) in cases {
        assert_eq!(Cron::parse(cron).expect_err("it is wrong").to_string(), expected);
    }
}

#[test]
fn a_time_that_does_not_exist_happens_once_right_after_the_gap() {
    let berlin = next("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", 2);
    assert_eq!(berlin, ["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]);
    // Many times of one gap are one.
    let many = next("*/5 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", 2);
    assert_eq!(many, ["2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"]);
    // And the same as one that is there at the gap's end.
    let both = next("0 2,3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", 2);
    assert_eq!(both, ["2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"]);
    let howe = next("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", 2);
    assert_eq!(howe, ["2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"]);
    // Samoa had no 30 December 2011 at all.
    let apia = next("0 9 * * *", "Pacific/Apia", "2011-12-29T18:00:00Z", 3);
    assert_eq!(apia, ["2011-12-29T19:00:00Z", "2011-12-30T10:00:00Z", "2011-12-30T19:00:00Z"]);
}

#[test]
fn a_time_that_comes_twice_happens_the_first_time() {
    let berlin = next("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2);
    assert_eq!(berlin, ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
    let new_york = next("30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z", 2);
    assert_eq!(new_york, ["2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"]);
    // Asked between the two, it is over for that day.
    let between = next("30 2 * * *", "Europe/Berlin", "2026-10-25T00:45:00Z", 1);
    assert_eq!(between, ["2026-10-26T01:30:00Z"]);
}

#[test]
fn what_follows_elapsed_time_knows_neither_gap_nor_fold() {
    let gap = next("*/30 * * * *", "Europe/Berlin", "2026-03-29T00:15:00Z", 3);
    assert_eq!(gap, ["2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z"]);
    let fold = next("0 * * * *", "Europe/Berlin", "2026-10-24T23:30:00Z", 3);
    assert_eq!(fold, ["2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"]);
}

/// Every minute of a year, asked what its clock says.
fn by_looking_at_every_minute(zone: &TimeZone, from: Time, until: Time) -> BTreeSet<Time> {
    let minutes = (from.0 / 60_000 + 1..=until.0 / 60_000).map(|minute| Time(minute * 60_000));
    minutes.filter(|at| zone.to_datetime(timestamp(*at)).minute() % 5 == 0).collect()
}

#[test]
fn a_year_of_five_minutes_is_what_looking_at_every_minute_finds() {
    let cron = Cron::parse("*/5 * * * *").expect("an expression");
    let zones = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Antarctica/Troll"];
    for name in zones {
        let zone = tz(name);
        let (from, until) = (at("2026-01-01T00:00:00Z"), at("2027-01-01T00:00:00Z"));
        let found: Vec<Time> = cron.after(from, &zone).take_while(|at| *at <= until).collect();
        let expected = by_looking_at_every_minute(&zone, from, until);
        assert_eq!(found.len(), 365 * 24 * 12, "{name}");
        assert!(found.iter().eq(expected.iter()), "{name}");
    }
}

#[test]
fn a_daily_time_happens_once_on_every_day_of_a_year_in_every_zone() {
    for name in ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago"] {
        for hour in 0..4 {
            let cron = Cron::parse(&format!("30 {hour} * * *")).expect("an expression");
            let zone = tz(name);
            let (from, until) = (at("2026-01-01T12:00:00Z"), at("2027-01-01T12:00:00Z"));
            let found: Vec<Time> = cron.after(from, &zone).take_while(|at| *at <= until).collect();
            let days: BTreeSet<Date> =
                found.iter().map(|at| zone.to_datetime(timestamp(*at)).date()).collect();
            assert_eq!((found.len(), days.len()), (365, 365), "{name} {hour}:30");
        }
    }
}

#[test]
fn asking_from_anywhere_finds_the_same_instants() {
    let zone = tz("Europe/Berlin");
    for expression in ["*/5 * * * *", "30 2 * * *", "15,45 1-3 * * *"] {
        let cron = Cron::parse(expression).expect("an expression");
        let all: Vec<Time> = cron.after(at("2026-10-24T00:00:00Z"), &zone).take(900).collect();
        for pair in all.windows(2) {
            for after in [pair[0], Time(pair[0].0 + 1), Time(pair[1].0 - 1)] {
                assert_eq!(cron.next_after(after, &zone), Some(pair[1]), "{expression}");
            }
        }
    }
}
