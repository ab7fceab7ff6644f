//! Finds the skills on this machine: those that agents see, and those in Savoir's lockfiles.
//!
//! - `own` reads Savoir's lockfiles, `selection` has filter options, `report` formats the results.

mod locked_skills;
mod report;
mod selection;

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap},
    env,
    num::NonZero,
    path::{Path, PathBuf},
    thread,
};

use anstream::eprintln;
use savoir_engine::Home;
use savoir_package::{
    Agent, Agents, Ledger, SkillSet, Tree,
    install::updates::{self, Availability},
    ledger::{Details, Drift, EntryError, LedgerEntry, Origin, SearchRoots, UnknownDrift},
    lock,
    manifest::Scope,
    registry::PublishedStatus,
};
use savoir_skill::folder::is_skill_file;

pub(crate) use self::{
    locked_skills::{InstalledFolder, Locked},
    report::{InstalledSkillJson, SeenBy, limit_names, source, state},
    selection::Selection,
};
use crate::{config, copies::Identity, error::CommandError, install_context, output};

/// Files and folders that a project has at its root.
const ROOTS: [&str; 4] = [config::PROJECT_FILE, "savoir.lock", "skills-lock.json", ".git"];

/// The folder in which many repositories keep the skills that they publish. OpenClaw reads it, too.
const SOURCES_FOLDER: &str = "skills";

/// The folder that ClawHub adds to the skills that it installs.
const CLAWHUB_FOLDER: &str = ".clawhub";

/// The installed skills of one user and one project.
pub(crate) struct Installed {
    pub(crate) ledger: Ledger,
    /// The skills in Savoir's lockfiles.
    pub(crate) locked: Vec<Locked>,
    /// The index in `locked` of the skill in a folder.
    by_folder: HashMap<PathBuf, usize>,
    pub(crate) in_use: Vec<&'static Agent>,
    agents: Agents,
    home: PathBuf,
    project: Option<PathBuf>,
    /// Problems of Savoir's lockfiles.
    problems: Vec<String>,
}

/// A skill whose files were read.
pub(crate) struct ExaminedSkill<'a> {
    pub(crate) entry: &'a LedgerEntry,
    pub(crate) details: Result<Details, EntryError>,
    pub(crate) drift: Drift,
    /// The newer version that the last update check found, or `changed files`.
    pub(crate) newer: Option<String>,
    /// A notice of the registry, if it yanked, removed or deprecated the version.
    pub(crate) advice: Option<String>,
    /// The day of that notice.
    pub(crate) advised_on: Option<String>,
}

/// The result of the last update check for a skill.
struct KnownUpdate {
    newer: Option<String>,
    advice: Option<String>,
    /// The day of the check.
    day: String,
}

impl KnownUpdate {
    fn of(found: &Availability, locked: &Locked, day: &str) -> Self {
        let (is_newer, version) = match found {
            Availability::Newer { version, .. } => (true, version.as_ref()),
            Availability::Published(PublishedStatus { newer, .. }) => {
                (newer.is_some(), newer.as_ref())
            }
            _ => (false, None),
        };
        let version = version.filter(|version| **version != locked.skill.version);
        let word = || version.map_or("changed files".to_owned(), ToString::to_string);
        let because = |what: &str, why: Option<&str>| match why {
            Some(why) => format!("{what}: {why}"),
            None => what.to_owned(),
        };
        let advice = match found {
            Availability::Published(PublishedStatus {
                taken_down: true,
                taken_down_reason,
                ..
            }) => Some(because("taken down by its registry", taken_down_reason.as_deref())),
            Availability::Published(PublishedStatus { missing: true, .. }) => {
                Some("its registry no longer has it".to_owned())
            }
            Availability::Published(PublishedStatus { yanked: true, yanked_reason, .. }) => {
                Some(because("yanked", yanked_reason.as_deref()))
            }
            Availability::Published(PublishedStatus { deprecated: Some(why), .. }) => {
                Some(because("deprecated", Some(why)))
            }
            _ => None,
        };
        Self { newer: is_newer.then(word), advice, day: day.to_owned() }
    }
}

impl ExaminedSkill<'_> {
    /// The tool that installed the skill.
    pub(crate) fn origin(&self) -> Option<&Origin> {
        match &self.details {
            Ok(details) => Some(&details.origin),
            Err(_) => self.entry.recorded(),
        }
    }
}

