//! Signed evaluations of a skill: who measured it, and what came out.
//!
//! An evaluation is signed as a statement of in-toto (`test-result`). Its subject is the digest of
//! the skill's files, so an edited skill loses it. Our own fields are in one namespaced member.
//! Statements are stored in `.savoir/attestations/` of the skill's folder, which is not a part of
//! the skill, and by registries.

use std::{
    collections::BTreeMap,
    fs, io,
    io::Read as _,
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use savoir_skill::digest::{hex, sha256_hex};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{SignedStatement, TrustStore, check_statement};
use crate::limits::{
    MAX_EVALUATION_BYTES, MAX_EVALUATION_FILES, MAX_EVALUATION_TEXT, MAX_EVALUATIONS, MAX_LISTED,
};

/// The folder of the statements about a skill.
pub const FOLDER: &str = ".savoir/attestations";
pub const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
pub const PREDICATE_TYPE: &str = "https://in-toto.io/attestation/test-result/v0.1";
/// The member of the predicate with our own fields.
pub const OWN_FIELDS: &str = "savoir.dev/eval/v1";

/// The measured facts of an evaluation that readers need.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = SkillEvaluation))]
pub struct Evaluation {
    pub verdict: EvaluationVerdict,
    /// The difference of the pass rates with and without the skill, in percentage points.
    pub uplift: Option<EvaluatedRange>,
    /// Trials of each case and arm.
    pub trials: u32,
    pub all_trials: u64,
    pub invalid_trials: u64,
    pub host: EvaluatedHost,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<EvaluationJudge>,
    /// The SHA-256 over the cases and trigger queries.
    pub eval_set: String,
    /// The program that measured, with its version.
    pub harness: String,
    /// When the skill is used, for each size of the catalog.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<EvaluatedTriggers>,
    /// Cases that the skill makes worse.
    #[serde(default)]
    pub regressions: Vec<String>,
    /// When the evaluation ended, in UTC.
    pub finished: String,
}

/// The verdict of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum EvaluationVerdict {
    /// The skill helps.
    Pass,
    /// The skill does not help.
    Fail,
    /// There are too few trials to decide.
    Underpowered,
}

impl EvaluationVerdict {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Underpowered => "underpowered",
        }
    }
}

/// A mean with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EvaluatedRange {
    pub mean: f64,
    pub lower: f64,
    pub upper: f64,
}

/// The agent and the model that were measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EvaluatedHost {
    pub name: String,
    pub version: String,
    /// `provider:model`
    pub model: String,
}

/// The model that judged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EvaluationJudge {
    pub model: String,
}

/// Precision and recall of the use of a skill among some skills.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EvaluatedTriggers {
    pub catalogue: u64,
    pub queries: u64,
    pub precision: Option<EvaluatedRange>,
    pub recall: Option<EvaluatedRange>,
}

/// An evaluation, and the signature of its statement.
#[derive(Clone, Debug, PartialEq)]
pub struct SignedEvaluation {
    pub signed: SignedStatement,
    pub evaluation: Evaluation,
}

/// Whether a statement is about a skill as it is now.
#[derive(Clone, Debug)]
pub enum EvaluationOutcome {
    /// It is about these files.
    Current(Box<SignedEvaluation>),
    /// It is about other files: the skill was edited, or it is another skill.
    OtherFiles,
    /// It cannot be read, or its signature is wrong.
    Broken { code: &'static str, reason: String },
}

/// A statement that was found in a folder.
#[derive(Clone, Debug)]
pub struct FoundEvaluation {
    pub path: PathBuf,
    pub outcome: EvaluationOutcome,
}

impl FoundEvaluation {
    fn is_of_trusted_key(&self) -> bool {
        match &self.outcome {
            EvaluationOutcome::Current(one) => one.signed.checked && one.signed.trusted.is_some(),
            EvaluationOutcome::OtherFiles | EvaluationOutcome::Broken { .. } => false,
        }
    }
}

impl SignedEvaluation {
    /// Whether a key that the user trusts for the skill signed it.
    pub fn is_trusted(&self, skill: &str) -> bool {
        let covers = self.signed.trusted.as_ref().is_some_and(|trusted| trusted.covers(skill));
        self.signed.checked && covers
    }

