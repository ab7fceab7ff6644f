//! Signed statements about who measured a skill, and what came out.
//!
//! A statement of in-toto (`test-result`) has the digest of the skill's files as its subject, so an
//! edited skill loses it. Our own fields are in one namespaced member. Statements are stored in
//! `.savoir/attestations/` of the skill's folder, which is not a part of the skill.

use std::{
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use savoir_package::{
    Tree,
    trust::{SignedStatement, StatementError, TrustStore, check_statement},
};
use savoir_skill::digest::{hex, sha256_hex};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    analyze::SEED,
    gate::Gate,
    limits::{MAX_ATTESTATION_BYTES, MAX_ATTESTATIONS},
    results::{JudgeRecord, Results, SandboxRecord, TrialOutcome},
    stats::{Interval, SignTest, Verdict},
    trace::{Arm, HostRecord},
    trigger::TriggerResult,
};

/// The folder of the statements about a skill.
pub const FOLDER: &str = ".savoir/attestations";
const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
const PREDICATE_TYPE: &str = "https://in-toto.io/attestation/test-result/v0.1";
/// The member of the predicate with our own fields.
const OWN_FIELDS: &str = "savoir.dev/eval/v1";

/// The measured facts of a statement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttestedEval {
    pub harness: String,
    pub host: HostRecord,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<JudgeRecord>,
    pub sandbox: SandboxRecord,
    /// The SHA-256 over the cases and trigger queries.
    pub eval_set: String,
    pub trials: u32,
    pub all_trials: usize,
    pub invalid_trials: usize,
    pub verdict: Verdict,
    pub gate: Gate,
    /// In percentage points.
    pub uplift: Option<Interval>,
    pub sign_test: SignTest,
    /// When the skill is used, for each size of the catalogue.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<AttestedTriggers>,
    /// The digest of the version that it was compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
    /// Cases that the skill makes worse.
    #[serde(default)]
    pub regressions: Vec<String>,
    /// The seed of the simulations.
    #[serde(default)]
    pub seed: u64,
    pub finished: String,
}

/// Precision and recall among some skills.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttestedTriggers {
    pub catalogue: usize,
    pub queries: usize,
    pub precision: Option<Interval>,
    pub recall: Option<Interval>,
}

/// A statement about a skill that was found.
#[derive(Clone, Debug)]
pub struct FoundAttestation {
    pub path: PathBuf,
    pub outcome: AttestationOutcome,
}

/// Whether a statement is about the skill as it is now.
#[derive(Clone, Debug)]
pub enum AttestationOutcome {
    /// It is about these files.
    Current(Box<SignedStatement>, Box<AttestedEval>),
    /// It is about other files: the skill was edited, or it is another skill.
    OtherFiles,
    /// It cannot be read, or its signature is wrong.
    Broken { code: &'static str, reason: String },
}

/// The digest of a skill's files in hexadecimal digits, from the notation of a lock.
fn hex_digest(integrity: &str) -> Option<String> {
    let bytes = STANDARD.decode(integrity.strip_prefix("sha256-")?).ok()?;
    Some(hex(&bytes))
}

/// The statement about the results of an evaluation; `None` if they name no digest.
pub fn statement(results: &Results) -> Option<Value> {
    let skill = &results.skill;
    let name = match &skill.version {
        Some(version) => format!("{}@{version}", skill.name),
        None => skill.name.clone(),
    };
    let main = results.main();
    let conclusion = &results.conclusion;
    let (mut passed, mut warned, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    for case in &results.cases {
        let trials = case.arms.get(&Arm::WithSkill).map_or(&[][..], Vec::as_slice);
        let all = |outcome| trials.iter().all(|trial| trial.outcome == outcome);
        let list = if all(TrialOutcome::Passed) {
            &mut passed
        } else if all(TrialOutcome::Failed) {
            &mut failed
        } else {
            &mut warned
        };
        list.push(case.id.clone());
    }
    let own = AttestedEval {
        harness: results.harness.clone(),
        host: results.host.clone(),
        judge: results.judge.clone(),
        sandbox: results.sandbox.clone(),
        eval_set: results.eval_set.digest.clone(),
        trials: results.trials,
        all_trials: conclusion.all_trials,
        invalid_trials: conclusion.invalid_trials,
        verdict: conclusion.verdict,
        gate: conclusion.gate,
        uplift: main.and_then(|main| main.uplift),
        sign_test: main.map(|main| main.sign_test).unwrap_or_default(),
        triggers: results.triggers.iter().map(attested_triggers).collect(),
        previous: results.previous.as_ref().map(|previous| previous.integrity.clone()),
        regressions: main.map(|main| main.regressions.clone()).unwrap_or_default(),
        seed: SEED,
        finished: results.finished.clone(),
    };
    let result = match conclusion.verdict {
        Verdict::Pass => "PASSED",
        Verdict::Underpowered => "WARNED",
        Verdict::Fail => "FAILED",
    };
    Some(json!({
        "_type": STATEMENT_TYPE,
        "subject": [{"name": name, "digest": {"sha256": hex_digest(&skill.integrity)?}}],
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "result": result,
            "configuration": [
                {"name": "evaluations", "digest": {"sha256": results.eval_set.digest}},
            ],
            "passedTests": passed,
            "warnedTests": warned,
            "failedTests": failed,
            OWN_FIELDS: own,
        },
    }))
}

fn attested_triggers(one: &TriggerResult) -> AttestedTriggers {
    AttestedTriggers {
        catalogue: one.catalogue,
        queries: one.queries.len(),
        precision: one.precision,
        recall: one.recall,
    }
}

/// Where a signed statement is stored.
pub fn path_of(skill: &Path, signed: &Value) -> PathBuf {
    let digest = sha256_hex(signed.to_string().as_bytes());
    skill.join(FOLDER).join(format!("eval-{}.json", &digest[..16]))
}

/// Checks all statements in the folder of a skill whose files have this digest.
pub fn check_all(skill: &Path, integrity: &str, store: &TrustStore) -> Vec<FoundAttestation> {
    let Ok(entries) = fs::read_dir(skill.join(FOLDER)) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    paths.truncate(MAX_ATTESTATIONS);
    let check = |path: PathBuf| FoundAttestation { outcome: check(&path, integrity, store), path };
    paths.into_iter().map(check).collect()
}

/// Checks the statements among the files of a skill.
pub fn check_tree(tree: &Tree, store: &TrustStore) -> Vec<AttestationOutcome> {
    let prefix = format!("{FOLDER}/");
    let statements = tree.files().filter(|(path, _)| path.starts_with(&prefix));
    let integrity = tree.integrity();
    let statements = statements.take(MAX_ATTESTATIONS);
    statements.map(|(_, file)| check_bytes(&file.bytes, &integrity, store)).collect()
}

/// Whether a key that the user trusts signed a passing evaluation of these files.
pub fn is_proven<'a>(outcomes: impl IntoIterator<Item = &'a AttestationOutcome>) -> bool {
    outcomes.into_iter().any(|outcome| match outcome {
        AttestationOutcome::Current(signed, eval) => {
            signed.checked && signed.publisher.is_some() && eval.verdict == Verdict::Pass
        }
        _ => false,
    })
}

