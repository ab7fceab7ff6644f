//! Fetches a skill for one command without installing it. It is written to a private folder that is
//! removed at the end.

use std::{
    env, fs,
    io::{self, IsTerminal as _},
    path::{Component, Path, PathBuf},
};

use savoir_engine::Home;
use savoir_package::{
    ScanCache, Tree,
    install::{CheckedSkill, FetchReason, FetchedSkill, SkillChecker, locked_source},
    lock::LockedSource,
    registry::{Name, RegistryError},
    source::{
        Fetcher, GitSource, OfferedSkill, PinnedSource, Settings, Source, SourceError, is_shorthand,
    },
    trust::TrustStore,
};
use savoir_skill::{name::is_unsafe_path_name, version::VersionRange};
use tempfile::TempDir;

use crate::{error::CommandError, install_context::SCANS_FOLDER, output, remote::Remote, runtime};

/// The folder of private copies, in the cache folder.
const COPIES_FOLDER: &str = "tries";
/// How many skills of a source are listed in an error.
const MAX_LISTED_SKILLS: usize = 20;

#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) name: String,
    /// Its exact source, as in a lockfile.
    pub(crate) origin: String,
    /// The rest of the text after the skill: the name of a tool or a script.
    pub(crate) tool: Option<String>,
    tree: Tree,
    source: LockedSource,
    pub(crate) path: PathBuf,
    _copy: PrivateCopy,
}

/// All skills of a source, in a private folder that is removed at the end.
#[derive(Debug)]
pub(crate) struct FetchedFolder {
    pub(crate) path: PathBuf,
    _copy: PrivateCopy,
}

impl FetchedFolder {
    /// Fetches the skills of a source; `None` if it does not have several.
    pub(crate) fn get(text: &str) -> Result<Option<Self>, CommandError> {
        let failed = |error: &dyn std::fmt::Display| CommandError::findings(error);
        let here = env::current_dir().map_err(|error| failed(&error))?;
        let home = Home::from_environment()?;
        let source = Source::parse(text, &here)?;
        if matches!(source, Source::Registry { .. }) {
            return Ok(None);
        }
        let fetcher = fetcher(&home);
        let mut skills = runtime::block_on(async {
            let offers = match fetcher.offers(&source).await {
                Ok(offers) if offers.len() > 1 => offers,
                // [`Fetched::get`] reports an error, and finds skills by their names.
                _ => return Ok(Vec::new()),
            };
            if io::stderr().is_terminal() {
                output::note(&format!("fetching {} skills of {text}", offers.len()));
            }
            let mut skills = Vec::with_capacity(offers.len());
            for offer in &offers {
                skills.push((relative(&offer.location()), fetcher.fetch(offer).await?));
            }
            Ok(skills)
        })?;
        if skills.is_empty() {
            return Ok(None);
        }
        let copy = PrivateCopy::new(&home)?;
        let path = copy.0.path().join("skills");
        // A skill that contains others is written before them.
        skills.sort_by(|(place, _), (other, _)| place.cmp(other));
        for (place, tree) in skills {
            let folder = path.join(place);
            if folder.exists() {
                continue;
            }
            let parent = folder.parent().unwrap_or(&path);
            fs::create_dir_all(parent).map_err(|error| failed(&error))?;
            tree.write(&folder).map_err(|error| failed(&error))?;
        }
        set_read_only(&path, true).map_err(|error| failed(&error))?;
        Ok(Some(Self { path, _copy: copy }))
    }
}

/// A path inside of a source, without parts that lead out of a folder.
fn relative(location: &str) -> PathBuf {
    let inside = |part: &Component<'_>| matches!(part, Component::Normal(_));
    Path::new(location).components().filter(inside).collect()
}

/// The error for a missing path that names a repository as `savoir install` does.
pub(crate) fn missing_shorthand(path: &Path) -> Option<CommandError> {
    let text = path.to_str().filter(|text| is_shorthand(text))?;
    path.symlink_metadata().is_err().then(|| {
        CommandError::input(format!("{text}: the file or folder does not exist"))
            .hint(format!("for a repository on GitHub: github:{text}"))
    })
}

/// A private folder in the cache.
#[derive(Debug)]
struct PrivateCopy(TempDir);

impl PrivateCopy {
    fn new(home: &Home) -> Result<Self, CommandError> {
        let folder = home.cache_folder(COPIES_FOLDER)?;
        let copy = tempfile::Builder::new().prefix("skill-").tempdir_in(folder);
        copy.map(Self).map_err(CommandError::findings)
    }
}

