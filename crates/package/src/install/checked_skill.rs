//! Checks a fetched skill before it is installed: summary, signatures and scan.

use std::{
    path::{Component, Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use semver::Version;
use thiserror::Error;

use super::{InstallFailure, folder_contents::is_signed, real};
use crate::{
    ScanCache, SkillSummary, SummaryError, Tree,
    lock::{LockedSkill, LockedSource},
    manifest::{Revision, SkillRequirement},
    parallel,
    source::{PinnedSource, Reference},
    trust::{self, Attestation, Decision, SignatureError, Tier, TrustStore},
};
use savoir_scan::{Finding, Report, Severity, Verdict};
use savoir_skill::permission::{self, Permission};

/// A skill as fetched from its source, not checked yet.
#[derive(Clone, Debug)]
pub struct FetchedSkill {
    pub tree: Tree,
    /// The name that the source uses.
    pub called: String,
    pub source: LockedSource,
    pub why: FetchReason,
    /// The version that the registry assigned, if the skill's files have none.
    pub counted: Option<Version>,
}

/// The reason why a skill was fetched.
#[derive(Clone, Debug, PartialEq)]
pub enum FetchReason {
    /// The user or `savoir.toml` requested it with this requirement.
    Requested(SkillRequirement),
    /// It replaces the installed version.
    Update,
    /// It is only installed if another skill needs it.
    IfNeeded,
}

/// A fetched skill that passed the checks.
#[derive(Clone, Debug)]
pub struct CheckedSkill {
    pub tree: Tree,
    /// The data of its SKILL.md.
    pub summary: SkillSummary,
    pub source: LockedSource,
    pub why: FetchReason,
    /// The signers and the tier that its signatures attest.
    pub attestation: Attestation,
    /// The trust tier.
    pub tier: Tier,
    /// The findings of the scanner.
    pub report: Report,
}

/// An error for which a skill is rejected, whatever the user answers.
#[derive(Debug, Error)]
pub enum CheckError {
    /// SKILL.md is not usable.
    #[error("`{name}`: {error}")]
    SkillSummary { name: String, error: SummaryError },
    /// A signature is invalid: the files were changed after signing.
    #[error("`{name}`: {error}")]
    Signature { name: String, error: SignatureError },
}

impl FetchedSkill {
    /// Whether this is the update of an unsigned skill that changes none of its files. These were
    /// checked when they were installed, and nobody signed them since.
    pub fn is_unchanged(&self, locked: &LockedSkill) -> bool {
        self.why == FetchReason::Update
            && locked.signature.is_none()
            && !is_signed(&self.tree)
            && self.tree.integrity() == locked.integrity
    }
}

impl CheckError {
    /// A stable error code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::SkillSummary { error, .. } => error.code(),
            Self::Signature { error, .. } => error.code(),
        }
    }
}

/// Checks fetched skills. The scan takes nearly all of the time, so the reports of earlier scans are
/// reused.
#[derive(Clone, Copy, Debug)]
pub struct SkillChecker<'a> {
    pub trust: &'a TrustStore,
    pub scans: &'a ScanCache,
}

