//! Base64 as webhooks and mail have it: the standard alphabet, written with padding and read with or without it.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

// Bits beyond the last byte say nothing, and some senders leave them set.
const STANDARD_WEBHOOKS: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

pub fn encode(bytes: &[u8]) -> String {
    STANDARD_WEBHOOKS.encode(bytes)
}

/// `None` for what is not Base64. Padding may be missing.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    STANDARD_WEBHOOKS.decode(text).ok()
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
        for lenient in ["Zg", "Zh=="] {
            assert_eq!(decode(lenient), Some(b"f".to_vec()), "{lenient}");
        }
        for bad in ["Z", "Zg$=", "Zm9v Zm9v", "====A"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }
}
