//! Serializes durations in settings files as numbers of seconds.

use std::time::Duration;

use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

/// The longest duration: one day.
const MAX_SECONDS: f64 = 86_400.0;

pub(super) fn deserialize<'de, D>(deserializer: D) -> Result<Option<Duration>, D::Error>
where
    D: Deserializer<'de>,
{
    let seconds = f64::deserialize(deserializer)?;
    if seconds > 0.0 && seconds <= MAX_SECONDS {
        Ok(Some(Duration::from_secs_f64(seconds)))
    } else {
        Err(D::Error::custom("expected a number of seconds above 0, at most a day"))
    }
}

#[expect(clippy::ref_option, reason = "serde calls it so")]
pub(super) fn serialize<S>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error>
where
    S: Serializer,
{
    match time {
        Some(time) => serializer.serialize_f64(time.as_secs_f64()),
        None => serializer.serialize_none(),
    }
}