impl Fetched {
    /// Fetches the skill that a text such as `github:owner/repo/skill` names.
    pub(crate) fn get(text: &str) -> Result<Self, CommandError> {
        let failed = |error: &dyn std::fmt::Display| CommandError::findings(error);
        let here = env::current_dir().map_err(|error| failed(&error))?;
        let home = Home::from_environment()?;
        if io::stderr().is_terminal() {
            output::note(&format!("fetching {text}"));
        }
        let arrived = match Source::parse(text, &here)? {
            Source::Registry { namespace, name, range } => {
                let full = namespace.map_or(name.clone(), |space| format!("{space}/{name}"));
                from_registry(&full, &range)?
            }
            source => from_source(&source, text, &here, &home)?,
        };
        let called = arrived.called.as_str();
        let name = if is_unsafe_path_name(called) { "skill" } else { called };
        let copy = PrivateCopy::new(&home)?;
        let path = copy.0.path().join(name);
        arrived.tree.write(&path).map_err(|error| failed(&error))?;
        set_read_only(&path, true).map_err(|error| failed(&error))?;
        Ok(Self {
            name: name.to_owned(),
            origin: arrived.source.to_string(),
            tool: arrived.tool,
            tree: arrived.tree,
            source: arrived.source,
            path,
            _copy: copy,
        })
    }

    /// Reads the skill, verifies its signatures and scans it.
    pub(crate) fn ready(&self, trust: &TrustStore) -> Result<CheckedSkill, CommandError> {
        let arrival = FetchedSkill {
            tree: self.tree.clone(),
            called: self.name.clone(),
            source: self.source.clone(),
            why: FetchReason::IfNeeded,
            counted: None,
        };
        let scans = ScanCache::new(Home::from_environment()?.cache().join(SCANS_FOLDER));
        Ok(SkillChecker { trust, scans: &scans }.check(arrival)?)
    }
}

impl Drop for PrivateCopy {
    fn drop(&mut self) {
        // Files in a read-only folder cannot be deleted. If this fails, the copy stays in the
        // cache.
        let _ = set_read_only(self.0.path(), false);
    }
}

/// Makes every file and folder read-only, or lets the owner write again.
fn set_read_only(path: &Path, read_only: bool) -> io::Result<()> {
    let metadata = fs::symlink_metadata(path)?;
    let change = |path: &Path| {
        let mut permissions = metadata.permissions();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = permissions.mode();
            permissions.set_mode(if read_only { mode & !0o222 } else { mode | 0o200 });
        }
        #[cfg(not(unix))]
        permissions.set_readonly(read_only);
        fs::set_permissions(path, permissions)
    };
    if !read_only {
        change(path)?;
    }
    if metadata.is_dir() {
        for entry in fs::read_dir(path)? {
            set_read_only(&entry?.path(), read_only)?;
        }
    }
    if read_only { change(path) } else { Ok(()) }
}

/// A skill before it is written to a folder.
struct FetchedTree {
    tree: Tree,
    called: String,
    source: LockedSource,
    tool: Option<String>,
}

fn fetcher(home: &Home) -> Fetcher {
    let mut settings = Settings::new(home.cache().join("sources"));
    settings.network = crate::offline::network(false);
    Fetcher::new(settings)
}

fn from_source(
    source: &Source,
    text: &str,
    here: &Path,
    home: &Home,
) -> Result<FetchedTree, CommandError> {
    let fetcher = fetcher(home);
    runtime::block_on(async {
        let (offer, tool) = choose(&fetcher, source, text).await?;
        Ok(FetchedTree {
            tree: fetcher.fetch(&offer).await?,
            called: offer.called().to_owned(),
            source: locked_source(&offer.source, here)?,
            tool,
        })
    })
}

/// The newest version of a published skill that is in a range and was not yanked.
fn from_registry(name: &str, range: &VersionRange) -> Result<FetchedTree, CommandError> {
    let name = Name::parse(name).map_err(CommandError::input)?;
    let client = Remote::default().client_of(&name)?;
    let registry = client.address();
    runtime::block_on(async {
        let unknown = || RegistryError::Unknown { name: name.clone(), registry: registry.clone() };
        let package = client.index(&name).await?.ok_or_else(unknown)?;
        let fits = package.iter().filter(|line| !line.yanked && range.matches(&line.version));
        let newest = fits.max_by_key(|line| (line.version.pre.is_empty(), line.version.clone()));
        let none = || RegistryError::NoFit {
            name: name.clone(),
            range: range.to_string(),
            registry: registry.clone(),
        };
        let line = newest.ok_or_else(none)?;
        let tree = client.download(line).await?;
        Ok(FetchedTree {
            tree,
            called: name.last().to_owned(),
            source: LockedSource::registry(&registry, &name),
            tool: None,
        })
    })
}

