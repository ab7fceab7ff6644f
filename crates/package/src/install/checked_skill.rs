//! Checks a fetched skill: summary, signatures and scan.

use std::{
    path::{Component, Path, PathBuf},
    thread,
};

use semver::Version;
use thiserror::Error;

use super::{InstallFailure, real};
use crate::{
    SkillSummary, SummaryError, Tree,
    lock::{LockedSkill, LockedSource},
    manifest::{Revision, SkillRequirement},
    parallel,
    source::{PinnedSource, Reference},
    trust::{self, Attestation, Decision, SignatureError, Tier, TrustStore},
};
use savoir_scan::{Finding, Report, Severity, Verdict};
use savoir_skill::permission::{self, Permission};

/// A skill as it came from its source.
#[derive(Clone, Debug)]
pub struct FetchedSkill {
    /// Its files.
    pub tree: Tree,
    /// What its source calls it.
    pub called: String,
    /// Where it came from.
    pub source: LockedSource,
    /// Why it was fetched.
    pub why: FetchReason,
    /// The version that its registry counts it as, where its files have none.
    pub counted: Option<Version>,
}

/// Why a skill was fetched.
#[derive(Clone, Debug, PartialEq)]
pub enum FetchReason {
    /// Somebody asked for it: `savoir.toml` says this.
    Requested(SkillRequirement),
    /// It takes the place of the one that is installed.
    Update,
    /// It is only taken if another one needs it.
    IfNeeded,
}

/// A skill that arrived and was checked.
#[derive(Clone, Debug)]
pub struct CheckedSkill {
    /// Its files.
    pub tree: Tree,
    /// What they say.
    pub summary: SkillSummary,
    /// Where it came from.
    pub source: LockedSource,
    /// Why it was fetched.
    pub why: FetchReason,
    /// What its signatures attest.
    pub attestation: Attestation,
    /// How far it is trusted.
    pub tier: Tier,
    /// What the scanner found.
    pub report: Report,
}

/// Why a skill is not taken, whatever anybody says.
#[derive(Debug, Error)]
pub enum CheckError {
    /// It cannot be used.
    #[error("`{name}`: {error}")]
    SkillSummary {
        /// Which skill.
        name: String,
        /// Why not.
        error: SummaryError,
    },
    /// Its signature is wrong: somebody changed it.
    #[error("`{name}`: {error}")]
    Signature {
        /// Which skill.
        name: String,
        /// What is wrong.
        error: SignatureError,
    },
}

impl CheckError {
    /// A stable word for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::SkillSummary { error, .. } => error.code(),
            Self::Signature { error, .. } => error.code(),
        }
    }
}

/// Something that a person must answer before a skill is installed.
#[derive(Clone, Debug, PartialEq)]
pub enum InstallQuestion {
    /// Nobody vouches for it.
    Experimental,
    /// It wants something that its tier does not give without asking.
    Permission(Permission),
    /// The scanner found something that a person should look at.
    Review(Vec<Finding>),
}

/// Why a skill should not be installed.
#[derive(Clone, Debug, PartialEq)]
pub enum InstallRefusal {
    /// It does what harmful ones do.
    Scan(Vec<Finding>),
}

impl CheckedSkill {
    /// Checks what arrived. What can be asked about is no error.
    pub fn check(fetched: FetchedSkill, trust: &TrustStore) -> Result<Self, CheckError> {
        Self::check_with(Tree::scan, fetched, trust)
    }

    /// Checks many on all processors; the results are in the order of the arrivals.
    pub fn check_all(
        arrivals: Vec<FetchedSkill>,
        trust: &TrustStore,
    ) -> Vec<Result<Self, CheckError>> {
        let here = thread::current().id();
        parallel::map_with_stack(savoir_scan::STACK, arrivals, |fetched| {
            // The threads have the stack of a scanner; this one may not.
            let scan = if thread::current().id() == here { Tree::scan } else { Tree::scan_here };
            let ready = Self::check_with(scan, fetched, trust)?;
            // Every plan asks for it: it is worked out here, where all processors help.
            ready.tree.integrity();
            Ok(ready)
        })
    }

