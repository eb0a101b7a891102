//! FNV-1a, 64 bits wide, for names and fingerprints.
//!
//! Its values are on disk as parts of workspace names, and in other systems' traces as ids: it stays as it is. It is no security measure, and
//! nothing here is kept safe by it being hard to reverse.

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Fnv(u64);

impl Fnv {
    pub(crate) const fn new() -> Self {
        Self(OFFSET)
    }

    /// Another hash function of the same kind, for each seed.
    pub(crate) const fn seeded(seed: u64) -> Self {
        Self(OFFSET ^ seed)
    }

    /// Another hash function of the same kind.
    pub(crate) const fn starting_at(offset: u64) -> Self {
        Self(offset)
    }

    pub(crate) fn of(bytes: &[u8]) -> u64 {
        let mut hash = Self::new();
        hash.add(bytes);
        hash.value()
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(PRIME);
        }
    }

    pub(crate) fn value(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_are_those_that_are_published() {
        assert_eq!(Fnv::of(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(Fnv::of(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(Fnv::of(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
