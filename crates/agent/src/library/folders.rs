//! Implements [`Library`] for skills in folders, such as those that are installed for an agent.

mod files;

use std::{
    collections::{BTreeMap, HashMap},
    fs, io,
    num::NonZero,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    thread,
};

use futures::future::BoxFuture;
use savoir_skill::{
    Dialect, Folder, Hint, Source, folder::is_skill_file, limits::MAX_FILE_BYTES, read,
};

use super::{
    CalledBy, Draft, Library, LibraryError, MAX_SERVED_FILE_BYTES, Opened, PreparedSkill,
    SkillFileState, SummaryCache, prepare_skill,
};
use crate::{
    preamble::{Candidate, UnusableSkill},
    usage::SkillUsageFile,
};

/// The minimum number of skills for which another thread is started.
const MIN_SKILLS_PER_THREAD: usize = 256;

/// Skills in folders, by name. The folders are read on first use.
#[derive(Debug)]
pub struct FolderLibrary {
    skills: BTreeMap<String, PathBuf>,
    usage: Option<SkillUsageFile>,
    /// The folder for drafts, which no agent reads.
    drafts: PathBuf,
    summary_cache: Option<SummaryCache>,
    /// The states of folders that were just examined.
    states: HashMap<PathBuf, SkillFileState>,
    found_skills: OnceLock<ScannedSkills>,
}

/// The usable and unusable skills that were found.
#[derive(Debug)]
struct ScannedSkills {
    candidates: Arc<[Candidate]>,
    unusable: Vec<UnusableSkill>,
}

impl FolderLibrary {
    /// Creates a library from skills with the names of their folders; the first of two skills with
    /// the same name is used.
    pub fn new(
        skills: impl IntoIterator<Item = (String, PathBuf)>,
        usage: Option<SkillUsageFile>,
        drafts: PathBuf,
    ) -> Self {
        let mut folders = BTreeMap::new();
        for (name, folder) in skills {
            folders.entry(name).or_insert(folder);
        }
        Self {
            skills: folders,
            usage,
            drafts,
            summary_cache: None,
            states: HashMap::new(),
            found_skills: OnceLock::new(),
        }
    }

    /// Does not examine folders again whose state is known.
    #[must_use]
    pub fn with_states(self, states: HashMap<PathBuf, SkillFileState>) -> Self {
        Self { states, ..self }
    }

    /// Reads only skills that changed since the cache was stored.
    #[must_use]
    pub fn with_summary_cache(self, summary_cache: Option<SummaryCache>) -> Self {
        Self { summary_cache, ..self }
    }

    /// The names of the skills with their folders.
    pub fn skill_folders(&self) -> impl Iterator<Item = (&str, &Path)> {
        self.skills.iter().map(|(name, folder)| (name.as_str(), folder.as_path()))
    }

    fn folder(&self, name: &str) -> Result<&Path, LibraryError> {
        let folder = self.skills.get(name).map(PathBuf::as_path);
        folder.ok_or_else(|| LibraryError::unknown(name, self.skills.keys().map(String::as_str)))
    }

    fn open_skill(name: &str, folder: &Path, by: CalledBy) -> Result<Opened, LibraryError> {
        let (_, PreparedSkill { skill, note }) = Self::prepare_folder(name, folder)?;
        by.check(&skill)?;
        Ok(Opened { skill, note })
    }

    /// Opens the folder of a skill if models may call the skill; no file of other skills is read.
    fn folder_for_models(&self, name: &str) -> Result<Folder, LibraryError> {
        let (folder, prepared) = Self::prepare_folder(name, self.folder(name)?)?;
        CalledBy::Model.check(&prepared.skill)?;
        Ok(folder)
    }

    /// Reads the skill in a folder as it is served to models, whichever agent the folder belongs to.
    /// The error is the reason.
    pub fn read_served(name: &str, folder: &Path) -> Result<PreparedSkill, String> {
        let (_, prepared) = Self::prepare_folder(name, folder).map_err(reason)?;
        Ok(prepared)
    }

