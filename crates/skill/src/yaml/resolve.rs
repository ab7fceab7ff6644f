//! Resolves plain scalars to text, numbers, booleans or null.
//!
//! YAML 1.1 is read as PyYAML reads it, YAML 1.2 by the core schema. What JSON cannot hold
//! (dates, infinities, integers beyond 64 bits) stays text.

use serde_json::{Number, Value};

/// The rules by which plain scalars are resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum YamlVersion {
    /// YAML 1.1 as PyYAML implements it.
    V1_1,
    /// The core schema of YAML 1.2.
    V1_2,
}

/// The type and value of a plain scalar.
enum Meaning {
    /// A value JSON can hold.
    Typed(Value),
    /// A value of another type, which we keep as its source text.
    Foreign,
    /// A string.
    Text,
}

/// The value of a plain scalar.
pub fn resolve_plain(text: &str, version: YamlVersion) -> Value {
    match meaning(text, version) {
        Meaning::Typed(value) => value,
        Meaning::Foreign | Meaning::Text => Value::String(text.to_owned()),
    }
}

/// Whether a string with this text must be quoted, because a reader of this version would take
/// it for something else. Syntax is another matter; see [`super::write`].
pub fn needs_quotes(text: &str, version: YamlVersion) -> bool {
    !matches!(meaning(text, version), Meaning::Text)
}

fn meaning(text: &str, version: YamlVersion) -> Meaning {
    if let "" | "~" | "null" | "Null" | "NULL" = text {
        return Meaning::Typed(Value::Null);
    }
    match version {
        YamlVersion::V1_1 => meaning_1_1(text),
        YamlVersion::V1_2 => meaning_1_2(text),
    }
}

fn meaning_1_1(text: &str) -> Meaning {
    match text {
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Meaning::Typed(Value::Bool(true));
        }
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Meaning::Typed(Value::Bool(false));
        }
        "=" | "<<" => return Meaning::Foreign,
        _ => {}
    }
    if !text.starts_with(|c: char| matches!(c, '-' | '+' | '.' | '0'..='9')) {
        return Meaning::Text;
    }
    integer_1_1(text)
        .or_else(|| float_1_1(text))
        .or_else(|| (is_infinite_or_nan(text) || is_timestamp(text)).then_some(Meaning::Foreign))
        .unwrap_or(Meaning::Text)
}

