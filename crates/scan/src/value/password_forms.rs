//! Finds web pages and prompts that ask for passwords.

use super::{TYPED_CODES, TYPED_PASSWORDS};

/// Attributes of input fields for secrets.
const SECRET_FIELD_ATTRIBUTES: [&str; 12] = [
    "type=password", "name=passwd", "name=password", "name=otc", "name=otp", "name=seed",
    "name=mnemonic", "name=pin", "name=cvv", "name=cvc", "name=recovery", "name=private_key",
];

/// The kind of secret that a question asks for: what opens a wallet, or a code that opens an account
/// once.
pub(crate) fn asked_secret(question: &str) -> Option<&'static str> {
    const WALLET: [&str; 16] = [
        "seed phrase", "recovery phrase", "mnemonic", "private key", "secret phrase",
        "backup phrase", "recovery words", "seed words", "12 words", "24 words", "12/24", "12-24",
        "twelve words", "owner key", "secret recovery", "wallet key",
    ];
    const CODES: [&str; 12] = [
        "one-time code", "one time code", "2fa code", "sms code", "verification code",
        "security code", "card number", "online banking", "authenticator code", "6-digit code",
        "six-digit code", "banking pin",
    ];
    if question.len() > 300 {
        return None;
    }
    let lower = question.to_lowercase();
    let says = |parts: &[&str]| parts.iter().any(|part| lower.contains(part));
    let mut words = lower.split(|c: char| !c.is_alphanumeric());
    if says(&WALLET) {
        Some(TYPED_PASSWORDS)
    } else if says(&CODES)
        || words.any(|word| matches!(word, "otp" | "pin" | "cvv" | "cvc" | "tan"))
    {
        Some(TYPED_CODES)
    } else {
        None
    }
}

/// As [`asked_secret`], by the name of a variable that gets an argument of the program.
pub(crate) fn secret_argument(name: &str) -> Option<&'static str> {
    let name: String = name.chars().filter(|c| *c != '_').collect::<String>().to_lowercase();
    match name.as_str() {
        "mnemonic" | "seedphrase" | "seedwords" | "recoveryphrase" | "privkey" | "privatekey"
        | "secretphrase" => Some(TYPED_PASSWORDS),
        "pin" | "otp" | "tan" | "cvv" | "cvc" | "totp" | "passcode" | "mfacode" | "smscode"
        | "otpcode" | "onetimecode" | "cardnumber" => Some(TYPED_CODES),
        _ => None,
    }
}

/// Converts a tag to lower case without quotes and blanks around `=`, so that it can be compared.
fn normalize_tag(text: &str) -> String {
    let mut plain = text.to_ascii_lowercase();
    plain.retain(|c| !matches!(c, '"' | '\'' | '\\'));
    plain.replace(" = ", "=").replace("= ", "=").replace(" =", "=")
}

/// Whether a text has an HTML input field for a secret.
pub(crate) fn has_password_field(text: &str) -> bool {
    let text = &text.to_ascii_lowercase();
    let mut inputs = text.split("<input").skip(1).peekable();
    inputs.peek().is_some() && inputs.any(|input| is_secret_field(&normalize_tag(first_tag(input))))
}

fn first_tag(input: &str) -> &str {
    input.split_once('>').map_or("", |(tag, _)| tag)
}

fn is_secret_field(tag: &str) -> bool {
    SECRET_FIELD_ATTRIBUTES.iter().any(|field| tag.contains(field))
}

/// Returns the offsets and the target addresses of forms with such a field.
pub(crate) fn password_form_targets(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    // Splitting at `<form` limits an unclosed form to the text before the next form.
    let lower = &text.to_ascii_lowercase();
    for part in lower.split("<form").skip(1) {
        let at = part.as_ptr() as usize - lower.as_ptr() as usize;
        let form = part.split("</form").next().unwrap_or_default();
        let head = normalize_tag(first_tag(form));
        let Some((_, action)) = head.split_once("action=") else { continue };
        let action = action.split(char::is_whitespace).next().unwrap_or_default();
        if action.contains("://") && has_password_field(form) {
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
        assert_eq!(password_form_targets(page)[0].1, "https://a.example/x");
        assert!(has_password_field("<input name=\\\"otc\\\">"));
        assert!(!has_password_field("type=password") && !has_password_field("<input name=\"q\">"));
        assert!(
            password_form_targets("<form action=\"/login\"><input type=password></form>")
                .is_empty()
        );
        assert!(
            password_form_targets("<form action=https://a.example><input name=q></form>")
                .is_empty()
        );
    }
}
