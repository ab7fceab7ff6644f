//! Skills of OpenClaw as skills of GAIA: the whole folder, with the `tools.py` that it needs.
//!
//! The fields are mapped by [`savoir_skill::convert::migrate`]. Here the files come along: the
//! handlers of actions get functions that call them, the result is checked as GAIA would check it,
//! and it appears whole or not at all.

mod handler;
mod output;
mod wrapper;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use savoir_skill::{
    Dialect, Folder, Severity, Source,
    check::{self, CheckedSkill},
    convert::migrate::{
        self as fields, MappedField, Migration, MigrationNote, MigrationRequest, PermissionBreadth,
        Vendor,
    },
    dialect::gaia::ManifestShape,
    folder::is_skill_file,
    permission::{Permission, Tier},
    python::{self, TOOLS_FILE},
    read,
};
use serde::Serialize;

use crate::{
    File, Tree, TreeError,
    tree::{SIGNATURE_FILES, read_file},
};

use output::StagedSkill;

const SKILL_FILE: &str = "SKILL.md";

/// What becomes of a skill that is there already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExistingOutput {
    /// It stays, and the new one is not written.
    #[default]
    Stays,
    /// The new one takes its place.
    Goes,
}

/// Whether anything is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Yes.
    #[default]
    Write,
    /// No: only the report is made.
    Try,
}

/// Which findings a report has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReportedFindings {
    /// None: what GAIA itself would refuse is not written anyway.
    #[default]
    Manifest,
    /// Those of every rule.
    Everything,
}

/// How skills are migrated.
#[derive(Clone, Debug)]
pub struct MigrateOptions {
    /// Whose skills they are; found out when nobody says.
    pub from: Option<Vendor>,
    /// Where the results keep their fields.
    pub shape: ManifestShape,
    /// The name of the result, instead of the one it has.
    pub name: Option<String>,
    /// Which permissions results may have.
    pub breadth: PermissionBreadth,
    /// The folder in which each result gets a folder of its own.
    pub output: PathBuf,
    /// What becomes of a skill that is there already.
    pub existing: ExistingOutput,
    /// Whether anything is written.
    pub mode: Mode,
    /// Which findings the report has.
    pub scrutiny: ReportedFindings,
}

impl MigrateOptions {
    /// The usual way into a folder.
    pub fn new(output: PathBuf) -> Self {
        Self {
            from: None,
            shape: ManifestShape::Nested,
            name: None,
            breadth: PermissionBreadth::Any,
            output,
            existing: ExistingOutput::Stays,
            mode: Mode::Write,
            scrutiny: ReportedFindings::Manifest,
        }
    }
}

/// What happened to one skill.
#[derive(Clone, Debug, Serialize)]
pub struct MigrationReport {
    /// The file that was read.
    pub source: PathBuf,
    /// Whose skill it was.
    pub vendor: Option<Vendor>,
    /// Its name in GAIA.
    pub name: Option<String>,
    /// Whether there is a result.
    pub migrated: bool,
    /// The folder of the result, also when nothing was to be written.
    pub output: Option<PathBuf>,
    /// The tier that the source claims.
    pub claimed_tier: Option<String>,
    /// The tier of the result.
    pub security_tier: &'static str,
    /// What the result may do.
    pub permissions: Vec<Permission>,
    /// Why there is no result.
    pub blockers: Vec<MigrationBlocker>,
    /// What a person should know or look at.
    pub notes: Vec<MigrationNote>,
    /// Which field became which.
    pub mapped: Vec<MappedField>,
    /// What the rules say about the result, when that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub findings: Option<Vec<MigrationFinding>>,
}

impl MigrationReport {
    fn new(source: &Path) -> Self {
        Self {
            source: source.to_owned(),
            vendor: None,
            name: None,
            migrated: false,
            output: None,
            claimed_tier: None,
            security_tier: Tier::Experimental.as_str(),
            permissions: Vec::new(),
            blockers: Vec::new(),
            notes: Vec::new(),
            mapped: Vec::new(),
            findings: None,
        }
    }

    /// What a person must look at before the skill is used.
    pub fn reviews(&self) -> impl Iterator<Item = &MigrationNote> {
        self.notes.iter().filter(|note| note.review)
    }

    /// Whether a rule found an error in the result.
    pub fn has_errors(&self) -> bool {
        let mut found = self.findings.iter().flatten();
        found.any(|finding| finding.severity == Severity::Error)
    }
}

