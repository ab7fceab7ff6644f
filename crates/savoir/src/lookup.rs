//! Finds a skill by path or name. Every command that takes a skill uses this.
//!
//! 1. A path: a text with a separator, a file, or a folder with a SKILL.md.
//! 2. The project: skills in `savoir.lock`, then other skills in agents' folders, those nearest to
//!    the current folder first.
//! 3. The user: the same with the user's lockfile and folders.
//! 4. The skills of `savoir serve` in its data folder.
//!
//! Copies with the same files are one candidate. The first candidate wins.

mod precedence;
pub(crate) mod remote;

use std::{
    cmp::Reverse,
    collections::HashSet,
    ops::Deref,
    path::{Component, Path, PathBuf},
};

use savoir_engine::Home;
use savoir_lint::words::nearest;
use savoir_package::{
    Agent, Tree,
    ledger::LedgerEntry,
    source::{is_in_local_bare_repository, is_remote},
};
use savoir_skill::{
    folder::is_skill_file,
    permission::Tier,
    version::{SkillRef, parse_version},
};
use serde::Serialize;

use self::remote::FetchedFolder;
pub(crate) use self::{precedence::sort_by_precedence, remote::Fetched};
use crate::{
    copies::{Identity, group_copies},
    error::CommandError,
    installed::{Installed, Locked, in_parallel, source},
    load, output, skill_archive,
};

/// Where a candidate was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Scope {
    /// Given by its path.
    Path,
    Project,
    User,
    /// Provided for every user of the machine.
    System,
    /// A skill of `savoir serve`.
    Server,
}

impl Scope {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Project => "project",
            Self::User => "user",
            Self::System => "system",
            Self::Server => "server",
        }
    }
}

/// A skill to which a name may refer.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) scope: Scope,
    /// Every agent that sees it or one of its copies.
    pub(crate) agents: Vec<&'static Agent>,
    pub(crate) version: Option<String>,
    pub(crate) source: Option<String>,
    /// Its tier, if Savoir installed it.
    pub(crate) tier: Option<Tier>,
    /// The digest of its files; `None` if they cannot be read.
    pub(crate) integrity: Option<String>,
    /// Other folders with the same files.
    pub(crate) copies: Vec<PathBuf>,
    /// The lock entry that installed it, to recognize copies that were written for other agents.
    locked: Option<String>,
}

/// A skill and one of its tools, or a script of it.
#[derive(Debug)]
pub(crate) struct SkillTarget {
    pub(crate) skill: LocatedSkill,
    pub(crate) tool: Option<String>,
}

/// The location of a skill.
#[derive(Debug)]
pub(crate) struct LocatedSkill {
    path: PathBuf,
    /// A skill that was fetched only for this command; its files are deleted when this is dropped.
    pub(crate) fetched: Option<Fetched>,
    /// All skills of a source, which were fetched only for this command.
    pub(crate) folder: Option<FetchedFolder>,
}

impl From<PathBuf> for LocatedSkill {
    fn from(path: PathBuf) -> Self {
        Self { path, fetched: None, folder: None }
    }
}

impl From<Fetched> for LocatedSkill {
    fn from(fetched: Fetched) -> Self {
        Self { path: fetched.path.clone(), fetched: Some(fetched), folder: None }
    }
}

impl Deref for LocatedSkill {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

/// The installed skills, for looking up names.
pub(crate) struct Lookup {
    pub(crate) installed: Installed,
    home: Home,
}

impl Lookup {
    /// Reads the given project, else the one around the current folder.
    pub(crate) fn open(project: Option<&Path>) -> Result<Self, CommandError> {
        Ok(Self { installed: Installed::open(project)?, home: Home::from_environment()? })
    }