    fn prepare_folder(name: &str, folder: &Path) -> Result<(Folder, PreparedSkill), LibraryError> {
        let broken = |reason: String| LibraryError::Broken { name: name.to_owned(), reason };
        let hint = hint_of_store(folder);
        let folder = Folder::open(folder).map_err(|error| broken(error.to_string()))?;
        let folder = folder.with_hint(hint);
        let file = folder.files().iter().find(|file| is_skill_file(&file.path));
        let file = file.ok_or_else(|| broken("it has no SKILL.md".to_owned()))?.path.clone();
        let bytes = folder.read_up_to(&file, MAX_FILE_BYTES);
        let bytes = bytes.map_err(|error| broken(error.to_string()))?;
        let source = Source::from_bytes(bytes).map_err(|error| broken(error.to_string()))?;
        // Models call the skill by the name under which it was listed.
        let prepared =
            prepare_skill(name, &read(source, Some(&folder)), Some(&folder)).map_err(broken)?;
        Ok((folder, prepared))
    }

    /// The skills in all folders, which are scanned once.
    fn found_skills(&self) -> &ScannedSkills {
        self.found_skills.get_or_init(|| self.scan_folders())
    }

    fn scan_folders(&self) -> ScannedSkills {
        let used = self.usage.as_ref().and_then(|usage| usage.all().ok()).unwrap_or_default();
        let (mut candidates, mut unusable) = (Vec::new(), Vec::new());
        for (name, candidate) in self.candidates() {
            match candidate {
                Ok(Some(candidate)) => {
                    let last_used = used.get(name).map(|used| used.last_used);
                    candidates.push(Candidate { last_used, ..candidate });
                }
                Ok(None) => {}
                Err(error) => {
                    unusable.push(UnusableSkill { name: name.clone(), reason: reason(error) });
                }
            }
        }
        if let Some(cache) = &self.summary_cache {
            cache.save();
        }
        ScannedSkills { candidates: candidates.into(), unusable }
    }

    /// The summaries of all skills, in the order of their names. All processors are used, because the
    /// files of each skill are checked for changes.
    fn candidates(&self) -> Vec<(&String, Result<Option<Candidate>, LibraryError>)> {
        let skills: Vec<(&String, &PathBuf)> = self.skills.iter().collect();
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let share = skills.len().div_ceil(threads).max(MIN_SKILLS_PER_THREAD);
        let look_up = |part: &[(&String, &PathBuf)]| -> Vec<_> {
            part.iter().map(|(name, folder)| self.candidate(name, folder)).collect()
        };
        let look_up = &look_up;
        let found: Vec<_> = thread::scope(|scope| {
            let mut parts = skills.chunks(share);
            let first = parts.next().unwrap_or_default();
            let others: Vec<_> = parts.map(|part| scope.spawn(move || look_up(part))).collect();
            let others = others
                .into_iter()
                .map(|part| part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            std::iter::once(look_up(first)).chain(others).flatten().collect()
        });
        skills.into_iter().map(|(name, _)| name).zip(found).collect()
    }

    /// Returns the summary of a skill for the list; `None` if models may not call it.
    fn candidate(&self, name: &str, folder: &Path) -> Result<Option<Candidate>, LibraryError> {
        let read = || {
            let (_, PreparedSkill { skill, .. }) = Self::prepare_folder(name, folder)?;
            Ok(CalledBy::Model.check(&skill).is_ok().then_some(skill))
        };
        match &self.summary_cache {
            Some(cache) => match self.states.get(folder) {
                Some(state) => cache.get_or_read_at(name, folder, Some(*state), read),
                None => cache.get_or_read(name, folder, read),
            },
            None => Ok(read()?.map(|skill| Candidate::new(&skill))),
        }
    }

    fn text(&self, name: &str, path: &str) -> Result<String, LibraryError> {
        let broken = |error: io::Error| LibraryError::Broken {
            name: name.to_owned(),
            reason: error.to_string(),
        };
        let folder = self.folder_for_models(name)?;
        let owned_path = path.to_owned();
        match folder.files().iter().find(|file| file.path == path) {
            Some(file) if file.link => return Err(files::link_error(&folder, path)),
            Some(_) => {}
            None => return Err(LibraryError::NoFile { name: name.to_owned(), path: owned_path }),
        }
        let size = fs::metadata(folder.root().join(path)).map_or(0, |metadata| metadata.len());
        if size > MAX_SERVED_FILE_BYTES {
            return Err(LibraryError::TooLarge { path: owned_path, size });
        }
        let bytes = folder.read_up_to(path, MAX_SERVED_FILE_BYTES as usize).map_err(broken)?;
        match String::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => Ok(text),
            _ => Err(LibraryError::NoText { path: owned_path }),
        }
    }