fn check(path: &Path, integrity: &str, store: &TrustStore) -> AttestationOutcome {
    match read(path) {
        Ok(bytes) => check_bytes(&bytes, integrity, store),
        Err(error) => {
            AttestationOutcome::Broken { code: "statement_unreadable", reason: error.to_string() }
        }
    }
}

fn check_bytes(bytes: &[u8], integrity: &str, store: &TrustStore) -> AttestationOutcome {
    let broken = |code, reason: String| AttestationOutcome::Broken { code, reason };
    if let Some(key) = other_member(bytes) {
        let reason = format!("it has the member `{}`", savoir_lint::visible(&key));
        return broken("statement_malformed", reason);
    }
    let signed = match check_statement(bytes, store) {
        Ok(signed) => signed,
        Err(error) => {
            let error: StatementError = error;
            return broken(error.code(), error.to_string());
        }
    };
    let statement = &signed.statement;
    let is = |key: &str, expected: &str| statement[key].as_str() == Some(expected);
    if !is("_type", STATEMENT_TYPE) || !is("predicateType", PREDICATE_TYPE) {
        let reason = "it is not a test-result statement".to_owned();
        return broken("statement_malformed", reason);
    }
    let subjects = statement["subject"].as_array().map_or(&[][..], Vec::as_slice);
    let [subject] = subjects else {
        return broken("statement_malformed", "it has not exactly one subject".to_owned());
    };
    let digest = subject["digest"]["sha256"].as_str();
    if digest.is_none() || digest.map(str::to_owned) != hex_digest(integrity) {
        return AttestationOutcome::OtherFiles;
    }
    let predicate = &statement["predicate"];
    match AttestedEval::deserialize(&predicate[OWN_FIELDS]) {
        Ok(eval)
            if predicate["configuration"][0]["digest"]["sha256"].as_str()
                != Some(eval.eval_set.as_str()) =>
        {
            let reason = "it names two different sets of evaluations".to_owned();
            broken("statement_malformed", reason)
        }
        Ok(eval) => AttestationOutcome::Current(Box::new(signed), Box::new(eval)),
        Err(error) => broken("statement_malformed", error.to_string()),
    }
}

/// A member that is none of an envelope or a bundle. No signature of the skill covers these files and
/// no scan reads them, so they contain nothing that a model could read.
fn other_member(bytes: &[u8]) -> Option<String> {
    const MEMBERS: [&str; 6] = [
        "payload", "payloadType", "signatures", "dsseEnvelope", "mediaType", "verificationMaterial",
    ];
    let document: serde_json::Map<String, Value> = serde_json::from_slice(bytes).ok()?;
    document.into_iter().map(|(key, _)| key).find(|key| !MEMBERS.contains(&key.as_str()))
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    if fs::symlink_metadata(path)?.is_symlink() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a symlink"));
    }
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(MAX_ATTESTATION_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_ATTESTATION_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is too large"));
    }
    Ok(bytes)
}