impl SkillChecker<'_> {
    /// Checks a fetched skill. Problems that the user can accept are not errors: see
    /// [`CheckedSkill::questions`] and [`CheckedSkill::refusals`].
    pub fn check(&self, fetched: FetchedSkill) -> Result<CheckedSkill, CheckError> {
        self.check_with(Tree::scan, fetched)
    }

    /// Checks many skills on all processors; returns the results in the order of `arrivals`. Calls
    /// `progress` with the number of checked skills after each of them.
    pub fn check_all(
        &self,
        arrivals: Vec<FetchedSkill>,
        progress: impl Fn(usize) + Sync,
    ) -> Vec<Result<CheckedSkill, CheckError>> {
        let here = thread::current().id();
        let checked = AtomicUsize::new(0);
        parallel::map_with_stack(savoir_scan::STACK, arrivals, |fetched| {
            // The worker threads have a stack large enough for the scanner; the calling thread may
            // not.
            let scan = if thread::current().id() == here { Tree::scan } else { Tree::scan_here };
            let ready = self.check_with(scan, fetched);
            progress(checked.fetch_add(1, Ordering::Relaxed) + 1);
            let ready = ready?;
            // Every plan needs the integrity, which is cached: compute it here in parallel.
            ready.tree.integrity();
            Ok(ready)
        })
    }

    /// Checks the data of SKILL.md and the signatures. The files are not scanned.
    pub fn check_signatures(
        &self,
        fetched: &FetchedSkill,
    ) -> Result<(SkillSummary, Attestation), CheckError> {
        let FetchedSkill { tree, called, counted, .. } = fetched;
        let summary = SkillSummary::read(tree, called)
            .and_then(SkillSummary::reject_disguised)
            .and_then(SkillSummary::reject_unsafe_name)
            .map_err(|error| CheckError::SkillSummary { name: called.clone(), error })?;
        let attestation = attested(tree, &summary, counted.as_ref(), self.trust)
            .map_err(|error| CheckError::Signature { name: summary.name.clone(), error })?;
        Ok((summary, attestation))
    }

    fn check_with(
        &self,
        scan: fn(&Tree) -> Report,
        fetched: FetchedSkill,
    ) -> Result<CheckedSkill, CheckError> {
        let (mut summary, attestation) = self.check_signatures(&fetched)?;
        let FetchedSkill { tree, source, why, counted, .. } = fetched;
        let tier = trust::tier(summary.dialect, summary.claimed, attestation.tier);
        if let Some(version) = counted.filter(|_| summary.written_version().is_empty()) {
            summary.version = version;
        }
        let report = self.scans.scan(&tree, scan);
        Ok(CheckedSkill { tree, summary, source, why, attestation, tier, report })
    }
}

/// A question that the user must answer before a skill is installed.
#[derive(Clone, Debug, PartialEq)]
pub enum InstallQuestion {
    /// The skill is unsigned or signed by no trusted key.
    Experimental,
    /// The skill requests a permission that its tier does not get without asking.
    Permission(Permission),
    /// The scanner found something that the user should review.
    Review(Vec<Finding>),
}

/// A reason why a skill should not be installed.
#[derive(Clone, Debug, PartialEq)]
pub enum InstallRefusal {
    /// The scanner found malicious behavior.
    Scan(Vec<Finding>),
}

impl CheckedSkill {
    /// Checks a fetched skill. Problems that the user can accept are not errors: see
    /// [`Self::questions`] and [`Self::refusals`].
    pub fn check(fetched: FetchedSkill, trust: &TrustStore) -> Result<Self, CheckError> {
        SkillChecker { trust, scans: &ScanCache::default() }.check(fetched)
    }

    /// Returns the decision about each requested permission.
    pub fn decisions(&self) -> Vec<(&Permission, Decision)> {
        let permissions = self.summary.permissions.iter();
        permissions
            .map(|permission| (permission, permission::decision(self.tier, permission)))
            .collect()
    }

    /// Returns the questions that the user must answer before the install.
    pub fn questions(&self) -> Vec<InstallQuestion> {
        let mut questions = Vec::new();
        if self.tier == Tier::Experimental {
            questions.push(InstallQuestion::Experimental);
        }
        let prompts = self.decisions().into_iter();
        let prompts = prompts.filter(|(_, decision)| *decision == Decision::Prompt);
        questions
            .extend(prompts.map(|(permission, _)| InstallQuestion::Permission(permission.clone())));
        if self.verdict() == Verdict::Review {
            questions.push(InstallQuestion::Review(self.findings(Severity::Medium)));
        }
        questions
    }

