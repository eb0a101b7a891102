//! FNV-1a, 64 bits wide, for names and fingerprints.
//!
//! Its values are on disk as parts of workspace names: it stays as it is. It is no security measure, and
//! nothing here is kept safe by it being hard to reverse.

const PRIME: u64 = 0x0000_0100_0000_01b3;

#[derive(Debug, Clone, Copy)]
pub(super) struct Fnv(u64);

impl Fnv {
    pub(super) const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// Another hash function of the same kind.
    pub(super) const fn starting_at(offset: u64) -> Self {
        Self(offset)
    }

    pub(super) fn of(bytes: &[u8]) -> u64 {
        let mut hash = Self::new();
        hash.add(bytes);
        hash.value()
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(PRIME);
        }
    }

    pub(super) fn value(self) -> u64 {
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