/// The lock entry of the skill in a folder, from the project around it or the user's lockfile.
pub(crate) fn locked_for(folder: &Path) -> Option<Locked> {
    let home = home().ok()?;
    let agents = Agents::new(&home, |name| env::var_os(name));
    let (mut locked, mut problems) = (Vec::new(), Vec::new());
    let has_lock = |place: &&Path| place.join(lock::FILE).is_file();
    if let Some(project) = folder.ancestors().skip(1).find(has_lock) {
        let folder = |agent: &Agent| agent.project_folder(project);
        locked_skills::read(project, folder, &mut locked, &mut problems);
    }
    if let Some(user) = config::user_folder() {
        locked_skills::read(&user, |agent| agents.user_folder(agent), &mut locked, &mut problems);
    }
    let at = locked_skills::by_folder(&locked).get(folder).copied()?;
    Some(locked.swap_remove(at))
}

impl Installed {
    /// Reads the given project, else the one around the current folder.
    pub(crate) fn open(project: Option<&Path>) -> Result<Self, CommandError> {
        let home = home()?;
        let project = match project {
            Some(folder) => Some(named_project(folder)?),
            None => project_around(&home),
        };
        let agents = Agents::new(&home, |name| env::var_os(name));
        let mut locked = Vec::new();
        let mut problems = Vec::new();
        if let Some(project) = &project {
            let folder = |agent: &Agent| agent.project_folder(project);
            locked_skills::read(project, folder, &mut locked, &mut problems);
        }
        if let Some(user) = config::user_folder() {
            locked_skills::read(
                &user,
                |agent| agents.user_folder(agent),
                &mut locked,
                &mut problems,
            );
        }
        let mut in_use = agents.detected(project.as_deref().unwrap_or(Path::new("")));
        // An agent counts as in use if skills were installed for it, even before its first start.
        let ids: BTreeSet<&String> =
            locked.iter().flat_map(|locked| &locked.skill.agents).collect();
        let more = ids.into_iter().filter_map(|id| Agent::by_id(id).ok());
        for agent in more {
            if !in_use.contains(&agent) {
                in_use.push(agent);
            }
        }
        let (installed_by_savoir, by_folder) =
            (locked_skills::folders(&locked), locked_skills::by_folder(&locked));
        let nested_folders = project.as_deref().map(inner_folders).unwrap_or_default();
        let roots = SearchRoots {
            agents: agents.clone(),
            project: project.clone(),
            nested_folders,
            installed_by_savoir,
        };
        let ledger = Ledger::open(&roots);
        Ok(Self { ledger, locked, by_folder, in_use, agents, home, project, problems })
    }

