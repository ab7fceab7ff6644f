//! A skill found on the machine.

use std::{
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use savoir_skill::{Document, Source as Text, SourceError, limits::MAX_FILE_BYTES};
use thiserror::Error;

use super::{
    ClawHub, Npx, Origin, Warning,
    book::is_absent,
    clawhub,
    files::{self, Item},
    gh, npx, order,
    search::Folder,
};
use crate::{
    agents::{Agent, Scope},
    tree::{Tree, TreeError},
};

/// Names that the file of a skill has.
pub(super) const SKILL_FILES: [&str; 2] = ["SKILL.md", "skill.md"];

/// A skill on the machine. Its folder was seen; nothing in it was read yet.
#[derive(Clone, Debug)]
pub struct LedgerEntry {
    name: String,
    path: PathBuf,
    places: Vec<SkillLocation>,
    recorded: Option<Arc<Origin>>,
}

/// Where an agent finds a skill.
#[derive(Clone, Debug)]
pub struct SkillLocation {
    pub(super) folder: Arc<Folder>,
    link: Option<PathBuf>,
}

impl SkillLocation {
    /// The agent's folder.
    pub fn folder(&self) -> &Path {
        &self.folder.path
    }

    /// Whose skills the folder holds.
    pub fn scope(&self) -> Scope {
        self.folder.scope
    }

    /// The link that leads to the skill, where the skill itself is elsewhere.
    pub fn link(&self) -> Option<&Path> {
        self.link.as_deref()
    }

    /// The agents that read the folder.
    pub fn agents(&self) -> impl Iterator<Item = &'static Agent> {
        self.folder.readers.iter().filter_map(|(reader, _)| Agent::ALL.get(*reader))
    }
}

/// What SKILL.md says, and how the skill came to the machine.
#[derive(Clone, Debug)]
pub struct Details {
    /// The name that the skill gives itself.
    pub name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Its version, by itself or by the tool that installed it.
    pub version: Option<String>,
    /// How it came to the machine.
    pub origin: Origin,
    /// What other ledgers claim about it.
    pub claims: Vec<Origin>,
    /// What could not be read.
    pub warnings: Vec<Warning>,
}

/// Why there are no details.
#[derive(Debug, Error)]
pub enum EntryError {
    /// A folder without SKILL.md is no skill.
    #[error("{} has no SKILL.md", .0.display())]
    NoSkillFile(PathBuf),
    /// The system refused.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// SKILL.md is no text.
    #[error("{}: {error}", path.display())]
    Text {
        /// The file.
        path: PathBuf,
        /// Why.
        error: SourceError,
    },
}

/// Whether a skill is still as it was installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Drift {
    /// It is.
    Unmodified,
    /// It is not.
    Modified,
    /// Nobody can tell.
    Unknown(UnknownDrift),
}

/// Why nobody can tell whether a skill was modified.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnknownDrift {
    /// There is no hash.
    #[error("no hash was written down when it was installed")]
    NotRecorded,
    /// The lock holds the files from before they were written for an agent with its own dialect.
    #[error("it may have been written in an agent's own dialect, and the lock holds the original")]
    Converted,
    /// The tool changed the skill while it installed it, and kept the hash from before.
    #[error("`gh skill` rewrote the frontmatter, so that its hash is not that of the files")]
    Rewritten,
    /// The hash depends on an order of names that is not known.
    #[error("the hash depends on the order of `{}`, which is not known", .0.escape_debug())]
    Order(String),
    /// The tool left out files by rules of the skill.
    #[error("the skill has rules for files that are left out of the hash")]
    LeftOut,
    /// The files could not be read.
    #[error("{0}")]
    Unreadable(String),
}

impl LedgerEntry {
    pub(super) fn new(name: String, path: PathBuf, folder: Arc<Folder>) -> Self {
        Self { name, path, places: vec![SkillLocation { folder, link: None }], recorded: None }
    }

    /// A skill in a folder that no agent reads.
    pub fn lone(path: PathBuf) -> Self {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        Self { name: name.unwrap_or_default(), path, places: Vec::new(), recorded: None }
    }

