//! Lists that end, and words that a later registry may add to.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{Error as _, SeqAccess, Visitor},
};

use crate::trust::Tier;

/// A list of at most `MAX` things; what comes behind them is not even read.
pub(super) fn list<'de, D, T, const MAX: usize>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct Bounded<T, const MAX: usize>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for Bounded<T, MAX> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a list of at most {MAX} things")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
            let mut found = Vec::new();
            while let Some(item) = items.next_element()? {
                if found.len() == MAX {
                    return Err(A::Error::custom(format!("a list has more than {MAX} things")));
                }
                found.push(item);
            }
            Ok(found)
        }
    }

    deserializer.deserialize_seq(Bounded::<T, MAX>(PhantomData))
}

/// A tier; a word that is not known, or none, is the least.
pub(super) fn lenient_tier<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Tier, D::Error> {
    Ok(maybe_tier(deserializer)?.unwrap_or_default())
}

/// A tier, if the word is known.
pub(super) fn maybe_tier<'de, D>(deserializer: D) -> Result<Option<Tier>, D::Error>
where
    D: Deserializer<'de>,
{
    let word = Option::<String>::deserialize(deserializer)?;
    Ok(word.and_then(|word| word.parse().ok()))
}
