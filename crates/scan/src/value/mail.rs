//! Finds mail recipients that are fixed in the code, in addition to those that the user chooses.

use savoir_skill::Span;

use super::{UNKNOWN, Value};
use crate::act::{Act, Acts, Taint};

/// Description of the data that such mails contain.
const MAILS: &str = "mails of the user";

/// Maximum number of recipients and message fields that are examined.
const MAX_MAIL_PARTS: usize = 64;

/// Collects the addresses that are written in the code; sets `others` if some are unknown.
fn addresses(value: &Value, found: &mut Vec<String>, others: &mut bool, depth: usize) {
    let inner = value.as_entry().map(|(_, inner)| inner);
    if let Some(inner) = inner.filter(|_| depth < 4) {
        return addresses(inner, found, others, depth + 1);
    }
    for item in value.items.iter().take(MAX_MAIL_PARTS).filter(|_| depth < 4) {
        addresses(item, found, others, depth + 1);
    }
    if !value.items.is_empty() {
        return;
    }
    let text = value.text_or_unknown();
    *others |= text.contains(UNKNOWN);
    if text.len() > 2_000 {
        return;
    }
    let words = text.split(|c: char| c.is_whitespace() || ",;<>\"'".contains(c));
    found.extend(words.filter(|word| is_fixed(word)).map(str::to_owned));
}

/// Whether a word is a real mail address and not an example.
fn is_fixed(word: &str) -> bool {
    let Some((user, host)) = word.split_once('@') else { return false };
    let host = host.to_ascii_lowercase();
    let example = ["example.com", "example.org", "example.net", "yourdomain", "domain.com"];
    !user.is_empty()
        && host.contains('.')
        && !word.contains(['{', '}', '$', '(', '/'])
        && !example.iter().any(|part| host.contains(part))
}

/// Records the suspicious recipients of one mail: every fixed address in `hidden` (bcc), and fixed
/// addresses in `open` if the mail has other, variable recipients as well.
pub(crate) fn mailed(open: &[&Value], hidden: &[&Value], span: Span, acts: &mut Acts) {
    let (mut seen, mut others) = (Vec::new(), false);
    for value in open {
        addresses(value, &mut seen, &mut others, 0);
    }
    let mut unseen = Vec::new();
    for value in hidden {
        addresses(value, &mut unseen, &mut false, 0);
    }
    if others {
        unseen.append(&mut seen);
    }
    for address in unseen {
        let sends = Taint::private(MAILS);
        acts.push(
            Act::Network { to: format!("mailto:{address}"), sends, log_in: Vec::new() },
            span,
        );
    }
}

/// Checks a message that is an object: `{ to, cc, bcc }`.
pub(crate) fn message(message: &Value, span: Span, acts: &mut Acts) {
    if message.items.len() > MAX_MAIL_PARTS {
        return;
    }
    let under = |keys: &[&str]| -> Vec<&Value> {
        keys.iter().filter_map(|key| message.under(key)).collect()
    };
    let to = under(&["to", "To", "recipient", "recipients"]);
    let hidden = under(&["bcc", "Bcc", "BCC"]);
    mailed(&to, &hidden, span, acts);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(open: &[Value], hidden: &[Value]) -> usize {
        let mut acts = Acts::default();
        let open: Vec<&Value> = open.iter().collect();
        let hidden: Vec<&Value> = hidden.iter().collect();
        mailed(&open, &hidden, Span::new(0, 0), &mut acts);
        acts.located.len()
    }

    #[test]
    fn recipients_that_nobody_named() {
        assert_eq!(count(&[Value::default(), Value::text("a@b.example")], &[]), 1);
        assert_eq!(count(&[Value::text("{}, A <a@b.example>")], &[]), 1);
        assert_eq!(count(&[], &[Value::text("a@b.example")]), 1);
        // A report to one fixed address is what the skill is for.
        assert_eq!(count(&[Value::text("a@b.example")], &[]), 0);
        assert_eq!(count(&[], &[Value::text("me@example.com")]), 0);
        assert_eq!(count(&[Value::default()], &[Value::text("{}@b.example")]), 0);
    }
}
