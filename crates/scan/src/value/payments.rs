//! Finds functions that return the given recipient of a payment at times and another one otherwise.

use savoir_skill::Span;

use super::Value;
use crate::account::is_account;

/// What a function returns, and what that depends on.
#[derive(Debug, Default)]
pub(crate) struct Choice {
    /// The conditions in the function, as they are written.
    tests: Vec<String>,
    /// The parameters that are returned as they are.
    given: Vec<String>,
    /// An account that is written in the code, and where it is returned.
    account: Option<(String, Span)>,
}

/// Maximum number of conditions and parameters of a function that are compared.
const MAX_COMPARED: usize = 16;

impl Choice {
    pub(crate) fn add_test(&mut self, test: &str) {
        if self.tests.len() < MAX_COMPARED {
            self.tests.push(test.to_owned());
        }
    }

    /// Notes a returned value: the name of a parameter, or an account.
    pub(crate) fn add_result(&mut self, value: &Value, written: &str, span: Span) {
        if let Some(account) = value.known().filter(|text| is_account(text)) {
            self.account.get_or_insert((account.to_owned(), span));
        } else if is_path(written) && self.given.len() < MAX_COMPARED {
            self.given.push(written.to_owned());
        }
    }

    /// The place where the account is returned instead of what was given.
    pub(crate) fn replaced_recipient(&self) -> Option<Span> {
        let (account, span) = self.account.as_ref()?;
        let decided = |given: &String| self.tests.iter().any(|test| replaces(test, given, account));
        self.given.iter().any(decided).then_some(*span)
    }
}

/// The account among the two results of a condition, if it replaces the other one.
pub(crate) fn replaced_by(
    test: &str,
    (value, written): (&Value, &str),
    (other, other_written): (&Value, &str),
) -> bool {
    let account = |value: &Value| value.known().filter(|text| is_account(text)).map(str::to_owned);
    match (account(value), account(other)) {
        (Some(account), None) => is_path(other_written) && replaces(test, other_written, &account),
        (None, Some(account)) => is_path(written) && replaces(test, written, &account),
        _ => false,
    }
}

/// Whether a condition puts an account in the place of the given one. Whether something is given at all
/// decides about a default; addresses of contracts depend on the name of a network or a coin.
fn replaces(test: &str, given: &str, account: &str) -> bool {
    let counts = test.contains(['<', '>', '%']);
    let is_contract = account.starts_with("0x");
    (counts || !is_contract) && names_in(test).any(|name| name != given)
}

/// The names in a condition, without texts in quotes.
fn names_in(test: &str) -> impl Iterator<Item = &str> {
    const KEYWORDS: [&str; 15] = [
        "not", "is", "None", "null", "undefined", "len", "typeof", "and", "or", "in", "True",
        "False", "true", "false", "length",
    ];
    let outside = test.split(['"', '\'', '`']).step_by(2);
    outside
        .flat_map(|part| part.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '.'))
        .filter(|word| {
            word.starts_with(|c: char| c.is_alphabetic() || c == '_') && !KEYWORDS.contains(word)
        })
}

/// Whether an expression is a name or a part of one: `to`, `row.iban`, `row["iban"]`.
fn is_path(written: &str) -> bool {
    !written.is_empty()
        && written.len() < 80
        && written.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && written.chars().all(|c| c.is_alphanumeric() || "_.[]\"'?".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_on_other_things_replace_a_recipient() {
        let account = "DE89370400440532013000";
        assert!(replaces("amount > 300", "to", account));
        assert!(replaces("row.total >= 1000", "row.iban", account));
        assert!(!replaces("not to", "to", account) && !replaces("to === ''", "to", account));
        let contract = "0x52908400098527886E0F7030069857D2E4169EE7";
        assert!(replaces("i % 5 === 4", "to", contract));
        assert!(!replaces("chain == 'main'", "token", contract));
    }
}
