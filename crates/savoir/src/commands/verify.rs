//! `savoir verify`: folders of skills, or all skills in savoir.lock.

mod locked;

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anstyle::{AnsiColor, Style};
use clap_complete::engine::ArgValueCompleter;
use savoir_engine::approval::{Trust, printable};
use savoir_package::trust::{
    self, Attestation, Difference, SignatureError, Signer, Tier, TrustStore,
    evaluation::{EvaluationOutcome, FoundEvaluation, SignedEvaluation},
};
use savoir_skill::Skill;
use serde_json::{Map, Value, json};

use crate::{
    completion,
    error::CommandError,
    evaluations,
    install_context::ScopeArgs,
    load, lookup, output,
    trust::{Keyring, SignedFolder, kind_and_key, load_skill},
};

/// Verify the signatures and files of skills
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The tier follows from trusted signatures. It is never higher than the skill claims, if its dialect
has a field for that. A skill without signatures is not an error: its tier is experimental.

Examples:
  savoir verify                          all skills in savoir.lock, file by file
  savoir verify pdf                      one skill in savoir.lock
  savoir verify my-skill
  savoir verify skills/* --json

Exit codes: 0 all signatures are valid or there are none, and every file matches savoir.lock; 1 a
file differs, or could not be checked: the skill has an error, its files cannot be those of a skill,
or gpgv is missing; 2 wrong usage or unreadable input; 3 a signature is invalid, or its key is
revoked. For several skills, the highest code is used.")]
pub(crate) struct Args {
    /// Folders or names of installed skills; without any, all skills in savoir.lock
    #[arg(value_name = "PATH|NAME", add = ArgValueCompleter::new(completion::skills_and_paths))]
    paths: Vec<PathBuf>,
    /// All skills in savoir.lock
    #[arg(long, conflicts_with = "paths")]
    all: bool,
    #[command(flatten)]
    scope: ScopeArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    if let Some(names) = names(&args.paths)
        && locked::are_locked(&args.scope, &names)?
    {
        return locked::verify(&args.scope, &names, args.json);
    }
    let store = Keyring::of_user()?.trusted()?;
    let mut worst = 0;
    let mut list = Vec::new();
    for (index, path) in args.paths.iter().enumerate() {
        let found = lookup::find(path).and_then(|path| VerifiedSkill::at(&path, &store));
        let (examined, failed) = match found {
            Ok(examined) => {
                let failed = examined.failure();
                (Some(examined), failed)
            }
            Err(error) => (None, Some(error)),
        };
        worst = worst.max(failed.as_ref().map_or(0, CommandError::exit_code));
        if args.json {
            list.push(as_json(path, examined.as_ref(), failed.as_ref()));
            continue;
        }
        let mut out = output::stdout();
        if index > 0 {
            writeln!(out)?;
        }
        if let Some(examined) = &examined {
            examined.print(&mut out, &store)?;
        }
        output::flush(out)?;
        if let Some(error) = failed {
            error.report();
        }
    }
    if args.json {
        output::json(&list)?;
    }
    Ok(ExitCode::from(worst))
}

/// The arguments as names of skills, if none of them is a path.
fn names(paths: &[PathBuf]) -> Option<Vec<String>> {
    let name = |path: &PathBuf| {
        let text = path.to_str()?;
        let is_name = !text.contains('/') && !text.starts_with('.') && !path.exists();
        is_name.then(|| text.to_owned())
    };
    paths.iter().map(name).collect()
}

/// The name and version that signatures are checked against. Without a lock, the skill states them.
struct ExpectedIdentity<'a> {
    name: &'a str,
    version: &'a str,
}

/// A skill and the result of its signature check.
struct VerifiedSkill {
    signed_folder: SignedFolder,
    outcome: Result<Attestation, SignatureError>,
    differences: Vec<Difference>,
    /// Files that a run can see and no signature covers.
    uncovered: Vec<String>,
    /// Statements about evaluations of the skill.
    evaluations: Vec<FoundEvaluation>,
}

impl VerifiedSkill {
    fn at(path: &Path, store: &TrustStore) -> Result<Self, CommandError> {
        let signed_folder = SignedFolder::read(path)?;
        let version = signed_folder.version().unwrap_or_default();
        let expected = ExpectedIdentity { name: signed_folder.name(), version };
        let outcome = trust::verify(&signed_folder.tree, expected.name, expected.version, store);
        let differences = match &outcome {
            Ok(_) => Vec::new(),
            Err(_) => trust::differences(&signed_folder.tree).unwrap_or_default(),
        };
        let uncovered = uncovered_files(&signed_folder, &outcome, store);
        let integrity = signed_folder.tree.integrity();
        let evaluations = evaluations::find(Some(&signed_folder.folder), &integrity, store);
        Ok(Self { signed_folder, outcome, differences, uncovered, evaluations })
    }

    fn skill(&self) -> &Skill {
        &self.signed_folder.loaded.reading.skill
    }

    /// Why the skill must not be used, if so.
    fn failure(&self) -> Option<CommandError> {
        // Changed files may cause other errors, so signature errors are reported first.
        let Err(error) = &self.outcome else {
            let evaluation = self.evaluations.iter().find_map(broken_evaluation);
            return evaluation.or_else(|| load::require_usable(&self.signed_folder.loaded).err());
        };
        let folder = self.signed_folder.folder.display();
        let failed = match error {
            SignatureError::Missing { .. }
            | SignatureError::Additional { .. }
            | SignatureError::Changed { .. } => {
                let count = match self.differences.len() {
                    1 => "1 file differs".to_owned(),
                    several => format!("{several} files differ"),
                };
                CommandError::refused(format!("{folder} does not match its signature: {count}"))
                    .hint("install the skill again; if it is your own, sign it again: savoir sign")
            }
            error if error.is_undecided() => CommandError::findings(format!("{folder}: {error}")),
            _ => CommandError::refused(format!("{folder}: {error}")),
        };
        Some(failed.with_code(error.code()))
    }

    /// The effective tier, as in a run.
    fn tier(&self) -> Tier {
        if !self.uncovered.is_empty() {
            return Tier::Experimental;
        }
        let attested = self.outcome.as_ref().map_or(Tier::Experimental, |outcome| outcome.tier);
        let skill = self.skill();
        trust::tier(skill.dialect, skill.policy.tier, attested)
    }

    fn print(&self, out: &mut impl Write, store: &TrustStore) -> io::Result<()> {
        let (green, red) = (AnsiColor::Green.on_default(), AnsiColor::Red.on_default());
        field(out, "skill", &self.signed_folder.title())?;
        match &self.outcome {
            Ok(attestation) => {
                let (style, state) = match (&attestation.signed, attestation.unchecked.is_empty()) {
                    (Some(_), _) => (green, "valid"),
                    (None, true) => (Style::new(), "none"),
                    (None, false) => (Style::new(), "not checked, the key is unknown"),
                };
                writeln!(out, "{:14} {style}{state}{style:#}", "signature")?;
                self.print_signers(out, attestation, store)?;
            }
            Err(error) if error.is_undecided() => field(out, "signature", "cannot be checked")?,
            Err(_) => writeln!(out, "{:14} {red}invalid{red:#}", "signature")?,
        }
        for difference in &self.differences {
            field(out, difference.as_str(), difference.path())?;
        }
        for path in &self.uncovered {
            field(out, "not covered", path)?;
        }
        if self.outcome.is_ok() {
            field(out, "tier", self.tier().as_str())?;
        }
        for found in &self.evaluations {
            field(out, "evaluated", &describe_evaluation(found, self.signed_folder.name()))?;
        }
        let files = self.signed_folder.tree.digests().len();
        field(out, "files", &output::plural(files, "file"))?;
        field(out, "integrity", &self.signed_folder.tree.integrity())
    }

    fn print_signers(
        &self,
        out: &mut impl Write,
        attestation: &Attestation,
        store: &TrustStore,
    ) -> io::Result<()> {
        for signer in &attestation.signatures {
            field(out, "signed by", &describe_signer(signer, store, self.signed_folder.name()))?;
        }
        for unchecked in &attestation.unchecked {
            let by = match &unchecked.key_id {
                Some(key_id) => format!("the unknown key {key_id}"),
                None => "an unnamed key".to_owned(),
            };
            let line = format!("{} signature by {by}", unchecked.kind);
            field(out, "not checked", &line)?;
        }
        for path in &attestation.left_out {
            field(out, "left out", &format!("{path}, not covered by the signature"))?;
        }
        field(out, "attested", attestation.tier.as_str())?;
        field(out, "claimed", self.skill().policy.tier.map_or("none", Tier::as_str))
    }
}

/// Files in the folder of a signed skill that a run can see and that are not part of the skill.
fn uncovered_files(
    signed_folder: &SignedFolder,
    outcome: &Result<Attestation, SignatureError>,
    store: &TrustStore,
) -> Vec<String> {
    let is_signed = outcome.as_ref().is_ok_and(|attestation| attestation.signed.is_some());
    // If the skill cannot be loaded for another reason, no files are listed.
    let found =
        is_signed.then(|| load_skill(&signed_folder.loaded, Trust::User, store).ok()).flatten();
    found.map(|loaded_skill| loaded_skill.signers.uncovered).unwrap_or_default()
}

/// A signer in one line.
fn describe_signer(signer: &Signer, store: &TrustStore, skill: &str) -> String {
    let Signer { key_id, publisher, role, kind, .. } = signer;
    let key = kind_and_key(*kind, key_id);
    let claim = format!("claims to be {publisher}");
    let parts: [&str; 3] = match role {
        Some(role) => [publisher, role.as_str(), &key],
        None if store.get(key_id).is_some_and(|trusted| trusted.covers(skill)) => {
            [publisher, &key, "not counted, because it does not cover all files of the skill"]
        }
        None if store.get(key_id).is_some() => [publisher, &key, "trusted for other skills only"],
        None if publisher.is_empty() => [&key, "not trusted", ""],
        None => [&key, "not trusted", &claim],
    };
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

/// An evaluation in one line. Each attester is shown by itself.
fn describe_evaluation(found: &FoundEvaluation, skill: &str) -> String {
    match &found.outcome {
        EvaluationOutcome::Current(one) => describe_current(one, skill),
        EvaluationOutcome::OtherFiles => "other files than these; evaluate it again".to_owned(),
        EvaluationOutcome::Broken { reason, .. } => format!("invalid: {reason}"),
    }
}

/// Who measured a skill, and what came out.
pub(crate) fn describe_current(one: &SignedEvaluation, skill: &str) -> String {
    let SignedEvaluation { signed, evaluation } = one;
    let key = kind_and_key(signed.kind, &signed.key_id);
    let by = match (&signed.trusted, signed.checked) {
        (_, false) => format!("not checked, {key} is unknown"),
        (Some(trusted), true) if one.is_trusted(skill) => {
            format!("by {}, {key}", trusted.publisher)
        }
        (Some(_), true) => format!("by {key}, trusted for other skills only"),
        (None, true) => format!("by {key}, not trusted"),
    };
    format!(
        "{}, uplift {}, model {}, {} trials, {by}",
        evaluation.verdict.as_str(),
        evaluations::uplift_text(evaluation),
        evaluation.host.model,
        evaluation.trials
    )
}

/// The error for a statement that was changed after it was signed.
fn broken_evaluation(found: &FoundEvaluation) -> Option<CommandError> {
    let EvaluationOutcome::Broken { code, reason } = &found.outcome else { return None };
    let message = format!("{}: {reason}", found.path.display());
    Some(CommandError::refused(message).with_code(*code).hint("remove the file, or get it again"))
}

fn evaluation_as_json(found: &FoundEvaluation) -> Value {
    match &found.outcome {
        EvaluationOutcome::Current(one) => {
            let signed = &one.signed;
            let publisher = signed.trusted.as_ref().map(|trusted| &trusted.publisher);
            json!({
                "path": found.path, "state": "current", "checked": signed.checked,
                "kind": signed.kind, "key_id": signed.key_id, "publisher": publisher,
                "evaluation": one.fields(),
            })
        }
        EvaluationOutcome::OtherFiles => json!({"path": found.path, "state": "other-files"}),
        EvaluationOutcome::Broken { code, reason } => {
            json!({"path": found.path, "state": "broken", "code": code, "message": reason})
        }
    }
}

fn field(out: &mut impl Write, label: &str, value: &str) -> io::Result<()> {
    writeln!(out, "{label:14} {}", printable(value))
}

fn as_json(path: &Path, examined: Option<&VerifiedSkill>, failed: Option<&CommandError>) -> Value {
    let mut map = Map::new();
    map.insert("path".into(), json!(path));
    map.insert("ok".into(), failed.is_none().into());
    if let Some(examined) = examined {
        let skill = examined.skill();
        let attestation = examined.outcome.as_ref().ok().cloned().unwrap_or_default();
        let differences = examined.differences.iter().map(
            |difference| json!({"path": difference.path(), "difference": difference.as_str()}),
        );
        for (name, value) in [
            ("name", json!(skill.name)),
            ("version", json!(skill.version)),
            ("signed", json!(attestation.signed)),
            ("signatures", json!(attestation.signatures)),
            ("unchecked", json!(attestation.unchecked)),
            ("left_out", json!(attestation.left_out)),
            ("attested_tier", json!(attestation.tier)),
            ("claimed_tier", json!(skill.policy.tier)),
            ("tier", json!(examined.tier())),
            ("differences", differences.collect()),
            ("not_covered", json!(examined.uncovered)),
            ("evaluations", examined.evaluations.iter().map(evaluation_as_json).collect()),
            ("files", json!(examined.signed_folder.tree.digests().len())),
            ("integrity", json!(examined.signed_folder.tree.integrity())),
        ] {
            map.insert(name.into(), value);
        }
    }
    if let Some(error) = failed {
        map.insert("error".into(), json!({"code": error.code(), "message": error.to_string()}));
    }
    map.into()
}
