//! `[policy]`: which skills may be installed and run.
//!
//! ```toml
//! [policy]
//! require = "signed"                        # or "verified"
//! sources = ["github:anthropics", "local"]  # only from these
//! deny = ["pdf-tools", "crypto-*"]          # never these
//! signers = ["21fe31dfa154a261626bf854046fd227"]  # only signed by one of these keys
//! require-eval = true                       # only if a trusted key attests that it helps, and none
//!                                           # that it does not
//! ```
//!
//! The organization's file, the user's file and the project's `savoir.toml` may each have the
//! table. A skill must satisfy all of them, so a later file can tighten and never loosen.

use std::path::Path;

use savoir_lint::words;
use thiserror::Error;

use crate::{
    limits::MAX_MANIFEST_BYTES,
    lock::LockedSource,
    table::{self, Table, Value},
    text_file::{self, ContentError, FileError, FilePosition},
    trust::{
        Attestation, SourceRule, Tier,
        evaluation::{EvaluationVerdict, SignedEvaluation, newest_of_trusted_keys},
    },
};

/// The keys of the table.
const KEYS: [&str; 5] = ["require", "sources", "deny", "signers", "require-eval"];

/// The combined policy of all files.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    layers: Vec<PolicyTable>,
}

/// Which tables a file may have beside `[policy]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyFile {
    /// Only `[policy]`, such as the file of an organization.
    Alone,
    /// Others, too, which are read elsewhere: `savoir.toml` and the user's `config.toml`.
    Shared,
}

/// The `[policy]` table of one file.
#[derive(Clone, Debug, Default)]
struct PolicyTable {
    require: Option<WithPosition<RequiredTrust>>,
    sources: Option<WithPosition<Vec<SourceRule>>>,
    deny: Vec<WithPosition<String>>,
    signers: Option<WithPosition<Vec<String>>>,
    /// The place of `require-eval = true`.
    require_eval: Option<FilePosition>,
}

#[derive(Clone, Debug)]
struct WithPosition<T> {
    value: T,
    place: FilePosition,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequiredTrust {
    Signed,
    Verified,
}

/// The data about a skill that a policy checks.
#[derive(Clone, Copy, Debug)]
pub struct SkillFacts<'a> {
    pub name: &'a str,
    /// The source. `None` for a folder or a file that no lock names: it counts as `local`.
    pub source: Option<&'a LockedSource>,
    /// The trust tier.
    pub tier: Tier,
    /// The signatures, as verified on this machine.
    pub attestation: &'a Attestation,
    /// The signed evaluations of these files that are known here. Only needed if
    /// [`Policy::requires_evaluation`].
    pub evaluations: &'a [SignedEvaluation],
}

/// The reason why a policy forbids a skill, and the line of the policy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place} forbids `{name}`: {why}")]
pub struct PolicyRefusal {
    pub name: String,
    /// The file and the line.
    pub place: FilePosition,
    /// The unmet requirement.
    pub why: String,
    /// A suggestion to solve the problem.
    pub hint: String,
}

impl PolicyRefusal {
    /// A stable error code for programs.
    pub fn code(&self) -> &'static str {
        "policy"
    }
}

impl Policy {
    /// Adds the policy of a file, if the file exists; returns whether it does.
    pub fn add_file(&mut self, path: &Path, kind: PolicyFile) -> Result<bool, FileError> {
        let Some(text) = text_file::read(path, MAX_MANIFEST_BYTES)? else { return Ok(false) };
        self.add_text(&path.display().to_string(), &text, kind)?;
        Ok(true)
    }

    /// Adds the policy in the text of a file.
    pub fn add_text(
        &mut self,
        file: &str,
        text: &str,
        kind: PolicyFile,
    ) -> Result<(), ContentError> {
        let document = table::parse(file, text)?;
        let root = document.root();
        for (key, at, value) in root.entries() {
            if key == "policy" {
                self.layers.push(PolicyTable::read(value.table("a table")?)?);
            } else if kind == PolicyFile::Alone || words::nearest(key, ["policy"]).is_some() {
                // A typing error must not switch a policy off.
                let content_error = root.content_error(at, format!("there is no table `{key}`"));
                return Err(content_error.hint("the table is called [policy]"));
            }
        }
        Ok(())
    }

