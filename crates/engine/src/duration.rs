//! Lengths of time as text: one parser, and a named function for each form in which they are printed.
//!
//! They are here because reasons that the engine gives contain one ("no output for 5 minutes"), and because every
//! crate that reads or prints a length of time can reach the engine; the client does so through `workflow`.
//! The forms differ on purpose, and scripts read each of them where it stands:
//!
//! | form | example | where |
//! |---|---|---|
//! | [`typed`] | `1h30m` | a setting that was typed, exactly, so that it can be typed again: triggers |
//! | [`in_one_unit`] | `36h` | a setting of a file, exactly, in one unit: what `check --explain` says is kept |
//! | [`short`] | `3m 4s` | for people, by its two largest units |
//! | [`column`] | `3m` | for people, where a list has little room |
//! | [`in_words`] | `5 minutes` | within a sentence |

const WEEK: (&str, u64) = ("w", 604_800_000);
/// From the largest that is printed to the smallest.
const UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// Milliseconds of `90s`, `5m`, `1h30m`, `2w` or `500ms`; `None` for anything else, a bare number too: whether that
/// is seconds or a mistake is its reader's to say.
pub fn parse(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut total: u64 = 0;
    let mut largest_allowed = u64::MAX;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, tail) = rest.split_at(digits);
        let unit_length = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_length);
        let (_, unit_ms) = *UNITS.iter().chain([&WEEK]).find(|(name, _)| *name == unit)?;
        // Units go down, each at most once, so that 30m1h is seen as the slip it is.
        if unit_ms >= largest_allowed {
            return None;
        }
        largest_allowed = unit_ms;
        total = total.checked_add(number.parse::<u64>().ok()?.checked_mul(unit_ms)?)?;
        rest = tail;
    }
    (largest_allowed != u64::MAX).then_some(total)
}

/// As it is typed: `1h30m`. Nothing is lost.
pub fn typed(ms: u64) -> String {
    let mut left = ms;
    let parts = UNITS.iter().filter_map(|(name, unit)| {
        let count = left / unit;
        left %= unit;
        (count > 0).then(|| format!("{count}{name}"))
    });
    parts.collect()
}

/// In the largest unit that leaves no rest: `7d`, `36h`, `0`. Nothing is lost.
pub fn in_one_unit(ms: u64) -> String {
    match UNITS.iter().find(|(_, unit)| ms > 0 && ms.is_multiple_of(*unit)) {
        Some((name, unit)) => format!("{}{name}", ms / unit),
        None => "0".to_owned(),
    }
}

/// By its two largest units: `850ms`, `12s`, `3m 4s`, `2h 10m`, `5d 3h`.
pub fn short(ms: u64) -> String {
    let Some(first) = UNITS.iter().position(|(_, unit)| ms >= *unit) else {
        return "0ms".to_owned();
    };
    let (name, unit) = UNITS[first];
    let whole = format!("{}{name}", ms / unit);
    match UNITS.get(first + 1) {
        Some((name, smaller)) if *name != "ms" && ms % unit >= *smaller => {
            format!("{whole} {}{name}", ms % unit / smaller)
        }
        _ => whole,
    }
}

/// By its largest unit, from seconds on: `0s`, `3m`, `2h`.
pub fn column(ms: u64) -> String {
    let unit = UNITS.iter().find(|(name, unit)| *name != "ms" && ms >= *unit);
    unit.map_or("0s".to_owned(), |(name, unit)| format!("{}{name}", ms / unit))
}

/// For a sentence, in the largest unit that there are two of: `5 minutes`.
pub fn in_words(ms: u64) -> String {
    let (count, unit) = match ms {
        0..2_000 => return format!("{ms} ms"),
        2_000..120_000 => (ms / 1000, "seconds"),
        120_000..7_200_000 => (ms / 60_000, "minutes"),
        7_200_000..172_800_000 => (ms / 3_600_000, "hours"),
        _ => (ms / 86_400_000, "days"),
    };
    format!("{count} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_exactly_is_read_back() {
        for ms in [1, 500, 1000, 1500, 90_000, 5_400_000, 129_600_000, 604_800_000, 93_784_005] {
            assert_eq!(parse(&typed(ms)), Some(ms));
            assert_eq!(parse(&in_one_unit(ms)), Some(ms));
        }
        assert_eq!(parse("2w1d"), Some(15 * 86_400_000));
        for text in ["", "5", "m", "5x", "5 m", "-5s", "+5s", "1.5h", "30m1h", "1h1h", "5m5", "٣s"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse("99999999999999999d"), None);
    }

    #[test]
    fn the_short_form_keeps_the_two_largest_units() {
        let cases = [
            (0, "0ms"),
            (850, "850ms"),
            (1000, "1s"),
            (59_999, "59s"),
            (60_000, "1m"),
            (184_000, "3m 4s"),
            (7_800_000, "2h 10m"),
            (442_800_000, "5d 3h"),
            (100 * 86_400_000, "100d"),
        ];
        for (ms, text) in cases {
            assert_eq!(short(ms), text);
        }
    }

    #[test]
    fn each_form_says_the_same_length_in_its_own_way() {
        let all = |ms| [typed(ms), in_one_unit(ms), short(ms), column(ms), in_words(ms)];
        assert_eq!(all(850), ["850ms", "850ms", "850ms", "0s", "850 ms"]);
        assert_eq!(all(1500), ["1s500ms", "1500ms", "1s", "1s", "1500 ms"]);
        assert_eq!(all(90_000), ["1m30s", "90s", "1m 30s", "1m", "90 seconds"]);
        assert_eq!(all(7_205_000), ["2h5s", "7205s", "2h", "2h", "2 hours"]);
        assert_eq!(all(129_600_000), ["1d12h", "36h", "1d 12h", "1d", "36 hours"]);
        assert_eq!((in_one_unit(0), short(0), column(0)), ("0".into(), "0ms".into(), "0s".into()));
    }
}