    pub(super) fn linked(name: String, path: PathBuf, link: PathBuf, folder: Arc<Folder>) -> Self {
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

    pub(super) fn link(&mut self, link: PathBuf, folder: Arc<Folder>) {
        self.places.push(SkillLocation { folder, link: Some(link) });
    }

    /// Where it really is, if it lies in the folder of an agent.
    pub(super) fn real(&self) -> Option<PathBuf> {
        let own = self.places.iter().find(|place| place.link.is_none())?;
        own.folder.real_path(&self.path)
    }

    /// The name of its folder, by which most agents and tools know it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where agents find it: its folder, and links to it.
    pub fn places(&self) -> &[SkillLocation] {
        &self.places
    }

    /// The agents that see it, each once.
    pub fn agents(&self) -> Vec<&'static Agent> {
        let readers = self.places.iter().flat_map(|place| &place.folder.readers);
        let mut readers: Vec<usize> = readers.map(|(reader, _)| *reader).collect();
        readers.sort_unstable();
        readers.dedup();
        readers.into_iter().filter_map(|reader| Agent::ALL.get(reader)).collect()
    }

    /// How it came to the machine, by the ledgers that name it. Where none does, only its files can
    /// tell: see [`Details::origin`].
    pub fn recorded(&self) -> Option<&Origin> {
        self.recorded.as_deref()
    }

    /// Reads SKILL.md and what tools wrote into the skill's folder.
    pub fn details(&self) -> Result<Details, EntryError> {
        let document = self.document()?;
        let text = |key: &str| {
            let text = document.fields()?.path(key)?.text()?;
            (!text.is_empty()).then(|| text.to_owned())
        };
        let (mut claims, warnings) = self.claims(&document);
        let origin = if claims.is_empty() { Origin::Plain } else { claims.remove(0) };
        let by_tool = match &origin {
            Origin::ClawHub(origin) => origin.version.clone(),
            _ => None,
        };
        Ok(Details {
            name: text("name"),
            description: text("description"),
            version: text("version").or_else(|| text("metadata.version")).or(by_tool),
            origin,
            claims,
            warnings,
        })
    }

    /// Who claims to have installed it; the most credible first. What stands in the skill itself is
    /// more credible than a ledger that knows only its name.
    fn claims(&self, document: &Document) -> (Vec<Origin>, Vec<Warning>) {
        let mut claims = Vec::new();
        let mut warnings = Vec::new();
        let recorded = self.recorded();
        if let Some(own @ Origin::Savoir { .. }) = recorded {
            claims.push(own.clone());
        }
        match clawhub::read_origin(&self.path) {
            Some(Ok(origin)) => claims.push(Origin::ClawHub(merged(origin, recorded))),
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

    /// Holds the files against the hash that was taken when the skill was installed.
    pub fn drift(&self) -> Drift {
        match self.recorded() {
            Some(Origin::Savoir { integrity: Some(integrity) }) => match Tree::read(&self.path) {
                Ok(tree) => is_same(tree.integrity() == *integrity),
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

    fn npx_drift(&self, origin: &Npx) -> Drift {
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
        uncertain(&items).map_or(Drift::Modified, Drift::Unknown)
    }

    fn clawhub_drift(&self, origin: &ClawHub) -> Drift {
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
        uncertain(&items).map_or(Drift::Modified, Drift::Unknown)
    }

    fn is_rewritten(&self) -> bool {
        self.document().is_ok_and(|document| gh::read_origin(&document).is_some())
    }
}

/// What the ledger of the folder knows beyond what stands in the skill.
fn merged(mut origin: ClawHub, recorded: Option<&Origin>) -> ClawHub {
    if let Some(Origin::ClawHub(recorded)) = recorded {
        origin.pinned = recorded.pinned;
        origin.owner = origin.owner.or_else(|| recorded.owner.clone());
    }
    origin
}

fn is_same(same: bool) -> Drift {
    if same { Drift::Unmodified } else { Drift::Modified }
}

fn unreadable(error: &TreeError) -> Drift {
    Drift::Unknown(UnknownDrift::Unreadable(error.to_string()))
}

/// A name that may stand elsewhere in the order of the tool.
fn uncertain(items: &[Item]) -> Option<UnknownDrift> {
    let item = items.iter().find(|item| !order::is_certain(&item.path))?;
    Some(UnknownDrift::Order(item.path.clone()))
}

fn read_text(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more than allowed is enough to be refused.
    fs::File::open(path)?.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