    /// Whether nothing is forbidden.
    pub fn is_empty(&self) -> bool {
        self.layers.iter().all(PolicyTable::is_empty)
    }

    /// Whether a skill needs a signed evaluation.
    pub fn requires_evaluation(&self) -> bool {
        self.layers.iter().any(|layer| layer.require_eval.is_some())
    }

    /// Every setting with its value and its place, in the order in which they are checked.
    pub fn settings(&self) -> Vec<(&'static str, serde_json::Value, FilePosition)> {
        let mut settings = Vec::new();
        for layer in &self.layers {
            if let Some(WithPosition { value, place }) = &layer.require {
                settings.push(("require", value.to_string().into(), place.clone()));
            }
            if let Some(WithPosition { value, place }) = &layer.sources {
                let rules: Vec<String> = value.iter().map(ToString::to_string).collect();
                settings.push(("sources", rules.into(), place.clone()));
            }
            for WithPosition { value, place } in &layer.deny {
                settings.push(("deny", value.clone().into(), place.clone()));
            }
            if let Some(WithPosition { value, place }) = &layer.signers {
                settings.push(("signers", value.clone().into(), place.clone()));
            }
            if let Some(place) = &layer.require_eval {
                settings.push(("require-eval", true.into(), place.clone()));
            }
        }
        settings
    }

    /// Refuses a skill that one of the files forbids.
    pub fn check(&self, skill: &SkillFacts<'_>) -> Result<(), PolicyRefusal> {
        self.layers.iter().try_for_each(|layer| layer.check(skill))
    }
}

