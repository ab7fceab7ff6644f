//! Builds the closure of one program: the list of files that it needs to start. All counts are
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
    Closure, ClosureError, Contents, Kind,
    elf::{self, Fault, Image},
    find::{TRUSTED_PATH, is_bare},
    helpers,
    loader::Space,
    memory::{self, Finding},
    reader::Reader,
    script::Shebang,
    way::{Lost, Node, Stamp, Way, Ways},
};
use crate::limits;

/// A closure that is being built.
#[derive(Debug)]
pub(super) struct Builder<'a> {
    /// The requested program, which errors about exceeded limits name.
    program: &'a Path,
    pub(super) ways: Ways,
    pub(super) closure: Closure,
    /// Folders whose entries were listed, with their stamps at that time.
    listed: BTreeMap<PathBuf, Option<Stamp>>,
    entries: usize,
    modules: usize,
}

/// How deep a folder is searched for code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Only the files directly in the folder.
    Flat,
    /// Also the files in its subfolders.
    Deep,
}

impl<'a> Builder<'a> {
    pub(super) fn new(program: &'a Path) -> Self {
        Self {
            program,
            ways: Ways::default(),
            closure: Closure::default(),
            listed: BTreeMap::new(),
            entries: 0,
            modules: 0,
        }
    }

    /// Returns the whole closure and the stamps of all paths that it depends on.
    pub(super) fn build(mut self) -> Result<Finding, ClosureError> {
        let program = self.program;
        self.add_program(program, Kind::Program, 0)?;
        helpers::add_system(&mut self)?;
        self.closure.tidy();
        let mut stamps: Vec<_> = self.ways.stamps().collect();
        stamps.extend(self.listed);
        Ok(Finding { closure: self.closure, stamps })
    }

    /// Adds a program or script with all files that it needs.
    pub(super) fn add_program(
        &mut self,
        asked: &Path,
        kind: Kind,
        depth: usize,
    ) -> Result<(), ClosureError> {
        let path = || asked.to_path_buf();
        if !asked.is_absolute() {
            return Err(ClosureError::NotAbsolute { path: path() });
        }
        if depth > limits::SCRIPT_DEPTH {
            return Err(ClosureError::TooDeep { path: self.program.to_path_buf() });
        }
        let way = self.ways.follow(asked).map_err(|lost| match lost {
            Lost::Missing => ClosureError::NotFound { path: path() },
            Lost::Loop => ClosureError::LinkLoop { path: path() },
            Lost::Reserved => ClosureError::Reserved { path: path() },
        })?;
        let Node::File(stamp, true) = way.node else {
            return Err(ClosureError::NotExecutable { path: path() });
        };
        self.add_file(&way, kind)?;
        let mut shebang = None;
        let image = memory::image(&way.real, stamp, || {
            let unreadable = Fault::Broken("it cannot be read");
            let reader = Reader::open(&way.real).map_err(|_| unreadable)?;
            let head = reader.some(0, elf::HEAD).map_err(|_| unreadable)?;
            shebang = Shebang::read(&head);
            Image::read(&reader, &head)
        });
        match (image, shebang) {
            (Ok(image), _) => {
                let mut space = self.load_program(&way, &image)?;
                helpers::add_helpers(self, asked, &way.real, &mut space)
            }
            (Err(Fault::Foreign), Some(shebang)) => self.add_script(&way.real, &shebang, depth),
            (Err(Fault::Foreign), None) => Err(ClosureError::NotAProgram { path: path() }),
            (Err(Fault::Broken(reason)), _) => {
                Err(ClosureError::UnreadableElf { path: way.real, reason })
            }
        }
    }

