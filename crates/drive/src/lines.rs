//! Lines out of bytes, however those come.

/// A longer line is cut, and is then most likely not understood. A model's longest answer is far shorter.
const LONGEST: usize = 32 << 20;

#[derive(Debug, Default)]
pub(crate) struct Lines {
    rest: Vec<u8>,
}

impl Lines {
    /// The lines that these bytes complete, without their ends.
    pub(crate) fn feed(&mut self, mut bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut lines = Vec::new();
        while let Some(at) = bytes.iter().position(|byte| *byte == b'\n') {
            self.keep(&bytes[..at]);
            lines.push(self.take());
            bytes = &bytes[at + 1..];
        }
        self.keep(bytes);
        lines
    }

    /// What came after the last end of a line, once nothing comes any more.
    pub(crate) fn last(mut self) -> Option<Vec<u8>> {
        Some(self.take()).filter(|line| !line.is_empty())
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = LONGEST - self.rest.len().min(LONGEST);
        self.rest.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn take(&mut self) -> Vec<u8> {
        let mut line = std::mem::take(&mut self.rest);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_the_same_wherever_the_bytes_are_split() {
        let text = b"{\"a\":1}\n\n{\"b\":\"\xc3\xa4\"}\r\nlast";
        let whole = vec![b"{\"a\":1}".to_vec(), Vec::new(), "{\"b\":\"ä\"}".as_bytes().to_vec()];
        for split in 0..=text.len() {
            let mut lines = Lines::default();
            let mut found = lines.feed(&text[..split]);
            found.extend(lines.feed(&text[split..]));
            assert_eq!(
                (found, lines.last()),
                (whole.clone(), Some(b"last".to_vec())),
                "at {split}"
            );
        }
    }

    #[test]
    fn a_line_without_end_takes_no_more_than_its_bound() {
        let mut lines = Lines::default();
        for _ in 0..40 {
            assert!(lines.feed(&[b'x'; 1 << 20]).is_empty());
        }
        let found = lines.feed(b"\nnext\n");
        assert_eq!((found[0].len(), found[1].as_slice()), (LONGEST, b"next".as_slice()));
    }
}