    /// Every skill to which `name` or `name@version` may refer; the one with the highest precedence
    /// comes first. If there is a range of versions, the highest version in it comes first.
    pub(crate) fn candidates(&self, text: &str) -> Vec<Candidate> {
        let Ok(SkillRef { name, range }) = SkillRef::parse(text) else { return Vec::new() };
        if !is_name(&name) {
            return Vec::new();
        }
        let mut found: Vec<Candidate> =
            self.entries(&name).iter().map(|entry| self.candidate(entry)).collect();
        found.extend(self.in_stores(&name));
        found.sort_by_key(|candidate| candidate.scope);
        let fits = |candidate: &Candidate| {
            let version = candidate.version.as_deref().and_then(|text| parse_version(text).ok());
            range.is_any() || version.is_some_and(|version| range.matches(&version))
        };
        found.retain(fits);
        if !range.is_any() {
            let version = |candidate: &Candidate| parse_version(candidate.version.as_deref()?).ok();
            found.sort_by_cached_key(|candidate| Reverse(version(candidate)));
        }
        if found.len() > 1 { merge_copies(found) } else { found }
    }

    /// Like [`Self::candidates`], but if the text is a path to a skill, that skill comes first.
    pub(crate) fn all(&self, text: &str) -> Vec<Candidate> {
        let path = Path::new(text);
        let at_path = is_skill(path).then(|| self.at_path(path));
        at_path.into_iter().chain(self.candidates(text)).collect()
    }

    fn at_path(&self, path: &Path) -> Candidate {
        let is_file = path.is_file();
        let folder = if is_file { path.parent().unwrap_or(path) } else { path };
        let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let installed = self.installed.ledger.entries().iter().find(|entry| entry.path() == real);
        let lone = LedgerEntry::lone(real.clone());
        let candidate = self.candidate(installed.unwrap_or(&lone));
        Candidate { path: path.to_owned(), scope: Scope::Path, ..candidate }
    }

    /// The skill to which `name` or `name@version` refers. Prints a note if there are others with
    /// this name.
    pub(crate) fn find(&self, text: &str) -> Option<Candidate> {
        let mut candidates = self.candidates(text).into_iter();
        let winner = candidates.next()?;
        match candidates.len() {
            0 => {}
            1 => output::note(&format!(
                "1 other skill is called {name}: savoir which {name}",
                name = winner.name
            )),
            more => output::note(&format!(
                "{more} other skills are called {name}: savoir which {name}",
                name = winner.name
            )),
        }
        Some(winner)
    }

    /// The installed skills with this name, by precedence: by the names of their folders, else by
    /// the names in their frontmatter.
    fn entries(&self, name: &str) -> Vec<&LedgerEntry> {
        let ledger = &self.installed.ledger;
        let by_folder: Vec<&LedgerEntry> = ledger.named(name).iter().collect();
        let found = if by_folder.is_empty() { self.self_named(name) } else { by_folder };
        let mut found = sort_by_precedence(found, &self.installed);
        found.retain(|entry| is_skill(entry.path()));
        found
    }

    fn self_named(&self, name: &str) -> Vec<&LedgerEntry> {
        let all: Vec<&LedgerEntry> = self.installed.ledger.entries().iter().collect();
        let is_it = in_parallel(&all, |entry| {
            entry.details().is_ok_and(|details| details.name.as_deref() == Some(name))
        });
        all.into_iter().zip(is_it).filter(|(_, is_it)| *is_it).map(|(entry, _)| entry).collect()
    }

    fn candidate(&self, entry: &LedgerEntry) -> Candidate {
        let locked = self.installed.locked_at(entry);
        let details = entry.details().ok();
        let own = details.as_ref().and_then(|details| details.version.clone());
        let by_lock = locked.map(|locked| locked.skill.version.to_string());
        let origin = details.as_ref().map(|details| &details.origin).or(entry.recorded());
        Candidate {
            name: entry.name().to_owned(),
            path: short(entry.path()),
            scope: precedence::scope(entry),
            agents: entry.agents(),
            version: own.or(by_lock.filter(|version| version != "0.0.0")),
            source: source(origin, locked).map(std::borrow::Cow::into_owned),
            tier: locked.map(|locked| locked.skill.tier),
            integrity: Tree::read(entry.path()).ok().map(|tree| tree.integrity()),
            copies: Vec::new(),
            locked: locked.filter(|_| !self.installed.is_modified(entry)).map(Locked::key),
        }
    }