impl PolicyTable {
    fn read(table: Table<'_>) -> Result<Self, ContentError> {
        let mut layer = Self::default();
        for (key, at, value) in table.entries() {
            match key {
                "require" => layer.require = Some(with_position(value, required(value)?)),
                "sources" => layer.sources = Some(with_position(value, list(value, source)?)),
                "deny" => {
                    for item in value.items("a list of names")? {
                        layer.deny.push(with_position(item, pattern(item)?));
                    }
                }
                "signers" => layer.signers = Some(with_position(value, list(value, key_id)?)),
                "require-eval" => {
                    layer.require_eval = value.boolean()?.then(|| value.place());
                }
                _ => {
                    let content_error =
                        table.content_error(at, format!("there is no setting `{key}`"));
                    return Err(content_error.hint(match words::nearest(key, KEYS) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("[policy] has {}", words::and(&KEYS)),
                    }));
                }
            }
        }
        Ok(layer)
    }

    fn is_empty(&self) -> bool {
        self.require.is_none()
            && self.sources.is_none()
            && self.deny.is_empty()
            && self.signers.is_none()
            && self.require_eval.is_none()
    }

    fn check(&self, skill: &SkillFacts<'_>) -> Result<(), PolicyRefusal> {
        self.check_denied(skill)?;
        self.check_source(skill)?;
        self.check_required(skill)?;
        self.check_signers(skill)?;
        self.check_evaluated(skill)
    }

    fn check_denied(&self, skill: &SkillFacts<'_>) -> Result<(), PolicyRefusal> {
        match self.deny.iter().find(|denied| is_match(&denied.value, skill.name)) {
            Some(denied) => Err(refusal(
                skill,
                &denied.place,
                format!("`deny` has \"{}\"", denied.value),
                "use another skill, or ask the owner of that file to take the line out".to_owned(),
            )),
            None => Ok(()),
        }
    }

    fn check_source(&self, skill: &SkillFacts<'_>) -> Result<(), PolicyRefusal> {
        let Some(allowed) = &self.sources else { return Ok(()) };
        let covers = |rule: &SourceRule| match skill.source {
            Some(source) => rule.covers(source),
            None => rule.is_local(),
        };
        if allowed.value.iter().any(covers) {
            return Ok(());
        }
        let from = match skill.source {
            Some(source) => format!("it comes from {source}"),
            None => "it comes from a folder of this machine".to_owned(),
        };
        let rules: Vec<String> = allowed.value.iter().map(ToString::to_string).collect();
        let hint = match rules.as_slice() {
            _ if skill.source.is_some_and(names_commit) => {
                "hosts serve commits of forks under the same address, so a commit that was named is \
                 not allowed: name a branch or a tag"
                    .to_owned()
            }
            [] => "no source is allowed there; ask the owner of that file to add one".to_owned(),
            rules => format!("install a skill from {}, or add its source there", words::or(rules)),
        };
        Err(refusal(skill, &allowed.place, format!("{from}, which `sources` does not list"), hint))
    }

    fn check_required(&self, skill: &SkillFacts<'_>) -> Result<(), PolicyRefusal> {
        let Some(required) = &self.require else { return Ok(()) };
        let is_signed = || skill.attestation.signatures.iter().any(|signer| signer.role.is_some());
        let satisfied = match required.value {
            RequiredTrust::Signed => is_signed(),
            RequiredTrust::Verified => skill.tier == Tier::Verified,
        };
        if satisfied {
            return Ok(());
        }
        let (why, hint) = match (required.value, skill.attestation.signed.as_ref()) {
            (RequiredTrust::Verified, _) if is_signed() => (
                format!("`require` is \"verified\", and it is {}", skill.tier),
                "install a version that the vendor signed".to_owned(),
            ),
            (required, Some(signer)) => (
                format!(
                    "`require` is \"{required}\", and you trust none of the keys that signed it"
                ),
                format!(
                    "if you know the owner of the key {}: savoir keys trust PUBLIC_KEY --publisher \
                     NAME",
                    signer.key_id
                ),
            ),
            (required, None) => (
                format!("`require` is \"{required}\", and it is unsigned"),
                "ask its publisher to sign it (`savoir sign`), or sign your own copy".to_owned(),
            ),
        };
        Err(refusal(skill, &required.place, why, hint))
    }

    fn check_signers(&self, skill: &SkillFacts<'_>) -> Result<(), PolicyRefusal> {
        let Some(wanted) = &self.signers else { return Ok(()) };
        let by = |key_id: &String| wanted.value.iter().any(|wanted| is_same_key(wanted, key_id));
        if skill.attestation.signatures.iter().any(|signer| by(&signer.key_id)) {
            return Ok(());
        }
        let signed: Vec<&str> =
            skill.attestation.signatures.iter().map(|signer| signer.key_id.as_str()).collect();
        let why = match signed.as_slice() {
            [] => "it is unsigned, and `signers` wants a signature".to_owned(),
            keys => format!("it is signed by {}, which `signers` does not list", words::and(keys)),
        };
        let hint = match wanted.value.as_slice() {
            [] => "no key is allowed there; ask the owner of that file to add one".to_owned(),
            keys => format!("it must be signed by {}", words::or(keys)),
        };
        Err(refusal(skill, &wanted.place, why, hint))
    }
}