fn meaning_1_2(text: &str) -> Meaning {
    match text {
        "true" | "True" | "TRUE" => return Meaning::Typed(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Meaning::Typed(Value::Bool(false)),
        _ => {}
    }
    if is_infinite_or_nan(text) {
        return Meaning::Foreign;
    }
    integer_1_2(text).or_else(|| float_1_2(text)).unwrap_or(Meaning::Text)
}

fn split_sign(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

fn is_run_of(text: &str, allowed: fn(u8) -> bool) -> bool {
    !text.is_empty() && text.bytes().all(allowed)
}

fn is_digits(text: &str) -> bool {
    is_run_of(text, |b| b.is_ascii_digit())
}

/// `None` if the text does not have the shape of an integer.
fn integer_1_1(text: &str) -> Option<Meaning> {
    let (negative, digits) = split_sign(text);
    let magnitude = if let Some(binary) = digits.strip_prefix("0b") {
        is_run_of(binary, |b| matches!(b, b'0' | b'1' | b'_')).then(|| in_radix(binary, 2))?
    } else if let Some(hex) = digits.strip_prefix("0x") {
        is_run_of(hex, |b| b.is_ascii_hexdigit() || b == b'_').then(|| in_radix(hex, 16))?
    } else if digits == "0" {
        Some(0)
    } else if let Some(octal) = digits.strip_prefix('0') {
        is_run_of(octal, |b| matches!(b, b'0'..=b'7' | b'_')).then(|| in_radix(digits, 8))?
    } else {
        let (first, rest) = digits.split_once(':').map_or((digits, None), |(a, b)| (a, Some(b)));
        let shaped = is_spaced_digits(first) && rest.is_none_or(are_sexagesimal_digits);
        shaped.then(|| sexagesimal(digits))?
    };
    Some(integer(negative, magnitude))
}

/// Digits that may have underscores between and after them.
fn is_spaced_digits(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
        && is_run_of(text, |b| b.is_ascii_digit() || b == b'_')
}

/// Whether a text may follow the first colon of a number in base 60.
fn are_sexagesimal_digits(text: &str) -> bool {
    text.split(':').all(|part| match part.as_bytes() {
        [digit] => digit.is_ascii_digit(),
        [tens, digit] => matches!(tens, b'0'..=b'5') && digit.is_ascii_digit(),
        _ => false,
    })
}

/// `None` if there are no digits or too many.
fn in_radix(digits: &str, radix: u32) -> Option<u128> {
    u128::from_str_radix(&digits.replace('_', ""), radix).ok()
}

fn sexagesimal(text: &str) -> Option<u128> {
    text.split(':').try_fold(0_u128, |sum, part| {
        let part = in_radix(part, 10)?;
        sum.checked_mul(60)?.checked_add(part)
    })
}

fn integer(negative: bool, magnitude: Option<u128>) -> Meaning {
    let number = magnitude.and_then(|magnitude| {
        if negative {
            let signed = i128::try_from(magnitude).ok()?.checked_neg()?;
            i64::try_from(signed).ok().map(Number::from)
        } else {
            u64::try_from(magnitude).ok().map(Number::from)
        }
    });
    number.map_or(Meaning::Foreign, |number| Meaning::Typed(Value::Number(number)))
}

fn float_1_1(text: &str) -> Option<Meaning> {
    let (negative, unsigned) = split_sign(text);
    let (whole, rest) = unsigned.split_once('.')?;
    if let Some((first, rest_of_whole)) = whole.split_once(':') {
        let shaped = is_spaced_digits(first)
            && are_sexagesimal_digits(rest_of_whole)
            && rest.bytes().all(|b| b.is_ascii_digit() || b == b'_');
        return shaped.then(|| sexagesimal_float(negative, unsigned));
    }
    let (fraction, exponent) = split_exponent(rest);
    let fraction_shaped = fraction.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let exponent_shaped =
        exponent.is_none_or(|e| e.strip_prefix(['-', '+']).is_some_and(is_digits));
    // PyYAML wants no sign before a bare point.
    let shaped = if whole.is_empty() {
        !text.starts_with(['-', '+']) && is_spaced_digits(fraction)
    } else {
        is_spaced_digits(whole) && fraction_shaped
    };
    (shaped && exponent_shaped).then(|| float(text.replace('_', "").parse().ok()))
}

fn split_exponent(text: &str) -> (&str, Option<&str>) {
    text.split_once(['e', 'E']).map_or((text, None), |(fraction, e)| (fraction, Some(e)))
}

fn sexagesimal_float(negative: bool, unsigned: &str) -> Meaning {
    let digits = unsigned.replace('_', "");
    let sum = digits
        .split(':')
        .try_fold(0.0_f64, |sum, part| part.parse::<f64>().ok().map(|part| sum * 60.0 + part));
    float(sum.map(|sum| if negative { -sum } else { sum }))
}

/// Too large for a finite number is too large for JSON.
fn float(number: Option<f64>) -> Meaning {
    let number = number.and_then(Number::from_f64);
    number.map_or(Meaning::Foreign, |number| Meaning::Typed(Value::Number(number)))
}

fn integer_1_2(text: &str) -> Option<Meaning> {
    if let Some(octal) = text.strip_prefix("0o") {
        let shaped = is_run_of(octal, |b| matches!(b, b'0'..=b'7'));
        return shaped.then(|| integer(false, in_radix(octal, 8)));
    }
    if let Some(hex) = text.strip_prefix("0x") {
        let shaped = is_run_of(hex, |b| b.is_ascii_hexdigit());
        return shaped.then(|| integer(false, in_radix(hex, 16)));
    }
    let (negative, digits) = split_sign(text);
    is_digits(digits).then(|| integer(negative, in_radix(digits, 10)))
}

fn float_1_2(text: &str) -> Option<Meaning> {
    let (mantissa, exponent) = split_exponent(split_sign(text).1);
    let mantissa_shaped = match mantissa.split_once('.') {
        Some(("", fraction)) => is_digits(fraction),
        Some((whole, fraction)) => is_digits(whole) && (fraction.is_empty() || is_digits(fraction)),
        None => is_digits(mantissa),
    };
    let exponent_shaped = exponent.is_none_or(|e| is_digits(split_sign(e).1));
    (mantissa_shaped && exponent_shaped).then(|| float(text.parse().ok()))
}

fn is_infinite_or_nan(text: &str) -> bool {
    matches!(text, ".nan" | ".NaN" | ".NAN")
        || matches!(split_sign(text).1, ".inf" | ".Inf" | ".INF")
}

/// `2001-12-14`, or with looser digits a date and a time.
fn is_timestamp(text: &str) -> bool {
    let mut cursor = Cursor(text.as_bytes());
    let Some((year, month, day)) = cursor.date() else { return false };
    if year != 4 {
        return false;
    }
    if cursor.0.is_empty() {
        return month == 2 && day == 2;
    }
    cursor.time_separator() && cursor.time() && cursor.zone() && cursor.0.is_empty()
}

/// The unread rest of a timestamp.
struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    /// How many digits come next; all of them are taken.
    fn digits(&mut self) -> usize {
        self.take_while(u8::is_ascii_digit)
    }

    fn take_while(&mut self, wanted: fn(&u8) -> bool) -> usize {
        let count = self.0.iter().take_while(|&b| wanted(b)).count();
        self.0 = self.0.get(count..).unwrap_or_default();
        count
    }

    fn take(&mut self, wanted: u8) -> bool {
        let rest = self.0.strip_prefix(&[wanted]);
        rest.is_some_and(|rest| {
            self.0 = rest;
            true
        })
    }

    /// The number of digits of year, month and day.
    fn date(&mut self) -> Option<(usize, usize, usize)> {
        let year = self.digits();
        let month = self.take(b'-').then(|| self.digits())?;
        let day = self.take(b'-').then(|| self.digits())?;
        ((1..=2).contains(&month) && (1..=2).contains(&day)).then_some((year, month, day))
    }

    fn time_separator(&mut self) -> bool {
        self.take(b'T') || self.take(b't') || self.take_while(|b| matches!(b, b' ' | b'\t')) > 0
    }

    fn time(&mut self) -> bool {
        let shaped = (1..=2).contains(&self.digits())
            && self.take(b':')
            && self.digits() == 2
            && self.take(b':')
            && self.digits() == 2;
        if shaped && self.take(b'.') {
            self.digits();
        }
        shaped
    }

    fn zone(&mut self) -> bool {
        self.take_while(|b| matches!(b, b' ' | b'\t'));
        if self.0.is_empty() || self.take(b'Z') {
            return true;
        }
        (self.take(b'+') || self.take(b'-'))
            && (1..=2).contains(&self.digits())
            && (!self.take(b':') || self.digits() == 2)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{YamlVersion::*, *};

    fn check(version: YamlVersion, cases: &[(&str, Value)]) {
        for (text, expected) in cases {
            assert_eq!(&resolve_plain(text, version), expected, "{text:?} in {version:?}");
        }
    }

    fn stay_text(version: YamlVersion, cases: &[&str]) {
        for text in cases {
            assert_eq!(resolve_plain(text, version), json!(text), "{text:?} in {version:?}");
        }
    }

    #[test]
    fn truth_and_nothing_in_1_1() {
        for text in ["yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"] {
            check(V1_1, &[(text, json!(true))]);
        }
        for text in ["no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"] {
            check(V1_1, &[(text, json!(false))]);
        }
        for text in ["", "~", "null", "Null", "NULL"] {
            check(V1_1, &[(text, Value::Null)]);
        }
        stay_text(V1_1, &["y", "n", "Y", "N", "yEs", "tRUE", "nULL", "none"]);
    }

    #[test]
    fn integers_in_1_1() {
        check(
            V1_1,
            &[
                ("0", json!(0)),
                ("-0", json!(0)),
                ("+7", json!(7)),
                ("-19", json!(-19)),
                ("1__0_", json!(10)),
                ("017", json!(15)),
                ("-017", json!(-15)),
                ("0_7", json!(7)),
                ("0_", json!(0)),
                ("0b1_01", json!(5)),
                ("-0x1F", json!(-31)),
                ("1:30", json!(90)),
                ("1:5", json!(65)),
                ("-190:20:30", json!(-685_230)),
                ("18446744073709551615", json!(u64::MAX)),
                ("-9223372036854775808", json!(i64::MIN)),
            ],
        );
        stay_text(
            V1_1,
            &[
                "08", "0o17", "0b2", "0xg", "0b", "0x", "0b_", "0x_", "_1", "1:60", "0:30", "1:",
                "--1", "+", "-", "1:2:", "1 2", "18446744073709551616", "-9223372036854775809",
                "0X1F",
            ],
        );
    }

    #[test]
    fn floats_in_1_1() {
        check(
            V1_1,
            &[
                ("1.5", json!(1.5)),
                ("3.", json!(3.0)),
                (".5", json!(0.5)),
                ("+1.5", json!(1.5)),
                ("1_0.2_5", json!(10.25)),
                ("1.5e+3", json!(1500.0)),
                ("1.e-1", json!(0.1)),
                ("08.5", json!(8.5)),
                ("1:30.5", json!(90.5)),
                ("-0:30.5", json!(-30.5)),
            ],
        );
        stay_text(
            V1_1,
            &[
                "1e3", "1.5e3", "1e+3", "-.5", "+.5", ".", "._5", "1.2.3", ".e+1", "1:60.5",
                "1.0e+999", ".inf", "-.INF", ".nan", "+.nan", "1.5e+", "_1.5",
            ],
        );
    }

    #[test]
    fn core_schema() {
        check(
            V1_2,
            &[
                ("true", json!(true)),
                ("FALSE", json!(false)),
                ("~", Value::Null),
                ("", Value::Null),
                ("012", json!(12)),
                ("+12", json!(12)),
                ("-12", json!(-12)),
                ("0o17", json!(15)),
                ("0x1f", json!(31)),
                ("1e3", json!(1000.0)),
                ("-.5", json!(-0.5)),
                ("3.", json!(3.0)),
                ("1.5E-1", json!(0.15)),
                ("01.5", json!(1.5)),
            ],
        );
        stay_text(
            V1_2,
            &[
                "yes", "off", "1_000", "0b11", "1:30", "-0x1", "0o8", ".", "+", "e3", "1e", "1.e+",
                ".inf", ".NaN", "18446744073709551616", "1e999", "=", "2001-12-14", "tRue",
            ],
        );
    }

    #[test]
    fn foreign_types_are_text_that_needs_quotes() {
        let is_foreign = |text, version| matches!(meaning(text, version), Meaning::Foreign);
        for text in [
            "2001-12-14", "2001-12-14t21:59:43.10-05:00", "2001-1-4 21:59:43 Z",
            "2001-1-4  1:59:43.", "2001-12-14T21:59:43 +1", "=", "<<", ".inf",
            "99999999999999999999", "0x_",
        ] {
            assert!(is_foreign(text, V1_1), "{text:?}");
            assert!(needs_quotes(text, V1_1), "{text:?}");
            assert_eq!(resolve_plain(text, V1_1), json!(text));
        }
        for text in ["2001-1-4", "12001-12-14", "2001-12-14x", "2001-12-14 noon", "2001-12"] {
            assert!(!needs_quotes(text, V1_1), "{text:?}");
        }
        assert!(is_foreign("-.Inf", V1_2) && !is_foreign("2001-12-14", V1_2));
        assert!(needs_quotes("yes", V1_1) && !needs_quotes("yes", V1_2));
        assert!(needs_quotes("0o7", V1_2) && !needs_quotes("0o7", V1_1));
    }
}
