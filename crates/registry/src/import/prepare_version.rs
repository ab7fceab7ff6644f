//! Reads skills and prepares versions that can be published.

use std::{
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};

use savoir_package::{
    Tree, archive,
    limits::MAX_ARCHIVE_BYTES,
    registry::wire::IndexLine,
    submission::{PublishOptions, Rejection, Submission},
};
use savoir_scan::Verdict;
use savoir_skill::digest::sha256_hex;
use savoir_store::registry::{PackageName, ScanResult, VersionFacts};
use semver::Version;

use super::{
    ImportPlan, ImportRefusal,
    find_skills::{ImportJob, MirroredPackage},
    scan_result::scan_result_from_report,
};

/// A version that can be published.
#[derive(Debug)]
pub(super) struct PreparedVersion {
    pub(super) path: PathBuf,
    pub(super) package: PackageName,
    /// `None` for texts, whose versions the registry assigns.
    pub(super) version: Option<Version>,
    pub(super) artefact: Vec<u8>,
    pub(super) sha256: String,
    pub(super) facts: VersionFacts,
    pub(super) submission: Submission,
    pub(super) scan: Option<ScanResult>,
    /// The index line of a mirror.
    pub(super) line: Option<IndexLine>,
}

/// Reads one job: several versions if it is a package of a mirror.
pub(super) fn read(
    job: ImportJob,
    plan: &ImportPlan,
) -> Vec<Result<PreparedVersion, ImportRefusal>> {
    match job {
        ImportJob::Folder(path) => vec![folder(&path, plan)],
        ImportJob::Archive(path) => vec![zip(&path, plan)],
        ImportJob::Text(path) => vec![text(&path, plan)],
        ImportJob::Package(MirroredPackage { root, index, versions, .. }) => {
            let one = |(number, line): (usize, IndexLine)| {
                mirrored(&root, line)
                    .map_err(|refusal| ImportRefusal {
                        line: refusal.line.or(Some(number)),
                        ..refusal
                    })
                    .map(|ready| PreparedVersion { path: index.clone(), ..ready })
            };
            versions.into_iter().map(one).collect()
        }
    }
}

fn folder(path: &Path, plan: &ImportPlan) -> Result<PreparedVersion, ImportRefusal> {
    let tree = Tree::read(path).map_err(|error| ImportRefusal::new(path, error.code(), error))?;
    // `.` has no name.
    let named = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let called = named.file_name().map(|name| name.to_string_lossy().into_owned());
    prepare_tree(path, tree, called.as_deref(), plan)
}

fn zip(path: &Path, plan: &ImportPlan) -> Result<PreparedVersion, ImportRefusal> {
    let unpacked = archive::unpack(&bytes(path)?).and_then(archive::one_skill);
    let (called, tree) = unpacked.map_err(|error| ImportRefusal::new(path, error.code(), error))?;
    prepare_tree(path, tree, called.as_deref(), plan)
}

/// Reads a text as `savoir publish` does: its name is its first heading or its file name.
fn text(path: &Path, plan: &ImportPlan) -> Result<PreparedVersion, ImportRefusal> {
    let mut tree = Tree::default();
    let file = savoir_package::File { bytes: bytes(path)?, executable: false };
    let added = tree.add("SKILL.md".to_owned(), file);
    added.map_err(|error| ImportRefusal::new(path, error.code(), error))?;
    let called = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    prepare_tree(path, tree, called.as_deref(), plan)
}

/// Packs files as `savoir publish` does.
fn prepare_tree(
    path: &Path,
    tree: Tree,
    called: Option<&str>,
    plan: &ImportPlan,
) -> Result<PreparedVersion, ImportRefusal> {
    let namespace = plan.namespace.as_ref().filter(|namespace| !namespace.is_default());
    let asked = PublishOptions {
        namespace: namespace.map(ToString::to_string),
        ..PublishOptions::default()
    };
    let refuse = |rejection: Rejection| rejected(path, &rejection);
    let submission = Submission::of_tree(tree, called, &asked).map_err(refuse)?;
    // Outside of `anon`, a skill without frontmatter is probably a mistake.
    if submission.version.is_none() && !plan.publishes_texts() {
        return Err(refuse(Rejection::Prose));
    }
    let (_, artefact) = submission.pack().map_err(refuse)?;
    let version = submission.version.clone();
    PreparedVersion::new(path, version, artefact, submission)
}

