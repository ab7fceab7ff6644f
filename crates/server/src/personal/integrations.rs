//! Imports the skills of integrations: folders of the operator, each with a `manifest.yaml` and
//! `skills/`.

use std::{
    collections::{BTreeSet, HashMap},
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use savoir_package::Tree;
use savoir_skill::{
    dialect::personal_agent::Provenance,
    name::slugify,
    yaml::{self, YamlVersion},
};
use savoir_store::{SkillFacts, StoreError, Timestamp, WriteError, name_of_key, owner_key};
use serde_json::Value;

use super::{
    ConflictReason, Notes, Package, ReplacedSkill, ResourceSelection, SkillToStore, SkillWriter,
    StoreSkillError, digest, from_tree,
};

/// Maximum bytes of a manifest.
const MAX_MANIFEST_BYTES: u64 = 64 * 1024;

/// The result of importing the skills of integrations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectionReport {
    /// Skills that are new or changed.
    pub kept: Vec<String>,
    /// Skills that are unchanged, or that were not stored because a user has a skill with this
    /// name.
    pub left: Vec<String>,
    /// Skills whose integration was removed.
    pub removed: Vec<String>,
    /// Errors. Each affects only its own integration or skill.
    pub broken: Vec<String>,
}

/// An integration, as described by its manifest.
struct Integration {
    folder: PathBuf,
    domain: String,
    version: String,
    /// The user id of its owner, in the format that skill files contain.
    owner: Option<String>,
}

/// The integrations that one import found. An integration that cannot be read does not count as
/// removed.
#[derive(Default)]
struct MissingIntegrations {
    /// Skills that exist, including invalid ones.
    seen: BTreeSet<String>,
    /// Integrations whose skills are all known.
    known: BTreeSet<String>,
    /// Integrations whose skills cannot be listed.
    unlisted: BTreeSet<String>,
    /// Folders whose manifest cannot be read, so that the integration is unknown.
    unread: Vec<PathBuf>,
    /// Whether there may be integrations that were not found.
    incomplete: bool,
}

impl MissingIntegrations {
    /// Whether a skill was removed for sure.
    fn was_removed(&self, id: &str) -> bool {
        let (domain, skill) = id.split_once(':').unwrap_or((id, ""));
        let is_left = self.seen.contains(id)
            || self.unlisted.contains(domain)
            || self.unread.iter().any(|folder| is_skill_allowed(folder, domain, skill));
        !is_left && (self.known.contains(domain) || !self.incomplete)
    }
}

/// Whether a folder without a readable manifest may be the integration of a skill.
fn is_skill_allowed(folder: &Path, domain: &str, skill: &str) -> bool {
    let there = fs::symlink_metadata(folder.join("skills").join(skill));
    let is_absent = there.is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    file_name(folder) == domain || !is_absent
}

/// Imports the skills of all integrations in some folders, and removes skills whose integration was
/// removed (all of them, if there are no folders). Skills that a user wrote, imported or changed
/// stay unchanged. Does nothing if another process is importing.
pub async fn project(
    skill_writer: &SkillWriter,
    folders: &[PathBuf],
) -> Result<ProjectionReport, StoreError> {
    let done = project_until(skill_writer, folders, std::future::pending()).await?;
    Ok(done.unwrap_or_default())
}

/// Like [`project`], until `stopped` completes; then any process can start the next import. Returns
/// `None` if another process is importing, or if it was stopped.
pub(crate) async fn project_until(
    skill_writer: &SkillWriter,
    folders: &[PathBuf],
    stopped: impl Future<Output = ()>,
) -> Result<Option<ProjectionReport>, StoreError> {
    let mut projected = ProjectionReport::default();
    let Some(lease) = skill_writer.database().leases().hold("integrations").await? else {
        return Ok(None);
    };
    let projecting = async {
        tokio::select! {
            done = project_all(skill_writer, folders, &mut projected) => done.map(|()| true),
            () = stopped => Ok(false),
        }
    };
    let done = lease.during(projecting).await;
    Ok(done.unwrap_or(Ok(false))?.then_some(projected))
}