    /// Writes a draft; fails if a draft of the same name exists.
    fn write_draft(&self, draft: &Draft) -> Result<String, LibraryError> {
        let io_error = |error: io::Error| LibraryError::Failed { reason: error.to_string() };
        let name_taken = |by: &str| LibraryError::Draft {
            reason: format!("{by} `{}` already exists; choose another name", draft.name),
        };
        if self.skills.contains_key(&draft.name) {
            return Err(name_taken("a skill"));
        }
        fs::create_dir_all(&self.drafts).map_err(io_error)?;
        let staged = tempfile::Builder::new().prefix(".draft-").tempdir_in(&self.drafts);
        let staged = staged.map_err(io_error)?;
        fs::write(staged.path().join("SKILL.md"), &draft.text).map_err(io_error)?;
        let folder = self.drafts.join(&draft.name);
        match fs::rename(staged.path(), &folder) {
            Ok(()) => {
                let _ = staged.keep();
                Ok(folder.display().to_string())
            }
            Err(_) if folder.exists() => Err(name_taken("a draft")),
            Err(error) => Err(io_error(error)),
        }
    }
}

/// The store of gibb.eri.sh, below the folder for configuration.
const GIBBERISH_STORE: &str = "gibberish/skills";

/// The dialect of the skills in a store that belongs to one dialect. The folders of agents do not
/// count: models read the spellings of Personal Agent in all of them.
fn hint_of_store(folder: &Path) -> Option<Hint> {
    let why = || format!("it lies in `{GIBBERISH_STORE}`");
    let is_gibberish = folder.parent().is_some_and(|parent| parent.ends_with(GIBBERISH_STORE));
    is_gibberish.then(|| Hint { dialect: Dialect::GIBBERISH, why: why() })
}

/// Returns the reason of an error without the name of the skill.
fn reason(error: LibraryError) -> String {
    match error {
        LibraryError::Broken { reason, .. } => reason,
        error => error.to_string(),
    }
}

