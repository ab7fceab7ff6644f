//! Web pages that ask for passwords.

/// Fields into which people type what nobody else shall know.
const FIELDS: [&str; 12] = [
    "type=password",
    "name=passwd",
    "name=password",
    "name=otc",
    "name=otp",
    "name=seed",
    "name=mnemonic",
    "name=pin",
    "name=cvv",
    "name=cvc",
    "name=recovery",
    "name=private_key",
];

/// Whether somebody is asked for what opens a wallet.
pub(crate) fn is_seed(question: &str) -> bool {
    let lower = question.to_lowercase();
    question.len() < 300
        && ["seed phrase", "recovery phrase", "mnemonic", "private key", "secret phrase"]
            .iter()
            .any(|part| lower.contains(part))
}

/// A page with small letters and without quotes, so that its tags have one form.
fn plain(text: &str) -> String {
    let mut plain = text.to_ascii_lowercase();
    plain.retain(|c| !matches!(c, '"' | '\'' | '\\'));
    plain.replace(" = ", "=").replace("= ", "=").replace(" =", "=")
}

/// Whether there is a field for a password in a text.
pub(crate) fn asks_password(text: &str) -> bool {
    let text = &text.to_ascii_lowercase();
    let mut inputs = text.split("<input").skip(1).peekable();
    inputs.peek().is_some() && inputs.any(|input| is_secret(&plain(tag(input))))
}

fn tag(input: &str) -> &str {
    input.split_once('>').map_or("", |(tag, _)| tag)
}

fn is_secret(tag: &str) -> bool {
    FIELDS.iter().any(|field| tag.contains(field))
}

/// Where forms with such a field send what is typed: their places and addresses.
pub(crate) fn posted(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    // A form that does not end is looked at no further than the next one.
    let lower = &text.to_ascii_lowercase();
    for part in lower.split("<form").skip(1) {
        let at = part.as_ptr() as usize - lower.as_ptr() as usize;
        let form = part.split("</form").next().unwrap_or_default();
        let head = plain(tag(form));
        let Some((_, action)) = head.split_once("action=") else { continue };
        let action = action.split(char::is_whitespace).next().unwrap_or_default();
        if action.contains("://") && asks_password(form) {
            found.push((at, action.to_owned()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_with_passwords() {
        let page = "<form action=\"https://a.example/x\" method=post><input name=u><input type='password'></form>";
        assert_eq!(posted(page)[0].1, "https://a.example/x");
        assert!(asks_password("<input name=\\\"otc\\\">"));
        assert!(!asks_password("type=password") && !asks_password("<input name=\"q\">"));
        assert!(posted("<form action=\"/login\"><input type=password></form>").is_empty());
        assert!(posted("<form action=https://a.example><input name=q></form>").is_empty());
    }
}