async fn project_all(
    skill_writer: &SkillWriter,
    folders: &[PathBuf],
    projected: &mut ProjectionReport,
) -> Result<(), StoreError> {
    let mut sight = MissingIntegrations::default();
    for folder in folders {
        let FolderListing { folders: domains, links } = match FolderListing::of(folder) {
            Ok(inside) => inside,
            Err(error) => {
                sight.incomplete = true;
                report_broken(projected, folder, &error);
                continue;
            }
        };
        for link in links {
            report_broken(projected, &link, &SYMLINK_ERROR);
            sight.unread.push(link);
        }
        for domain in domains {
            match Integration::read(skill_writer, &domain).await? {
                Ok(integration) => integration.project(skill_writer, &mut sight, projected).await?,
                Err(why) => {
                    report_broken(projected, &domain, &why);
                    sight.unread.push(domain);
                }
            }
        }
    }
    remove_others(skill_writer, &sight, projected).await
}

fn report_broken(projected: &mut ProjectionReport, place: &Path, why: &dyn std::fmt::Display) {
    tracing::warn!(place = %place.display(), %why, "an integration is left out");
    add_broken(projected, place, why);
}

fn report_broken_skill(
    projected: &mut ProjectionReport,
    place: &Path,
    why: &dyn std::fmt::Display,
) {
    tracing::warn!(place = %place.display(), %why, "a skill of an integration is left out");
    add_broken(projected, place, why);
}

fn add_broken(projected: &mut ProjectionReport, place: &Path, why: &dyn std::fmt::Display) {
    projected.broken.push(format!("{}: {why}", place.display()));
}

/// The entries of a folder, sorted, without hidden ones.
#[derive(Default)]
struct FolderListing {
    folders: Vec<PathBuf>,
    /// Symlinks. They are not followed, and the skills that they lead to do not count as removed.
    links: Vec<PathBuf>,
}

impl FolderListing {
    fn of(folder: &Path) -> io::Result<Self> {
        let mut inside = Self::default();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with('.') {
                continue;
            }
            let kind = entry.file_type()?;
            if kind.is_dir() {
                inside.folders.push(entry.path());
            } else if kind.is_symlink() {
                inside.links.push(entry.path());
            }
        }
        inside.folders.sort();
        inside.links.sort();
        Ok(inside)
    }
}

const SYMLINK_ERROR: &str = "it is a link; put the folder itself there";

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

