//! Converts OpenClaw skills to GAIA skills: the whole folder, with the `tools.py` that GAIA needs.
//!
//! [`savoir_skill::convert::migrate`] maps the fields. This module migrates the other files: it
//! writes functions that call the handlers of actions, checks the result as GAIA would, and writes
//! it atomically.

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

/// What happens to an existing skill at the output path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExistingOutput {
    /// It stays, and the new skill is not written.
    #[default]
    Keep,
    /// The new skill replaces it.
    Replace,
}

/// Whether files are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    #[default]
    Write,
    /// Dry run: only the report is created.
    Try,
}

/// Which findings the report contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReportedFindings {
    /// No findings of rules; a result that GAIA would reject is not written in any case.
    #[default]
    Manifest,
    /// The findings of all rules.
    Everything,
}

/// Options of a migration.
#[derive(Clone, Debug)]
pub struct MigrateOptions {
    /// The vendor of the skills; detected if `None`.
    pub from: Option<Vendor>,
    /// The format of the fields in the result.
    pub shape: ManifestShape,
    /// A new name for the skill.
    pub name: Option<String>,
    /// Which permissions results may have.
    pub breadth: PermissionBreadth,
    /// The folder in which each result gets its own folder.
    pub output: PathBuf,
    /// What happens to existing skills.
    pub existing: ExistingOutput,
    /// Whether files are written.
    pub mode: Mode,
    /// Which findings the report contains.
    pub scrutiny: ReportedFindings,
}

impl MigrateOptions {
    /// The default options with this output folder.
    pub fn new(output: PathBuf) -> Self {
        Self {
            from: None,
            shape: ManifestShape::Nested,
            name: None,
            breadth: PermissionBreadth::Any,
            output,
            existing: ExistingOutput::Keep,
            mode: Mode::Write,
            scrutiny: ReportedFindings::Manifest,
        }
    }
}

/// The result of migrating one skill.
#[derive(Clone, Debug, Serialize)]
pub struct MigrationReport {
    /// The file that was read.
    pub source: PathBuf,
    /// The vendor of the source.
    pub vendor: Option<Vendor>,
    /// The name in GAIA.
    pub name: Option<String>,
    /// Whether the migration succeeded.
    pub migrated: bool,
    /// The folder of the result, also in a dry run.
    pub output: Option<PathBuf>,
    /// The tier that the source claims.
    pub claimed_tier: Option<String>,
    /// The tier of the result.
    pub security_tier: &'static str,
    /// The permissions of the result.
    pub permissions: Vec<Permission>,
    /// Why the skill could not be migrated.
    pub blockers: Vec<MigrationBlocker>,
    /// Notes for the user.
    pub notes: Vec<MigrationNote>,
    /// The mapping of fields.
    pub mapped: Vec<MappedField>,
    /// The findings of rules in the result, if they were requested.
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

    /// Returns the notes that the user must review before using the skill.
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
    /// A stable code for programs.
    pub code: &'static str,
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

/// A finding of a rule in the result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MigrationFinding {
    /// The code of the rule.
    pub code: &'static str,
    pub severity: Severity,
    /// The line of SKILL.md.
    pub line: usize,
    pub message: String,
}

/// Migrates skills one by one into one folder.
#[derive(Clone, Debug)]
pub struct Migrator {
    options: MigrateOptions,
    /// Used names, with the skill that got each.
    given: BTreeMap<String, PathBuf>,
}

impl Migrator {
    pub fn new(options: MigrateOptions) -> Self {
        Self { options, given: BTreeMap::new() }
    }

    /// Migrates the skill of a file. A file with another name than SKILL.md is migrated without its
    /// folder.
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

/// A skill to migrate.
struct SourceSkill {
    bytes: Vec<u8>,
    /// Its other files.
    others: Vec<(String, File)>,
    folder: Option<Folder>,
    /// The canonical path of its folder, if it has one.
    root: Option<PathBuf>,
}

impl SourceSkill {
    fn read(file: &Path, output: &Path) -> Result<Self, MigrationBlocker> {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let fail = |error| TreeError::Io { path: file.to_owned(), error };
        if !is_skill_file(&name) {
            // Opening a pipe would block until another program writes to it.
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
                format!("{} is not a file of its folder", file.display()),
            )
        })?;
        Ok(Self { bytes, others, folder: Folder::open(&root).ok(), root: Some(root) })
    }
}

/// Builds the files of the result.
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

/// Returns why GAIA would not load the result.
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
