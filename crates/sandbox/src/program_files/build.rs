//! Builds [`ProgramFiles`] for one program: the list of files that it needs to start. All counts are
//! bounded, because the program may be hostile.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    FileUse, FolderContents, ProgramFiles, ProgramFilesError,
    cache::{self, CachedFiles},
    elf::{self, ElfError, ElfFile},
    file_reader::FileReader,
    find_program::{TRUSTED_PATH, is_plain_name},
    helpers,
    loader::LoadedObjects,
    path_resolver::{FileNode, FileStamp, PathResolver, ResolveError, ResolvedPath},
    shebang::Shebang,
};
use crate::limits;

/// A file list that is being built.
#[derive(Debug)]
pub(super) struct Builder<'a> {
    /// The requested program, which errors about exceeded limits name.
    program: &'a Path,
    pub(super) resolver: PathResolver,
    pub(super) program_files: ProgramFiles,
    /// Folders whose entries were listed, with their stamps at that time.
    listed: BTreeMap<PathBuf, Option<FileStamp>>,
    entries: usize,
    modules: usize,
}

/// How deep a folder is searched for code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SearchDepth {
    /// Only the files directly in the folder.
    OneLevel,
    /// Also the files in its subfolders.
    AllLevels,
}

impl<'a> Builder<'a> {
    pub(super) fn new(program: &'a Path) -> Self {
        Self {
            program,
            resolver: PathResolver::default(),
            program_files: ProgramFiles::default(),
            listed: BTreeMap::new(),
            entries: 0,
            modules: 0,
        }
    }

    /// Returns the complete list and the stamps of all paths that it depends on.
    pub(super) fn build(mut self) -> Result<CachedFiles, ProgramFilesError> {
        let program = self.program;
        self.add_program(program, FileUse::Program, 0)?;
        helpers::add_library_data(&mut self)?;
        self.program_files.remove_redundant();
        let mut stamps: Vec<_> = self.resolver.stamps().collect();
        stamps.extend(self.listed);
        Ok(CachedFiles { program_files: self.program_files, stamps })
    }

    /// Adds a program or script with all files that it needs.
    pub(super) fn add_program(
        &mut self,
        requested: &Path,
        file_use: FileUse,
        depth: usize,
    ) -> Result<(), ProgramFilesError> {
        let path = || requested.to_path_buf();
        if !requested.is_absolute() {
            return Err(ProgramFilesError::NotAbsolute { path: path() });
        }
        if depth > limits::MAX_SCRIPT_DEPTH {
            return Err(ProgramFilesError::TooDeep { path: self.program.to_path_buf() });
        }
        let resolved = self.resolver.resolve(requested).map_err(|error| match error {
            ResolveError::Missing => ProgramFilesError::NotFound { path: path() },
            ResolveError::Loop => ProgramFilesError::LinkLoop { path: path() },
            ResolveError::Reserved => ProgramFilesError::Reserved { path: path() },
        })?;
        let FileNode::File(stamp, true) = resolved.node else {
            return Err(ProgramFilesError::NotExecutable { path: path() });
        };
        self.add_file(&resolved, file_use)?;
        let mut shebang = None;
        let elf_file = cache::elf_file(&resolved.real, stamp, || {
            let unreadable = ElfError::Invalid("it cannot be read");
            let reader = FileReader::open(&resolved.real).map_err(|_| unreadable)?;
            let head = reader.read_up_to(0, elf::HEAD_BYTES).map_err(|_| unreadable)?;
            shebang = Shebang::read(&head);
            ElfFile::read(&reader, &head)
        });
        match (elf_file, shebang) {
            (Ok(elf_file), _) => {
                let mut loaded = self.load_program(&resolved, &elf_file)?;
                helpers::add_helpers(self, requested, &resolved.real, &mut loaded)
            }
            (Err(ElfError::NotElf), Some(shebang)) => {
                self.add_script(&resolved.real, &shebang, depth)
            }
            (Err(ElfError::NotElf), None) => Err(ProgramFilesError::NotAProgram { path: path() }),
            (Err(ElfError::Invalid(reason)), _) => {
                Err(ProgramFilesError::UnreadableElf { path: resolved.real, reason })
            }
        }
    }

