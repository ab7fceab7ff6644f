//! Minimum values such as `>=7B`.

use std::fmt;

use thiserror::Error;

/// Units of parameters.
const PARAMETERS: [(char, u64); 2] = [('M', 1_000_000), ('B', 1_000_000_000)];
/// Units of tokens. The decimal value is used, so that a model with 32,000 tokens meets `>=32K`.
const TOKENS: [(char, u64); 2] = [('K', 1_000), ('M', 1_000_000)];
/// Units of memory, decimal for the same reason.
const BYTES: [(char, u64); 2] = [('M', 1_000_000), ('G', 1_000_000_000)];

/// A minimum value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Minimum {
    /// The minimum as a number.
    pub amount: u64,
    /// The text as written in the file.
    source: String,
}

/// The text is not a valid minimum.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{text}` is not a lower limit such as >={example}")]
pub struct MinimumError {
    text: String,
    example: &'static str,
}

impl Minimum {
    /// Parses a number of parameters, such as `>=7B`.
    pub fn parameters(text: &str) -> Result<Self, MinimumError> {
        Self::new(text, amount(text, &PARAMETERS), "7B")
    }

    /// Parses a number of tokens, such as `>=32K`.
    pub fn tokens(text: &str) -> Result<Self, MinimumError> {
        Self::new(text, amount(text, &TOKENS), "32K")
    }

    /// Parses an amount of memory, such as `>=8GB`.
    pub fn bytes(text: &str) -> Result<Self, MinimumError> {
        let without = text.trim_end().strip_suffix(['B', 'b']);
        Self::new(text, without.and_then(|text| amount(text, &BYTES)), "8GB")
    }

    fn new(text: &str, amount: Option<u64>, example: &'static str) -> Result<Self, MinimumError> {
        let amount = amount.ok_or_else(|| MinimumError { text: text.to_owned(), example })?;
        Ok(Self { amount, source: text.trim().to_owned() })
    }

    pub fn is_met_by(&self, has: u64) -> bool {
        has >= self.amount
    }
}

/// Parses `>=`, a number and a unit. `>=` is optional, and the number may have decimals.
fn amount(text: &str, units: &[(char, u64)]) -> Option<u64> {
    let text = text.trim();
    let text = text.strip_prefix(">=").unwrap_or(text).trim();
    let last = text.chars().last()?.to_ascii_uppercase();
    let (_, factor) = units.iter().find(|(unit, _)| *unit == last)?;
    let number = text[..text.len() - 1].trim_end();
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 6 {
        return None;
    }
    let parts = 10_u64.pow(fraction.len() as u32);
    let fraction = fraction.parse::<u64>().ok()?.checked_mul(*factor)? / parts;
    whole.parse::<u64>().ok()?.checked_mul(*factor)?.checked_add(fraction)
}

impl fmt::Display for Minimum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minimums_are_parsed_and_compared() {
        let parameters = |text| Minimum::parameters(text).map(|least| least.amount).ok();
        assert_eq!(parameters(">=7B"), Some(7_000_000_000));
        assert_eq!(parameters(" >= 1.5 b "), Some(1_500_000_000));
        assert_eq!(parameters("350M"), Some(350_000_000));
        for text in
            ["", ">=", "7", "7K", "<7B", ">=B", "1.B", "1.0000000B", "x7B", "99999999999999B"]
        {
            assert_eq!(parameters(text), None, "{text}");
        }
        let context = Minimum::tokens(">=32K").unwrap();
        assert!(
            context.is_met_by(32_768) && context.is_met_by(32_000) && !context.is_met_by(31_999)
        );
        assert_eq!(context.to_string(), ">=32K");
        assert_eq!(
            Minimum::parameters("much").unwrap_err().to_string(),
            "`much` is not a lower limit such as >=7B"
        );
        let bytes = |text| Minimum::bytes(text).map(|least| least.amount).ok();
        assert_eq!(bytes(">=0GB"), Some(0));
        assert_eq!(bytes("1.5 GB"), Some(1_500_000_000));
        assert_eq!(bytes(">=512mb"), Some(512_000_000));
        for text in ["8", "8G", "GB", "B", ""] {
            assert_eq!(bytes(text), None, "{text}");
        }
    }
}
