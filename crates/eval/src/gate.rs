//! Parses the condition of a CI job, such as `uplift>=5 regressions=0`.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::stats::Requirement;

/// What an evaluation must show.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// The uplift, as a share.
    pub uplift: Option<Requirement>,
    /// The largest number of cases that the skill makes worse.
    pub regressions: Option<u32>,
    /// The precision and the recall of the trigger queries, as shares, for each size of the catalog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<Requirement>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recall: Option<Requirement>,
}

impl Gate {
    /// The condition if the user named none: the skill helps.
    pub const HELPS: Self = Self { uplift: Some(Requirement::MoreThan(0.0)), ..Self::NOTHING };
    /// The condition for trigger queries alone: it is used more often rightly than wrongly.
    pub const TRIGGERS: Self = Self {
        precision: Some(Requirement::MoreThan(0.5)),
        recall: Some(Requirement::MoreThan(0.5)),
        ..Self::NOTHING
    };
    const NOTHING: Self = Self { uplift: None, regressions: None, precision: None, recall: None };
}

/// Why a gate cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{0}` is not a condition; write for example `uplift>=5` (points), `regressions=0`, `precision>=80` or `recall>=80` (percent)"
)]
pub struct GateError(pub String);

impl FromStr for Gate {
    type Err = GateError;

    fn from_str(text: &str) -> Result<Self, GateError> {
        let mut gate = Self::NOTHING;
        let words = text.split([' ', ',', ';', '\t', '\n']).filter(|word| !word.is_empty());
        for word in words {
            let error = || GateError(word.to_owned());
            let at = word.find(['<', '>', '=']).ok_or_else(error)?;
            let (name, rest) = word.split_at(at);
            let end = rest.find(|c| !matches!(c, '<' | '>' | '=')).ok_or_else(error)?;
            let (comparison, number) = rest.split_at(end);
            match (name, comparison) {
                ("uplift", ">=" | ">") if gate.uplift.is_none() => {
                    gate.uplift = requirement(comparison, number, -100.0);
                    gate.uplift.ok_or_else(error)?;
                }
                ("precision", ">=" | ">") if gate.precision.is_none() => {
                    gate.precision = requirement(comparison, number, 0.0);
                    gate.precision.ok_or_else(error)?;
                }
                ("recall", ">=" | ">") if gate.recall.is_none() => {
                    gate.recall = requirement(comparison, number, 0.0);
                    gate.recall.ok_or_else(error)?;
                }
                ("regressions", "=" | "<=" | "==") if gate.regressions.is_none() => {
                    gate.regressions = Some(number.parse().map_err(|_| error())?);
                }
                _ => return Err(error()),
            }
        }
        if gate == Self::NOTHING {
            return Err(GateError(text.to_owned()));
        }
        Ok(gate)
    }
}

/// A lower limit in percent, at least `least`.
fn requirement(comparison: &str, number: &str, least: f64) -> Option<Requirement> {
    let percent: f64 = number.parse().ok()?;
    let bound = percent / 100.0;
    (least..=100.0).contains(&percent).then_some(match comparison {
        ">" => Requirement::MoreThan(bound),
        _ => Requirement::AtLeast(bound),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_parsed() {
        let gate: Gate = "uplift>=5 regressions=0".parse().unwrap();
        assert_eq!(gate.uplift, Some(Requirement::AtLeast(0.05)));
        assert_eq!(gate.regressions, Some(0));
        let gate: Gate = "uplift>-2.5".parse().unwrap();
        assert_eq!(gate.uplift, Some(Requirement::MoreThan(-0.025)));
        let gate: Gate = "precision>80 recall>=90".parse().unwrap();
        assert_eq!(gate.precision, Some(Requirement::MoreThan(0.8)));
        assert_eq!((gate.recall, gate.uplift), (Some(Requirement::AtLeast(0.9)), None));
        for text in [
            "recall>=101", "recall>=-1", "precision=80", "", "uplift", "uplift=5", "uplift>=x",
            "cost<5", "uplift>=500", "uplift>", "regressions=-1", "uplift>=5 uplift>=6",
            "uplift>=NaN",
        ] {
            assert!(text.parse::<Gate>().is_err(), "{text}");
        }
    }
}