    fn add_script(
        &mut self,
        script: &Path,
        shebang: &Shebang,
        depth: usize,
    ) -> Result<(), ProgramFilesError> {
        let missing = |interpreter: &Path| ProgramFilesError::MissingInterpreter {
            script: script.to_path_buf(),
            interpreter: interpreter.to_string_lossy().into_owned(),
        };
        let mut interpreter = shebang.interpreter.clone();
        // A relative interpreter would depend on the working directory.
        if !interpreter.is_absolute() {
            return Err(missing(&interpreter));
        }
        self.add_interpreter(&interpreter, depth, missing)?;
        // Only the system's `env` is meant: a program of the skill may also be called `env`.
        if is_on_trusted_path(&interpreter)
            && interpreter.file_name().is_some_and(|name| name == "env")
            && let Some(name) = shebang.program_of_env()
        {
            let named = Path::new(&name);
            interpreter = if is_on_trusted_path(named) {
                named.to_path_buf()
            } else {
                self.find_program(&name).ok_or_else(|| missing(named))?
            };
            self.add_interpreter(&interpreter, depth, missing)?;
        }
        helpers::add_script_helpers(self, script, &interpreter)
    }

    fn add_interpreter(
        &mut self,
        interpreter: &Path,
        depth: usize,
        missing: impl Fn(&Path) -> ProgramFilesError,
    ) -> Result<(), ProgramFilesError> {
        self.add_program(interpreter, FileUse::Interpreter, depth + 1).map_err(
            |error| match error {
                ProgramFilesError::NotFound { path } if path == interpreter => missing(interpreter),
                other => other,
            },
        )
    }

    /// Finds a program on the trusted path. `resolver` also records the paths without it, so that the
    /// cache notices when the program appears there.
    fn find_program(&mut self, name: &OsStr) -> Option<PathBuf> {
        let mut candidates = TRUSTED_PATH.iter().map(|folder| Path::new(folder).join(name));
        is_plain_name(name)
            .then(|| {
                candidates.find(|candidate| {
                    self.resolver
                        .resolve(candidate)
                        .is_ok_and(|resolved| matches!(resolved.node, FileNode::File(_, true)))
                })
            })
            .flatten()
    }

    /// Adds a file and the symbolic links that lead to it.
    pub(super) fn add_file(
        &mut self,
        resolved: &ResolvedPath,
        file_use: FileUse,
    ) -> Result<(), ProgramFilesError> {
        self.add_links(resolved)?;
        self.program_files.add_file(resolved.real.clone(), file_use);
        if self.program_files.files.len() > limits::MAX_CODE_FILES {
            return Err(self.too_many("libraries and programs", limits::MAX_CODE_FILES));
        }
        Ok(())
    }

    fn add_links(&mut self, resolved: &ResolvedPath) -> Result<(), ProgramFilesError> {
        self.program_files.links.extend(resolved.links.iter().cloned());
        if self.program_files.links.len() > limits::MAX_LINKS {
            return Err(self.too_many("links", limits::MAX_LINKS));
        }
        Ok(())
    }

    /// Adds a file that is only read, if it exists and its real path is below `within`.
    ///
    /// The check of `within` matters: next to a program of a skill, a file name can be a link to
    /// the user's keys.
    pub(super) fn add_data(
        &mut self,
        path: &Path,
        within: &Path,
    ) -> Result<bool, ProgramFilesError> {
        let Ok(resolved) = self.resolver.resolve(path) else { return Ok(false) };
        if resolved.file().is_none() || !resolved.real.starts_with(within) {
            return Ok(false);
        }
        self.add_file(&resolved, FileUse::Data)?;
        Ok(true)
    }

