//! Compares installed skills with `savoir.lock`.

use std::{collections::BTreeSet, fmt, fs, path::PathBuf};

use super::{
    InstallFailure, SkillSet, Target,
    checked_skill::signature,
    deploy_for_agent,
    folder_contents::{FolderContents, same_signatures},
};
use crate::{
    SkillSummary, Store, Tree,
    lock::LockedSkill,
    parallel,
    trust::{self, Signer, Tier, TrustStore},
    untracked,
};

/// A difference between the lock and the installed or stored files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyProblem {
    pub skill: String,
    /// The folder of the skill; `None` if the problem is not in a folder.
    pub folder: Option<PathBuf>,
    pub fault: VerifyFault,
}

/// The kind of a [`VerifyProblem`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VerifyFault {
    /// The folder does not exist.
    Missing,
    /// The content of a file differs.
    Changed(String),
    /// A file does not exist.
    Gone(String),
    /// A file does not belong to the skill.
    Additional(String),
    /// The folder cannot be read as a skill folder.
    Unsupported(String),
    /// A signature is invalid.
    Signature(String),
    /// The signatures attest a lower tier than the lock.
    Tier {
        /// The tier in the lock.
        locked: Tier,
        /// The tier that the signatures attest now.
        now: Tier,
    },
    /// The skill is neither in the store nor intact in a folder, so there are no files to compare
    /// with.
    NotKept,
    /// The stored files are not a skill that could be installed.
    Unusable(String),
    /// A field of the lock differs from the skill's files.
    Lock {
        /// The name of the field in the lock.
        field: &'static str,
        /// The value in the lock.
        locked: String,
        /// The value in the files.
        kept: String,
    },
}

impl VerifyFault {
    /// A stable code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Changed(_) => "changed",
            Self::Gone(_) => "gone",
            Self::Additional(_) => "additional",
            Self::Unsupported(_) => "unsupported",
            Self::Signature(_) => "signature",
            Self::Tier { .. } => "tier",
            Self::NotKept => "not_kept",
            Self::Unusable(_) => "unusable",
            Self::Lock { .. } => "lock",
        }
    }
}

impl fmt::Display for VerifyProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |file: &str| match &self.folder {
            Some(folder) => folder.join(file).display().to_string(),
            None => format!("`{}`: {file}", self.skill),
        };
        let (folder, skill) = (at(""), &self.skill);
        let folder = folder.trim_end_matches('/');
        match &self.fault {
            VerifyFault::Missing => write!(f, "{folder} is missing"),
            VerifyFault::Changed(file) => write!(f, "{} was changed", at(file)),
            VerifyFault::Gone(file) => write!(f, "{} is missing", at(file)),
            VerifyFault::Additional(file) => write!(f, "{} does not belong to the skill", at(file)),
            VerifyFault::Unsupported(why) => {
                write!(f, "{folder} is not the folder of a skill: {why}")
            }
            VerifyFault::Signature(why) | VerifyFault::Unusable(why) => {
                write!(f, "`{skill}`: {why}")
            }
            VerifyFault::Tier { locked, now } => {
                write!(f, "`{skill}` is locked as {locked}, and its signatures attest {now}")
            }
            VerifyFault::Lock { field, locked, kept } => write!(
                f,
                "`{skill}` has {kept} for its {field}, and the lock says {locked}: it was edited; \
                 install the skill again"
            ),
            VerifyFault::NotKept => write!(f, "`{skill}` is not in the store, or is damaged there"),
        }
    }
}

impl SkillSet {
    /// Returns all differences from the lock, by skill and folder. Changes nothing.
    pub fn verify(&self, trust: &TrustStore) -> Result<Vec<VerifyProblem>, InstallFailure> {
        // A user without write permission cannot take the lock, but can still verify.
        let _held = self.lock_shared().ok();
        let state = self.read()?;
        let skills: Vec<(&String, &LockedSkill)> = state.lock.skills.iter().collect();
        let checked = parallel::map(skills, |(name, locked)| self.verify_one(name, locked, trust));
        let problems: Result<Vec<Vec<VerifyProblem>>, InstallFailure> =
            checked.into_iter().collect();
        Ok(problems?.into_iter().flatten().collect())
    }

