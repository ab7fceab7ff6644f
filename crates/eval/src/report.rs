//! Renders results for people and programs.

pub mod agentskills;
pub mod html;
pub mod junit;
pub mod markdown;

use crate::{results::Difference, stats::Interval};

/// `+12.5 [3.1, 21.9]` in points.
pub fn points(interval: Option<Interval>) -> String {
    match interval {
        Some(Interval { mean, lower, upper }) => format!("{mean:+.1} [{lower:+.1}, {upper:+.1}]"),
        None => "not measured".to_owned(),
    }
}

/// `+0.0123` dollars, if prices are known.
pub fn dollars(cost: Option<Difference>) -> String {
    cost.map_or_else(|| "unknown".to_owned(), |cost| format!("{:+.4}", cost.delta))
}

/// `67 % [30, 90]` of a share.
pub fn share(interval: Option<Interval>) -> String {
    match interval {
        Some(Interval { mean, lower, upper }) => {
            format!("{:.0} % [{:.0}, {:.0}]", 100.0 * mean, 100.0 * lower, 100.0 * upper)
        }
        None => "not measured".to_owned(),
    }
}

#[cfg(test)]
mod tests;