    fn add_script(
        &mut self,
        script: &Path,
        shebang: &Shebang,
        depth: usize,
    ) -> Result<(), ClosureError> {
        let missing = |interpreter: &Path| ClosureError::MissingInterpreter {
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
        if is_of_the_system(&interpreter)
            && interpreter.file_name().is_some_and(|name| name == "env")
            && let Some(name) = shebang.env_name()
        {
            let named = Path::new(&name);
            interpreter = if is_of_the_system(named) {
                named.to_path_buf()
            } else {
                self.find(&name).ok_or_else(|| missing(named))?
            };
            self.add_interpreter(&interpreter, depth, missing)?;
        }
        helpers::add_script_helpers(self, script, &interpreter)
    }

    fn add_interpreter(
        &mut self,
        interpreter: &Path,
        depth: usize,
        missing: impl Fn(&Path) -> ClosureError,
    ) -> Result<(), ClosureError> {
        self.add_program(interpreter, Kind::Interpreter, depth + 1).map_err(|error| match error {
            ClosureError::NotFound { path } if path == interpreter => missing(interpreter),
            other => other,
        })
    }

    /// Finds a program on the trusted path. `ways` also records the places without it, so that the
    /// cache notices when the program appears there.
    fn find(&mut self, name: &OsStr) -> Option<PathBuf> {
        let mut places = TRUSTED_PATH.iter().map(|folder| Path::new(folder).join(name));
        is_bare(name)
            .then(|| {
                places.find(|place| {
                    self.ways.follow(place).is_ok_and(|way| matches!(way.node, Node::File(_, true)))
                })
            })
            .flatten()
    }

    /// Adds a file and the symbolic links that lead to it.
    pub(super) fn add_file(&mut self, way: &Way, kind: Kind) -> Result<(), ClosureError> {
        self.add_links(way)?;
        self.closure.put_file(way.real.clone(), kind);
        if self.closure.files.len() > limits::CODE_FILES {
            return Err(self.too_many("libraries and programs", limits::CODE_FILES));
        }
        Ok(())
    }

    fn add_links(&mut self, way: &Way) -> Result<(), ClosureError> {
        self.closure.links.extend(way.links.iter().cloned());
        if self.closure.links.len() > limits::LINKS {
            return Err(self.too_many("links", limits::LINKS));
        }
        Ok(())
    }

    /// Adds a file that is only read, if it exists and its real path is below `within`.
    ///
    /// The check of `within` matters: next to a program of a skill, a file name can be a link to
    /// the user's keys.
    pub(super) fn add_data(&mut self, path: &Path, within: &Path) -> Result<bool, ClosureError> {
        let Ok(way) = self.ways.follow(path) else { return Ok(false) };
        if way.file().is_none() || !way.real.starts_with(within) {
            return Ok(false);
        }
        self.add_file(&way, Kind::Data)?;
        Ok(true)
    }

    /// Adds a whole folder, if it exists and its real path is below `within`. Returns the real
    /// path.
    pub(super) fn add_folder(
        &mut self,
        path: &Path,
        within: &Path,
        contents: Contents,
    ) -> Result<Option<PathBuf>, ClosureError> {
        let Some(way) = self.folder(path, within) else { return Ok(None) };
        self.add_links(&way)?;
        self.closure.put_folder(way.real.clone(), contents);
        Ok(Some(way.real))
    }

    /// Looks up a folder whose real path is below `within` and not `within` itself, so it is never
    /// the root.
    pub(super) fn folder(&mut self, path: &Path, within: &Path) -> Option<Way> {
        let way = self.ways.follow(path).ok()?;
        let below = way.real != within && way.real.starts_with(within);
        (below && matches!(way.node, Node::Folder)).then_some(way)
    }

    /// Lists the regular files in a folder whose names match `wanted`, without following links.
    pub(super) fn list(
        &mut self,
        folder: &Path,
        reach: Reach,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<Vec<Way>, ClosureError> {
        self.listed.insert(folder.to_path_buf(), Stamp::now(folder));
        let mut found = Vec::new();
        let mut left = vec![(folder.to_path_buf(), 0)];
        while let Some((folder, depth)) = left.pop() {
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            for entry in entries.flatten() {
                self.entries += 1;
                if self.entries > limits::FOLDER_ENTRIES {
                    return Err(self.too_many("entries of folders", limits::FOLDER_ENTRIES));
                }
                let Ok(kind) = entry.file_type() else { continue };
                if kind.is_dir() {
                    if reach == Reach::Deep && depth < limits::FOLDER_DEPTH {
                        left.push((entry.path(), depth + 1));
                    }
                } else if kind.is_file()
                    && wanted(entry.file_name().as_bytes())
                    && let Some(way) = Way::at(entry.path())
                {
                    self.modules += 1;
                    if self.modules > limits::MODULES {
                        return Err(self.too_many("loadable modules", limits::MODULES));
                    }
                    found.push(way);
                }
            }
        }
        Ok(found)
    }

    /// Adds the libraries that the loadable modules of a folder need. Returns whether the folder
    /// has modules.
    pub(super) fn add_modules(
        &mut self,
        space: &mut Space,
        folder: &Path,
        reach: Reach,
    ) -> Result<bool, ClosureError> {
        let modules = self.list(folder, reach, is_module)?;
        for module in &modules {
            if let Some(image) = image(module) {
                self.load_module(space, module, &image)?;
            }
        }
        Ok(!modules.is_empty())
    }

    fn too_many(&self, what: &'static str, limit: usize) -> ClosureError {
        ClosureError::TooMany { program: self.program.to_path_buf(), what, limit }
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
pub(super) fn image(way: &Way) -> Option<Arc<Image>> {
    memory::image(&way.real, way.file()?, || Image::open(&way.real)).ok()
}

/// Returns whether a path is directly in a folder of the trusted path.
fn is_of_the_system(path: &Path) -> bool {
    path.parent().is_some_and(|folder| TRUSTED_PATH.iter().any(|known| folder == Path::new(known)))
}
