//! Finds searches for files with secrets, and reads of keychain entries.

use crate::{
    action::{Action, Actions, Taint},
    service,
    value::{UNKNOWN, Value},
};
use savoir_skill::Span;

/// Description of files that are searched by name.
const SECRETS_IN_FILES: &str = "secrets in files";

/// Parts of patterns that match files with secrets. A pattern is suspicious if it matches two rows.
const SECRET_FILE_MARKERS: [&[&str]; 10] = [
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

/// Names of identity documents (`IDENTITY_DOCUMENTS`) and of other personal documents (`PERSONAL_DOCUMENTS`).
const IDENTITY_DOCUMENTS: [&str; 9] = [
    "passport", "pass(port", "passw", "recovery", "seed", "ssn", "social.?sec", "license",
    "ausweis",
];
const PERSONAL_DOCUMENTS: [&str; 16] = [
    "tax", "bank", "salary", "payslip", "payroll", "contract", "nda", "statement", "w-?2", "w2",
    "1099", "medical", "insurance", "mortgage", "visa", "invoice",
];

/// Starts of access tokens and of addresses that contain one.
const TOKEN_STARTS: [&str; 14] = [
    "xoxb-",
    "xoxp-",
    "xapp-",
    "ghp_",
    "gho_",
    "github_pat_",
    "glpat-",
    "AKIA",
    "SG.",
    "hf_",
    "npm_",
    "https://hooks.slack.com/services/",
    "https://discord.com/api/webhooks/",
    "https://api.telegram.org/bot",
];

/// How many tokens of a file are searched for in its text. Reaching the limit is recorded.
pub(crate) const MAX_TOKENS_SEARCHED: usize = 32;

/// Whether a text is an access token.
pub(crate) fn is_access_token(value: &Value) -> bool {
    let text = value.text.as_deref().filter(|text| !text.contains(super::UNKNOWN));
    text.is_some_and(|text| {
        (16..300).contains(&text.len()) && TOKEN_STARTS.iter().any(|start| text.starts_with(start))
    })
}

/// Records an access token that is put together of pieces, so that it cannot be found in the source.
pub(crate) fn record_assembled_tokens(
    values: &[Value],
    source: &str,
    searched: &mut usize,
    span: Span,
    actions: &mut Actions,
) {
    for value in values.iter().filter(|value| is_access_token(value)) {
        *searched += 1;
        if *searched > MAX_TOKENS_SEARCHED {
            return actions.cut("more access tokens than are searched for", span);
        }
        if !source.contains(value.text_or_unknown()) {
            actions.push(Action::Obfuscates("an access token is put together of pieces"), span);
        }
    }
}

/// Whether a pattern searches for identity and other personal documents by file name.
fn searches_personal_documents(pattern: &str) -> bool {
    let lower = pattern.to_lowercase();
    let count = |row: &[&str]| row.iter().filter(|mark| lower.contains(**mark)).count();
    pattern.contains('|')
        && !pattern.contains(' ')
        && count(&IDENTITY_DOCUMENTS) > 0
        && count(&PERSONAL_DOCUMENTS) > 1
}

fn count_marker_rows(text: &str) -> usize {
    let lower = text.to_lowercase();
    SECRET_FILE_MARKERS.iter().filter(|row| row.iter().any(|mark| lower.contains(mark))).count()
}

/// Returns the kind of secret files that a regular expression or a glob searches for.
pub(crate) fn searched_secrets(pattern: &str) -> Option<&'static str> {
    if searches_personal_documents(pattern) {
        return Some("personal papers");
    }
    let alternatives = pattern.contains(['|', ',']) && !pattern.contains(' ');
    (alternatives && pattern.contains(['.', '*', '$']) && count_marker_rows(pattern) > 1)
        .then_some(SECRETS_IN_FILES)
}