    /// Returns files in the folders of locked skills that a running skill can see, but that neither
    /// the lock nor any signature covers: packages, environments, bytecode. They are not a problem
    /// by themselves, because programs create them when a skill is used.
    pub fn uncovered(&self) -> Result<Vec<PathBuf>, InstallFailure> {
        let _held = self.lock_shared().ok();
        let mut found = Vec::new();
        for (name, locked) in &self.read()?.lock.skills {
            for target in self.targets(name, &locked.agents)? {
                if fs::symlink_metadata(&target.folder).is_ok_and(|folder| folder.is_dir()) {
                    let folder = untracked::uncovered(&target.folder);
                    found.extend(folder.map_err(InstallFailure::io(&target.folder))?);
                }
            }
        }
        Ok(found)
    }

    fn verify_one(
        &self,
        name: &str,
        locked: &LockedSkill,
        trust: &TrustStore,
    ) -> Result<Vec<VerifyProblem>, InstallFailure> {
        let targets = self.targets(name, &locked.agents)?;
        let mut check =
            SkillVerifier { name, locked, trust, signers: Vec::new(), problems: Vec::new() };
        let kept = check.stored_files(reference_tree(&self.store(), locked, &targets)?);
        for target in &targets {
            check.folder(target, kept.as_ref())?;
        }
        if kept.is_some() {
            check.check_signatures();
        }
        Ok(check.problems)
    }
}

/// Returns the files that the lock pins: from the store, or from an installed folder with the same
/// hash. A fresh clone of a project has the folders, but nothing in the store.
fn reference_tree(
    store: &Store,
    locked: &LockedSkill,
    targets: &[Target],
) -> Result<Option<Tree>, InstallFailure> {
    if let Some(tree) = store.get(&locked.integrity)? {
        return Ok(Some(tree));
    }
    for target in targets {
        if let FolderContents::Tree(tree) = FolderContents::at(&target.folder)?
            && tree.integrity() == locked.integrity
        {
            return Ok(Some(tree));
        }
    }
    Ok(None)
}

/// Converts a list whose order does not matter to sorted strings.
fn to_texts<T: ToString>(list: &[T]) -> Vec<String> {
    let words: BTreeSet<String> = list.iter().map(ToString::to_string).collect();
    words.into_iter().collect()
}

fn quoted_list(words: &[String]) -> String {
    if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
}

struct SkillVerifier<'a> {
    name: &'a str,
    locked: &'a LockedSkill,
    trust: &'a TrustStore,
    /// The signers of all valid signatures in the stored and in the installed files.
    signers: Vec<Signer>,
    problems: Vec<VerifyProblem>,
}