    /// Messages about files that could not be read.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = String> {
        let of_others = self.ledger.warnings().iter().map(ToString::to_string);
        self.problems.iter().cloned().chain(of_others)
    }

    /// Prints the warnings.
    pub(crate) fn warn(&self) {
        for warning in self.warnings() {
            eprintln!("warning: {}", output::sanitize(&warning));
        }
    }

    /// The skills in Savoir's lockfiles that no agent has, as after a clone.
    pub(crate) fn not_installed(&self) -> Vec<&Locked> {
        let has_no_folder = |locked: &&Locked| {
            !locked.written.is_empty() && locked.written.iter().all(|one| !one.folder.is_dir())
        };
        self.locked.iter().filter(has_no_folder).collect()
    }

    /// A line for each lockfile that lists skills that are not installed.
    pub(crate) fn sync_hints(&self) -> Vec<String> {
        let mut counts: BTreeMap<&Path, (usize, &'static str)> = BTreeMap::new();
        for locked in self.not_installed() {
            counts.entry(&locked.file).or_insert((0, locked.sync_command())).0 += 1;
        }
        let hint = |(file, (count, command)): (&Path, (usize, &str))| {
            let verb = if count == 1 { "is" } else { "are" };
            let (skills, file) = (output::plural(count, "skill"), self.shown(file));
            format!("{skills} of {file} {verb} not installed; to install: {command}")
        };
        counts.into_iter().map(hint).collect()
    }

    /// Reads the files of skills, on all processors.
    pub(crate) fn examine<'a>(&self, entries: &[&'a LedgerEntry]) -> Vec<ExaminedSkill<'a>> {
        let known_updates = self.known_updates();
        in_parallel(entries, |entry| {
            let locked = self.locked_at(entry);
            let known = locked.and_then(|locked| known_updates.get(&(&locked.file, &locked.name)));
            let newer = known.and_then(|known| known.newer.clone());
            let advice = known.and_then(|known| known.advice.clone());
            let advised_on = known.filter(|_| advice.is_some()).map(|known| known.day.clone());
            let (details, drift) = (entry.details(), self.drift(entry));
            ExaminedSkill { entry, details, drift, newer, advice, advised_on }
        })
    }

    /// The results of the last update check, by lockfile and name.
    fn known_updates(&self) -> HashMap<(&PathBuf, &String), KnownUpdate> {
        let mut known_updates = HashMap::new();
        let Ok(home) = Home::from_environment() else { return known_updates };
        let files: BTreeSet<&PathBuf> = self.locked.iter().map(|locked| &locked.file).collect();
        for file in files {
            let mut locked = self.locked.iter().filter(|locked| locked.file == *file);
            let Some(own) = locked.clone().next().and_then(|locked| self.skill_set_of(locked))
            else {
                continue;
            };
            let Ok(state) = own.state() else { continue };
            let Some(known) = updates::load_cached_updates(home.cache(), own.root(), &state) else {
                continue;
            };
            known_updates.extend(locked.by_ref().filter_map(|locked| {
                let day = known.checked_at(&locked.name).strftime("%Y-%m-%d").to_string();
                let found = KnownUpdate::of(known.skills.get(&locked.name)?, locked, &day);
                Some(((file, &locked.name), found))
            }));
        }
        known_updates
    }

    /// Compares the files of a skill with the installed ones. Files that Savoir converted for the
    /// dialect of an agent differ from the fetched ones, but count as unmodified.
    fn drift(&self, entry: &LedgerEntry) -> Drift {
        let drift = entry.drift();
        if drift != Drift::Modified {
            return drift;
        }
        self.rewritten(entry).unwrap_or(drift)
    }

    fn rewritten(&self, entry: &LedgerEntry) -> Option<Drift> {
        let locked = self.locked_at(entry)?;
        let is_here = |written: &&InstalledFolder| written.paths().any(|path| path == entry.path());
        let agent = locked.written.iter().find(is_here)?.agent;
        let expected =
            self.skill_set_of(locked)?.expected(&locked.name, &locked.skill, agent).ok()?;
        let there = Tree::read(entry.path()).ok()?;
        match expected {
            Some(expected) => (there.integrity() == expected).then_some(Drift::Unmodified),
            None => is_converted(&there).then_some(Drift::Unknown(UnknownDrift::Converted)),
        }
    }

    fn skill_set_of(&self, locked: &Locked) -> Option<SkillSet> {
        let root = locked.file.parent()?;
        let of_project = self.project.as_deref() == Some(root);
        let scope = if of_project { Scope::Project } else { Scope::User };
        let data = Home::from_environment().ok()?.data().join(install_context::STORE_FOLDER);
        Some(SkillSet::new(root, scope, self.agents.clone(), data))
    }

    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    pub(crate) fn project(&self) -> Option<&Path> {
        self.project.as_deref()
    }

    /// Whether the files of a skill differ from the installed ones.
    pub(crate) fn is_modified(&self, entry: &LedgerEntry) -> bool {
        self.drift(entry) == Drift::Modified
    }

    /// The lock entry of the skill in a folder.
    pub(crate) fn locked_in(&self, folder: &Path) -> Option<&Locked> {
        self.locked.get(*self.by_folder.get(folder)?)
    }

    /// The lock entry of a skill.
    pub(crate) fn locked_at(&self, entry: &LedgerEntry) -> Option<&Locked> {
        let recorded = entry.recorded();
        recorded.filter(|origin| matches!(origin, Origin::Savoir { .. }))?;
        let links = entry.places().iter().filter_map(|place| place.link());
        let mut paths = std::iter::once(entry.path()).chain(links);
        self.locked.get(paths.find_map(|path| self.by_folder.get(path).copied())?)
    }

    /// The identity of an installed skill, which its copies share: the lock entry, else the files.
    pub(crate) fn identity(&self, entry: &LedgerEntry) -> Identity {
        if let Some(locked) = self.locked_at(entry) {
            return Identity { locked: Some(locked.key()), files: None };
        }
        let files = Tree::read(entry.path()).ok().map(|tree| tree.integrity());
        Identity { files, locked: None }
    }

    /// Whether a skill is a source file of the project: nothing installed it into the folder
    /// `skills` of the repository, and no agent in use reads it there.
    fn is_own_source(&self, entry: &LedgerEntry) -> bool {
        let folder = self.project.as_ref().map(|project| project.join(SOURCES_FOLDER));
        folder.is_some_and(|folder| entry.path().starts_with(folder))
            && self.locked_at(entry).is_none()
            && entry.recorded().is_none()
            && !entry.path().join(CLAWHUB_FOLDER).exists()
            && !entry.agents().iter().any(|agent| self.in_use.contains(agent))
    }

    /// A path relative to the project, or with `~` for the home folder.
    pub(crate) fn shown<'a>(&self, path: &'a Path) -> Cow<'a, str> {
        // Compares strings, because splitting ten thousand paths is slow.
        let text = path.to_string_lossy();
        let below = |folder: &Path| {
            let rest = text.strip_prefix(folder.to_str()?)?.strip_prefix('/')?;
            Some(rest.to_owned())
        };
        if let Some(rest) = self.project.as_deref().and_then(below) {
            return Cow::Owned(rest);
        }
        below(&self.home).map_or(text, |rest| Cow::Owned(format!("~/{rest}")))
    }
}