    /// Skills with this name in folders that no agent reads.
    fn in_stores(&self, name: &str) -> Vec<Candidate> {
        let stores = [(self.home.data().join("skills"), Scope::Server)];
        let found = stores.into_iter().map(|(store, scope)| (store.join(name), scope));
        found
            .filter(|(folder, _)| is_skill(folder))
            .map(|(folder, scope)| {
                let details = LedgerEntry::lone(folder.clone()).details().ok();
                Candidate {
                    name: name.to_owned(),
                    path: short(&folder),
                    scope,
                    agents: Vec::new(),
                    version: details.and_then(|details| details.version),
                    source: None,
                    tier: None,
                    integrity: Tree::read(&folder).ok().map(|tree| tree.integrity()),
                    copies: Vec::new(),
                    locked: None,
                }
            })
            .collect()
    }

    /// The error for an unknown name.
    pub(crate) fn unknown(&self, text: &str) -> CommandError {
        let name = text.split('@').next().unwrap_or(text);
        let others = if name == text { Vec::new() } else { self.candidates(name) };
        if !others.is_empty() {
            let versions: Vec<&str> =
                others.iter().map(|other| other.version.as_deref().unwrap_or("none")).collect();
            return CommandError::input(format!("no installed version of `{name}` matches {text}"))
                .hint(format!("installed: {}", versions.join(", ")));
        }
        if name != text && is_skill(Path::new(name)) {
            let message = format!("no installed skill is called `{name}`, and `{text}` means one");
            return CommandError::input(message)
                .hint(format!("for the folder, leave out the version: ./{name}"));
        }
        let error = unknown(name, &self.installed);
        if self.installed.not_installed().iter().any(|locked| locked.name == name) {
            return error;
        }
        error.hint("install it with: savoir install SOURCE; for a folder, give its path: ./NAME")
    }
}

/// The error for a name that no installed skill has, with similar names.
pub(crate) fn unknown(name: &str, installed: &Installed) -> CommandError {
    if let Some(locked) = installed.not_installed().into_iter().find(|locked| locked.name == name) {
        let file = installed.shown(&locked.file);
        return CommandError::input(format!("`{name}` is listed in {file} and not installed"))
            .hint(format!("to install what {file} lists: {}", locked.sync_command()));
    }
    let error = CommandError::input(format!("there is no skill `{name}`"));
    match near_names(name, installed).as_slice() {
        [] if name.contains(['/', ':']) => error
            .hint(format!("to list the skills of a source: savoir install {name} --list"))
            .hint("`savoir list` lists installed skills"),
        [] => error.hint("`savoir list` lists installed skills"),
        near => error.hint(format!("did you mean {}?", near.join(" or "))),
    }
}

/// Maximum number of suggested names.
const MAX_SUGGESTIONS: usize = 3;

/// Names of installed skills that are similar.
fn near_names(name: &str, installed: &Installed) -> Vec<String> {
    let names = || installed.ledger.entries().iter().map(LedgerEntry::name);
    let contains =
        |known: &&str| !name.is_empty() && (known.contains(name) || name.contains(known));
    let mut near: Vec<&str> = nearest(name, names()).into_iter().collect();
    near.extend(names().filter(contains));
    let mut seen = HashSet::new();
    near.retain(|name| seen.insert(*name));
    near.into_iter().take(MAX_SUGGESTIONS).map(|name| format!("`{name}`")).collect()
}

/// Merges candidates with the same files, or from the same lock entry.
fn merge_copies(found: Vec<Candidate>) -> Vec<Candidate> {
    let identity = |candidate: &Candidate| Identity {
        files: candidate.integrity.clone(),
        locked: candidate.locked.clone(),
    };
    let merge = |group: Vec<Candidate>| {
        group.into_iter().reduce(|mut first, copy| {
            first.copies.push(copy.path);
            let new = copy.agents.into_iter();
            let new: Vec<_> = new.filter(|agent| !first.agents.contains(agent)).collect();
            first.agents.extend(new);
            first.agents.sort_by_key(|agent| agent.id);
            first
        })
    };
    group_copies(found, identity).into_iter().filter_map(merge).collect()
}

/// The skill at a path or with a name. A path without a skill is returned unchanged: reading it
/// reports what is wrong.
pub(crate) fn find(text: &Path) -> Result<LocatedSkill, CommandError> {
    if let Some(fetched) = fetch(text)? {
        return Ok(fetched.into());
    }
    let Some(name) = name_of(text) else {
        return match remote::missing_shorthand(text) {
            Some(error) => Err(error),
            None => Ok(text.to_owned().into()),
        };
    };
    let lookup = Lookup::open(None)?;
    match lookup.find(name) {
        Some(found) => Ok(found.path.into()),
        None if text.exists() => Ok(text.to_owned().into()),
        None => Err(lookup.unknown(name)),
    }
}

/// As [`find`], for commands that also take folders of skills: a source may have several skills.
pub(crate) fn find_skills(text: &Path) -> Result<LocatedSkill, CommandError> {
    let remote = text.to_str().filter(|text| must_be_fetched(text));
    match remote.map(FetchedFolder::get).transpose()?.flatten() {
        Some(folder) => {
            Ok(LocatedSkill { path: folder.path.clone(), fetched: None, folder: Some(folder) })
        }
        None => find(text),
    }
}

/// Whether a text is a remote source, or a bare repository, whose files can only be read with git.
fn must_be_fetched(text: &str) -> bool {
    is_remote(text) || is_in_local_bare_repository(text, Path::new(""))
}

/// Fetches a skill, if the text is a remote source.
fn fetch(text: &Path) -> Result<Option<Fetched>, CommandError> {
    let Some(text) = text.to_str().filter(|text| must_be_fetched(text)) else { return Ok(None) };
    let fetched = Fetched::get(text)?;
    match &fetched.tool {
        None => Ok(Some(fetched)),
        Some(tool) => Err(CommandError::input(format!("`{text}` has no skill at `{tool}`"))),
    }
}

/// Finds paths and names, for commands that also take folders of skills: an existing folder is used
/// as a path. Unknown names are returned with their error.
pub(crate) fn find_all(
    paths: &[PathBuf],
) -> Result<Vec<(LocatedSkill, Option<CommandError>)>, CommandError> {
    let mut lookup = None;
    let mut found = Vec::with_capacity(paths.len());
    for path in paths {
        if path.to_str().is_some_and(must_be_fetched) {
            found.push((find_skills(path)?, None));
            continue;
        }
        let Some(name) = name_of(path).filter(|_| !path.exists()) else {
            found.push((path.clone().into(), remote::missing_shorthand(path)));
            continue;
        };
        let lookup = match &mut lookup {
            Some(lookup) => lookup,
            none => none.insert(Lookup::open(None)?),
        };
        found.push(match lookup.find(name) {
            Some(skill) => (skill.path.into(), None),
            None => (path.clone().into(), Some(lookup.unknown(name))),
        });
    }
    Ok(found)
}

/// Finds a skill and the tool or script after it. A remote source is fetched; else the skill is the
/// longest prefix of the text that is a path to a skill, else the name before the first slash.
pub(crate) fn target(text: &str) -> Result<SkillTarget, CommandError> {
    let text = text.trim_end_matches('/');
    if must_be_fetched(text) {
        let fetched = Fetched::get(text)?;
        let tool = fetched.tool.clone();
        return Ok(SkillTarget { skill: fetched.into(), tool });
    }
    let tool = |rest: &str| {
        let tool = rest.trim_start_matches('/');
        (!tool.is_empty()).then(|| tool.to_owned())
    };
    let mut end = text.len();
    loop {
        let (skill, rest) = text.split_at(end);
        if is_skill(Path::new(skill)) {
            return Ok(SkillTarget { skill: PathBuf::from(skill).into(), tool: tool(rest) });
        }
        match skill.rfind('/') {
            Some(slash) if slash > 0 => end = slash,
            _ => break,
        }
    }
    if let Some(target) = in_skill_around(text) {
        return Ok(target);
    }
    let (name, rest) = text.split_at(text.find('/').unwrap_or(text.len()));
    if !is_name(name) {
        return Err(no_path(text));
    }
    let lookup = Lookup::open(None)?;
    match lookup.find(name) {
        Some(found) => Ok(SkillTarget { skill: found.path.into(), tool: tool(rest) }),
        None if rest.is_empty() => Err(lookup.unknown(name)),
        None if Path::new(name).is_dir() || near_path(text).is_some() => Err(no_path(text)),
        None => Err(no_path(text).hint(format!("no installed skill is called `{name}`"))),
    }
}

/// A file of the skill around the current folder.
fn in_skill_around(text: &str) -> Option<SkillTarget> {
    let leaves = Path::new(text).components().any(|part| part == Component::ParentDir);
    let file = std::path::absolute(text).ok().filter(|path| path.is_file() && !leaves)?;
    let folder = file.ancestors().skip(1).find(|above| is_skill(above))?;
    let tool = file.strip_prefix(folder).ok()?.to_str()?.to_owned();
    Some(SkillTarget { skill: short(folder).into(), tool: Some(tool) })
}

/// A similar path that exists, if the name of one of the folders is misspelled.
fn near_path(text: &str) -> Option<String> {
    let path = Path::new(text);
    let missing = path.ancestors().take_while(|part| part.symlink_metadata().is_err());
    let missing = missing.filter(|part| !part.as_os_str().is_empty()).last()?;
    let folder = match missing.parent()? {
        here if here.as_os_str().is_empty() => Path::new("."),
        folder => folder,
    };
    let entries = folder.read_dir().ok()?.flatten().filter(|entry| entry.path().is_dir());
    let names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let near = nearest(missing.file_name()?.to_str()?, names.iter().map(String::as_str))?;
    let rest = path.strip_prefix(missing).ok()?;
    let mut meant = missing.with_file_name(near);
    meant.extend(rest);
    Some(meant.display().to_string())
}

fn no_path(text: &str) -> CommandError {
    if skill_archive::is_archive(Path::new(text)) {
        return load::archive_error(Path::new(text));
    }
    let error = CommandError::input(format!("there is no skill at `{text}`"));
    if let Some(meant) = near_path(text) {
        return error.hint(format!("did you mean {meant}?"));
    }
    error
        .hint("write SKILL/TOOL, where SKILL is a skill's folder or the name of an installed skill")
        .hint("`savoir list` lists installed skills")
}

/// The name in an argument; `None` if it is a path.
fn name_of(text: &Path) -> Option<&str> {
    let name = text.to_str().filter(|name| is_name(name))?;
    (!text.is_file() && !is_skill(text)).then_some(name)
}

/// Whether a text can be a name, with or without a version, and not only a path.
fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.starts_with('.') && !text.contains(['/', '\\', '\0'])
}

/// A path relative to the current folder, if it is below it.
fn short(path: &Path) -> PathBuf {
    let here = std::env::current_dir().ok();
    let below = here.and_then(|here| path.strip_prefix(here).ok().map(Path::to_owned));
    below.filter(|path| !path.as_os_str().is_empty()).unwrap_or_else(|| path.to_owned())
}

/// Whether there is a skill at a path: a Markdown file, or a folder with a SKILL.md.
pub(crate) fn is_skill(path: &Path) -> bool {
    if path.is_file() {
        return path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("md"));
    }
    let entries = path.read_dir().into_iter().flatten().flatten();
    entries.into_iter().any(|entry| is_skill_file(&entry.file_name().to_string_lossy()))
}