    /// Identifies the statement by its content and its key. The envelope does not matter, because
    /// anybody can change its unsigned members.
    pub fn id(&self) -> String {
        sha256_hex(format!("{}\n{}", self.signed.key_id, self.signed.statement).as_bytes())
    }

    /// Our own fields, with those that are not in [`Evaluation`].
    pub fn fields(&self) -> &Value {
        &self.signed.statement["predicate"][OWN_FIELDS]
    }
}

impl Evaluation {
    /// When the evaluation ended; `None` if it is not a time in RFC 3339.
    pub fn finished_at(&self) -> Option<Timestamp> {
        self.finished.parse().ok()
    }

    /// Why these cannot be the results of an evaluation, if so.
    pub fn validate(&self) -> Result<(), String> {
        let Self { host, judge, eval_set, harness, regressions, triggers, .. } = self;
        let judge = judge.as_ref().map(|judge| &judge.model);
        let mut texts = [&host.name, &host.version, &host.model, eval_set, harness, &self.finished]
            .into_iter()
            .chain(judge)
            .chain(regressions);
        if texts.any(|text| text.len() > MAX_EVALUATION_TEXT) {
            return Err(format!("it has a text of more than {MAX_EVALUATION_TEXT} bytes"));
        }
        if regressions.len().max(triggers.len()) > MAX_LISTED {
            return Err(format!("it has a list of more than {MAX_LISTED} items"));
        }
        if self.invalid_trials > self.all_trials {
            return Err("it has more invalid trials than trials".to_owned());
        }
        let of_triggers = triggers.iter().flat_map(|one| [one.precision, one.recall]);
        for range in of_triggers.chain([self.uplift]).flatten() {
            range.validate()?;
        }
        match self.finished_at() {
            Some(_) => Ok(()),
            None => Err("`finished` is not a time in RFC 3339".to_owned()),
        }
    }

    /// Whether two evaluations cannot both be right: one passes and one fails, or their intervals do
    /// not overlap. It may be due to their models and cases.
    pub fn disagrees_with(&self, other: &Self) -> bool {
        use EvaluationVerdict::{Fail, Pass};
        let verdicts = (self.verdict, other.verdict);
        let apart = match (self.uplift, other.uplift) {
            (Some(one), Some(other)) => one.lower > other.upper || other.lower > one.upper,
            _ => false,
        };
        apart || matches!(verdicts, (Pass, Fail) | (Fail, Pass))
    }
}

impl EvaluatedRange {
    fn validate(self) -> Result<(), String> {
        let Self { mean, lower, upper } = self;
        // Results may be rounded.
        let is_ordered = lower <= mean + 0.01 && mean <= upper + 0.01 && lower <= upper;
        if is_ordered && lower >= -100.01 && upper <= 100.01 {
            return Ok(());
        }
        Err(format!("the interval from {lower} to {upper} around {mean} is impossible"))
    }
}

/// The newest evaluation of every key that the user trusts for a skill. A later evaluation replaces
/// the earlier ones of its key; of two that ended at the same time, the one that does not pass counts.
pub fn newest_of_trusted_keys<'a>(
    evaluations: &'a [SignedEvaluation],
    skill: &str,
) -> Vec<&'a SignedEvaluation> {
    let mut newest: BTreeMap<&str, &SignedEvaluation> = BTreeMap::new();
    let rank = |one: &SignedEvaluation| {
        (one.evaluation.finished_at(), one.evaluation.verdict != EvaluationVerdict::Pass)
    };
    for one in evaluations.iter().filter(|one| one.is_trusted(skill)) {
        let known = newest.entry(&one.signed.key_id).or_insert(one);
        if rank(one) > rank(known) {
            *known = one;
        }
    }
    newest.into_values().collect()
}

/// Whether any two of some evaluations disagree.
pub fn disagree(evaluations: &[&Evaluation]) -> bool {
    let pairs = evaluations.iter().enumerate();
    pairs
        .flat_map(|(index, one)| evaluations[index + 1..].iter().map(move |other| (one, other)))
        .any(|(one, other)| one.disagrees_with(other))
}

/// The digest of a skill's files in hexadecimal digits, from the notation of a lock.
pub fn hex_digest(integrity: &str) -> Option<String> {
    let bytes = STANDARD.decode(integrity.strip_prefix("sha256-")?).ok()?;
    Some(hex(&bytes))
}

