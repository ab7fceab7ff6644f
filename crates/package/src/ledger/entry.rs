//! Describes one skill found on the machine: its locations, its origin, and whether it was
//! modified.

use std::{
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use savoir_skill::{
    Document, Source as Text, SourceError, collation, dialect::detect, limits::MAX_FILE_BYTES,
};
use thiserror::Error;

use super::{
    ClawHubOrigin, NpxOrigin, Origin, Warning, clawhub,
    files::{self, Item},
    gh, npx,
    search::SkillFolder,
    tool_ledger::is_absent,
};
use crate::{
    agents::{Agent, Scope},
    tree::{Tree, TreeError},
};

/// The length of the shortest limit of a dialect, below which the dialect need not be known.
const MIN_DESCRIPTION_LIMIT: usize = 256;

/// Accepted names of the skill file.
pub(super) const SKILL_FILES: [&str; 2] = ["SKILL.md", "skill.md"];

/// One entry of the ledger: a skill folder and the locations where agents find it. The files in the
/// folder are only read on request.
#[derive(Clone, Debug)]
pub struct LedgerEntry {
    name: String,
    path: PathBuf,
    places: Vec<SkillLocation>,
    recorded: Option<Arc<Origin>>,
}

/// A location where agents find a skill: a skill folder of an agent, and the link in it, if the
/// skill is elsewhere.
#[derive(Clone, Debug)]
pub struct SkillLocation {
    pub(super) folder: Arc<SkillFolder>,
    link: Option<PathBuf>,
}

impl SkillLocation {
    /// The skill folder of the agent.
    pub fn folder(&self) -> &Path {
        &self.folder.path
    }

    /// Whether the folder belongs to the user or to the project.
    pub fn scope(&self) -> Scope {
        self.folder.scope
    }

    /// The link to the skill, if the skill itself is elsewhere.
    pub fn link(&self) -> Option<&Path> {
        self.link.as_deref()
    }

    /// The agents that read the folder.
    pub fn agents(&self) -> impl Iterator<Item = &'static Agent> {
        self.folder.readers.iter().filter_map(|(reader, _)| Agent::ALL.get(*reader))
    }
}

/// The fields of SKILL.md, and the origin of the skill.
#[derive(Clone, Debug)]
pub struct Details {
    /// The name in SKILL.md.
    pub name: Option<String>,
    /// The description in SKILL.md.
    pub description: Option<String>,
    /// The version in SKILL.md, or the one that the installing tool recorded.
    pub version: Option<String>,
    /// The most credible origin.
    pub origin: Origin,
    /// Other origins that tool ledgers and files claim.
    pub claims: Vec<Origin>,
    /// The files that could not be read.
    pub warnings: Vec<Warning>,
}

/// An error while reading SKILL.md.
#[derive(Debug, Error)]
pub enum EntryError {
    /// The folder has no SKILL.md, so it is not a skill.
    #[error("{} has no SKILL.md", .0.display())]
    NoSkillFile(PathBuf),
    /// The operating system returned an error.
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    /// SKILL.md is not valid text.
    #[error("{}: {error}", path.display())]
    Text { path: PathBuf, error: SourceError },
}

/// Whether a skill was modified after it was installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Drift {
    Unmodified,
    Modified,
    /// It cannot be determined.
    Unknown(UnknownDrift),
}

/// The reason why it cannot be determined whether a skill was modified.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnknownDrift {
    /// No hash was recorded when the skill was installed.
    #[error("no hash was written down when it was installed")]
    NotRecorded,
    /// The lock pins the original files, but the folder may have the files converted for an agent
    /// with its own dialect.
    #[error("it may have been written in an agent's own dialect, and the lock holds the original")]
    Converted,
    /// The tool changed the skill while installing it, and recorded the hash from before.
    #[error("`gh skill` rewrote the frontmatter, so that its hash is not that of the files")]
    Rewritten,
    /// The hash depends on the sort order of a name, which is not known for certain.
    #[error("the hash depends on the order of `{}`, which is not known", .0.escape_debug())]
    Order(String),
    /// The tool left out files by ignore rules of the skill.
    #[error("the skill has rules for files that are left out of the hash")]
    LeftOut,
    /// The files could not be read.
    #[error("{0}")]
    Unreadable(String),
}