/// Why a skill was not migrated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MigrationBlocker {
    /// A stable word for programs.
    pub code: &'static str,
    /// In words.
    pub message: String,
}

impl MigrationBlocker {
    fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

impl From<&fields::MigrationBlocker> for MigrationBlocker {
    fn from(blocker: &fields::MigrationBlocker) -> Self {
        Self::new(blocker.code(), blocker.to_string())
    }
}

impl From<TreeError> for MigrationBlocker {
    fn from(error: TreeError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

/// Something that a rule says about a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MigrationFinding {
    /// The rule.
    pub code: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// The line of SKILL.md.
    pub line: usize,
    /// In words.
    pub message: String,
}

/// Migrates skills one by one into one folder.
#[derive(Clone, Debug)]
pub struct Migrator {
    options: MigrateOptions,
    /// Names that were given, and to which skill.
    given: BTreeMap<String, PathBuf>,
}

impl Migrator {
    /// One that has migrated nothing yet.
    pub fn new(options: MigrateOptions) -> Self {
        Self { options, given: BTreeMap::new() }
    }

    /// Migrates the skill of a file; one that is not called SKILL.md stands alone.
    pub fn migrate(&mut self, file: &Path) -> MigrationReport {
        let mut report = MigrationReport::new(file);
        match self.try_migrate(file, &mut report) {
            Ok(()) => report.migrated = true,
            Err(blockers) => report.blockers = blockers,
        }
        report
    }

    fn try_migrate(
        &mut self,
        file: &Path,
        report: &mut MigrationReport,
    ) -> Result<(), Vec<MigrationBlocker>> {
        let skill = SourceSkill::read(file, &self.options.output).map_err(|one| vec![one])?;
        let migration = self.fields(&skill)?;
        let target = self.options.output.join(&migration.name);
        report.vendor = Some(migration.vendor);
        report.name = Some(migration.name.clone());
        report.output = Some(target.clone());
        report.claimed_tier.clone_from(&migration.claimed_tier);
        report.permissions.clone_from(&migration.permissions);
        report.mapped.clone_from(&migration.mapped);
        report.notes.clone_from(&migration.notes);
        self.finish(&skill, &migration, &target, report).map_err(|one| vec![one])?;
        self.given.insert(migration.name, file.to_owned());
        Ok(())
    }

    fn fields(&self, skill: &SourceSkill) -> Result<Migration, Vec<MigrationBlocker>> {
        let unreadable = |error: savoir_skill::SourceError| {
            vec![MigrationBlocker::new("unreadable", error.to_string())]
        };
        let source = Source::from_bytes(skill.bytes.clone()).map_err(unreadable)?;
        let request = MigrationRequest {
            from: self.options.from,
            shape: self.options.shape,
            name: self.options.name.as_deref(),
            breadth: self.options.breadth,
        };
        let reading = read(source, skill.folder.as_ref());
        fields::migrate(&reading, skill.folder.as_ref(), &request)
            .map_err(|blockers| blockers.iter().map(MigrationBlocker::from).collect())
    }

