//! Output frames: bytes as they arrive, into whole frames.

use outlast_wire::api::OutputFrame;

#[derive(Debug, Default)]
pub(crate) struct Frames {
    pending: Vec<u8>,
    /// How much of `pending` has been handed out.
    taken: usize,
}

impl Frames {
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.pending.drain(..self.taken);
        self.taken = 0;
        self.pending.extend_from_slice(bytes);
    }

    /// The next whole frame and its data, if one has arrived.
    pub(crate) fn next(&mut self) -> Result<Option<(OutputFrame, Vec<u8>)>, serde_json::Error> {
        let Some((frame, data, length)) = OutputFrame::decode(&self.pending[self.taken..])? else {
            return Ok(None);
        };
        let data = data.to_vec();
        self.taken += length;
        Ok(Some((frame, data)))
    }
}

#[cfg(test)]
mod tests {
    use outlast_wire::output::Stream;

    use super::*;

    fn frames() -> Vec<(OutputFrame, Vec<u8>)> {
        let data = |offset| OutputFrame::Data { offset, stream: Stream::Stderr, at_ms: 7 };
        vec![
            (OutputFrame::Attempt { turn: 1, attempt: 2 }, Vec::new()),
            (data(0), b"hello\n".to_vec()),
            (OutputFrame::Gap { from: 6, to: 600 }, Vec::new()),
            (data(600), vec![0, 255, 10]),
            (OutputFrame::End, Vec::new()),
        ]
    }

    #[test]
    fn frames_come_out_whole_wherever_the_stream_is_split() {
        let stream: Vec<u8> =
            frames().iter().flat_map(|(frame, data)| frame.encode(data)).collect();
        for split in 0..=stream.len() {
            let mut decoder = Frames::default();
            let mut seen = Vec::new();
            for part in [&stream[..split], &stream[split..]] {
                decoder.feed(part);
                while let Some(frame) = decoder.next().expect("frames that we wrote") {
                    seen.push(frame);
                }
            }
            assert_eq!(seen, frames(), "split at {split}");
        }
    }

    #[test]
    fn one_byte_at_a_time_is_enough() {
        let mut decoder = Frames::default();
        let mut seen = Vec::new();
        for byte in frames().iter().flat_map(|(frame, data)| frame.encode(data)) {
            decoder.feed(&[byte]);
            seen.extend(decoder.next().expect("frames that we wrote"));
        }
        assert_eq!(seen, frames());
    }
}