impl SkillVerifier<'_> {
    fn report(&mut self, folder: Option<&Target>, fault: VerifyFault) {
        let folder = folder.map(|target| target.folder.clone());
        self.problems.push(VerifyProblem { skill: self.name.to_owned(), folder, fault });
    }

    /// Checks the files that the lock pins, and reads their summary.
    fn stored_files(&mut self, reference: Option<Tree>) -> Option<(Tree, SkillSummary)> {
        let Some(tree) = reference else {
            self.report(None, VerifyFault::NotKept);
            return None;
        };
        let summary = match SkillSummary::read(&tree, self.name) {
            Ok(summary) => summary,
            Err(error) => {
                self.report(None, VerifyFault::Unusable(error.to_string()));
                return None;
            }
        };
        match trust::verify(&tree, summary.signed_name(), summary.written_version(), self.trust) {
            Err(error) => self.report(None, VerifyFault::Signature(error.to_string())),
            Ok(attestation) => {
                let now = trust::tier(summary.dialect, summary.claimed, attestation.tier);
                self.signers.extend(attestation.signatures);
                if now < self.locked.tier {
                    self.report(None, VerifyFault::Tier { locked: self.locked.tier, now });
                }
            }
        }
        self.check_lock_fields(&summary);
        Some((tree, summary))
    }

    /// Compares the fields of the lock with the skill's files, because anyone can edit the lock.
    fn check_lock_fields(&mut self, summary: &SkillSummary) {
        let locked = self.locked;
        // If the files have no version, the registry may have assigned the locked one.
        let none = summary.version == semver::Version::new(0, 0, 0);
        let version = if none { &locked.version } else { &summary.version };
        let tier = |tier: Option<Tier>| tier.map(|tier| tier.to_string()).into_iter().collect();
        let fields: [(&'static str, Vec<String>, Vec<String>); 5] = [
            ("version", vec![locked.version.to_string()], vec![version.to_string()]),
            ("claimed", tier(locked.claimed), tier(summary.claimed)),
            ("permissions", to_texts(&locked.permissions), to_texts(&summary.permissions)),
            ("tools", to_texts(&locked.tools), to_texts(&summary.tools)),
            ("dependencies", to_texts(&locked.dependencies), to_texts(&summary.needs)),
        ];
        for (field, locked, kept) in fields {
            if locked != kept {
                let (locked, kept) = (quoted_list(&locked), quoted_list(&kept));
                self.report(None, VerifyFault::Lock { field, locked, kept });
            }
        }
    }

    /// Checks that the signer in the lock signed the files. Others may have signed the same files
    /// since. The key is compared, because the display name of its owner depends on the trusted
    /// keys of the user.
    fn check_signatures(&mut self) {
        let is_wrong = |problem: &VerifyProblem| matches!(problem.fault, VerifyFault::Signature(_));
        if self.problems.iter().any(is_wrong) {
            return;
        }
        let signers = self.signers.iter();
        let (field, locked, kept): (_, _, Vec<String>) =
            match (&self.locked.signature, &self.locked.signer) {
                (Some(locked), _) => ("signature", locked, signers.map(signature).collect()),
                // A lock that names no key can only be compared by the name of the signer.
                (None, Some(locked)) => {
                    ("signer", locked, signers.map(|one| one.publisher.clone()).collect())
                }
                (None, None) => return,
            };
        if !kept.contains(locked) {
            let (locked, kept) = (locked.clone(), quoted_list(&kept));
            self.report(None, VerifyFault::Lock { field, locked, kept });
        }
    }

    fn folder(
        &mut self,
        target: &Target,
        kept: Option<&(Tree, SkillSummary)>,
    ) -> Result<(), InstallFailure> {
        let there = match FolderContents::at(&target.folder)? {
            FolderContents::Tree(tree) => tree,
            FolderContents::Absent => {
                self.report(Some(target), VerifyFault::Missing);
                return Ok(());
            }
            FolderContents::Link(to) => {
                self.report(
                    Some(target),
                    VerifyFault::Unsupported(format!("it is a link to {}", to.display())),
                );
                return Ok(());
            }
            FolderContents::Unsupported(why) => {
                self.report(Some(target), VerifyFault::Unsupported(why));
                return Ok(());
            }
        };
        let Some((tree, summary)) = kept else {
            if there.integrity() != self.locked.integrity {
                self.report(Some(target), VerifyFault::Changed(String::new()));
            }
            return Ok(());
        };
        let expected = deploy_for_agent(tree, summary, target.agent)?.tree;
        let before = self.problems.len();
        self.compare(target, &expected, &there);
        let same = self.problems.len() == before;
        if same && !same_signatures(&expected, &there) {
            self.signature(target, summary, &there);
        }
        Ok(())
    }

    fn compare(&mut self, target: &Target, expected: &Tree, there: &Tree) {
        let (expected, there) = (expected.digests(), there.digests());
        let paths: BTreeSet<&String> = expected.keys().chain(there.keys()).collect();
        for path in paths {
            let fault = match (expected.get(path), there.get(path)) {
                (Some(one), Some(other)) if one == other => continue,
                (Some(_), Some(_)) => VerifyFault::Changed(path.clone()),
                (Some(_), None) => VerifyFault::Gone(path.clone()),
                (None, _) => VerifyFault::Additional(path.clone()),
            };
            self.report(Some(target), fault);
        }
    }

    /// Verifies the signature in a folder that differs from the stored signature.
    fn signature(&mut self, target: &Target, summary: &SkillSummary, there: &Tree) {
        match trust::verify(there, summary.signed_name(), summary.written_version(), self.trust) {
            Err(error) => self.report(Some(target), VerifyFault::Signature(error.to_string())),
            Ok(attestation) => {
                let now = trust::tier(summary.dialect, summary.claimed, attestation.tier);
                self.signers.extend(attestation.signatures);
                if now < self.locked.tier {
                    self.report(Some(target), VerifyFault::Tier { locked: self.locked.tier, now });
                }
            }
        }
    }
}