/// Records a list that mostly contains names or extensions of files with secrets.
pub(crate) fn record_secret_name_list(list: &Value, span: Span, actions: &mut Actions) {
    if list.items.len() < 2 {
        return;
    }
    let texts = || list.items.iter().filter_map(Value::known);
    let names = texts()
        .filter(|text| text.len() < 40 && !text.contains(' ') && count_marker_rows(text) > 0);
    let all = texts().collect::<Vec<_>>().join(",");
    if names.count() * 2 > list.items.len()
        && count_marker_rows(&all) > 1
        && all.contains('.')
        && !actions
            .located
            .iter()
            .any(|seen| seen.action == Action::MentionsCredentials(SECRETS_IN_FILES))
    {
        actions.push(Action::MentionsCredentials(SECRETS_IN_FILES), span);
    }
}

/// Whether a path is a `.env` file with real values, or a pattern that matches such files.
pub(crate) fn is_dotenv_path(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let Some(rest) = name.strip_prefix(".env") else { return false };
    let sample = ["example", "sample", "template", "dist", "defaults"];
    (rest.is_empty() || rest.starts_with(['.', '*', '{']))
        && !sample.iter().any(|s| rest.contains(s))
}

/// Whether a condition selects files with secrets by their name: `name.startsWith(".env")`,
/// `/^id_rsa/.test(name)`.
pub(crate) fn picks_secret_files(condition: &str) -> bool {
    const NAMES: [&str; 10] = [
        ".env", ".pem", "id_rsa", "id_ed25519", ".p12", ".kdbx", ".npmrc", ".netrc", "wallet.dat",
        "keystore",
    ];
    if condition.trim_start().starts_with(['!', '(']) && condition.contains('!')
        || condition.trim_start().starts_with("not ")
        || condition.len() > 300
    {
        return false;
    }
    let plain = condition.replace('\\', "");
    NAMES.iter().any(|name| {
        plain.match_indices(name).any(|(at, _)| {
            let before = plain[..at].chars().next_back();
            let after = plain[at + name.len()..].chars().next();
            before.is_some_and(|c| "\"'`/^(|*".contains(c))
                && after.is_none_or(|c| !c.is_alphanumeric())
        })
    })
}

/// Marks a value that stands for a file which a condition selected.
pub(crate) fn mark_picked(taint: &mut Taint) {
    if !taint.tokens.iter().any(|token| token == ".env") {
        taint.tokens.push(".env".into());
    }
}

/// Returns the value of a keychain entry. Records a credential access if the entry belongs to
/// another program; an entry of the program itself only counts as a token.
pub(crate) fn read_keychain(service: &Value, span: Span, actions: &mut Actions) -> Value {
    let name = service.text_or_unknown();
    let lower = name.to_lowercase();
    let words = || lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| word.len() > 2);
    // `Chrome Safe Storage`, `gh:github.com`, `aws-vault`: entries that another program stored.
    let foreign = lower.contains("safe storage")
        || lower.contains("login")
        || name.contains('.') && !name.contains(UNKNOWN) && !lower.starts_with("com.")
        || words().any(|word| service::is_service_name(&word.to_ascii_uppercase()));
    if foreign {
        actions.push(Action::ReadsCredentials("keychains"), span);
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
            assert!(searched_secrets(pattern).is_some(), "{pattern}");
        }
        for pattern in
            [r"\.(jpe?g|png)$", ".env", r"^\w+\.pem$", "a secret, and a password.", r"\.ts$|\.js$"]
        {
            assert!(searched_secrets(pattern).is_none(), "{pattern}");
        }
        assert!(
            searched_secrets("pass(port|word)|tax|bank").is_some()
                && searched_secrets("tax|bank|salary").is_none()
        );
        assert!(picks_secret_files("/^\\.env(\\.|$)/.test(e.name)"));
        assert!(picks_secret_files("name.endswith('.pem')"));
        assert!(
            !picks_secret_files("process.env.CI") && !picks_secret_files("!f.startsWith('.env')")
        );
        assert!(is_dotenv_path("**/.env*") && is_dotenv_path("x/.env.local"));
        assert!(!is_dotenv_path(".env.example") && !is_dotenv_path(".environment"));
    }
}
