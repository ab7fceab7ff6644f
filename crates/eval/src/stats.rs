//! Computes whether a skill helps, and how sure that is.
//!
//! A trial has a score from 0 to 1. Trials of the two arms with the same number form a pair; their
//! difference is what the skill changed. Pairs are compared within their case, so that easy and
//! hard cases do not blur the result. The interval says how much the mean of *these cases* would
//! change with other trials; it says nothing about other cases.
//!
//! - [`interval`] is Student's t with the variances within the cases. It stays valid with two or
//!   three trials per case, where a percentile bootstrap is too narrow.
//!   If no case has any variance, the interval follows from the number of pairs alone.
//! - [`sign_test`] is exact for few pairs, where no interval is.
//! - [`verdict()`] needs both. [`predict_power`] simulates studies with a seed that is reported.
//!
//! Simulations in the tests measure how often these promises are kept.

mod describe;
mod power;
mod random;
mod verdict;

pub use self::{
    describe::{Summary, wilson},
    power::{CaseModel, PowerPrediction, predict_power, trials_needed},
    random::Random,
    verdict::{Decision, Requirement, Verdict, verdict},
};

use serde::{Deserialize, Serialize};

/// The confidence of every interval.
pub const CONFIDENCE: f64 = 0.95;
/// The chance of a wrong *pass* that the sign test permits: the outside of the interval on one side.
pub const SIGNIFICANCE: f64 = 0.025;
/// The smallest number of pairs of a case that says something about chance.
pub const MIN_PAIRS: usize = 2;

/// A mean, and the interval in which the true mean lies with [`CONFIDENCE`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    pub mean: f64,
    pub lower: f64,
    pub upper: f64,
}

impl Interval {
    /// The interval in percentage points.
    #[must_use]
    pub fn points(self) -> Self {
        let Self { mean, lower, upper } = self;
        Self { mean: 100.0 * mean, lower: 100.0 * lower, upper: 100.0 * upper }
    }
}

/// The mean difference over all cases. Each list has the differences of the pairs of one case;
/// `None` if none has at least [`MIN_PAIRS`].
pub fn interval(cases: &[Vec<f64>]) -> Option<Interval> {
    let usable = cases.iter().filter(|pairs| pairs.len() >= MIN_PAIRS);
    let (mut count, mut sum) = (0.0, 0.0);
    let (mut variance, mut weighted, mut pairs_in_all) = (0.0, 0.0, 0.0);
    for pairs in usable {
        let length = as_f64(pairs.len());
        let mean = pairs.iter().sum::<f64>() / length;
        let squares: f64 = pairs.iter().map(|pair| (pair - mean).powi(2)).sum();
        let of_mean = squares / (length - 1.0) / length;
        (count, sum) = (count + 1.0, sum + mean);
        pairs_in_all += length;
        variance += of_mean;
        weighted += of_mean * of_mean / (length - 1.0);
    }
    if count == 0.0 {
        return None;
    }
    let mean = sum / count;
    let half = if variance > 0.0 {
        // The degrees of freedom of Welch and Satterthwaite.
        let degrees = variance * variance / weighted;
        t_quantile(degrees) * variance.sqrt() / count
    } else {
        // Every pair came out as the others of its case. The share of pairs that would come out
        // differently is at most this, or chance would have shown one.
        1.0 - SIGNIFICANCE.powf(1.0 / pairs_in_all)
    };
    Some(Interval { mean, lower: (mean - half).max(-1.0), upper: (mean + half).min(1.0) })
}

/// How many pairs got better and worse, and how likely that is by chance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SignTest {
    pub better: u32,
    pub worse: u32,
    pub equal: u32,
    /// The probability of at least as many better pairs if the skill changes nothing.
    pub p_better: f64,
    /// The same for worse pairs.
    pub p_worse: f64,
}

/// The exact sign test over all pairs.
pub fn sign_test<'a>(cases: impl IntoIterator<Item = &'a Vec<f64>>) -> SignTest {
    let mut test = SignTest::default();
    for pair in cases.into_iter().flatten() {
        if pair.abs() < 1e-9 {
            test.equal += 1;
        } else if *pair > 0.0 {
            test.better += 1;
        } else {
            test.worse += 1;
        }
    }
    let all = test.better + test.worse;
    test.p_better = upper_tail(test.better, all);
    test.p_worse = upper_tail(test.worse, all);
    test
}

/// The probability of at least `successes` heads in `all` throws of a fair coin.
fn upper_tail(successes: u32, all: u32) -> f64 {
    // Logarithms, because the coefficients of a thousand throws are larger than any number.
    let half = f64::from(all) * 0.5_f64.ln();
    let mut log_choose = 0.0;
    let mut total = 0.0;
    for heads in 0..=all {
        if heads > 0 {
            log_choose += f64::from(all - heads + 1).ln() - f64::from(heads).ln();
        }
        if heads >= successes {
            total += (log_choose + half).exp();
        }
    }
    total.min(1.0)
}

/// The 97.5 % quantile of Student's t. The table is for whole degrees of freedom; a fraction is
/// rounded down, which widens the interval.
fn t_quantile(degrees: f64) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    const NORMAL: f64 = 1.959_964;
    // The sum of many small terms may be a little below a whole number.
    let whole = (degrees + 1e-6).floor();
    if whole <= 30.0 {
        let mut index = 0;
        while as_f64(index + 1) < whole {
            index += 1;
        }
        return TABLE.get(index).copied().unwrap_or(NORMAL);
    }
    // The first terms of the expansion of Cornish and Fisher; exact to three digits here.
    let cube = NORMAL.powi(3);
    let fifth = NORMAL.powi(5);
    NORMAL
        + (cube + NORMAL) / (4.0 * whole)
        + (5.0 * fifth + 16.0 * cube + 3.0 * NORMAL) / (96.0 * whole * whole)
}

#[expect(clippy::cast_precision_loss, reason = "counts of trials are far below 2^52")]
pub(crate) fn as_f64(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests;
