//! Finds mail recipients that are fixed in the code, in addition to those that the user chooses.

use savoir_skill::Span;

use super::{UNKNOWN, Value};
use crate::action::{Action, Actions, Taint};

/// Description of the data that such mails contain.
const USER_MAILS: &str = "mails of the user";

/// Maximum length of a text with recipients. Reaching the limit is recorded.
const MAX_RECIPIENT_BYTES: usize = 2_000;

/// Maximum nesting of lists and objects of recipients. Reaching the limit is recorded.
const MAX_DEPTH: usize = 4;

/// The recipients of a mail.
#[derive(Default)]
struct Addresses {
    /// Those that are written in the code.
    found: Vec<String>,
    /// There are others, which are not known.
    has_unknown: bool,
    /// A text was too long to be read.
    is_cut: bool,
}

/// Collects the addresses that are written in the code.
fn collect_addresses(value: &Value, addresses: &mut Addresses, depth: usize) {
    let inner = value.as_entry().map(|(_, inner)| inner);
    if let Some(inner) = inner.filter(|_| depth < MAX_DEPTH) {
        return collect_addresses(inner, addresses, depth + 1);
    }
    if !value.items.is_empty() {
        addresses.is_cut |= depth >= MAX_DEPTH;
        for item in value.items.iter().filter(|_| depth < MAX_DEPTH) {
            collect_addresses(item, addresses, depth + 1);
        }
        return;
    }
    let text = value.text_or_unknown();
    addresses.has_unknown |= text.contains(UNKNOWN);
    if text.len() > MAX_RECIPIENT_BYTES {
        addresses.is_cut |= text.contains('@');
        return;
    }
    let words = text.split(|c: char| c.is_whitespace() || ",;<>\"'".contains(c));
    addresses.found.extend(words.filter(|word| is_real_address(word)).map(str::to_owned));
}

/// Whether a word is a real mail address and not an example.
fn is_real_address(word: &str) -> bool {
    let Some((user, host)) = word.split_once('@') else { return false };
    let host = host.to_ascii_lowercase();
    let example = ["example.com", "example.org", "example.net", "yourdomain", "domain.com"];
    !user.is_empty()
        && host.contains('.')
        && !word.contains(['{', '}', '$', '(', '/'])
        && !example.iter().any(|part| host.contains(part))
}

/// Records the suspicious recipients of one mail: every fixed address in `bcc_recipients`, and
/// fixed addresses in `visible_recipients` if the mail has other, variable recipients as well.
pub(crate) fn record_fixed_recipients(
    visible_recipients: &[&Value],
    bcc_recipients: &[&Value],
    span: Span,
    actions: &mut Actions,
) {
    let (mut visible, mut hidden) = (Addresses::default(), Addresses::default());
    for value in visible_recipients {
        collect_addresses(value, &mut visible, 0);
    }
    for value in bcc_recipients {
        collect_addresses(value, &mut hidden, 0);
    }
    if visible.is_cut || hidden.is_cut {
        actions.cut("longer or deeper lists of mail recipients than are read", span);
    }
    let mut suspicious = hidden.found;
    if visible.has_unknown {
        suspicious.append(&mut visible.found);
    }
    for address in suspicious {
        let sends = Taint::private(USER_MAILS);
        actions.push(
            Action::Connects { to: format!("mailto:{address}"), sends, log_in: Vec::new() },
            span,
        );
    }
}

/// Records that a mail to fixed recipients contains secrets.
pub(crate) fn record_mailed_secrets(
    recipients: &[&Value],
    message: &Taint,
    span: Span,
    actions: &mut Actions,
) {
    let mut fixed = Addresses::default();
    for value in recipients {
        collect_addresses(value, &mut fixed, 0);
    }
    let Some(address) = fixed.found.first().filter(|_| message.is_secret()) else { return };
    let sends = Taint { private: Some("secrets in a mail"), ..message.clone() };
    let to = format!("mailto:{address}");
    actions.push(Action::Connects { to, sends, log_in: Vec::new() }, span);
}

/// Checks the recipients `to` and `bcc` of a message that is an object.
pub(crate) fn record_message_recipients(message: &Value, span: Span, actions: &mut Actions) {
    let under = |keys: &[&str]| -> Vec<&Value> {
        keys.iter().filter_map(|key| message.under(key)).collect()
    };
    let to = under(&["to", "To", "recipient", "recipients"]);
    let bcc_recipients = under(&["bcc", "Bcc", "BCC"]);
    record_fixed_recipients(&to, &bcc_recipients, span, actions);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(visible_recipients: &[Value], bcc_recipients: &[Value]) -> usize {
        let mut actions = Actions::default();
        let visible_recipients: Vec<&Value> = visible_recipients.iter().collect();
        let bcc_recipients: Vec<&Value> = bcc_recipients.iter().collect();
        record_fixed_recipients(
            &visible_recipients,
            &bcc_recipients,
            Span::new(0, 0),
            &mut actions,
        );
        actions.located.len()
    }

    #[test]
    fn fixed_extra_recipients_are_recorded() {
        assert_eq!(count(&[Value::default(), Value::text("a@b.example")], &[]), 1);
        assert_eq!(count(&[Value::text("{}, A <a@b.example>")], &[]), 1);
        assert_eq!(count(&[], &[Value::text("a@b.example")]), 1);
        // A report to one fixed address is what the skill is for.
        assert_eq!(count(&[Value::text("a@b.example")], &[]), 0);
        assert_eq!(count(&[], &[Value::text("me@example.com")]), 0);
        assert_eq!(count(&[Value::default()], &[Value::text("{}@b.example")]), 0);
    }
}