/// Whether a skill was converted to another dialect.
fn is_converted(tree: &Tree) -> bool {
    let file = tree.files().find(|(path, _)| is_skill_file(path));
    file.is_some_and(|(_, file)| String::from_utf8_lossy(&file.bytes).contains("savoir-from:"))
}

/// The user's home folder.
pub(crate) fn home() -> Result<PathBuf, CommandError> {
    let home = env::home_dir().filter(|home| home.is_absolute());
    home.ok_or_else(|| {
        CommandError::input("the home folder is unknown").hint("set HOME to an absolute path")
    })
}

/// The project in the folder that the user gave.
pub(crate) fn named_project(folder: &Path) -> Result<PathBuf, CommandError> {
    let wrong = |problem: &dyn std::fmt::Display| {
        CommandError::input(format!("{}: {problem}", folder.display()))
            .hint("--project takes the folder of a project")
    };
    let found = folder.canonicalize().map_err(|error| wrong(&error))?;
    if found.is_dir() { Ok(found) } else { Err(wrong(&"it is not a folder")) }
}

/// The nearest folder that looks like the root of a project, else the current one. The home folder
/// is not a project: its skills belong to the user.
pub(crate) fn project_around(home: &Path) -> Option<PathBuf> {
    let here = env::current_dir().ok()?;
    let real_home = home.canonicalize();
    let is_home = |folder: &Path| {
        folder == home || real_home.as_ref().is_ok_and(|real_home| folder == real_home)
    };
    let inside = || here.ancestors().take_while(|folder| !is_home(folder));
    let root = inside().find(|folder| ROOTS.iter().any(|root| folder.join(root).exists()));
    root.or_else(|| inside().next()).map(Path::to_owned)
}

/// The folders from the current one up to the root of the project, without the root.
fn inner_folders(project: &Path) -> Vec<PathBuf> {
    let Ok(here) = env::current_dir() else { return Vec::new() };
    if !here.starts_with(project) {
        return Vec::new();
    }
    here.ancestors().take_while(|folder| *folder != project).map(Path::to_owned).collect()
}

/// Calls a function for each item, on all processors; the results have the same order.
pub(crate) fn in_parallel<'a, T: Sync + ?Sized, A: Send>(
    items: &[&'a T],
    ask: impl Fn(&'a T) -> A + Sync,
) -> Vec<A> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let share = items.len().div_ceil(threads).max(1);
    thread::scope(|scope| {
        let ask = &ask;
        let parts = items.chunks(share);
        let threads: Vec<_> = parts
            .map(|part| scope.spawn(move || part.iter().map(|item| ask(item)).collect::<Vec<A>>()))
            .collect();
        let answers = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        answers.flatten().collect()
    })
}
