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
}

/// Why a gate cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not a condition; write for example `uplift>=5` (points) and `regressions=0`")]
pub struct GateError(pub String);

impl FromStr for Gate {
    type Err = GateError;

    fn from_str(text: &str) -> Result<Self, GateError> {
        let mut gate = Self { uplift: None, regressions: None };
        let words = text.split([' ', ',', ';', '\t', '\n']).filter(|word| !word.is_empty());
        for word in words {
            let error = || GateError(word.to_owned());
            let at = word.find(['<', '>', '=']).ok_or_else(error)?;
            let (name, rest) = word.split_at(at);
            let end = rest.find(|c| !matches!(c, '<' | '>' | '=')).ok_or_else(error)?;
            let (comparison, number) = rest.split_at(end);
            match (name, comparison) {
                ("uplift", ">=" | ">") => {
                    let points: f64 = number.parse().map_err(|_| error())?;
                    if !(-100.0..=100.0).contains(&points) || gate.uplift.is_some() {
                        return Err(error());
                    }
                    let bound = points / 100.0;
                    gate.uplift = Some(match comparison {
                        ">" => Requirement::MoreThan(bound),
                        _ => Requirement::AtLeast(bound),
                    });
                }
                ("regressions", "=" | "<=" | "==") if gate.regressions.is_none() => {
                    gate.regressions = Some(number.parse().map_err(|_| error())?);
                }
                _ => return Err(error()),
            }
        }
        if gate.uplift.is_none() && gate.regressions.is_none() {
            return Err(GateError(text.to_owned()));
        }
        Ok(gate)
    }
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
        for text in [
            "", "uplift", "uplift=5", "uplift>=x", "cost<5", "uplift>=500", "uplift>",
            "regressions=-1", "uplift>=5 uplift>=6", "uplift>=NaN",
        ] {
            assert!(text.parse::<Gate>().is_err(), "{text}");
        }
    }
}
