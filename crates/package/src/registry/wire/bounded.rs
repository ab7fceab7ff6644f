//! Deserializes lists of limited length, and enums with unknown values.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _, SeqAccess, Visitor},
};
use serde_json::Value;

use crate::trust::Tier;

/// Deserializes a list; fails after `MAX` items without reading the rest.
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

/// Deserializes at most `MAX` items of a list. Skips items that cannot be parsed, for example of a
/// newer registry, and ignores the rest.
pub(super) fn readable_items<'de, D, T, const MAX: usize>(
    deserializer: D,
) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let items = Vec::<Value>::deserialize(deserializer)?.into_iter();
    Ok(items.filter_map(|item| serde_json::from_value(item).ok()).take(MAX).collect())
}

/// Deserializes a tier; an unknown or missing value is the lowest tier.
pub(super) fn lenient_tier<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Tier, D::Error> {
    Ok(maybe_tier(deserializer)?.unwrap_or_default())
}

/// Deserializes a tier; an unknown value is `None`.
pub(super) fn maybe_tier<'de, D>(deserializer: D) -> Result<Option<Tier>, D::Error>
where
    D: Deserializer<'de>,
{
    let word = Option::<String>::deserialize(deserializer)?;
    Ok(word.and_then(|word| word.parse().ok()))
}