/// The selected skill, and the rest of the text after it.
async fn choose(
    fetcher: &Fetcher,
    source: &Source,
    text: &str,
) -> Result<(OfferedSkill, Option<String>), CommandError> {
    let (offers, path) = match (fetcher.offers(source).await, source) {
        (Ok(offers), _) => (offers, None),
        (Err(error), Source::Git(git @ GitSource { path: Some(path), .. }))
            if is_absent(&error) =>
        {
            let whole = Source::Git(GitSource { path: None, ..git.clone() });
            (fetcher.offers(&whole).await?, Some(path))
        }
        (Err(error), _) => return Err(error.into()),
    };
    let found = match (&path, offers.as_slice()) {
        (None, [only]) => Some((only.clone(), None)),
        (None, _) => None,
        (Some(path), offers) => pick(offers, path),
    };
    found.ok_or_else(|| several(text, &offers))
}

/// Whether a source has no skill at the given path, which may be a name instead.
pub(crate) fn is_absent(error: &SourceError) -> bool {
    matches!(error, SourceError::NoSkill { .. } | SourceError::NoPathInside { .. })
}

/// Finds the skill of a repository that the start of a path names: by its path, by the end of its
/// path, or by its name. Returns the skill and the rest of the path.
pub(crate) fn pick(offers: &[OfferedSkill], path: &str) -> Option<(OfferedSkill, Option<String>)> {
    let place = |offer: &OfferedSkill| match &offer.source {
        PinnedSource::Git(place) => place.path.clone(),
        _ => String::new(),
    };
    let parts: Vec<&str> = path.split('/').collect();
    for end in (1..=parts.len()).rev() {
        let (start, rest) = (parts[..end].join("/"), parts[end..].join("/"));
        let is_meant = |offer: &&OfferedSkill| {
            let place = place(offer);
            place == start || place.ends_with(&format!("/{start}")) || offer.name == start
        };
        let found = offers.iter().filter(is_meant).min_by_key(|offer| place(offer).len());
        if let Some(found) = found {
            return Some((found.clone(), (!rest.is_empty()).then_some(rest)));
        }
    }
    match offers {
        [only] if place(only).is_empty() => Some((only.clone(), Some(path.to_owned()))),
        _ => None,
    }
}

fn several(text: &str, offers: &[OfferedSkill]) -> CommandError {
    let mut names: Vec<&str> =
        offers.iter().take(MAX_LISTED_SKILLS).map(|offer| offer.name.as_str()).collect();
    if offers.len() > MAX_LISTED_SKILLS {
        names.push("…");
    }
    let first = names.first().copied().unwrap_or_default();
    CommandError::input(format!("`{text}` is not a single skill; it has {}", names.join(", ")))
        .with_code("several-skills")
        .hint(format!("give the path or name of one, for example {}", of_repository(text, first)))
}

/// A skill of the repository that a text such as `github:owner/repo/path@tag` names.
fn of_repository(text: &str, skill: &str) -> String {
    let (place, reference) = match text.rsplit_once('@') {
        Some((place, reference)) if !reference.contains(['/', ':']) => (place, Some(reference)),
        _ => (text, None),
    };
    let repository = match (place.split_once(".git/"), place.split_once(':')) {
        (Some((repository, _)), _) => format!("{repository}.git"),
        (None, Some((host, rest))) if !rest.starts_with("//") => {
            let parts: Vec<&str> = rest.split('/').take(2).collect();
            format!("{host}:{}", parts.join("/"))
        }
        _ => place.trim_end_matches('/').to_owned(),
    };
    let reference = reference.map(|reference| format!("@{reference}")).unwrap_or_default();
    format!("{repository}/{skill}{reference}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_is_named_in_its_repository() {
        for (text, named) in [
            ("github:o/r", "github:o/r/pdf"),
            ("github:o/r/skills/x", "github:o/r/pdf"),
            ("github:o/r@v1", "github:o/r/pdf@v1"),
            ("https://host/o/r.git/typo", "https://host/o/r.git/pdf"),
            ("git@host:o/r.git", "git@host:o/r.git/pdf"),
            ("file:///srv/r", "file:///srv/r/pdf"),
            ("./r.git@v1", "./r.git/pdf@v1"),
        ] {
            assert_eq!(of_repository(text, "pdf"), named);
        }
    }

    #[test]
    fn files_are_read_only_and_can_be_removed() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("skill");
        fs::create_dir_all(folder.join("scripts")).expect("folders");
        fs::write(folder.join("scripts/a.sh"), "x").expect("a file");
        set_read_only(&folder, true).expect("it is ours");
        let metadata = fs::metadata(folder.join("scripts/a.sh")).expect("a file");
        assert!(metadata.permissions().readonly());
        set_read_only(&folder, false).expect("it is ours");
        fs::remove_dir_all(&folder).expect("it can be removed");
    }
}
