//! Recognizes the numbers of bank accounts and the addresses of wallets.

/// Whether a text is the address of a wallet or an IBAN.
pub(super) fn is_account(text: &str) -> bool {
    let plain: String = text.chars().filter(|c| *c != ' ').collect();
    let alphanumeric = plain.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let digits = plain.bytes().filter(u8::is_ascii_digit).count();
    let bech = ["bc1", "ltc1", "tb1"].iter().any(|start| plain.starts_with(start));
    let ethereum = plain.starts_with("0x") && plain.len() == 42;
    let start = plain.as_bytes();
    let iban = (15..=34).contains(&plain.len())
        && start[..2].iter().all(u8::is_ascii_uppercase)
        && start[2..4].iter().all(u8::is_ascii_digit)
        && digits > 9
        && plain.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    alphanumeric && (bech && (30..=90).contains(&plain.len()) || ethereum || iban)
}

/// Whether a text contains the number of a bank account or the address of a wallet.
pub(super) fn has_account(text: &str) -> bool {
    let mut run = String::new();
    let mut words = text
        .split(|c: char| c.is_whitespace() || "`\"'*(),;:|<>".contains(c))
        .filter(|word| !word.is_empty())
        .peekable();
    while let Some(word) = words.next() {
        if is_account(word.trim_end_matches('.')) {
            return true;
        }
        let is_group = |word: &str| {
            word.len() <= 4 && word.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
        };
        // A number in groups of four, of which the first has a country and check digits.
        if is_group(word) && (starts_account(word) || !run.is_empty()) {
            run.push_str(word);
            let ends = words.peek().is_none_or(|next| !is_group(next));
            if ends {
                if is_grouped_account(&run) {
                    return true;
                }
                run.clear();
            }
        } else {
            run.clear();
        }
    }
    false
}

/// Whether a group is two letters and two digits.
fn starts_account(group: &str) -> bool {
    let (letters, digits) = group.as_bytes().split_at(group.len().min(2));
    digits.len() == 2
        && letters.iter().all(u8::is_ascii_uppercase)
        && digits.iter().all(u8::is_ascii_digit)
}

/// Whether joined groups are as long as an account number, and mostly digits.
fn is_grouped_account(run: &str) -> bool {
    (15..=34).contains(&run.len()) && run.bytes().filter(u8::is_ascii_digit).count() > 7
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_recognized() {
        for text in [
            "bc1q9x7j2mfl0k4hs6d3wz8pncv5teyr1ga0qsdfgh",
            "0x52908400098527886E0F7030069857D2E4169EE7",
            "DE89 3704 0044 0532 0130 00",
        ] {
            assert!(is_account(text), "{text}");
        }
        for text in ["0x1234", "bc1", "DE89", "AB12CDEFGHIJKLMNOPQR", "hello world", ""] {
            assert!(!is_account(text), "{text}");
        }
    }

    #[test]
    fn accounts_in_groups_are_found() {
        for text in [
            "IBAN: `DE12 5001 0517 0648 4898 90`",
            "- IBAN: GB33 BUKB 2020 1555 5555 55",
            "to 0x52908400098527886E0F7030069857D2E4169EE7.",
            "`XX00 INVE 1234 5678 0000 00`",
        ] {
            assert!(has_account(text), "{text}");
        }
        for text in [
            "BT-84 account", "HUR DAY MON 1234", "ISO 4217 EUR", "0x1234",
            "2026 2027 2028 2029 2030",
        ] {
            assert!(!has_account(text), "{text}");
        }
    }
}
