//! Keys towards an attached terminal, and the one that leaves it.

/// Ctrl-\ as terminals send it: by itself, in the kitty keyboard protocol, and as xterm's
/// modified key. Full-screen agents switch the latter two on.
const LEAVE: [&[u8]; 3] = [b"\x1c", b"\x1b[92;5u", b"\x1b[27;5;92~"];

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Keys<'a> {
    Typed(&'a [u8]),
    /// These, and then the person wanted to leave.
    Leave(&'a [u8]),
}

pub(crate) fn read(typed: &[u8]) -> Keys<'_> {
    let found = LEAVE.iter().filter_map(|leave| find(typed, leave)).min();
    found.map_or(Keys::Typed(typed), |at| Keys::Leave(&typed[..at]))
}

fn find(typed: &[u8], wanted: &[u8]) -> Option<usize> {
    typed.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ctrl_backslash_leaves_in_each_of_its_forms() {
        assert_eq!(read(b"ls\r"), Keys::Typed(b"ls\r"));
        assert_eq!(read(b"ab\x1ccd"), Keys::Leave(b"ab"));
        assert_eq!(read(b"ab\x1b[92;5u"), Keys::Leave(b"ab"));
        assert_eq!(read(b"\x1b[27;5;92~x\x1c"), Keys::Leave(b""));
        assert_eq!(read(b"\x1b[A\x03\\"), Keys::Typed(b"\x1b[A\x03\\"));
    }
}
