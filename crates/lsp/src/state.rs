//! Defines the state of the server: open files, workspace folders, settings, and the index of
//! skills.

use std::{
    cell::RefCell,
    collections::HashMap,
    path::{Path, PathBuf},
    rc::Rc,
    sync::Arc,
};

use savoir_skill::check::{CheckedSkill, Options};
use url::Url;

use crate::{Environment, client::Client, failure::Failure, index::Index, open_file::OpenFile};

pub(crate) struct State {
    pub(crate) environment: Arc<dyn Environment>,
    pub(crate) client: Client,
    pub(crate) files: HashMap<Url, OpenFile>,
    pub(crate) folders: Vec<PathBuf>,
    pub(crate) index: Arc<Index>,
    /// Whether something other than the text of an open file changed, so that the client must
    /// request diagnostics again.
    pub(crate) needs_refresh: bool,
    /// Settings by the folder in which they were looked up.
    settings: RefCell<HashMap<PathBuf, Rc<Settings>>>,
}

/// The settings of checks in a folder.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) options: Options,
    /// Why the settings cannot be read. The defaults apply until they can.
    pub(crate) problem: Option<String>,
}

impl State {
    pub(crate) fn new(environment: Arc<dyn Environment>, client: Client) -> Self {
        let folders = client.folders.clone();
        Self {
            environment,
            client,
            files: HashMap::new(),
            folders,
            index: Arc::default(),
            needs_refresh: false,
            settings: RefCell::default(),
        }
    }

    pub(crate) fn file(&self, uri: &Url) -> Result<&OpenFile, Failure> {
        self.files.get(uri).ok_or_else(|| Failure::not_open(uri))
    }

    /// The check of an open SKILL.md.
    pub(crate) fn checked(&self, file: &OpenFile) -> Option<Rc<CheckedSkill>> {
        file.checked(&self.settings(file.path.as_deref()).options)
    }

    /// The settings for a file: those that `savoir check` would use in the workspace folder of the
    /// file, or in the file's own folder if it is in no workspace folder.
    pub(crate) fn settings(&self, path: Option<&Path>) -> Rc<Settings> {
        let folder = self.settings_folder(path);
        if let Some(settings) = self.settings.borrow().get(&folder) {
            return settings.clone();
        }
        let settings = match self.environment.check_options(&folder) {
            Ok(options) => Settings { options, problem: None },
            Err(problem) => Settings { options: Options::default(), problem: Some(problem) },
        };
        let settings = Rc::new(settings);
        self.settings.borrow_mut().insert(folder, settings.clone());
        settings
    }

    fn settings_folder(&self, path: Option<&Path>) -> PathBuf {
        let workspace = path.and_then(|path| self.folder_of(path));
        let beside = || path.and_then(Path::parent).map(Path::to_owned);
        let first = || self.folders.first().cloned();
        workspace.map(Path::to_owned).or_else(beside).or_else(first).unwrap_or_else(|| ".".into())
    }

    /// The innermost workspace folder that contains a path.
    pub(crate) fn folder_of(&self, path: &Path) -> Option<&Path> {
        let containing = self.folders.iter().filter(|folder| path.starts_with(folder));
        containing.max_by_key(|folder| folder.as_os_str().len()).map(PathBuf::as_path)
    }

    /// Clears the settings and the checks of open files.
    pub(crate) fn clear_settings(&mut self) {
        self.settings.borrow_mut().clear();
        self.files.values_mut().for_each(OpenFile::forget_check);
    }

    /// The text of a file as the user sees it: the open one, else the one on disk.
    pub(crate) fn text_of(&self, path: &Path, limit: u64) -> Option<String> {
        let uri = Url::from_file_path(path).ok()?;
        match self.files.get(&uri) {
            Some(file) => Some(file.text().to_owned()),
            None => read_text(path, limit),
        }
    }
}

/// The text of a regular file, unless it is larger than `limit` bytes or not UTF-8.
pub(crate) fn read_text(path: &Path, limit: u64) -> Option<String> {
    use std::io::Read as _;
    let metadata = std::fs::symlink_metadata(path).ok()?;
    if !metadata.is_file() || metadata.len() > limit {
        return None;
    }
    let mut bytes = Vec::with_capacity(metadata.len() as usize);
    std::fs::File::open(path).ok()?.take(limit).read_to_end(&mut bytes).ok()?;
    String::from_utf8(bytes).ok()
}
