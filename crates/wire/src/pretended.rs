//! A clock that a test sets, shared by the processes that read clocks.
//!
//! A debug build reads it from the file that `OUTLAST_FAKE_CLOCK_FILE` names; a release build has no such door. The
//! file holds up to three numbers of milliseconds: how much time has passed (both clocks move), how far the wall
//! clock is set off, and how long that has to stand before it is believed.

/// What a test says of the clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pretended {
    passed_ms: i64,
    set_ms: i64,
    pub patience_ms: u64,
}

/// So that time that a test takes back leaves the machine running.
const UPTIME_MS: u64 = 10_000_000_000;

const PATIENCE_MS: u64 = 600_000;

impl Pretended {
    pub fn wall_ms(&self, real_ms: u64) -> u64 {
        real_ms.saturating_add_signed(self.passed_ms).saturating_add_signed(self.set_ms)
    }

    pub fn boot_ms(&self, real_ms: u64) -> u64 {
        (real_ms + UPTIME_MS).saturating_add_signed(self.passed_ms)
    }

    fn read(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let passed_ms = words.next()?.parse().ok()?;
        let set_ms = words.next().map_or(Some(0), |word| word.parse().ok())?;
        let patience_ms = words.next().map_or(Some(PATIENCE_MS), |word| word.parse().ok())?;
        Some(Self { passed_ms, set_ms, patience_ms })
    }
}

/// What the clocks are to say, if a test wants them to.
pub fn clock() -> Option<Pretended> {
    if !cfg!(debug_assertions) {
        return None;
    }
    #[expect(clippy::disallowed_methods, reason = "a test sets the clock; not in a release build")]
    let file = std::env::var_os("OUTLAST_FAKE_CLOCK_FILE")?;
    Pretended::read(&std::fs::read_to_string(file).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_passes_on_both_clocks_and_a_setting_moves_only_the_wall() {
        let passed = Pretended::read("5000").unwrap();
        assert_eq!((passed.wall_ms(7), passed.boot_ms(7)), (5_007, UPTIME_MS + 5_007));
        let set = Pretended::read("5000 -3000 0").unwrap();
        assert_eq!(
            (set.wall_ms(7), set.boot_ms(7), set.patience_ms),
            (2_007, UPTIME_MS + 5_007, 0)
        );
        assert_eq!(Pretended::read(""), None);
        assert_eq!(Pretended::read("1 x"), None);
    }
}