    fn finish(
        &self,
        skill: &SourceSkill,
        migration: &Migration,
        target: &Path,
        report: &mut MigrationReport,
    ) -> Result<(), MigrationBlocker> {
        if let Some(other) = self.given.get(&migration.name) {
            let message = format!("`{}` is the name of {}, too", migration.name, other.display());
            return Err(MigrationBlocker::new("name_taken", message));
        }
        if self.options.mode == Mode::Write {
            output::check_target(target, skill.root.as_deref(), self.options.existing)?;
        }
        let tree = tree(skill, migration, &mut report.notes)?;
        let staged = match self.options.mode {
            Mode::Write => StagedSkill::write_beside(&tree, target)?,
            Mode::Try => StagedSkill::write_to_temp(&tree, &migration.name)?,
        };
        let checked = check_skill(&tree, staged.folder())?;
        if self.options.scrutiny == ReportedFindings::Everything {
            report.findings = Some(findings(&checked));
        }
        if let Some(problem) = invalid_reason(&checked, &tree) {
            return Err(MigrationBlocker::new("invalid_result", problem));
        }
        match self.options.mode {
            Mode::Write => staged.move_to(target),
            Mode::Try => Ok(()),
        }
    }
}

/// A skill that is to be migrated.
struct SourceSkill {
    bytes: Vec<u8>,
    /// Its other files.
    others: Vec<(String, File)>,
    folder: Option<Folder>,
    /// The real place of its folder, when it has one.
    root: Option<PathBuf>,
}

impl SourceSkill {
    fn read(file: &Path, output: &Path) -> Result<Self, MigrationBlocker> {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let fail = |error| TreeError::Io { path: file.to_owned(), error };
        if !is_skill_file(&name) {
            // Opening a pipe would wait for someone to write into it.
            if !fs::metadata(file).map_err(fail)?.is_file() {
                return Err(TreeError::Special(name).into());
            }
            let bytes = read_file(file)?.bytes;
            return Ok(Self { bytes, others: Vec::new(), folder: None, root: None });
        }
        let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        let root = parent.canonicalize().map_err(fail)?;
        if output::is_inside(output, &root) {
            let message = format!("{} lies inside the skill", output.display());
            return Err(MigrationBlocker::new("output_inside", message));
        }
        let mut others: Vec<(String, File)> = Tree::read(&root)?.into_files().collect();
        let own = others.iter().position(|(path, _)| *path == name);
        let own = own.map(|index| others.remove(index));
        let (_, File { bytes, .. }) = own.ok_or_else(|| {
            MigrationBlocker::new(
                "unreadable",
                format!("{} is no file of its folder", file.display()),
            )
        })?;
        Ok(Self { bytes, others, folder: Folder::open(&root).ok(), root: Some(root) })
    }
}

/// The files of the result.
fn tree(
    skill: &SourceSkill,
    migration: &Migration,
    notes: &mut Vec<MigrationNote>,
) -> Result<Tree, MigrationBlocker> {
    let mut tree = Tree::default();
    let text = File { bytes: migration.text.clone().into_bytes(), executable: false };
    tree.add(SKILL_FILE.to_owned(), text)?;
    let has_tools = !migration.tools.is_empty();
    let moved = has_tools.then(|| handler::moved_tools(&skill.others)).flatten();
    for (path, file) in &skill.others {
        if SIGNATURE_FILES.contains(&path.as_str()) {
            let message = "left out: it signs the source, not the result";
            notes.push(MigrationNote::review(path.as_str(), message));
            continue;
        }
        match &moved {
            Some((from, to)) if from == path => {
                let message = format!(
                    "it is `{to}` now, because GAIA's functions are in `{TOOLS_FILE}`; see whether another file imports it"
                );
                notes.push(MigrationNote::review(path.as_str(), message));
                tree.add(to.clone(), file.clone())?;
            }
            _ => tree.add(path.clone(), file.clone())?,
        }
    }
    if has_tools {
        let calls = handler::resolve(&migration.tools, &tree, moved.as_ref(), notes)?;
        let bytes = wrapper::write(&calls).into_bytes();
        tree.add(TOOLS_FILE.to_owned(), File { bytes, executable: false })?;
    }
    Ok(tree)
}

fn check_skill(tree: &Tree, folder: &Path) -> Result<CheckedSkill, MigrationBlocker> {
    let unreadable = |why: String| MigrationBlocker::new("invalid_result", why);
    let bytes = tree.get(SKILL_FILE).map(|file| file.bytes.clone()).unwrap_or_default();
    let source = Source::from_bytes(bytes).map_err(|error| unreadable(error.to_string()))?;
    let folder = Folder::open(folder).map_err(|error| unreadable(error.to_string()))?;
    let options = check::Options { dialect: Some(Dialect::GAIA), ..check::Options::default() };
    Ok(check::check(source, Some(&folder), &options))
}

/// Why GAIA would not load a result.
fn invalid_reason(checked: &CheckedSkill, tree: &Tree) -> Option<String> {
    if let Some(problem) = checked.reading.error() {
        return Some(problem.message.clone());
    }
    if checked.reading.skill.tools.is_empty() {
        return None;
    }
    let file = tree.get(TOOLS_FILE)?;
    match python::parse_bytes(&file.bytes) {
        Err(error) => Some(format!("`{TOOLS_FILE}` does not read: {error}")),
        Ok(module) => {
            let mismatches =
                python::compare_tools(&python::declarations(&checked.reading), &module);
            mismatches.first().map(ToString::to_string)
        }
    }
}

fn findings(checked: &CheckedSkill) -> Vec<MigrationFinding> {
    let source = checked.reading.document.source();
    let found = checked.diagnostics.iter().map(|found| MigrationFinding {
        code: found.code,
        severity: found.severity,
        line: source.position(found.span.start).line,
        message: found.message.clone(),
    });
    found.collect()
}