impl LedgerEntry {
    pub(super) fn new(name: String, path: PathBuf, folder: Arc<SkillFolder>) -> Self {
        Self { name, path, places: vec![SkillLocation { folder, link: None }], recorded: None }
    }

    /// An entry for a skill in a folder that no agent reads.
    pub fn lone(path: PathBuf) -> Self {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        Self { name: name.unwrap_or_default(), path, places: Vec::new(), recorded: None }
    }

    pub(super) fn new_linked(
        name: String,
        path: PathBuf,
        link: PathBuf,
        folder: Arc<SkillFolder>,
    ) -> Self {
        Self {
            name,
            path,
            places: vec![SkillLocation { folder, link: Some(link) }],
            recorded: None,
        }
    }

    pub(super) fn record(&mut self, origin: Option<Arc<Origin>>) {
        self.recorded = origin;
    }

    pub(super) fn add_link(&mut self, link: PathBuf, folder: Arc<SkillFolder>) {
        self.places.push(SkillLocation { folder, link: Some(link) });
    }

    /// The path of the skill without links, if it is in the folder of an agent.
    pub(super) fn real(&self) -> Option<PathBuf> {
        let own = self.places.iter().find(|place| place.link.is_none())?;
        own.folder.real_path(&self.path)
    }

    /// The name of the skill's folder, by which most agents and tools know it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The folder of the skill.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The locations where agents find the skill: its folder, and links to it.
    pub fn places(&self) -> &[SkillLocation] {
        &self.places
    }

