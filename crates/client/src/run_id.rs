//! Ids of runs and orders. The client chooses them, so a question that is asked again makes no second run.

use crate::problem::Problem;

/// Crockford's base 32: no digit looks like another.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const LENGTH: usize = 12;

pub fn new() -> Result<String, Problem> {
    let mut chance = [0; LENGTH];
    rustix::rand::getrandom(&mut chance, rustix::rand::GetRandomFlags::empty())
        .map_err(|error| Problem::failure(format_args!("cannot choose an id: {error}")))?;
    Ok(spell(chance))
}

fn spell(chance: [u8; LENGTH]) -> String {
    chance.iter().map(|byte| char::from(DIGITS[usize::from(byte & 31)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_use_every_digit_and_nothing_else() {
        let ids: String = (0..=255).map(|byte| spell([byte; LENGTH])).collect::<Vec<_>>().concat();
        for digit in DIGITS {
            assert!(ids.contains(char::from(*digit)));
        }
        assert!(!ids.contains(['i', 'l', 'o', 'u']));
    }

    #[test]
    fn two_ids_differ() {
        assert_ne!(new(), new());
    }
}