/// The name of the file in which a signed statement is stored.
pub fn file_name(signed: &Value) -> String {
    let digest = sha256_hex(signed.to_string().as_bytes());
    format!("eval-{}.json", &digest[..16])
}

/// Checks the statements in a folder about a skill whose files have this digest. If there are too
/// many, those of trusted keys are returned.
pub fn check_all(folder: &Path, integrity: &str, store: &TrustStore) -> Vec<FoundEvaluation> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    paths.truncate(MAX_EVALUATION_FILES);
    let check = |path: PathBuf| FoundEvaluation {
        outcome: match read(&path) {
            Ok(bytes) => check(&bytes, integrity, store),
            Err(error) => broken("statement_unreadable", error.to_string()),
        },
        path,
    };
    let mut found: Vec<FoundEvaluation> = paths.into_iter().map(check).collect();
    if found.len() > MAX_EVALUATIONS {
        found.sort_by_key(|one| !one.is_of_trusted_key());
        found.truncate(MAX_EVALUATIONS);
    }
    found
}

/// Checks a signed statement about a skill whose files have this digest.
pub fn check(bytes: &[u8], integrity: &str, store: &TrustStore) -> EvaluationOutcome {
    let malformed = |reason: &str| broken("statement_malformed", reason.to_owned());
    if bytes.len() as u64 > MAX_EVALUATION_BYTES {
        return malformed("it is too large");
    }
    if let Some(key) = other_member(bytes) {
        return malformed(&format!("it has the member `{}`", savoir_lint::visible(&key)));
    }
    let signed = match check_statement(bytes, store) {
        Ok(signed) => signed,
        Err(error) => return broken(error.code(), error.to_string()),
    };
    let statement = &signed.statement;
    let is = |key: &str, expected: &str| statement[key].as_str() == Some(expected);
    if !is("_type", STATEMENT_TYPE) || !is("predicateType", PREDICATE_TYPE) {
        return malformed("it is not a test-result statement");
    }
    let subjects = statement["subject"].as_array().map_or(&[][..], Vec::as_slice);
    let [subject] = subjects else {
        return malformed("it has not exactly one subject");
    };
    let digest = subject["digest"]["sha256"].as_str();
    if digest.is_none() || digest.map(str::to_owned) != hex_digest(integrity) {
        return EvaluationOutcome::OtherFiles;
    }
    let predicate = &statement["predicate"];
    let evaluation = match Evaluation::deserialize(&predicate[OWN_FIELDS]) {
        Ok(evaluation) => evaluation,
        Err(error) => return malformed(&error.to_string()),
    };
    if let Err(reason) = evaluation.validate() {
        return malformed(&reason);
    }
    let eval_set = predicate["configuration"][0]["digest"]["sha256"].as_str();
    if eval_set != Some(evaluation.eval_set.as_str()) {
        return malformed("it names two different sets of evaluations");
    }
    EvaluationOutcome::Current(Box::new(SignedEvaluation { signed, evaluation }))
}

fn broken(code: &'static str, reason: String) -> EvaluationOutcome {
    EvaluationOutcome::Broken { code, reason }
}

/// A member that is none of an envelope or a bundle. No signature of the skill covers these files and
/// no scan reads them, so they contain nothing that a model could read.
fn other_member(bytes: &[u8]) -> Option<String> {
    const ENVELOPE: [&str; 3] = ["payload", "payloadType", "signatures"];
    const BUNDLE: [&str; 3] = ["dsseEnvelope", "mediaType", "verificationMaterial"];
    let document: Value = serde_json::from_slice(bytes).ok()?;
    let (envelope, of_bundle) = match document.get("dsseEnvelope") {
        Some(envelope) => (envelope, other_key(&document, &BUNDLE)),
        None => (&document, None),
    };
    let signatures = envelope["signatures"].as_array().map_or(&[][..], Vec::as_slice);
    let of_signatures = || signatures.iter().find_map(|one| other_key(one, &["keyid", "sig"]));
    of_bundle.or_else(|| other_key(envelope, &ENVELOPE)).or_else(of_signatures)
}

fn other_key(object: &Value, known: &[&str]) -> Option<String> {
    let mut keys = object.as_object()?.keys();
    keys.find(|key| !known.contains(&key.as_str())).cloned()
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    if fs::symlink_metadata(path)?.is_symlink() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a symlink"));
    }
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(MAX_EVALUATION_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