    /// Returns the reasons why the skill should not be installed.
    pub fn refusals(&self) -> Vec<InstallRefusal> {
        match self.verdict() {
            Verdict::Block => vec![InstallRefusal::Scan(self.findings(Severity::High))],
            Verdict::Review | Verdict::Allow => Vec::new(),
        }
    }

    fn verdict(&self) -> Verdict {
        self.report.verdict_for(self.summary.claimed.unwrap_or_default())
    }

    fn findings(&self, least: Severity) -> Vec<Finding> {
        let findings = self.report.findings.iter();
        findings.filter(|finding| finding.severity >= least).cloned().collect()
    }

    /// Returns the lock entry of the skill, without agents, which are not known yet.
    pub(super) fn locked(&self) -> LockedSkill {
        let summary = &self.summary;
        let integrity = self.tree.integrity();
        let mut locked = LockedSkill::new(summary.version.clone(), self.source.clone(), integrity);
        locked.tier = self.tier;
        locked.claimed = summary.claimed;
        locked.set_attestation(&self.attestation);
        locked.permissions.clone_from(&summary.permissions);
        locked.tools.clone_from(&summary.tools);
        locked.dependencies.clone_from(&summary.needs);
        locked
    }
}

/// Returns what the signatures of a skill attest under the keys that the user trusts. This is the
/// only source of a tier: when a skill is fetched, and each time that its lock entry is updated.
pub(super) fn attested(
    tree: &Tree,
    summary: &SkillSummary,
    counted: Option<&Version>,
    trust: &TrustStore,
) -> Result<Attestation, SignatureError> {
    let written = summary.written_version();
    // If the files have no version, the version of the registry was signed.
    let counted = counted.filter(|_| written.is_empty()).map(ToString::to_string);
    trust::attest_for_install(
        tree,
        summary.signed_name(),
        counted.as_deref().unwrap_or(written),
        trust,
    )
}

impl LockedSkill {
    /// Sets the fields that signatures attest.
    pub(super) fn set_attestation(&mut self, attestation: &Attestation) {
        let signed = attestation.signed.as_ref();
        self.attested = signed.map(|_| attestation.tier);
        self.signature = signed.map(signature);
        self.signer = signed.map(|signer| signer.publisher.clone());
    }
}

/// Formats the kind and the key of a signature as one word.
pub(super) fn signature(signer: &trust::Signer) -> String {
    let kind = signer.kind.as_str();
    if signer.key_id.starts_with(&format!("{kind}:")) {
        signer.key_id.clone()
    } else {
        format!("{kind}:{}", signer.key_id)
    }
}

/// Returns the source as a lock in the folder `root` writes it.
pub fn locked_source(place: &PinnedSource, root: &Path) -> Result<LockedSource, InstallFailure> {
    let text = match place {
        PinnedSource::Path { path, inside } => {
            let path = relative(path, root);
            PinnedSource::Path { path, inside: inside.clone() }.text(root)
        }
        other => other.text(root),
    };
    Ok(text.parse()?)
}

/// Returns the requirement with which `savoir.toml` in the folder `root` gets newer versions from
/// the same source.
pub fn requirement_for(place: &PinnedSource, root: &Path) -> SkillRequirement {
    match place {
        PinnedSource::Path { path, .. } => {
            SkillRequirement::Path(relative(path, root).display().to_string())
        }
        PinnedSource::Url { url, .. } => {
            SkillRequirement::Url { url: url.to_string(), integrity: None }
        }
        // The requirement names the site; the skill is found by its name.
        PinnedSource::WellKnown { index, .. } => {
            SkillRequirement::Url { url: index.to_string(), integrity: None }
        }
        PinnedSource::Git(git) => SkillRequirement::Git {
            url: git.url.to_string(),
            at: match &git.reference {
                None => Revision::Default,
                Some(Reference::Branch(name)) => Revision::Branch(name.clone()),
                Some(Reference::Tag(name)) => Revision::Tag(name.clone()),
                Some(Reference::Commit(commit)) => Revision::Rev(commit.to_string()),
            },
            path: Some(git.path.clone()).filter(|path| !path.is_empty()),
        },
    }
}