impl PolicyTable {
    fn check_evaluated(&self, skill: &SkillFacts<'_>) -> Result<(), PolicyRefusal> {
        let Some(place) = &self.require_eval else { return Ok(()) };
        let newest = newest_of_trusted_keys(skill.evaluations, skill.name);
        let find = |verdict| newest.iter().copied().find(|one| one.evaluation.verdict == verdict);
        let failed = find(EvaluationVerdict::Fail);
        if failed.is_none() && find(EvaluationVerdict::Pass).is_some() {
            return Ok(());
        }
        let published = skill.source.and_then(|source| source.published(skill.name));
        let look = match published {
            Some((address, name)) => {
                format!("see who evaluated it: savoir info {name} --registry {address}; ")
            }
            None => String::new(),
        };
        let own = "evaluate it yourself and trust your own key: savoir eval PATH --output DIR, then \
                   savoir eval sign DIR PATH";
        let (why, hint) = if let Some(one) = failed.or(newest.first().copied()) {
            let verdict = one.evaluation.verdict.as_str();
            let why = format!(
                "`require-eval` is set, and the newest evaluation of the key {}, which you trust, \
                 is: {verdict}",
                one.signed.key_id
            );
            (why, format!("{look}use another version, or {own}"))
        } else if let Some(one) = skill.evaluations.first() {
            let count = skill.evaluations.len();
            let why = format!(
                "`require-eval` is set, and you trust none of the keys that signed its evaluations \
                 ({count})"
            );
            let trust = format!(
                "if you know the owner of the key {}: savoir keys trust PUBLIC_KEY --publisher NAME \
                 --role evaluator",
                one.signed.key_id
            );
            (why, format!("{look}{trust}; or {own}"))
        } else {
            let why = "`require-eval` is set, and nobody attests that it helps".to_owned();
            (why, format!("{look}{own}"))
        };
        Err(refusal(skill, place, why, hint))
    }
}

/// Whether a lock was made from an explicit commit, not from a branch or a tag.
fn names_commit(source: &LockedSource) -> bool {
    matches!(source, LockedSource::Git { url, .. } if url.contains("?rev="))
}

impl std::fmt::Display for RequiredTrust {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Signed => "signed",
            Self::Verified => "verified",
        })
    }
}

fn refusal(
    skill: &SkillFacts<'_>,
    place: &FilePosition,
    why: String,
    hint: String,
) -> PolicyRefusal {
    PolicyRefusal { name: skill.name.to_owned(), place: place.clone(), why, hint }
}

fn with_position<T>(at: Value<'_>, value: T) -> WithPosition<T> {
    WithPosition { value, place: at.place() }
}

fn list<T>(
    value: Value<'_>,
    read: fn(Value<'_>) -> Result<T, ContentError>,
) -> Result<Vec<T>, ContentError> {
    value.items("a list of texts")?.into_iter().map(read).collect()
}

fn required(value: Value<'_>) -> Result<RequiredTrust, ContentError> {
    match value.string("\"signed\" or \"verified\"")? {
        "signed" => Ok(RequiredTrust::Signed),
        "verified" => Ok(RequiredTrust::Verified),
        other => Err(value
            .content_error(format!("`{}` cannot be required", other.escape_debug()))
            .hint("write \"signed\" or \"verified\"")),
    }
}

fn source(value: Value<'_>) -> Result<SourceRule, ContentError> {
    let rule = value.string("a source")?.parse();
    rule.map_err(|error: crate::trust::RuleError| value.content_error(error.to_string()))
}

/// Parses a skill name, or a prefix followed by `*`.
fn pattern(value: Value<'_>) -> Result<String, ContentError> {
    let text = value.string("the name of a skill")?;
    let name = text.strip_suffix('*').unwrap_or(text);
    if text.is_empty() || name.contains(['*', '?', '[']) || name.contains(char::is_whitespace) {
        let content_error = value.content_error(format!("`{}` is not a name", text.escape_debug()));
        return Err(content_error.hint("write the name of a skill, or its beginning and `*`"));
    }
    Ok(text.to_owned())
}

fn key_id(value: Value<'_>) -> Result<String, ContentError> {
    let text = value.string("the identifier of a key")?;
    if text.is_empty() || text.contains(char::is_whitespace) {
        let content_error = value.content_error(format!("`{}` is not a key", text.escape_debug()));
        return Err(
            content_error.hint("`savoir keys list` and `savoir verify` show identifiers of keys")
        );
    }
    Ok(text.to_owned())
}

/// Compares ignoring case, because folders of some systems ignore it, too.
fn is_match(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.to_lowercase(), name.to_lowercase());
    match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == pattern,
    }
}

/// Compares key ids: hexadecimal digits ignore case, `SHA256:` and base64 do not.
fn is_same_key(wanted: &str, found: &str) -> bool {
    wanted == found || !found.starts_with("SHA256:") && wanted.eq_ignore_ascii_case(found)
}

#[cfg(test)]
mod tests;