impl Integration {
    /// Reads the manifest of an integration. The outer error is one of the database, the inner one
    /// of the manifest.
    async fn read(
        skill_writer: &SkillWriter,
        folder: &Path,
    ) -> Result<Result<Self, String>, StoreError> {
        let fields = match manifest(&folder.join("manifest.yaml")) {
            Ok(fields) => fields,
            Err(why) => return Ok(Err(why)),
        };
        let text = |key: &str| match fields.get(key) {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Number(number)) => Some(number.to_string()),
            _ => None,
        };
        let domain = text("domain").unwrap_or_else(|| file_name(folder));
        if slugify(&domain).is_none() {
            return Ok(Err("manifest.yaml has no usable `domain`".to_owned()));
        }
        let Some(version) = text("version") else {
            return Ok(Err("manifest.yaml has no `version`".to_owned()));
        };
        let owner = match text("owner") {
            None => None,
            Some(email) => match skill_writer.database().accounts().by_email(&email).await? {
                Some((user, _)) => Some(user.id.to_string()),
                None => return Ok(Err(format!("its owner {email} has no account"))),
            },
        };
        Ok(Ok(Self { folder: folder.to_owned(), domain, version, owner }))
    }

    async fn project(
        &self,
        skill_writer: &SkillWriter,
        sight: &mut MissingIntegrations,
        projected: &mut ProjectionReport,
    ) -> Result<(), StoreError> {
        let folder = self.folder.join("skills");
        let is_absent =
            folder.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        let FolderListing { folders: skills, links } = match FolderListing::of(&folder) {
            Ok(inside) => inside,
            Err(_) if is_absent => FolderListing::default(),
            Err(error) => {
                sight.unlisted.insert(self.domain.clone());
                report_broken(projected, &folder, &error);
                return Ok(());
            }
        };
        sight.known.insert(self.domain.clone());
        for link in links {
            report_broken_skill(projected, &link, &SYMLINK_ERROR);
            sight.seen.insert(format!("{}:{}", self.domain, file_name(&link)));
        }
        for skill in skills {
            let id = format!("{}:{}", self.domain, file_name(&skill));
            // An invalid skill does not count as removed.
            sight.seen.insert(id.clone());
            let read = Tree::read(&skill).map_err(|error| error.to_string());
            let package = read.and_then(|tree| {
                let package = from_tree(Some(&file_name(&skill)), &tree, ResourceSelection::All);
                package.map_err(|error| error.to_string())
            });
            match package {
                Ok(package) => {
                    self.store_skill(skill_writer, package, id, &skill, projected).await?;
                }
                Err(why) => report_broken_skill(projected, &skill, &why),
            }
        }
        Ok(())
    }

    async fn store_skill(
        &self,
        skill_writer: &SkillWriter,
        package: Package,
        id: String,
        place: &Path,
        projected: &mut ProjectionReport,
    ) -> Result<(), StoreError> {
        let Package { name, text, resources, notes } = package;
        for note in notes {
            tracing::warn!(skill = name, note, "a skill of an integration has errors");
        }
        let fresh = SkillFacts {
            enabled: !self.was_disabled(skill_writer, &name, &id).await?,
            source: Provenance::Integration,
            source_id: Some(id),
            source_version: Some(self.version.clone()),
            digest: Some(digest(&text, &resources)),
            ..SkillFacts::authored(None, Timestamp::now())
        };
        let new = SkillToStore { name: name.clone(), text, resources, owner: self.owner.clone() };
        let settled = skill_writer.store(new, move |before| check_replaceable(before, fresh));
        match settled.await {
            Ok(_) => projected.kept.push(name),
            Err(StoreSkillError::Conflict(_) | StoreSkillError::Edited(_)) => {
                projected.left.push(name);
            }
            Err(StoreSkillError::Store(error)) => return Err(error),
            Err(error) => report_broken_skill(projected, place, &error),
        }
        Ok(())
    }

    /// Whether a user had disabled a skill of the integration before it was removed.
    async fn was_disabled(
        &self,
        skill_writer: &SkillWriter,
        name: &str,
        id: &str,
    ) -> Result<bool, StoreError> {
        let facts_of = skill_writer.database().skill_facts();
        for key in [name.to_owned(), owner_key(name, self.owner.as_deref())] {
            let was_disabled = facts_of.get(&key).await?.is_some_and(|noted| {
                let is_own = noted.source == Provenance::Integration;
                is_own && noted.source_id.as_deref() == Some(id) && !noted.enabled
            });
            if was_disabled {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The metadata of a skill of an integration, if it may replace the existing skill.
fn check_replaceable(
    before: Option<&ReplacedSkill>,
    fresh: SkillFacts,
) -> Result<SkillFacts, ConflictReason> {
    let Some(before) = before else { return Ok(fresh) };
    let was = &before.facts;
    let is_own = was.source == Provenance::Integration && was.source_id == fresh.source_id;
    let is_new = was.digest != fresh.digest || was.source_version != fresh.source_version;
    if !is_own {
        let (skill, id) = (before.file.name(), fresh.source_id.as_deref());
        tracing::warn!(skill, id, "a skill of an integration is left out: its name is taken");
        return Err(ConflictReason::There);
    }
    if !is_new {
        return Err(ConflictReason::There);
    }
    if !before.is_untouched(&fresh) {
        return Err(ConflictReason::Changed);
    }
    Ok(SkillFacts { enabled: was.enabled, pinned: was.pinned, last_used: was.last_used, ..fresh })
}

/// The digest of all current files of a skill.
async fn current_digest(
    skill_writer: &SkillWriter,
    name: &str,
) -> Result<Option<String>, StoreError> {
    let file = match skill_writer.files().read(name).await {
        Err(StoreError::Damaged { .. }) => return Ok(None),
        file => file?,
    };
    let Some(file) = file else { return Ok(None) };
    Ok(Some(digest(&file.text, &skill_writer.resources(name).await?)))
}

/// The text of a manifest. The file type is checked first, because opening a named pipe waits for a
/// writer.
fn manifest_text(path: &Path) -> io::Result<String> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let file = fs::File::open(path)?;
    let mut text = String::new();
    file.take(MAX_MANIFEST_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_MANIFEST_BYTES {
        let message = format!("it has more than {MAX_MANIFEST_BYTES} bytes");
        return Err(io::Error::other(message));
    }
    Ok(text)
}

fn manifest(path: &Path) -> Result<HashMap<String, Value>, String> {
    let text = manifest_text(path).map_err(|error| format!("manifest.yaml: {error}"))?;
    let tree = yaml::Tree::parse(&text).map_err(|error| format!("manifest.yaml: {error}"))?;
    match tree.root.map(|root| root.to_value(YamlVersion::V1_2)) {
        Some(Value::Object(fields)) => Ok(fields.into_iter().collect()),
        _ => Err("manifest.yaml is not a mapping".to_owned()),
    }
}

/// Removes skills whose integration was removed, unless a user changed them.
async fn remove_others(
    skill_writer: &SkillWriter,
    sight: &MissingIntegrations,
    projected: &mut ProjectionReport,
) -> Result<(), StoreError> {
    for (name, facts) in skill_writer.database().skill_facts().all().await? {
        let is_gone = facts.source_id.as_ref().is_none_or(|id| sight.was_removed(id));
        if facts.source != Provenance::Integration || !is_gone {
            continue;
        }
        let Some(file) = skill_writer.files().read(&name).await.ok().flatten() else { continue };
        if facts.digest != current_digest(skill_writer, &name).await? {
            continue;
        }
        // Store that a skill is disabled, so that it is still disabled when it comes back.
        let notes = if facts.enabled { Notes::Forgotten } else { Notes::Kept };
        match skill_writer.remove_with(&name, &file.version, notes).await {
            Ok(Ok(())) => projected.removed.push(name_of_key(&name).to_owned()),
            Ok(Err(WriteError::Store(error))) | Err(StoreSkillError::Store(error)) => {
                return Err(error);
            }
            // A user is changing the skill at the same time.
            Ok(Err(_)) | Err(_) => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_removed_integrations_are_missing() {
        let folder = tempfile::tempdir().unwrap();
        let unread = folder.path().join("calendar");
        fs::create_dir_all(unread.join("skills/meet")).unwrap();
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let mut sight = MissingIntegrations {
            seen: set(&["mail:inbox"]),
            known: set(&["mail", "twice"]),
            unlisted: set(&["tracker", "twice"]),
            unread: vec![unread],
            incomplete: false,
        };
        for id in ["mail:inbox", "tracker:x", "twice:x", "calendar:x", "other:meet"] {
            assert!(!sight.was_removed(id), "{id}");
        }
        for id in ["mail:outbox", "other:x"] {
            assert!(sight.was_removed(id), "{id}");
        }
        sight.incomplete = true;
        assert!(sight.was_removed("mail:outbox") && !sight.was_removed("other:x"));
    }
}