    /// Adds a whole folder, if it exists and its real path is below `within`. Returns the real
    /// path.
    pub(super) fn add_folder(
        &mut self,
        path: &Path,
        within: &Path,
        contents: FolderContents,
    ) -> Result<Option<PathBuf>, ProgramFilesError> {
        let Some(resolved) = self.find_folder(path, within) else { return Ok(None) };
        self.add_links(&resolved)?;
        self.program_files.add_folder(resolved.real.clone(), contents);
        Ok(Some(resolved.real))
    }

    /// Looks up a folder whose real path is below `within` and not `within` itself, so it is never
    /// the root.
    pub(super) fn find_folder(&mut self, path: &Path, within: &Path) -> Option<ResolvedPath> {
        let resolved = self.resolver.resolve(path).ok()?;
        let below = resolved.real != within && resolved.real.starts_with(within);
        (below && matches!(resolved.node, FileNode::Folder)).then_some(resolved)
    }

    /// Lists the regular files in a folder whose names match `matches_name`, without following links.
    pub(super) fn list_files(
        &mut self,
        folder: &Path,
        search_depth: SearchDepth,
        matches_name: impl Fn(&[u8]) -> bool,
    ) -> Result<Vec<ResolvedPath>, ProgramFilesError> {
        self.listed.insert(folder.to_path_buf(), FileStamp::now(folder));
        let mut found = Vec::new();
        let mut left = vec![(folder.to_path_buf(), 0)];
        while let Some((folder, depth)) = left.pop() {
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            for entry in entries.flatten() {
                self.entries += 1;
                if self.entries > limits::MAX_FOLDER_ENTRIES {
                    return Err(self.too_many("entries of folders", limits::MAX_FOLDER_ENTRIES));
                }
                let Ok(file_use) = entry.file_type() else { continue };
                if file_use.is_dir() {
                    if search_depth == SearchDepth::AllLevels && depth < limits::MAX_FOLDER_DEPTH {
                        left.push((entry.path(), depth + 1));
                    }
                } else if file_use.is_file()
                    && matches_name(entry.file_name().as_bytes())
                    && let Some(resolved) = ResolvedPath::at(entry.path())
                {
                    self.modules += 1;
                    if self.modules > limits::MAX_MODULES {
                        return Err(self.too_many("loadable modules", limits::MAX_MODULES));
                    }
                    found.push(resolved);
                }
            }
        }
        Ok(found)
    }

    /// Adds the libraries that the loadable modules of a folder need. Returns whether the folder
    /// has modules.
    pub(super) fn add_modules(
        &mut self,
        loaded: &mut LoadedObjects,
        folder: &Path,
        search_depth: SearchDepth,
    ) -> Result<bool, ProgramFilesError> {
        let modules = self.list_files(folder, search_depth, is_module)?;
        for module in &modules {
            if let Some(elf_file) = read_elf(module) {
                self.load_module(loaded, module, &elf_file)?;
            }
        }
        Ok(!modules.is_empty())
    }

    fn too_many(&self, what: &'static str, limit: usize) -> ProgramFilesError {
        ProgramFilesError::TooMany { program: self.program.to_path_buf(), what, limit }
    }
}

/// Matches names such as `_ssl.cpython-311-x86_64-linux-gnu.so`, `libopenblas.so.3` and
/// `binding.node`.
fn is_module(name: &[u8]) -> bool {
    name.ends_with(b".so")
        || name.ends_with(b".node")
        || name.windows(4).any(|part| part == b".so.")
}

/// Returns the ELF data of a file, if the file is code for this machine.
pub(super) fn read_elf(resolved: &ResolvedPath) -> Option<Arc<ElfFile>> {
    cache::elf_file(&resolved.real, resolved.file()?, || ElfFile::open(&resolved.real)).ok()
}

/// Returns whether a path is directly in a folder of the trusted path.
fn is_on_trusted_path(path: &Path) -> bool {
    path.parent().is_some_and(|folder| TRUSTED_PATH.iter().any(|known| folder == Path::new(known)))
}