/// Returns a path relative to a folder, because other users have both in another place.
fn relative(path: &Path, root: &Path) -> PathBuf {
    let (path, root) = (real(path), real(root));
    let shared = path.components().zip(root.components()).take_while(|(a, b)| a == b).count();
    let up = root.components().skip(shared).map(|_| Component::ParentDir);
    let way: PathBuf = up.chain(path.components().skip(shared)).collect();
    if way.starts_with("..") { way } else { Path::new(".").join(way) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(text: &str, root: &Path) -> (String, SkillRequirement) {
        let place = PinnedSource::parse(text, root).unwrap();
        (locked_source(&place, root).unwrap().to_string(), requirement_for(&place, root))
    }

    #[test]
    fn locked_paths_are_portable() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap().join("project");
        for (path, expected) in [
            ("skills/pdf", "./skills/pdf"),
            ("../shared/pdf", "../shared/pdf"),
            ("../../pdf.zip", "../../pdf.zip"),
        ] {
            let (source, wanted) = both(&format!("path+{}/{path}", root.display()), &root);
            assert!(source.starts_with("path+.") && !source.contains("project"), "{source}");
            let SkillRequirement::Path(written) = wanted else { panic!("{wanted:?}") };
            assert_eq!(source, format!("path+{written}"));
            if !path.starts_with("..") {
                assert_eq!(written, expected);
            }
        }
    }

    #[test]
    fn only_unsigned_updates_with_the_same_files_are_unchanged() {
        let place = tempfile::tempdir().unwrap();
        let read = |signature: &str| {
            if !signature.is_empty() {
                std::fs::write(place.path().join("signature.json"), signature).unwrap();
            }
            Tree::read(place.path()).unwrap()
        };
        std::fs::write(place.path().join("SKILL.md"), "---\nname: pdf\n---\n").unwrap();
        let tree = read("");
        let source: LockedSource = "path+./pdf".parse().unwrap();
        let fetched = |tree: &Tree, why: FetchReason| FetchedSkill {
            tree: tree.clone(),
            called: "pdf".into(),
            source: source.clone(),
            why,
            counted: None,
        };
        let mut locked = LockedSkill::new(Version::new(0, 0, 0), source.clone(), tree.integrity());
        assert!(fetched(&tree, FetchReason::Update).is_unchanged(&locked));
        let asked = FetchReason::Requested(SkillRequirement::Path("./pdf".into()));
        assert!(!fetched(&tree, asked).is_unchanged(&locked));
        locked.signature = Some("savoir:key".into());
        assert!(!fetched(&tree, FetchReason::Update).is_unchanged(&locked));
        locked.signature = None;
        let signed = read("{}");
        assert_eq!(signed.integrity(), locked.integrity);
        assert!(!fetched(&signed, FetchReason::Update).is_unchanged(&locked));
        locked.integrity = "sha256-other".into();
        assert!(!fetched(&tree, FetchReason::Update).is_unchanged(&locked));
    }

    #[test]
    fn fetched_source_round_trips() {
        let root = Path::new("/nowhere");
        let commit = "0123456789abcdef0123456789abcdef01234567";
        let text = format!("git+https://host.example/o/r?tag=v1#{commit}:skills/a");
        let (source, wanted) = both(&text, root);
        assert_eq!(source, text);
        let expected = SkillRequirement::Git {
            url: "https://host.example/o/r".into(),
            at: Revision::Tag("v1".into()),
            path: Some("skills/a".into()),
        };
        assert_eq!(wanted, expected);
        let text = "well-known+https://host.example/.well-known/skills/index.json#pdf";
        let (source, wanted) = both(text, root);
        assert_eq!(source, text);
        assert!(matches!(wanted, SkillRequirement::Url { url, .. } if url.ends_with("index.json")));
    }
}
