//! Base64 as RFC 4648 has it, with padding. Nothing else is needed of it here.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let sextet = usize::try_from(word >> (18 - 6 * at) & 63).unwrap_or(0);
            let is_padding = at > chunk.len();
            text.push(if is_padding { '=' } else { char::from(ALPHABET[sextet]) });
        }
    }
    text
}

/// `None` for what is not Base64. Padding may be missing.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches('=');
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for chunk in text.as_bytes().chunks(4) {
        let mut word = 0;
        for letter in chunk {
            let sextet = ALPHABET.iter().position(|known| known == letter)?;
            word = word << 6 | u32::try_from(sextet).ok()?;
        }
        let missing = 4 - chunk.len();
        word <<= 6 * missing;
        let whole = [16, 8, 0].map(|shift| u8::try_from(word >> shift & 255).unwrap_or(0));
        match missing {
            0..=2 => bytes.extend_from_slice(&whole[..3 - missing]),
            _ => return None,
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_rfc() {
        let pairs = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
        ];
        for (plain, encoded) in pairs {
            assert_eq!(encode(plain.as_bytes()), encoded);
            assert_eq!(decode(encoded).as_deref(), Some(plain.as_bytes()));
        }
        assert_eq!(decode("Zg"), Some(b"f".to_vec()));
        for bad in ["Z", "Zg$=", "Zm9v Zm9v", "====A"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }
}
