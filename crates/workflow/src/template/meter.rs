//! What one rendering may cost: bytes of values, and steps.
//!
//! A template is foreign text, and a filter can double a value: `{% assign a = a | append: a %}` written thirty
//! times is ten gigabytes. So every filter is asked what it would make before it makes it, every value is
//! charged, and a template that wants more than its budget is refused with the line that wanted it. Reads no
//! clock: the budget is the same on every machine.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use liquid_core::parser::FilterArguments;
use liquid_core::{Error, Expression, Filter, FilterReflection, ParseFilter, Result, Runtime};
use liquid_core::{Value, ValueCow, ValueView};

/// No value that a template makes is larger: it could not be printed anyway.
pub(super) const LARGEST_VALUE: usize = super::LARGEST_PROMPT;

/// What all filters, assignments and captures of one rendering may read and make.
const MOST_BYTES: usize = 16 << 20;

/// How many tags, outputs and rounds of loops one rendering may come to.
const MOST_STEPS: usize = 100_000;

/// What a filter may take for a moment, by the estimate that is made before it runs.
const LARGEST_MOMENT: usize = 16 << 20;

/// What an item of a list costs beside its text.
const NODE: usize = 64;

/// Counts for one rendering. The line is that of the piece which is rendered now.
#[derive(Debug, Default)]
pub(super) struct Meter {
    line: AtomicUsize,
    steps: AtomicUsize,
    bytes: AtomicUsize,
    refusal: OnceLock<String>,
}

impl Meter {
    /// The line that is rendered now, if one is.
    pub(super) fn line(&self) -> Option<usize> {
        Some(self.line.load(Ordering::Relaxed)).filter(|line| *line > 0)
    }

    /// Why the budget refused to go on, if it did.
    pub(super) fn refusal(&self) -> Option<&str> {
        self.refusal.get().map(String::as_str)
    }

    /// The rendering has come to this line.
    pub(super) fn step(&self, line: usize) -> Result<()> {
        self.line.store(line, Ordering::Relaxed);
        let steps = self.steps.fetch_add(1, Ordering::Relaxed) + 1;
        if steps > MOST_STEPS {
            return self.refuse(format!("the template takes more than {MOST_STEPS} steps"));
        }
        Ok(())
    }

    /// Takes a value that was made or read into account.
    pub(super) fn charge(&self, bytes: usize) -> Result<()> {
        let all = self.bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if all > MOST_BYTES {
            let most = MOST_BYTES >> 20;
            return self.refuse(format!("the template works through more than {most} MiB of text"));
        }
        Ok(())
    }

    /// Takes a value into account that is kept.
    pub(super) fn keep(&self, what: &str, bytes: usize) -> Result<()> {
        if bytes > LARGEST_VALUE {
            return self.too_large(what);
        }
        self.charge(bytes)
    }

    pub(super) fn too_large<T>(&self, what: &str) -> Result<T> {
        let most = LARGEST_VALUE >> 20;
        self.refuse(format!("{what} makes a value of more than {most} MiB"))
    }

    fn refuse<T>(&self, why: String) -> Result<T> {
        Err(Error::with_msg(self.refusal.get_or_init(|| why).clone()))
    }
}

/// What a value takes, about.
pub(super) fn cost(value: &dyn ValueView) -> usize {
    if let Some(list) = value.as_array() {
        return list.values().map(|item| NODE + cost(item)).sum();
    }
    if let Some(object) = value.as_object() {
        return object.iter().map(|(name, item)| NODE + name.len() + cost(item)).sum();
    }
    value.to_kstr().len()
}

/// A filter of Liquid's that is charged for what it reads and makes.
#[derive(Clone)]
pub(super) struct Metered {
    inner: Box<dyn ParseFilter>,
    meter: Arc<Meter>,
}

impl Metered {
    pub(super) fn new(inner: impl Into<Box<dyn ParseFilter>>, meter: &Arc<Meter>) -> Self {
        Self { inner: inner.into(), meter: Arc::clone(meter) }
    }
}

impl ParseFilter for Metered {
    fn parse(&self, arguments: FilterArguments<'_>) -> Result<Box<dyn Filter>> {
        let positional: Vec<Expression> = arguments.positional.collect();
        let keyword: Vec<(&str, Expression)> = arguments.keyword.collect();
        let named = keyword.iter().map(|(_, value)| value);
        let given = positional.iter().chain(named).cloned().collect();
        let filter = self.inner.parse(FilterArguments {
            positional: Box::new(positional.into_iter()),
            keyword: Box::new(keyword.into_iter()),
        })?;
        let name = self.inner.reflection().name().to_owned();
        Ok(Box::new(Charged { filter, name, given, meter: Arc::clone(&self.meter) }))
    }

    fn reflection(&self) -> &dyn FilterReflection {
        self.inner.reflection()
    }
}

#[derive(Debug)]
struct Charged {
    filter: Box<dyn Filter>,
    name: String,
    given: Vec<Expression>,
    meter: Arc<Meter>,
}

impl fmt::Display for Charged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.filter.fmt(f)
    }
}