/// Checks a version of a mirror against its index.
fn mirrored(root: &Path, line: IndexLine) -> Result<PreparedVersion, ImportRefusal> {
    let path = root.join("artifacts").join(&line.sha256).join(&line.filename);
    let refuse = |code, reason: String| {
        let refusal = ImportRefusal::new(&path, code, reason);
        ImportRefusal { skill: Some(format!("{} {}", line.name, line.version)), ..refusal }
    };
    let bytes = bytes(&path).map_err(|refusal| refuse(refusal.code, refusal.reason))?;
    if sha256_hex(&bytes) != line.sha256 || bytes.len() as u64 != line.size {
        let reason = "its bytes do not match the index".to_owned();
        return Err(refuse("digest_mismatch", reason));
    }
    let read = |version: Option<String>| {
        let namespace = line.name.namespace().map(str::to_owned);
        let name = Some(line.name.last().to_owned());
        Submission::read(&bytes, &PublishOptions { namespace, name, version, skill_md: None })
    };
    // If SKILL.md has no version, the one of the index is used.
    let submission = match read(Some(line.version.to_string())) {
        Err(Rejection::CountedVersion | Rejection::VersionDiffers { .. }) => read(None),
        read => read,
    };
    let submission = submission.map_err(|rejection| {
        let found = rejected(&path, &rejection);
        refuse(found.code, found.reason)
    })?;
    if submission.integrity != line.integrity {
        let reason = "its files do not match the index".to_owned();
        return Err(refuse("integrity_mismatch", reason));
    }
    let has_version = submission.version.as_ref().is_none_or(|version| *version == line.version);
    if !has_version || submission.name != line.name {
        let reason = "its SKILL.md is for another skill or version".to_owned();
        return Err(refuse("name_mismatch", reason));
    }
    let ready = PreparedVersion::new(&path, Some(line.version.clone()), bytes, submission)?;
    Ok(PreparedVersion { line: Some(line), ..ready })
}

fn bytes(path: &Path) -> Result<Vec<u8>, ImportRefusal> {
    let fail = |error| ImportRefusal::new(path, "io", error);
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(fail)?;
    // One byte more than allowed is read, so that a larger file is refused.
    file.take(MAX_ARCHIVE_BYTES + 1).read_to_end(&mut bytes).map_err(fail)?;
    Ok(bytes)
}

/// A refusal with the place of the first finding.
fn rejected(path: &Path, rejection: &Rejection) -> ImportRefusal {
    let first = rejection.findings().first();
    let (place, line, reason) = match first {
        Some(found) if path.is_dir() => (path.join(&found.file), found.line, &found.message),
        Some(found) => (path.to_owned(), found.line, &found.message),
        None => return ImportRefusal::new(path, rejection.code(), rejection),
    };
    ImportRefusal { line: Some(line), ..ImportRefusal::new(&place, rejection.code(), reason) }
}

impl PreparedVersion {
    fn new(
        path: &Path,
        version: Option<Version>,
        artefact: Vec<u8>,
        submission: Submission,
    ) -> Result<Self, ImportRefusal> {
        let package = submission.name.to_string().parse::<PackageName>();
        let package = package.map_err(|error| ImportRefusal::new(path, error.code(), &error))?;
        let facts = crate::collect_version_facts(&submission);
        let facts = facts.map_err(|error| ImportRefusal::new(path, error.code(), &error))?;
        let sha256 = sha256_hex(&artefact);
        let path = path.to_owned();
        let (scan, line) = (None, None);
        Ok(Self { path, package, version, artefact, sha256, facts, submission, scan, line })
    }

    /// Its version; 0.0.0 for a text that has none yet.
    pub(super) fn assigned_version(&self) -> Version {
        self.version.clone().unwrap_or_else(|| Version::new(0, 0, 0))
    }

    /// The keys of valid signatures, each with its record.
    pub(super) fn signatures(&self) -> impl Iterator<Item = (&String, &String)> {
        let holding = self.submission.signatures.iter().filter(|found| found.holds);
        holding.filter_map(|found| Some((found.record.key_id.as_ref()?, &found.record.text)))
    }

    /// Scans the version. A blocked version is imported only from a mirror, because its users may have it
    /// already.
    pub(super) fn with_scan(mut self) -> Result<Self, ImportRefusal> {
        let report = self.submission.tree.scan();
        if report.verdict == Verdict::Block && self.line.is_none() {
            let worst = report.findings.iter().find(|finding| finding.blocks());
            let (file, line, why) = worst.map_or((String::new(), 1, String::new()), |finding| {
                (finding.path.clone(), finding.line, finding.message.clone())
            });
            let place = if self.path.is_dir() { self.path.join(file) } else { self.path.clone() };
            let reason = format!("the scan blocks it: {why}");
            let refusal = ImportRefusal::new(&place, "audit_blocked", reason);
            return Err(ImportRefusal { line: Some(line), ..refusal.of(&self) });
        }
        self.scan = Some(scan_result_from_report(&report));
        Ok(self)
    }
}
