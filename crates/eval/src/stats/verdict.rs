//! Decides whether a measured uplift satisfies a requirement.

use serde::{Deserialize, Serialize};

use super::{Interval, MIN_PAIRS, SIGNIFICANCE, SignTest, interval, sign_test};

/// The uplift that is required, as a share from -1 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Requirement {
    /// More than this.
    MoreThan(f64),
    /// At least this.
    AtLeast(f64),
}

impl Requirement {
    pub(crate) fn is_met_by(self, lower: f64) -> bool {
        match self {
            Self::MoreThan(bound) => lower > bound,
            Self::AtLeast(bound) => lower >= bound,
        }
    }

    /// Whether it is not met, even at the upper end of an interval.
    pub(crate) fn is_missed_by(self, upper: f64) -> bool {
        match self {
            Self::MoreThan(bound) => upper <= bound,
            Self::AtLeast(bound) => upper < bound,
        }
    }

    pub(crate) fn bound(self) -> f64 {
        match self {
            Self::MoreThan(bound) | Self::AtLeast(bound) => bound,
        }
    }
}

/// The result of a study.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The requirement is met, even at the lower end of the interval.
    Pass,
    /// The requirement is not met, even at the upper end of the interval.
    Fail,
    /// There are too few trials to decide.
    Underpowered,
}

impl Verdict {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Underpowered => "underpowered",
        }
    }
}

/// A verdict and the numbers behind it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    pub verdict: Verdict,
    /// `None` if no case has enough pairs.
    pub interval: Option<Interval>,
    pub sign_test: SignTest,
}

/// Decides from the differences of the pairs of each case. One pair per case decides nothing.
pub fn verdict(cases: &[Vec<f64>], requirement: Requirement) -> Decision {
    let found = interval(cases);
    let test = sign_test(cases.iter().filter(|pairs| pairs.len() >= MIN_PAIRS));
    let verdict = match found {
        None => Verdict::Underpowered,
        Some(found) => {
            // A requirement below zero tolerates a loss, so nothing needs to be better.
            let is_sure = requirement.bound() < 0.0 || test.p_better <= SIGNIFICANCE;
            let is_below = requirement.is_missed_by(found.upper);
            if requirement.is_met_by(found.lower) && is_sure {
                Verdict::Pass
            } else if is_below {
                Verdict::Fail
            } else {
                Verdict::Underpowered
            }
        }
    };
    Decision { verdict, interval: found, sign_test: test }
}
