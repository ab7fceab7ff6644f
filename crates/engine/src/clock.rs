//! Formats times as text, always in UTC, so that records from different time zones sort together.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A time, split into calendar fields.
struct Parts {
    year: i64,
    month: i64,
    day: i64,
    hour: u64,
    minute: u64,
    second: u64,
}

/// RFC 3339 in UTC with milliseconds, such as `2026-11-15T06:01:02.345Z`.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    let since = since_epoch(time);
    let Parts { year, month, day, hour, minute, second } = parts(since);
    let milliseconds = since.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milliseconds:03}Z")
}

/// `20261115-060102`, which sorts by time.
pub(crate) fn compact(time: SystemTime) -> String {
    let Parts { year, month, day, hour, minute, second } = parts(since_epoch(time));
    format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}")
}

/// The milliseconds within the second.
pub(crate) fn milliseconds(time: SystemTime) -> u32 {
    since_epoch(time).subsec_millis()
}

/// A time before 1970 is an invalid clock and counts as 1970.
fn since_epoch(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn parts(since: Duration) -> Parts {
    let seconds = since.as_secs();
    let (year, month, day) = date(i64::try_from(seconds / 86_400).unwrap_or_default());
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    Parts { year, month, day, hour, minute, second }
}

/// Year, month and day of a number of days since 1970 in the Gregorian calendar.
///
/// Years are counted from March, so that the leap day is the last of its year; 400 years always
/// have 146,097 days.
fn date(days: i64) -> (i64, i64, i64) {
    // Days from 1 March of the year 0 to 1 January 1970.
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64, milliseconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(seconds * 1_000 + milliseconds)
    }

    #[test]
    fn known_times_are_formatted() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.007Z"),
            (951_782_399, "2000-02-28T23:59:59.007Z"),
            (951_782_400, "2000-02-29T00:00:00.007Z"),
            (951_868_800, "2000-03-01T00:00:00.007Z"),
            (1_709_164_800, "2024-02-29T00:00:00.007Z"),
            (1_735_689_599, "2024-12-31T23:59:59.007Z"),
            (1_794_722_462, "2026-11-15T06:01:02.007Z"),
            (4_107_542_400, "2100-03-01T00:00:00.007Z"),
        ] {
            assert_eq!(rfc3339(at(seconds, 7)), text);
        }
        assert_eq!(compact(at(1_794_722_462, 0)), "20261115-060102");
    }

    #[test]
    fn every_day_of_four_centuries_follows_the_one_before() {
        let mut before = date(0);
        for days in 1..146_097 {
            let (year, month, day) = date(days);
            assert!((year, month, day) > before, "{days}");
            assert!((1..=12).contains(&month) && (1..=31).contains(&day), "{days}");
            before = (year, month, day);
        }
        assert_eq!(date(146_097), (2370, 1, 1));
    }
}
