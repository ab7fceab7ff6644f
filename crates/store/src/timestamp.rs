//! Timestamps in microseconds.

use std::{fmt, time::Duration};

use jiff::{Timestamp as JiffTimestamp, Unit};

/// A point in time: microseconds since 1970, UTC. Shown as RFC 3339 with six digits and `Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Returns the current time.
    pub fn now() -> Self {
        Self(JiffTimestamp::now().as_microsecond())
    }

    /// From microseconds since 1970.
    pub fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Parses RFC 3339.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse::<JiffTimestamp>().ok().map(|time| Self(time.as_microsecond()))
    }

    /// Microseconds since 1970.
    pub fn micros(self) -> i64 {
        self.0
    }

    /// Whole seconds since 1970.
    pub fn seconds(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)))
    }

    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)))
    }
}

impl From<std::time::SystemTime> for Timestamp {
    fn from(time: std::time::SystemTime) -> Self {
        let micros = match time.duration_since(std::time::UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
            Err(before) => -i64::try_from(before.duration().as_micros()).unwrap_or(i64::MAX),
        };
        Self(micros)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = JiffTimestamp::from_microsecond(self.0).unwrap_or(JiffTimestamp::UNIX_EPOCH);
        let time = time.round(Unit::Microsecond).unwrap_or(time);
        write!(f, "{time:.6}")
    }
}

impl serde::Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_have_microseconds_and_z() {
        assert_eq!(Timestamp::from_micros(0).to_string(), "1970-01-01T00:00:00.000000Z");
        assert_eq!(
            Timestamp::from_micros(1_763_197_200_000_001).to_string(),
            "2025-11-15T09:00:00.000001Z"
        );
        let time = Timestamp::from_micros(1_763_197_200_000_001);
        assert_eq!(Timestamp::parse(&time.to_string()), Some(time));
        assert_eq!(Timestamp::parse("2025-11-15T10:00:00.000001+01:00"), Some(time));
        assert_eq!(Timestamp::parse("yesterday"), None);
    }
}
