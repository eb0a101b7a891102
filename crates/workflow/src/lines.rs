//! Which line a byte is on, without counting from the start each time.

pub(crate) struct Lines {
    /// Where each line starts.
    starts: Vec<usize>,
}

impl Lines {
    pub(crate) fn of(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self { starts: std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect() }
    }

    /// Counted from 1.
    pub(crate) fn at(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_with_its_own_newline() {
        let lines = Lines::of("ab\n\nc");
        let found: Vec<_> = (0..=5).map(|offset| lines.at(offset)).collect();
        assert_eq!(found, [1, 1, 1, 2, 3, 3]);
    }
}