impl Library for FolderLibrary {
    fn skills(&self) -> BoxFuture<'_, Result<Arc<[Candidate]>, LibraryError>> {
        Box::pin(async { Ok(Arc::clone(&self.found_skills().candidates)) })
    }

    fn unusable(&self) -> BoxFuture<'_, Result<Vec<UnusableSkill>, LibraryError>> {
        Box::pin(async { Ok(self.found_skills().unusable.clone()) })
    }

    fn open<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Arc<Opened>, LibraryError>> {
        Box::pin(async move {
            Ok(Arc::new(Self::open_skill(name, self.folder(name)?, CalledBy::Model)?))
        })
    }

    fn resources<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<String>, LibraryError>> {
        Box::pin(async move { Ok(files::list_text_files(&self.folder_for_models(name)?)) })
    }

    fn choices(&self) -> BoxFuture<'_, Result<Vec<String>, LibraryError>> {
        Box::pin(async { Ok(self.skills.keys().cloned().collect()) })
    }

    fn choose<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Arc<Opened>, LibraryError>> {
        Box::pin(async move {
            Ok(Arc::new(Self::open_skill(name, self.folder(name)?, CalledBy::Person)?))
        })
    }

    fn read<'a>(
        &'a self,
        name: &'a str,
        path: &'a str,
    ) -> BoxFuture<'a, Result<String, LibraryError>> {
        Box::pin(async move { self.text(name, path) })
    }

    fn used<'a>(&'a self, name: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            // If the use is not recorded, the skill only appears further down in the list.
            let recorded = self.usage.as_ref().map(|usage| usage.record(name));
            if let Some(Err(error)) = recorded {
                tracing::warn!(%error, "the use of a skill could not be recorded");
            }
        })
    }

    fn save<'a>(&'a self, draft: &'a Draft) -> BoxFuture<'a, Result<String, LibraryError>> {
        Box::pin(async move { self.write_draft(draft) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(root: &Path) -> FolderLibrary {
        let names = ["good", "broken", "quiet"];
        let folders = names.map(|name| (name.to_owned(), root.join(name)));
        FolderLibrary::new(folders, None, root.join("drafts"))
    }

    fn stage() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, bytes: &[u8]| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        };
        write("good/SKILL.md", b"---\nname: good\ndescription: Does it.\n---\nDo it.\n");
        write("good/references/a.md", b"reference");
        write("good/big.txt", &vec![b'x'; MAX_SERVED_FILE_BYTES as usize + 1]);
        write("good/picture.bin", &[0xff, 0xfe, 0x00]);
        write("good/nul.txt", b"a\0b");
        write("broken/SKILL.md", b"---\nname: [\n---\n");
        write(
            "quiet/SKILL.md",
            b"---\nname: quiet\ndescription: x\ndisable-model-invocation: true\n---\nx\n",
        );
        write("secret.txt", b"secret");
        #[cfg(unix)]
        std::os::unix::fs::symlink(dir.path().join("secret.txt"), dir.path().join("good/link.md"))
            .unwrap();
        dir
    }

    #[tokio::test]
    async fn unusable_skills_are_not_offered() {
        let dir = stage();
        let library = library(dir.path());
        let names: Vec<_> =
            library.skills().await.unwrap().iter().map(|one| one.name.clone()).collect();
        assert_eq!(names, ["good"]);
        for (name, code) in [
            ("broken", "broken-skill"),
            ("quiet", "not-callable"),
            ("goood", "unknown-skill"),
            ("../good", "unknown-skill"),
        ] {
            assert_eq!(library.open(name).await.unwrap_err().code(), code, "{name}");
        }
        let open_skill = library.open("good").await.unwrap();
        assert_eq!(open_skill.skill.body.trim(), "Do it.");
        assert_eq!(library.resources("good").await.unwrap(), ["references/a.md"]);
        assert_eq!(library.resources("quiet").await.unwrap_err().code(), "not-callable");
    }

    #[tokio::test]
    async fn only_text_files_inside_the_folder_are_read() {
        let dir = stage();
        let library = library(dir.path());
        assert_eq!(library.read("quiet", "SKILL.md").await.unwrap_err().code(), "not-callable");
        assert_eq!(library.read("good", "references/a.md").await.unwrap(), "reference");
        for (path, code) in [
            ("big.txt", "file-too-large"),
            ("picture.bin", "file-not-text"),
            ("nul.txt", "file-not-text"),
            ("link.md", "no-such-file"),
            ("references", "no-such-file"),
            ("../secret.txt", "no-such-file"),
        ] {
            assert_eq!(library.read("good", path).await.unwrap_err().code(), code, "{path}");
        }
    }

    #[tokio::test]
    async fn drafts_are_saved_outside_agent_folders() {
        let dir = stage();
        let library = library(dir.path());
        let draft = |name: &str| Draft { name: name.to_owned(), text: "text".to_owned() };
        let folder = library.save(&draft("new")).await.unwrap();
        assert_eq!(fs::read_to_string(Path::new(&folder).join("SKILL.md")).unwrap(), "text");
        for name in ["new", "good"] {
            assert_eq!(library.save(&draft(name)).await.unwrap_err().code(), "draft-refused");
        }
        assert!(library.open("new").await.is_err(), "a draft is not offered");
        assert_eq!(fs::read_dir(dir.path().join("drafts")).unwrap().count(), 1);
    }
}
