//! Searches for files with secrets, and entries of keychains.

use crate::{
    act::{Act, Acts, Taint},
    service,
    value::{UNKNOWN, Value},
};
use savoir_skill::Span;

/// What is found by looking for names of files.
const SOUGHT: &str = "secrets in files";

/// Parts of a pattern by which files with secrets are found; one of each row counts once.
const MARKS: [&[&str]; 10] = [
    &["\\.env", ".env", "dotenv"],
    &[".pem", "\\.pem", "pem|", "|pem"],
    &["id_rsa", "id_ed25519", "id_(rsa", "id_ecdsa"],
    &["secret"],
    &["credential"],
    &[".p12", ".pfx", "p12|", "|pfx", "pfx|"],
    &["wallet", "keystore", "seed", "mnemonic"],
    &["kdbx", "keychain"],
    &["passw", "passwd"],
    &[".npmrc", ".netrc", ".pypirc", "kubeconfig", "\\.npmrc"],
];

/// Papers by which somebody can pass for another, and others that are nobody else's business.
const IDENTITY: [&str; 9] = [
    "passport",
    "pass(port",
    "passw",
    "recovery",
    "seed",
    "ssn",
    "social.?sec",
    "license",
    "ausweis",
];
const PAPERS: [&str; 16] = [
    "tax",
    "bank",
    "salary",
    "payslip",
    "payroll",
    "contract",
    "nda",
    "statement",
    "w-?2",
    "w2",
    "1099",
    "medical",
    "insurance",
    "mortgage",
    "visa",
    "invoice",
];

/// Whether a pattern finds the personal papers of somebody by the names of their files.
fn seeks_papers(pattern: &str) -> bool {
    let lower = pattern.to_lowercase();
    let count = |row: &[&str]| row.iter().filter(|mark| lower.contains(**mark)).count();
    pattern.contains('|') && !pattern.contains(' ') && count(&IDENTITY) > 0 && count(&PAPERS) > 1
}

fn marks(text: &str) -> usize {
    let lower = text.to_lowercase();
    MARKS.iter().filter(|row| row.iter().any(|mark| lower.contains(mark))).count()
}

/// What a regular expression or a pattern of names looks for that finds files with secrets.
pub(crate) fn sought(pattern: &str) -> Option<&'static str> {
    if seeks_papers(pattern) {
        return Some("personal papers");
    }
    let alternatives = pattern.contains(['|', ',']) && !pattern.contains(' ');
    (alternatives && pattern.contains(['.', '*', '$']) && marks(pattern) > 1).then_some(SOUGHT)
}

/// Notes that a list has the names or the endings of files with secrets, and little else.
pub(crate) fn sought_names(list: &Value, span: Span, acts: &mut Acts) {
    if list.items.len() < 2 || list.items.len() > 40 {
        return;
    }
    let texts = || list.items.iter().filter_map(Value::known);
    let names = texts().filter(|text| text.len() < 40 && !text.contains(' ') && marks(text) > 0);
    let all = texts().collect::<Vec<_>>().join(",");
    if names.count() * 2 > list.items.len()
        && marks(&all) > 1
        && all.contains('.')
        && !acts.located.iter().any(|seen| seen.act == Act::Names(SOUGHT))
    {
        acts.push(Act::Names(SOUGHT), span);
    }
}

/// Whether a path is a file of variables with secrets in it, or a pattern that finds such.
pub(crate) fn is_dotenv_path(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let Some(rest) = name.strip_prefix(".env") else { return false };
    let sample = ["example", "sample", "template", "dist", "defaults"];
    (rest.is_empty() || rest.starts_with(['.', '*', '{']))
        && !sample.iter().any(|s| rest.contains(s))
}

/// What an entry of the keychain is: the program's own, or one that belongs to somebody else.
pub(crate) fn keychain(service: &Value, span: Span, acts: &mut Acts) -> Value {
    let name = service.text_or_unknown();
    let lower = name.to_lowercase();
    let words = || lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| word.len() > 2);
    // `Chrome Safe Storage`, `gh:github.com`, `aws-vault`: another program has put it there.
    let foreign = lower.contains("safe storage")
        || lower.contains("login")
        || name.contains('.') && !name.contains(UNKNOWN) && !lower.starts_with("com.")
        || words().any(|word| service::is_service_name(&word.to_ascii_uppercase()));
    if foreign {
        acts.push(Act::Secret("keychains"), span);
        return Value::tainted(Taint::credential("keychains"));
    }
    Value::tainted(Taint { tokens: vec!["an entry of the keychain".into()], ..Taint::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_secrets_are_looked_for() {
        for pattern in [
            r"\.env(\.\w+)?$|secrets?\.ya?ml$|\.pem$",
            r"(id_rsa|id_ed25519|\.p12)$",
            "**/{.env,.env.local,*.pem}",
            r"\.(pem|key|kdbx|wallet)$",
        ] {
            assert!(sought(pattern).is_some(), "{pattern}");
        }
        for pattern in
            [r"\.(jpe?g|png)$", ".env", r"^\w+\.pem$", "a secret, and a password.", r"\.ts$|\.js$"]
        {
            assert!(sought(pattern).is_none(), "{pattern}");
        }
        assert!(
            sought("pass(port|word)|tax|bank").is_some() && sought("tax|bank|salary").is_none()
        );
        assert!(is_dotenv_path("**/.env*") && is_dotenv_path("x/.env.local"));
        assert!(!is_dotenv_path(".env.example") && !is_dotenv_path(".environment"));
    }
}