    /// The agents that see the skill, each once.
    pub fn agents(&self) -> Vec<&'static Agent> {
        let readers = self.places.iter().flat_map(|place| &place.folder.readers);
        let mut readers: Vec<usize> = readers.map(|(reader, _)| *reader).collect();
        readers.sort_unstable();
        readers.dedup();
        readers.into_iter().filter_map(|reader| Agent::ALL.get(reader)).collect()
    }

    /// The origin by the tool ledgers that name the skill. If none does, only the files of the
    /// skill can show it: see [`Details::origin`].
    pub fn recorded(&self) -> Option<&Origin> {
        self.recorded.as_deref()
    }

    /// Reads SKILL.md and the files that tools wrote into the skill's folder.
    pub fn details(&self) -> Result<Details, EntryError> {
        let document = self.document()?;
        let text = |key: &str| {
            let text = document.fields()?.path(key)?.text()?;
            (!text.is_empty()).then(|| text.to_owned())
        };
        let (mut claims, warnings) = self.claimed_origins(&document);
        let origin = if claims.is_empty() { Origin::Plain } else { claims.remove(0) };
        let by_tool = match &origin {
            Origin::ClawHub(origin) => origin.version.clone(),
            _ => None,
        };
        Ok(Details {
            name: text("name"),
            description: text("description").map(|text| truncate_description(&document, text)),
            version: text("version").or_else(|| text("metadata.version")).or(by_tool),
            origin,
            claims,
            warnings,
        })
    }

    /// Returns the claimed origins, the most credible first. Data in the skill's folder is more
    /// credible than a tool ledger that only knows the name of the skill.
    fn claimed_origins(&self, document: &Document) -> (Vec<Origin>, Vec<Warning>) {
        let mut claims = Vec::new();
        let mut warnings = Vec::new();
        let recorded = self.recorded();
        if let Some(own @ Origin::Savoir { .. }) = recorded {
            claims.push(own.clone());
        }
        match clawhub::read_origin(&self.path) {
            Some(Ok(origin)) => claims.push(Origin::ClawHub(merge_recorded(origin, recorded))),
            Some(Err(warning)) => warnings.push(warning),
            None => (),
        }
        claims.extend(gh::read_origin(document).map(Origin::Gh));
        let known = |origin: &Origin| claims.iter().any(|claim| claim.word() == origin.word());
        if let Some(recorded) = recorded.filter(|recorded| !known(recorded)) {
            claims.push(recorded.clone());
        }
        (claims, warnings)
    }

    fn document(&self) -> Result<Document, EntryError> {
        for name in SKILL_FILES {
            let path = self.path.join(name);
            match read_text(&path) {
                Ok(bytes) => {
                    let text = Text::from_bytes(bytes);
                    return match text {
                        Ok(text) => Ok(Document::parse(text)),
                        Err(error) => Err(EntryError::Text { path, error }),
                    };
                }
                Err(error) if is_absent(&error) => (),
                Err(error) => return Err(EntryError::Io { path, error }),
            }
        }
        Err(EntryError::NoSkillFile(self.path.clone()))
    }

    /// Compares the files with the hash that was recorded when the skill was installed.
    pub fn drift(&self) -> Drift {
        match self.recorded() {
            Some(Origin::Savoir { integrity: Some(integrity) }) => match Tree::read(&self.path) {
                Ok(tree) => drift_if(tree.integrity() == *integrity),
                Err(error) => unreadable(&error),
            },
            Some(Origin::Savoir { integrity: None }) => Drift::Unknown(UnknownDrift::Converted),
            Some(Origin::Npx(origin)) => self.npx_drift(origin),
            Some(Origin::ClawHub(_) | Origin::Gh(_) | Origin::Plain) | None => {
                match clawhub::read_origin(&self.path) {
                    Some(Ok(origin)) => self.clawhub_drift(&origin),
                    Some(Err(warning)) => {
                        Drift::Unknown(UnknownDrift::Unreadable(warning.to_string()))
                    }
                    None if self.is_rewritten() => Drift::Unknown(UnknownDrift::Rewritten),
                    None => Drift::Unknown(UnknownDrift::NotRecorded),
                }
            }
        }
    }

    fn npx_drift(&self, origin: &NpxOrigin) -> Drift {
        let Some(hash) = &origin.hash else { return Drift::Unknown(UnknownDrift::NotRecorded) };
        let items = match files::read(&self.path) {
            Ok(items) => items,
            Err(error) => return unreadable(&error),
        };
        if npx::is_hash_of(hash, &items) {
            return Drift::Unmodified;
        }
        if self.is_rewritten() {
            return Drift::Unknown(UnknownDrift::Rewritten);
        }
        uncertain_order(&items).map_or(Drift::Modified, Drift::Unknown)
    }

    fn clawhub_drift(&self, origin: &ClawHubOrigin) -> Drift {
        let Some(fingerprint) = &origin.fingerprint else {
            return Drift::Unknown(UnknownDrift::NotRecorded);
        };
        let items = match files::read(&self.path) {
            Ok(items) => items,
            Err(error) => return unreadable(&error),
        };
        if clawhub::is_fingerprint_of(fingerprint, &items) {
            return Drift::Unmodified;
        }
        if clawhub::has_ignore_file(&items) {
            return Drift::Unknown(UnknownDrift::LeftOut);
        }
        uncertain_order(&items).map_or(Drift::Modified, Drift::Unknown)
    }

    fn is_rewritten(&self) -> bool {
        self.document().is_ok_and(|document| gh::read_origin(&document).is_some())
    }
}

/// Adds the fields of the tool ledger to the origin that was read from the skill's folder.
fn merge_recorded(mut origin: ClawHubOrigin, recorded: Option<&Origin>) -> ClawHubOrigin {
    if let Some(Origin::ClawHub(recorded)) = recorded {
        origin.pinned = recorded.pinned;
        origin.owner = origin.owner.or_else(|| recorded.owner.clone());
    }
    origin
}

fn drift_if(same: bool) -> Drift {
    if same { Drift::Unmodified } else { Drift::Modified }
}

fn unreadable(error: &TreeError) -> Drift {
    Drift::Unknown(UnknownDrift::Unreadable(error.to_string()))
}

/// Returns the first path whose position in the sort order of the tool is not certain.
fn uncertain_order(items: &[Item]) -> Option<UnknownDrift> {
    let item = items.iter().find(|item| !collation::is_order_known(&item.path))?;
    Some(UnknownDrift::Order(item.path.clone()))
}

fn read_text(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more than the limit is enough to detect a file that is too large.
    fs::File::open(path)?.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
/// The description as the system of the skill cuts it.
fn truncate_description(document: &Document, description: String) -> String {
    if description.len() <= MIN_DESCRIPTION_LIMIT {
        return description;
    }
    let found = detect(document, None);
    found.map_or_else(
        || description.clone(),
        |found| found.dialect.truncate_description(&description).to_owned(),
    )
}
