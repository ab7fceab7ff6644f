//! Rules about secrets that are stored in a skill.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use savoir_skill::Span;

use crate::{
    Confidence, Severity,
    collect::extension,
    context::{Context, FindingDraft},
    decode,
    fragment::Role,
    rule::rule,
};

rule! {
    /// The skill contains a key or a token.
    ///
    /// ## Why
    ///
    /// Everyone who gets the skill gets the secret. If it does not belong to the publisher, stolen
    /// data may be sent with it.
    ///
    /// ## Fix
    ///
    /// Revoke the secret, and read the new one from an environment variable.
    ///
    /// ## Bad
    ///
    /// ````python file=scripts/call.py
    /// KEY = "ghp_A9dKq2Lm5Xw8Rt3Zb7Vn1Yc4Hs6Jf0PgTuEo"
    /// ````
    ///
    /// ## Good
    ///
    /// ````python file=scripts/call.py
    /// KEY = "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
    /// ````
    EMBEDDED_SECRET = "embedded-secret", High, run embedded_secret
}

/// Prefixes of secrets, their descriptions, and the minimum number of characters after the prefix.
const SECRET_FORMATS: [(&str, &str, usize); 21] = [
    ("AKIA", "an AWS access key", 16),
    ("ASIA", "an AWS access key", 16),
    ("ghp_", "a GitHub token", 36),
    ("gho_", "a GitHub token", 36),
    ("ghs_", "a GitHub token", 36),
    ("github_pat_", "a GitHub token", 50),
    ("glpat-", "a GitLab token", 20),
    ("xoxb-", "a Slack token", 20),
    ("xoxp-", "a Slack token", 20),
    ("sk-ant-", "an Anthropic key", 40),
    ("sk-proj-", "an OpenAI key", 40),
    ("sk_live_", "a Stripe key", 20),
    ("rk_live_", "a Stripe key", 20),
    ("AIza", "a Google key", 35),
    ("hf_", "a Hugging Face token", 30),
    ("npm_", "an npm token", 36),
    ("pypi-AgEI", "a PyPI token", 40),
    ("SG.", "a SendGrid key", 60),
    ("dop_v1_", "a DigitalOcean token", 60),
    ("shpat_", "a Shopify token", 32),
    ("sav_", "a token of a Savoir server", 43),
];

/// Words that mark examples.
const EXAMPLE_WORDS: [&str; 14] = [
    "example", "xxxx", "your", "placeholder", "dummy", "fake", "sample", "redacted", "changeme",
    "1234567", "abcdef", "0000", "aaaa", "test",
];

fn embedded_secret(context: &mut Context<'_>) {
    context.for_each_fragment(&EMBEDDED_SECRET, |fragment| {
        if fragment.depth > 0 && fragment.hidden_in.is_none() {
            return Vec::new();
        }
        let text: &str = &fragment.text;
        let severity =
            if fragment.role == Role::Document { Severity::Medium } else { Severity::High };
        let mut found = Vec::new();
        for (start, what, least) in SECRET_FORMATS {
            for at in memchr::memmem::find_iter(text.as_bytes(), start) {
                let edge = text[..at]
                    .chars()
                    .next_back()
                    .is_none_or(|c| !c.is_ascii_alphanumeric() && c != '_' && c != '-');
                let is_tail = |c: char| {
                    c.is_ascii_alphanumeric()
                        || c == '-'
                        || c == '_'
                        || (c == '.' && start == "SG.")
                };
                let tail: String =
                    text[at + start.len()..].chars().take_while(|c| is_tail(*c)).collect();
                if edge && tail.len() >= least && tail.len() < least + 220 && is_random(&tail) {
                    let span = Span::new(at, at + start.len() + 4);
                    found.push((
                        span,
                        FindingDraft::new(
                            severity,
                            Confidence::High,
                            format!("it contains what looks like {what}"),
                        ),
                    ));
                }
            }
        }
        for at in memchr::memmem::find_iter(text.as_bytes(), "PRIVATE KEY-----") {
            let begins =
                text[..at].rsplit('\n').next().is_some_and(|line| line.contains("-----BEGIN"));
            let body: String =
                text[at + 16..].chars().take(400).filter(char::is_ascii_alphanumeric).collect();
            // What a scanner looks for is not what it found: `-----BEGIN (RSA )?PRIVATE KEY-----`.
            let pattern = text[at + 16..].starts_with(['|', '"', '\'', '/', ')', '`'])
                && !text[at + 16..].starts_with("\\n");
            if begins && !pattern && body.len() > 200 && is_random(&body) {
                found.push((
                    Span::new(at, at + 16),
                    FindingDraft::new(Severity::High, Confidence::High, "it has a private key"),
                ));
            }
        }
        if let Some(span) = find_signing_key(&fragment.path, text) {
            let message = "it is the secret half of a key that signs skills";
            found.push((span, FindingDraft::new(Severity::High, Confidence::High, message)));
        }
        found
    });
}

/// Finds the key in a file that `savoir keys` wrote: 32 bytes in Base64, on a line of their own.
fn find_signing_key(path: &str, text: &str) -> Option<Span> {
    let line = text.trim();
    let bytes = (extension(path) == "key").then(|| STANDARD.decode(line).ok()).flatten()?;
    let at = text.len() - text.trim_start().len();
    (bytes.len() == 32 && is_random(line)).then(|| Span::new(at, at + 4))
}

/// Whether a text is as random as a real secret.
fn is_random(tail: &str) -> bool {
    let lower = tail.to_lowercase();
    !EXAMPLE_WORDS.iter().any(|word| lower.contains(word)) && decode::entropy(tail.as_bytes()) > 3.3
}
