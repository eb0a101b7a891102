//! How a set of words is declared, and a word that may be of another build.
//!
//! `vocabulary!` makes an enum of a list: the variant in the code, the word in JSON. A reader that must not fail on a
//! word of a newer build, or of an older journal, reads a [`Word`]: that keeps the text, so nothing is lost when it is
//! written again.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

/// A set of words.
pub trait Vocabulary: Copy + Eq + 'static {
    /// The text, as scripts and journals have it.
    fn word(self) -> &'static str;

    /// What the text means; `None` if it is no word of this set.
    fn of(word: &str) -> Option<Self>;
}

/// A word of the set `T`, or a text that this build does not know.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Word<T> {
    Known(T),
    /// Never a word of the set: [`Word::of`] and the reader see to that.
    Unknown(String),
}

impl<T: Vocabulary> Word<T> {
    pub fn of(text: &str) -> Self {
        T::of(text).map_or_else(|| Self::Unknown(text.to_owned()), Self::Known)
    }

    /// What it means, if this build knows.
    pub fn known(&self) -> Option<T> {
        match self {
            Self::Known(known) => Some(*known),
            Self::Unknown(_) => None,
        }
    }

    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(known) => known.word(),
            Self::Unknown(text) => text,
        }
    }
}

impl<T: Vocabulary> From<T> for Word<T> {
    fn from(known: T) -> Self {
        Self::Known(known)
    }
}

impl<T: Vocabulary> PartialEq<T> for Word<T> {
    fn eq(&self, other: &T) -> bool {
        self.known() == Some(*other)
    }
}

impl<T: Vocabulary> fmt::Display for Word<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl<T: Vocabulary> Serialize for Word<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de, T: Vocabulary> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Text(PhantomData))
    }
}

struct Text<T>(PhantomData<T>);

impl<T: Vocabulary> Visitor<'_> for Text<T> {
    type Value = Word<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a word")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Word::of(text))
    }
}

/// Declares an enum and its words, with [`Vocabulary`] and serde by word. A text that is no word of the set is an error
/// to a reader of the bare enum.
macro_rules! vocabulary {
    ($(#[$meta:meta])* $name:ident { $($(#[$note:meta])* $variant:ident $word:literal)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$note])* $variant,)+
        }

        impl $name {
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// In the same order.
            pub const WORDS: [&'static str; Self::ALL.len()] = [$($word),+];

            /// The text, as scripts and journals have it.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// What the text means; `None` if it is no word of this set.
            pub fn of(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }

        impl $crate::vocabulary::Vocabulary for $name {
            fn word(self) -> &'static str {
                Self::word(self)
            }

            fn of(word: &str) -> Option<Self> {
                Self::of(word)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.word())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                match <$crate::vocabulary::Word<Self> as serde::Deserialize>::deserialize(deserializer)? {
                    $crate::vocabulary::Word::Known(known) => Ok(known),
                    $crate::vocabulary::Word::Unknown(text) => {
                        Err(serde::de::Error::unknown_variant(&text, &Self::WORDS))
                    }
                }
            }
        }
    };
}
pub(crate) use vocabulary;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BlockReason, Health, ReasonCode, StateName, Strategy, Verdict, WaitWord};

    #[test]
    fn a_word_of_a_newer_build_is_kept_as_it_was() {
        let read: Word<StateName> =
            serde_json::from_str("\"dreaming\"").expect("any text is a word");
        assert_eq!((read.known(), read.as_str()), (None, "dreaming"));
        assert_eq!(serde_json::to_string(&read).expect("plain data"), "\"dreaming\"");
        let bare =
            serde_json::from_str::<StateName>("\"dreaming\"").map_err(|error| error.to_string());
        assert!(bare.is_err_and(|error| error.contains("unknown variant `dreaming`")));
    }

    #[test]
    fn a_known_word_is_known_however_it_came() {
        assert_eq!(Word::of("blocked"), StateName::Blocked);
        assert_eq!(Word::from(StateName::Blocked), Word::of("blocked"));
        assert!(Word::of("running") != StateName::Blocked);
    }

    #[test]
    fn each_word_means_one_thing_and_is_what_is_written() {
        fn check<T: Vocabulary + Serialize + fmt::Debug>(all: &[T]) {
            for one in all {
                assert_eq!(T::of(one.word()), Some(*one));
                let json = serde_json::to_value(one).expect("plain data");
                assert_eq!(json, one.word());
            }
        }
        check(&StateName::ALL);
        check(&Verdict::ALL);
        check(&WaitWord::ALL);
        check(&ReasonCode::ALL);
        check(&BlockReason::ALL);
        check(&Health::ALL);
        check(&Strategy::ALL);
    }
}
