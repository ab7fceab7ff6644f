//! Describes single numbers: means with their spread, and shares with their interval.

use serde::{Deserialize, Serialize};

use super::{Interval, as_f64};

/// A mean and a standard deviation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub mean: f64,
    pub stddev: f64,
}

impl Summary {
    /// The summary of some values; zero if there are none.
    pub fn of(values: &[f64]) -> Self {
        if values.is_empty() {
            return Self::default();
        }
        let count = as_f64(values.len());
        let mean = values.iter().sum::<f64>() / count;
        if values.len() == 1 {
            return Self { mean, stddev: 0.0 };
        }
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Self { mean, stddev: (squares / (count - 1.0)).sqrt() }
    }
}

/// The interval of Wilson for a share; `None` if nothing was counted.
pub fn wilson(successes: usize, all: usize) -> Option<Interval> {
    if all == 0 {
        return None;
    }
    let (count, share) = (as_f64(all), as_f64(successes) / as_f64(all));
    let z = 1.959_964_f64;
    let square = z * z;
    let scale = 1.0 + square / count;
    let middle = (share + square / (2.0 * count)) / scale;
    let spread = share * (1.0 - share) / count + square / (4.0 * count * count);
    let half = z * spread.sqrt() / scale;
    Some(Interval { mean: share, lower: (middle - half).max(0.0), upper: (middle + half).min(1.0) })
}
