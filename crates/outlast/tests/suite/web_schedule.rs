//! The week of the schedule in Chromium: what was made, what was missed, what comes; wide and on a phone.

use serde_json::{Value, json};

use crate::clocks::Clock;
use crate::harness::until;
use crate::web::{Browser, serve};
use crate::web_pages::{enter, heard, open};
use crate::web_shots::look;

const DAY_MS: i64 = 24 * 3_600_000;

/// The cells of the week: a list for each day, of what each entry says.
const CELLS: &str = "return [...document.querySelectorAll('.week td, .days > li')].map(day => [...day.querySelectorAll('.cells-of-day li')].map(it => it.innerText.replace(/\\s+/g, ' ')))";

fn days(browser: &Browser) -> Vec<Vec<String>> {
    let told = browser.js(CELLS);
    let texts = |day: &Value| {
        let entries = day.as_array().expect("a list of entries").iter();
        entries.map(|it| it.as_str().expect("text").to_owned()).collect()
    };
    told.as_array().expect("a list of days").iter().map(texts).collect()
}

#[test]
fn a_week_has_what_was_made_what_was_missed_and_what_comes_in_the_zone_of_its_schedule() {
    let clock = Clock::new();
    let home = &clock.home;
    let Some(browser) = Browser::open(home, 1280) else { return };
    // Far east of the browser's zone, which is UTC here: its noon is another hour of the day.
    let add = ["schedule", "add", "noon", "--cron", "0 12 * * *", "--tz", "Asia/Tokyo"];
    home.ok(&[&add[..], &["--missed", "skip", "--", "true"]].concat());
    home.ok(&["schedule", "add", "dense", "--every", "1h", "--missed", "skip", "--", "true"]);
    home.ok(&["daemon", "stop"]);
    clock.set(2 * DAY_MS);
    home.ok(&["daemon", "start"]);
    until("both were missed", || {
        let missed = home.json(&["report", "--json"])["night"]["missed"].clone();
        (missed.as_array().map(Vec::len) == Some(2)).then_some(())
    });
    let made = home.json(&["trigger", "run", "noon", "--json"]);
    let made = made["run"].as_str().expect("an id").to_owned();
    assert_eq!(home.wait(&made), 0);
    let page = serve(home);
    enter(&browser, &page);
    open(&browser, &page, "/schedule");
    browser.until("the week", "return document.querySelectorAll('.week td').length === 7");
    let wide = days(&browser);
    let has = |day: &[String], words: &str| day.iter().any(|it| it.contains(words));
    assert!(wide[..4].iter().any(|day| has(day, "12:00 noon ⚠ missed 2 times")), "{wide:?}");
    // In Tokyo it may be tomorrow already.
    assert!(wide[3..5].iter().any(|day| has(day, "noon completed")), "{wide:?}");
    let link = format!("return !!document.querySelector('.week a[href=\"/runs/{made}\"]')");
    assert_eq!(browser.js(&link), true, "the run that was made has a link");
    for day in &wide[4..] {
        assert!(day.iter().any(|it| it.starts_with("12:00 noon ○ due in ")), "{wide:?}");
        // Twenty-four of them are one line that counts them.
        assert_eq!(day.iter().filter(|it| it.contains(" dense ")).count(), 1, "{wide:?}");
        assert!(has(day, "dense 24 due"), "{wide:?}");
    }
    let zones = "return document.querySelector('main').innerText.includes('Asia/Tokyo for noon')";
    assert_eq!(browser.js(zones), true, "the zone is named");
    let said = heard(&browser);
    assert!(said.contains("missed 2 times") && said.contains("(today)"), "{said}");

    // On a phone the same is a list of days, and nothing goes sideways.
    look(&browser, 360, "light");
    browser.until("the days", "return document.querySelectorAll('.days > li').length === 7 && !document.querySelector('.week')");
    let narrow = days(&browser);
    let bare = |week: &[Vec<String>]| -> Vec<Vec<String>> {
        let cut = |it: &String| it.split(" due in ").next().unwrap_or_default().to_owned();
        week.iter().map(|day| day.iter().map(cut).collect()).collect()
    };
    assert_eq!(bare(&narrow), bare(&wide));
    let sideways = browser.js("return document.scrollingElement.scrollWidth");
    assert_eq!(sideways, json!(360));
}