impl Filter for Charged {
    fn evaluate(&self, input: &dyn ValueView, runtime: &dyn Runtime) -> Result<Value> {
        let given: Vec<_> =
            self.given.iter().filter_map(|given| given.try_evaluate(runtime)).collect();
        let given: Vec<&dyn ValueView> = given.iter().map(ValueCow::as_view).collect();
        let read = given.iter().fold(cost(input), |sum, given| sum + cost(*given));
        self.meter.charge(read)?;
        if would_make(&self.name, input, &given, read) > LARGEST_MOMENT {
            return self.meter.too_large(&self.name);
        }
        if self.name == "date" && given.first().is_some_and(|it| breaks_dates(&it.to_kstr())) {
            return self.meter.refuse(
                "a % in the format of a date stands before a letter that no format has".to_owned(),
            );
        }
        let made = self.filter.evaluate(input, runtime)?;
        self.meter.keep(&self.name, cost(&made))?;
        Ok(made)
    }
}

/// At most this much, for every filter that is offered. `read` is what the input and the arguments come to.
fn would_make(name: &str, input: &dyn ValueView, given: &[&dyn ValueView], read: usize) -> usize {
    let text = |at: usize| given.get(at).map(|given| given.to_kstr().to_string());
    match name {
        "replace" => {
            let (all, wanted) = (input.to_kstr(), text(0).unwrap_or_default());
            let each = text(1).map_or(0, |text| text.len());
            all.matches(wanted.as_str()).count().saturating_mul(each).saturating_add(read)
        }
        "join" => {
            let items = input.as_array().map_or(0, |list| list.values().count());
            items.saturating_mul(text(0).map_or(1, |text| text.len())).saturating_add(read)
        }
        "split" => {
            let (all, by) = (input.to_kstr(), text(0).unwrap_or_default());
            let parts = all.matches(by.as_str()).count() + 2;
            parts.saturating_mul(NODE).saturating_add(read)
        }
        // `%1000000000Y` is padded to a thousand million places.
        "date" => text(0).map_or(read, |format| widths(&format).saturating_add(read * NODE)),
        // The longest of their replacements for one byte, `&quot;` and `<br />` with its newline, and what the case
        // of one letter can come to.
        "escape" | "escape_once" | "newline_to_br" => read.saturating_mul(7),
        "url_encode" | "upcase" | "downcase" | "capitalize" => read.saturating_mul(3),
        // These choose, shorten, order, count, or put together what they are given.
        _ => read,
    }
}

/// True if Liquid would cut this format of a date in the middle of a character, and panic.
fn breaks_dates(format: &str) -> bool {
    let is_flag = |letter: char| "-_^#:EO".contains(letter) || letter.is_ascii_digit();
    let directives = format.split('%').skip(1);
    let letters = directives.map(|rest| rest.trim_start_matches(is_flag).chars().next());
    letters.flatten().any(|letter| !letter.is_ascii())
}

/// The sum of the numbers in a date's format; one that cannot be counted with is more than there is.
fn widths(format: &str) -> usize {
    let digits = format.split(|any: char| !any.is_ascii_digit()).filter(|run| !run.is_empty());
    let width = |run: &str| match run.trim_start_matches('0') {
        "" => 0,
        run if run.len() <= 4 => run.parse().unwrap_or(usize::MAX),
        _ => usize::MAX,
    };
    digits.map(width).fold(0, usize::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_is_never_less_than_what_is_made() {
        let input = Value::scalar("a\"b<c\nd,ß,e");
        let given = [Value::scalar(","), Value::scalar("a longer one")];
        let views: Vec<&dyn ValueView> = given.iter().map(|it| it as &dyn ValueView).collect();
        let read = views.iter().fold(cost(&input), |sum, it| sum + cost(*it));
        for (name, made) in [
            ("replace", "a\"b<c\nd,ß,e".replace(',', "a longer one").len()),
            ("split", 3 * NODE + 10),
            ("escape", "a&quot;b&lt;c\nd,ß,e".len()),
            ("newline_to_br", "a\"b<c<br />\nd,ß,e".len()),
            ("append", "a\"b<c\nd,ß,e,".len()),
        ] {
            assert!(would_make(name, &input, &views, read) >= made, "{name}");
        }
        let empty = Value::scalar("");
        let views: [&dyn ValueView; 2] = [&empty, &given[1]];
        let made = "a\"b<c\nd,ß,e".replace("", "a longer one").len();
        assert!(would_make("replace", &input, &views, read) >= made);
    }

    #[test]
    fn a_format_of_a_date_that_liquid_would_cut_within_a_letter_is_known() {
        for format in ["%\u{36d}", "%Y-%m %10\u{e9}", "%-E\u{e9}", "%::\u{e9}"] {
            assert!(breaks_dates(format), "{format}");
        }
        for format in ["%Y \u{e9} %m\u{e9}", "100 %% \u{e9}", "%", "\u{e9}", ""] {
            assert!(!breaks_dates(format), "{format}");
        }
    }

    #[test]
    fn the_widths_of_a_date_are_summed() {
        assert_eq!(widths("%Y-%m-%d"), 0);
        assert_eq!(widths("%10Y %0200d"), 210);
        assert_eq!(widths("%99999999999Y"), usize::MAX);
    }
}
