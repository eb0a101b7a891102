//! What a run and those below it may use together: free, reserved and committed. Nothing here is shown as a fact that was
//! not reported.

use outlast_wire::api::{PotView, PotsView, Usage};

use super::figures::{self, Bound, marked};
use crate::money::Micros;

/// What has a ceiling, as a table of cells: money, tokens, turns, runs. Nothing if there is no ceiling at all.
pub(crate) fn table(pots: &PotsView, own: &Usage) -> Vec<Vec<String>> {
    let rows: Vec<(Kind, &PotView)> = Kind::ALL
        .map(|kind| (kind, kind.of(pots)))
        .into_iter()
        .filter(|it| it.1.total.is_some())
        .collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let is_over = rows.iter().any(|(_, pot)| pot.over > 0);
    let heads = ["tree", "free", "reserved", "committed", "of"];
    let over = is_over.then_some("over");
    let mut table = vec![heads.into_iter().chain(over).map(str::to_owned).collect::<Vec<String>>()];
    for (kind, pot) in rows {
        let shown = |amount: u64| kind.shown(amount);
        let committed = marked(&shown(pot.committed), kind.bound(pots, own));
        let amounts = [
            shown(pot.free.unwrap_or(0)),
            shown(pot.reserved),
            committed,
            shown(pot.total.unwrap_or(0)),
        ];
        let over = is_over.then(|| shown(pot.over));
        let name = std::iter::once(kind.name().to_owned());
        table.push(name.chain(amounts).chain(over).collect());
    }
    table
}

/// What was charged without a report; nothing if all of it was reported.
pub(crate) fn remark(pots: &PotsView) -> Option<String> {
    match pots.unknown {
        0 => None,
        1 => Some("1 child did not report what it used: charged as reserved".to_owned()),
        many => Some(format!("{many} children did not report what they used: charged as reserved")),
    }
}

/// The same in a line, as far as there is a ceiling: `budget $0.40 free of $5.00`.
pub(crate) fn line(pots: &PotsView) -> Option<String> {
    let part = |kind: Kind| {
        let pot = kind.of(pots);
        let words = |amount: u64| kind.words(amount);
        let (total, free) = (words(pot.total?), words(pot.free?));
        let reserved = (pot.reserved > 0).then(|| format!(", {} reserved", words(pot.reserved)));
        let over = (pot.over > 0).then(|| format!(", {} over", words(pot.over)));
        let rest = [reserved, over].into_iter().flatten().collect::<String>();
        Some(format!("{free} free of {total}{rest}"))
    };
    let parts: Vec<String> = Kind::ALL.into_iter().filter_map(part).collect();
    let unknown = (pots.unknown > 0).then(|| format!("; charged as reserved: {}", pots.unknown));
    (!parts.is_empty())
        .then(|| format!("budget {}{}", parts.join("; "), unknown.unwrap_or_default()))
}

#[derive(Clone, Copy)]
enum Kind {
    Money,
    Tokens,
    Turns,
    Runs,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Money, Self::Tokens, Self::Turns, Self::Runs];

    fn of(self, pots: &PotsView) -> &PotView {
        match self {
            Self::Money => &pots.cost_usd_micros,
            Self::Tokens => &pots.tokens,
            Self::Turns => &pots.turns,
            Self::Runs => &pots.runs,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Money => "money",
            Self::Tokens => "tokens",
            Self::Turns => "turns",
            Self::Runs => "runs",
        }
    }

    fn shown(self, amount: u64) -> String {
        match self {
            Self::Money => Micros(amount).dollars(),
            Self::Tokens | Self::Turns | Self::Runs => figures::short(amount),
        }
    }

    fn words(self, amount: u64) -> String {
        match self {
            Self::Money => self.shown(amount),
            Self::Tokens | Self::Turns | Self::Runs => {
                format!("{} {}", self.shown(amount), self.name())
            }
        }
    }

    /// How sure what is committed is. Turns and runs are counted by the daemon; money and tokens are what agents report.
    fn bound(self, pots: &PotsView, own: &Usage) -> Bound {
        let is_held = match self {
            Self::Money => own.unreported_usd > 0.0,
            Self::Tokens => own.unreported_tokens > 0,
            Self::Turns | Self::Runs => return Bound::Exact,
        };
        match (is_held || pots.unknown > 0, own.unreported_attempts > 0) {
            (true, _) => Bound::AtMost,
            (false, true) => Bound::AtLeast,
            (false, false) => Bound::Exact,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pot(total: Option<u64>, reserved: u64, committed: u64, over: u64) -> PotView {
        let free = total.map(|total| (total + over) - reserved - committed);
        PotView { total, free, reserved, committed, over }
    }

    fn usage(json: &str) -> Usage {
        serde_json::from_str(json).expect("a usage")
    }

    const REPORTED: &str =
        r#"{"input_tokens":1,"output_tokens":1,"cached_tokens":0,"cost_usd":0.1,"known":true}"#;
    const HELD: &str = r#"{"input_tokens":1,"output_tokens":1,"cached_tokens":0,"cost_usd":0.1,"known":false,
        "unreported_tokens":9,"unreported_attempts":1}"#;

    fn pots(unknown: u32) -> PotsView {
        PotsView {
            turns: pot(Some(30), 8, 3, 0),
            tokens: pot(Some(100_000), 15_000, 5_000, 0),
            cost_usd_micros: pot(Some(5_000_000), 1_000_000, 420_000, 0),
            runs: pot(None, 0, 1, 0),
            unknown,
        }
    }

    fn printed(table: &[Vec<String>]) -> Vec<String> {
        table.iter().map(|row| row.join(" ")).collect()
    }

    #[test]
    fn what_has_a_ceiling_is_free_reserved_or_committed() {
        assert_eq!(
            printed(&table(&pots(0), &usage(REPORTED))),
            [
                "tree free reserved committed of",
                "money $3.58 $1.00 $0.42 $5.00",
                "tokens 80k 15k 5k 100k",
                "turns 19 8 3 30"
            ]
        );
        let over = PotsView { turns: pot(Some(3), 0, 4, 1), ..pots(0) };
        assert_eq!(printed(&table(&over, &usage(REPORTED)))[3], "turns 0 0 4 3 1");
        assert_eq!(
            line(&over).as_deref(),
            Some(
                "budget $3.58 free of $5.00, $1.00 reserved; 80k tokens free of 100k tokens, 15k tokens reserved; \
                 0 turns free of 3 turns, 1 turns over"
            )
        );
    }

    #[test]
    fn what_was_not_reported_is_never_a_fact() {
        let of = |unknown, own: &str| printed(&table(&pots(unknown), &usage(own)));
        assert_eq!(
            of(0, HELD)[1..3],
            ["money $3.58 $1.00 ≥$0.42 $5.00", "tokens 80k 15k ≤5k? 100k"]
        );
        assert_eq!(
            of(2, REPORTED)[1..],
            ["money $3.58 $1.00 ≤$0.42? $5.00", "tokens 80k 15k ≤5k? 100k", "turns 19 8 3 30"]
        );
        assert!(remark(&pots(1)).is_some_and(|it| it.starts_with("1 child did not report")));
        assert_eq!(remark(&pots(0)), None);
    }

    #[test]
    fn a_tree_without_a_ceiling_has_no_budget() {
        let none = || pot(None, 0, 2, 0);
        let pots = PotsView {
            turns: none(),
            tokens: none(),
            cost_usd_micros: none(),
            runs: none(),
            unknown: 1,
        };
        assert_eq!((table(&pots, &usage(REPORTED)), line(&pots)), (Vec::new(), None));
    }
}
