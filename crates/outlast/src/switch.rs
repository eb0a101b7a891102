//! Which of its two screens a terminal shows, learnt from the bytes that are sent to it.

/// Longer sequences than this switch no screens.
const SEQUENCE_MAX: usize = 32;

#[derive(Debug)]
pub(crate) struct Switch {
    is_alternate: bool,
    /// A control sequence that has begun, without its escape character.
    sequence: Option<Vec<u8>>,
}

impl Switch {
    pub(crate) const fn new() -> Self {
        Self { is_alternate: false, sequence: None }
    }

    pub(crate) fn is_alternate(&self) -> bool {
        self.is_alternate
    }

    pub(crate) fn read(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match (&mut self.sequence, byte) {
                (_, b'\x1b') => self.sequence = Some(Vec::new()),
                (None, _) => {}
                (Some(sequence), b'[') if sequence.is_empty() => sequence.push(b'['),
                (Some(sequence), b' '..=b'?') if (1..SEQUENCE_MAX).contains(&sequence.len()) => {
                    sequence.push(*byte);
                }
                (Some(sequence), last) => {
                    let is_switch = switches_screens(sequence);
                    match last {
                        b'h' | b'l' if is_switch => self.is_alternate = *last == b'h',
                        // A full reset.
                        b'c' if sequence.is_empty() => self.is_alternate = false,
                        _ => {}
                    }
                    self.sequence = None;
                }
            }
        }
    }
}

/// `[?1049`, also as one of several modes.
fn switches_screens(sequence: &[u8]) -> bool {
    let modes = sequence.strip_prefix(b"[?").unwrap_or_default();
    modes
        .split(|byte| *byte == b';')
        .any(|mode| [b"47".as_slice(), b"1047", b"1049"].contains(&mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_screen_is_known_wherever_the_bytes_are_split() {
        for (bytes, is_alternate) in [
            ("text", false),
            ("\x1b[?1049h", true),
            ("\x1b[?1049h\x1b[?25l\x1b[1;1Htext \x1b[31ml", true),
            ("\x1b[?1049h\x1b[?1049l", false),
            ("\x1b[?25;1047h", true),
            ("\x1b[?47h\x1b[49;1049l", true),
            ("\x1b[?1049h\x1bc", false),
            ("\x1b\x1b[?1049h", true),
            ("\x1b]2;[?1049h\x07", false),
        ] {
            for split in 0..=bytes.len() {
                let mut switch = Switch::new();
                switch.read(&bytes.as_bytes()[..split]);
                switch.read(&bytes.as_bytes()[split..]);
                assert_eq!(switch.is_alternate(), is_alternate, "{bytes:?} split at {split}");
            }
        }
    }
}