    fn check_with(
        scan: fn(&Tree) -> Report,
        fetched: FetchedSkill,
        trust: &TrustStore,
    ) -> Result<Self, CheckError> {
        let FetchedSkill { tree, called, source, why, counted } = fetched;
        let mut summary = SkillSummary::read(&tree, &called)
            .and_then(SkillSummary::undisguised)
            .map_err(|error| CheckError::SkillSummary { name: called.clone(), error })?;
        let attestation = attested(&tree, &summary, counted.as_ref(), trust)
            .map_err(|error| CheckError::Signature { name: summary.name.clone(), error })?;
        let tier = trust::tier(summary.dialect, summary.claimed, attestation.tier);
        if let Some(version) = counted.filter(|_| summary.written_version().is_empty()) {
            summary.version = version;
        }
        let report = scan(&tree);
        Ok(Self { tree, summary, source, why, attestation, tier, report })
    }

    /// What becomes of each permission that it asks for.
    pub fn decisions(&self) -> Vec<(&Permission, Decision)> {
        let permissions = self.summary.permissions.iter();
        permissions.map(|wish| (wish, permission::decision(self.tier, wish))).collect()
    }

    /// What a person must answer first.
    pub fn questions(&self) -> Vec<InstallQuestion> {
        let mut questions = Vec::new();
        if self.tier == Tier::Experimental {
            questions.push(InstallQuestion::Experimental);
        }
        let prompts = self.decisions().into_iter();
        let prompts = prompts.filter(|(_, decision)| *decision == Decision::Prompt);
        questions.extend(prompts.map(|(wish, _)| InstallQuestion::Permission(wish.clone())));
        if self.verdict() == Verdict::Review {
            questions.push(InstallQuestion::Review(self.findings(Severity::Medium)));
        }
        questions
    }

    /// Why it should not be installed.
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

    /// What a lock says about it; the agents are not known yet.
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

/// What the signatures of a skill attest under the keys that the user trusts. This is the only source
/// of a tier: when a skill arrives, and each time that its lock is brought up to date.
pub(super) fn attested(
    tree: &Tree,
    summary: &SkillSummary,
    counted: Option<&Version>,
    trust: &TrustStore,
) -> Result<Attestation, SignatureError> {
    let written = summary.written_version();
    // Where a file has no version, the one of its registry was signed.
    let counted = counted.filter(|_| written.is_empty()).map(ToString::to_string);
    trust::attest(tree, summary.signed_name(), counted.as_deref().unwrap_or(written), trust)
}

impl LockedSkill {
    /// Writes down what signatures attest.
    pub(super) fn set_attestation(&mut self, attestation: &Attestation) {
        let signed = attestation.signed.as_ref();
        self.attested = signed.map(|_| attestation.tier);
        self.signature = signed.map(signature);
        self.signer = signed.map(|signer| signer.publisher.clone());
    }
}

/// A signature in one word.
pub(super) fn signature(signer: &trust::Signer) -> String {
    let kind = signer.kind.as_str();
    if signer.key_id.starts_with(&format!("{kind}:")) {
        signer.key_id.clone()
    } else {
        format!("{kind}:{}", signer.key_id)
    }
}

/// What a lock in the folder `root` writes down for a place.
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

/// What `savoir.toml` in the folder `root` says to get a newer one from the same place.
pub fn requirement_for(place: &PinnedSource, root: &Path) -> SkillRequirement {
    match place {
        PinnedSource::Path { path, .. } => {
            SkillRequirement::Path(relative(path, root).display().to_string())
        }
        PinnedSource::Url { url, .. } => {
            SkillRequirement::Url { url: url.to_string(), integrity: None }
        }
        // The skill of the site is the one of this name.
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

/// The way from a folder to a path: others have both elsewhere.
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
    fn paths_are_those_of_everyone() {
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
    fn what_was_fetched_is_found_again() {
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
