//! Finds and installs the packages that the scripts of a run need. The lists of packages are read
//! before the user is asked; the packages are installed outside of the sandbox, after the user
//! agreed.

use std::{
    collections::{BTreeSet, HashMap},
    env,
    ffi::OsStr,
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use savoir_sandbox::{ExtraPrograms, Mount, PathGrant, Policy, Variable};
use savoir_skill::{
    Skill,
    permission::{Domain, Level},
};

use super::{action::Action, script};
use crate::{
    approval::Program,
    cancel::Cancel,
    error::RunError,
    home::Home,
    limits,
    loaded_skill::{HISTORY_FOLDERS, LoadedSkill},
    packages::{
        host_path::HostPath,
        inline, node,
        npm::{self, Manifest},
        requirements_file, versions,
    },
    python::{
        environment::{self, Builds, Environment, EnvironmentError, EnvironmentSpec, Installer},
        requirement::{DirectReferences, Requirement, requirements},
        version::{self, PythonError},
    },
    structured::fences,
};

/// Bytes of a script in which metadata is searched, and of a list of packages.
const MAX_SCRIPT_BYTES: u64 = 1 << 20;
/// Bytes of a lock file: those of large projects have some mebibytes.
const MAX_LIST_BYTES: u64 = 16 << 20;

/// Maximum number of entries in the folder of a `package.json`; each one is a mount.
const MAX_ENTRIES: usize = 1024;

/// The packages that a run needs besides its program.
#[derive(Clone, Debug, Default)]
pub(super) enum Packages {
    #[default]
    None,
    Python(PythonNeeds),
    Node(NodeNeeds),
}

/// Packages of a Python script.
#[derive(Clone, Debug, Default)]
pub(super) struct PythonNeeds {
    requirements: Vec<Requirement>,
    /// The range of versions in `requires-python`.
    range: Option<String>,
}

/// Packages of a Node script.
#[derive(Clone, Debug)]
pub(super) struct NodeNeeds {
    /// The folder of `package.json`.
    folder: PathBuf,
    manifest: Arc<Manifest>,
    /// Whether the code is an argument of `node`. Such code has no file below the folder, so Node
    /// only finds the packages by `NODE_PATH`.
    is_argument: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    Python,
    Node,
}

/// A script or an argument whose packages are determined.
struct ScriptCode {
    language: Language,
    /// The script, if it is a file of the skill.
    script: Option<PathBuf>,
    /// The code, if it is an argument.
    text: Option<String>,
}

/// Returns the packages that an action needs. If a script names its interpreter itself (`#!`) and
/// needs packages, the action is changed to start the interpreter with the script, so that the
/// interpreter of the environment can take its place. The same is done for every script of Node,
/// because Node has other memory limits.
pub(super) fn needs(loaded_skill: &LoadedSkill, action: &mut Action) -> Result<Packages, RunError> {
    let Action::Command { program, arguments, .. } = action else { return Ok(Packages::None) };
    let Some(code) = code(loaded_skill, program, arguments) else { return Ok(Packages::None) };
    let lists = &mut PackageLists::default();
    let needs = match code.language {
        Language::Python => python_needs(loaded_skill, &code, lists)?.map(Packages::Python),
        Language::Node => node_needs(loaded_skill, &code, lists)?.map(Packages::Node),
    };
    let is_replaced = needs.is_some() || code.language == Language::Node;
    if is_replaced && code.script.as_ref() == Some(&program.path) {
        let mut start = script::interpreted(&program.path, &program.name)?;
        start.arguments.append(arguments);
        (*program, *arguments) = (start.program, start.arguments);
    }
    Ok(needs.unwrap_or_default())
}

/// The names of the packages of all scripts of a skill, for the approval question. Scripts whose
/// list is refused are left out, because they do not run.
pub(crate) fn names(loaded_skill: &LoadedSkill) -> Vec<String> {
    let requirements = &loaded_skill.skill.requirements;
    let mut names: BTreeSet<String> = requirements.python_packages.iter().cloned().collect();
    let npm = |manifest: &Manifest| manifest.names.iter().map(npm_package).collect::<Vec<_>>();
    if runs_node(&loaded_skill.skill) {
        let declared = declared_manifest(loaded_skill).ok().flatten();
        names.extend(declared.iter().flat_map(|manifest| npm(manifest)));
    }
    let Some(folder) = loaded_skill.folder.as_deref() else { return names.into_iter().collect() };
    let files =
        loaded_skill.skill.resources.iter().take(limits::MAX_SCRIPTS).map(|path| folder.join(path));
    let files = files.filter_map(|path| {
        let language = language_of_file(&path)?;
        Some(ScriptCode { language, script: Some(path), text: None })
    });
    let blocks = fences(&loaded_skill.skill.body, None).into_iter().filter_map(|fence| {
        let language = language_of_program(fence.interpreter)?;
        Some(ScriptCode { language, script: None, text: Some(fence.code) })
    });
    let lists = &mut PackageLists::default();
    for code in files.chain(blocks) {
        match code.language {
            Language::Python => {
                let needs =
                    python_needs(loaded_skill, &code, lists).ok().flatten().unwrap_or_default();
                names.extend(needs.requirements.iter().map(ToString::to_string));
            }
            Language::Node => {
                let needs = node_needs(loaded_skill, &code, lists).ok().flatten();
                names.extend(needs.iter().flat_map(|needs| npm(&needs.manifest)));
            }
        }
    }
    names.into_iter().collect()
}

fn npm_package(name: &String) -> String {
    format!("{name} (npm)")
}

/// Whether a skill declares that its tools start Node, which its `node_dependencies` are for.
pub(crate) fn runs_node(skill: &Skill) -> bool {
    let is_node = |name: &str| {
        matches!(name, "npm" | "npx") || language_of_program(name) == Some(Language::Node)
    };
    let shell = skill.permissions.iter().filter(|entry| entry.domain == Domain::Shell);
    let mut granted = shell.filter(|entry| entry.level == Level::Execute);
    granted.any(|entry| match entry.scope.as_deref() {
        None => true,
        Some(names) => names.split(',').any(|name| is_node(name.trim())),
    })
}

/// The `node_dependencies` of a skill that are not installed, because its tools cannot start Node.
/// No program of the sandbox could use them, so their code is not downloaded.
pub(crate) fn unused_node_packages(skill: &Skill) -> &[String] {
    if runs_node(skill) || skill.tools.is_empty() { &[] } else { &skill.requirements.node_packages }
}

/// The manifest of the `node_dependencies` of a skill; none if it declares none.
fn declared_manifest(loaded_skill: &LoadedSkill) -> Result<Option<Arc<Manifest>>, RunError> {
    let packages = &loaded_skill.skill.requirements.node_packages;
    let manifest = npm::of_packages(packages).map_err(|error| {
        RunError::refused("requirement-refused", format!("node_dependencies: {error}"))
            .with_hint("name packages of the registry and their versions: left-pad@^1.3")
    })?;
    Ok(manifest.map(Arc::new))
}

fn code(loaded_skill: &LoadedSkill, program: &Program, arguments: &[String]) -> Option<ScriptCode> {
    let folder = loaded_skill.folder.as_deref();
    let is_own = |path: &Path| folder.is_some_and(|folder| path.starts_with(folder));
    if is_own(&program.path) {
        let language = language_of_file(&program.path)?;
        return Some(ScriptCode { language, script: Some(program.path.clone()), text: None });
    }
    let language = language_of_program(program.path.file_name()?.to_str()?)?;
    let is_code = |word: &&String| matches!(word.as_str(), "-c" | "-e" | "--eval" | "-m" | "-p");
    let before = arguments.iter().take_while(|word| !is_code(word));
    let script = before.map(PathBuf::from).find(|path| is_own(path) && path.is_file());
    let at = arguments.iter().position(|word| matches!(word.as_str(), "-c" | "-e"));
    let text = at.and_then(|index| arguments.get(index + 1)).filter(|_| script.is_none()).cloned();
    Some(ScriptCode { language, script, text })
}

fn language_of_program(name: &str) -> Option<Language> {
    match name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') {
        "python" => Some(Language::Python),
        "node" | "nodejs" | "tsx" | "bun" => Some(Language::Node),
        _ => None,
    }
}

fn language_of_file(path: &Path) -> Option<Language> {
    if let Some(name) = script::named_interpreter(path) {
        return language_of_program(&name);
    }
    match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
        "py" => Some(Language::Python),
        "js" | "mjs" | "cjs" | "ts" | "mts" => Some(Language::Node),
        _ => None,
    }
}

/// The first bytes of a script, in which its metadata is searched.
fn head(path: &Path) -> Option<String> {
    // Reading a pipe could block forever.
    let is_file = fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    let mut bytes = Vec::new();
    let file = is_file.then(|| File::open(path).ok()).flatten()?;
    file.take(MAX_SCRIPT_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The result of reading a file that may list packages.
#[derive(Debug, PartialEq, Eq)]
enum ListFile {
    Missing,
    /// A symlink, a folder or a pipe.
    NotAFile,
    TooLarge,
    Text(String),
}

impl ListFile {
    fn read(path: &Path, limit: u64) -> io::Result<Self> {
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::Missing),
            Err(error) => return Err(error),
            Ok(found) if !found.is_file() => return Ok(Self::NotAFile),
            Ok(_) => {}
        }
        let mut bytes = Vec::new();
        File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit {
            return Ok(Self::TooLarge);
        }
        Ok(Self::Text(String::from_utf8_lossy(&bytes).into_owned()))
    }
}

/// The text of a list of packages; none if the file does not exist. An unreadable list is an error:
/// without it, other packages or versions would be installed than its author wrote.
fn list(loaded_skill: &LoadedSkill, path: &Path, limit: u64) -> Result<Option<String>, RunError> {
    let refused = |what: String| {
        let message = format!("{} {what}", path_in_skill(loaded_skill, path));
        RunError::refused("requirement-refused", message)
    };
    match ListFile::read(path, limit) {
        Ok(ListFile::Missing) => Ok(None),
        Ok(ListFile::Text(text)) => Ok(Some(text)),
        Ok(ListFile::NotAFile) => {
            Err(refused("is a link or no file".to_owned()).with_hint("put the file itself there"))
        }
        Ok(ListFile::TooLarge) => {
            let what = format!("is larger than {} MiB", limit >> 20);
            Err(refused(what).with_hint("list fewer packages"))
        }
        Err(error) => Err(refused(format!("cannot be read: {error}"))),
    }
}

/// The lists of packages by their folder, so that each file is read once for all scripts of a
/// skill.
#[derive(Default)]
struct PackageLists {
    python: HashMap<PathBuf, Result<Option<Vec<String>>, RunError>>,
    node: HashMap<PathBuf, Result<Option<Arc<Manifest>>, RunError>>,
}

impl PackageLists {
    fn python(
        &mut self,
        loaded_skill: &LoadedSkill,
        folder: &Path,
    ) -> Result<Option<Vec<String>>, RunError> {
        let read = || read_requirements(loaded_skill, folder);
        self.python.entry(folder.to_owned()).or_insert_with(read).clone()
    }

    fn node(
        &mut self,
        loaded_skill: &LoadedSkill,
        folder: &Path,
    ) -> Result<Option<Arc<Manifest>>, RunError> {
        let read = || Ok(read_manifest(loaded_skill, folder)?.map(Arc::new));
        self.node.entry(folder.to_owned()).or_insert_with(read).clone()
    }
}

fn python_needs(
    loaded_skill: &LoadedSkill,
    code: &ScriptCode,
    lists: &mut PackageLists,
) -> Result<Option<PythonNeeds>, RunError> {
    let text = match &code.script {
        Some(script) => head(script),
        None => code.text.clone(),
    };
    let name = || {
        code.script.as_deref().map_or("the code".into(), |path| path_in_skill(loaded_skill, path))
    };
    let inline = inline::read(&text.unwrap_or_default()).map_err(|error| {
        RunError::refused("requirement-refused", format!("{}: {error}", name()))
            .with_hint("correct the block, or remove it and list packages in requirements.txt")
    })?;
    let mut all = loaded_skill.skill.requirements.python_packages.clone();
    let (list, range) = match inline {
        Some(inline) => (inline.dependencies, inline.requires_python),
        None => (listed_requirements(loaded_skill, code.script.as_deref(), lists)?, None),
    };
    all.extend(list);
    if all.is_empty() && range.is_none() {
        return Ok(None);
    }
    let requirements = requirements(&all, DirectReferences::Forbid).map_err(|error| {
        RunError::refused("requirement-refused", format!("{}: {error}", name()))
            .with_hint(INDEX_ONLY_HINT)
    })?;
    Ok(Some(PythonNeeds { requirements, range }))
}

const INDEX_ONLY_HINT: &str = "list packages of the index by name and version: six==1.16.0";

/// The lines of the `requirements.txt` beside a script, or else of the one in the skill's root.
fn listed_requirements(
    loaded_skill: &LoadedSkill,
    script: Option<&Path>,
    lists: &mut PackageLists,
) -> Result<Vec<String>, RunError> {
    let Some(root) = loaded_skill.folder.as_deref() else { return Ok(Vec::new()) };
    let beside = script.and_then(Path::parent).filter(|folder| folder.starts_with(root));
    for folder in beside.into_iter().chain([root]) {
        if let Some(lines) = lists.python(loaded_skill, folder)? {
            return Ok(lines);
        }
    }
    Ok(Vec::new())
}

/// Reads the `requirements.txt` of a folder, and checks each line.
fn read_requirements(
    loaded_skill: &LoadedSkill,
    folder: &Path,
) -> Result<Option<Vec<String>>, RunError> {
    let path = folder.join("requirements.txt");
    let Some(text) = list(loaded_skill, &path, MAX_SCRIPT_BYTES)? else { return Ok(None) };
    let lines = requirements_file::lines(&text);
    for (number, line) in &lines {
        // Lines are checked one by one, so that the error can name the line.
        requirements(&[line], DirectReferences::Forbid).map_err(|error| {
            let place = format!("{}:{number}", path_in_skill(loaded_skill, &path));
            RunError::refused("requirement-refused", format!("{place}: {error}"))
                .with_hint(INDEX_ONLY_HINT)
        })?;
    }
    Ok(Some(lines.into_iter().map(|(_, line)| line).collect()))
}

/// A path relative to the skill's folder, for messages.
fn path_in_skill(loaded_skill: &LoadedSkill, path: &Path) -> String {
    let folder = loaded_skill.folder.as_deref();
    let inside = folder.and_then(|folder| path.strip_prefix(folder).ok()).unwrap_or(path);
    inside.display().to_string()
}

fn node_needs(
    loaded_skill: &LoadedSkill,
    code: &ScriptCode,
    lists: &mut PackageLists,
) -> Result<Option<NodeNeeds>, RunError> {
    let Some(root) = loaded_skill.folder.as_deref() else { return Ok(None) };
    let start = code.script.as_deref().and_then(Path::parent).unwrap_or(root);
    for folder in start.ancestors().take_while(|folder| folder.starts_with(root)) {
        // If the author put packages there, Node uses them, and nothing is installed.
        if folder.join("node_modules").is_dir() {
            return Ok(None);
        }
        if let Some(manifest) = lists.node(loaded_skill, folder)? {
            let (folder, is_argument) = (folder.to_owned(), code.script.is_none());
            return Ok(Some(NodeNeeds { folder, manifest, is_argument }));
        }
    }
    let (folder, is_argument) = (root.to_owned(), code.script.is_none());
    let declared = declared_manifest(loaded_skill)?;
    Ok(declared.map(|manifest| NodeNeeds { folder, manifest, is_argument }))
}

/// Reads the `package.json` of a folder and its lock file; none if it needs no packages.
fn read_manifest(loaded_skill: &LoadedSkill, folder: &Path) -> Result<Option<Manifest>, RunError> {
    let path = folder.join("package.json");
    let Some(text) = list(loaded_skill, &path, MAX_SCRIPT_BYTES)? else { return Ok(None) };
    let lock = list(loaded_skill, &folder.join("package-lock.json"), MAX_LIST_BYTES)?;
    npm::read(&text, lock.as_deref()).map_err(|error| {
        let place = path_in_skill(loaded_skill, &path);
        RunError::refused("requirement-refused", format!("{place}: {error}"))
            .with_hint("name packages of the registry and their versions: \"left-pad\": \"^1.3\"")
    })
}

/// The run for which packages are installed; its policy and its program are changed.
pub(super) struct PackageRun<'a> {
    pub(super) loaded_skill: &'a LoadedSkill,
    pub(super) home: &'a Home,
    pub(super) cancel: &'a Cancel,
    pub(super) policy: &'a mut Policy,
    pub(super) program: &'a mut Program,
}

impl Packages {
    /// Installs the packages, and changes the policy so that the run sees them.
    pub(super) fn install(
        &self,
        run: &mut PackageRun<'_>,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), RunError> {
        match self {
            Self::None => Ok(()),
            Self::Python(needs) => needs.install(run, progress),
            Self::Node(needs) => needs.install(run, progress),
        }
    }
}

/// A folder of the cache, by its canonical path.
pub(super) fn cache(home: &Home, name: &str) -> Result<PathBuf, RunError> {
    let folder = home.cache_folder(name);
    let folder = folder.map_err(|error| RunError::cannot_start("cache-unavailable", &error))?;
    Ok(folder.canonicalize().unwrap_or(folder))
}

impl PythonNeeds {
    fn install(
        &self,
        run: &mut PackageRun<'_>,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), RunError> {
        let cache = cache(run.home, "python")?;
        let host = HostPath::of(run.policy);
        let interpreter = host_interpreter(&host, &run.program.path)?;
        replace_program(run, interpreter.clone());
        if let Some(range) = &self.range {
            check_range(&host, &cache, range, &interpreter)?;
        }
        if self.requirements.is_empty() {
            return Ok(());
        }
        let base = (&host, interpreter.as_path());
        let made = python_environment(run.cancel, &cache, base, &self.requirements, progress)?;
        let python = made.python();
        run.policy.paths.push(PathGrant::read(&made.root));
        // If all programs of the system are granted, all libraries that a package may need are
        // visible, and the folder can be executed. Otherwise the sandbox finds the needed libraries
        // by the files of every package, starting from this program.
        if run.policy.extra_programs == ExtraPrograms::None {
            run.policy.programs.retain(|path| *path != interpreter);
            run.policy.programs.push(python.clone());
        }
        prepend_to_path(run.policy, &made.root.join("bin"));
        let root = made.root.to_string_lossy().into_owned();
        run.policy.environment.insert("VIRTUAL_ENV".to_owned(), Variable::Plain(root));
        // A `PYTHONPATH` of the user would come before the installed packages.
        run.policy.environment.remove("PYTHONPATH");
        run.program.path = python;
        Ok(())
    }
}

/// Returns an interpreter that may be started outside of the sandbox, to install packages or to
/// print its version. Fails if a run could have written the file.
pub(super) fn host_interpreter(host: &HostPath, path: &Path) -> Result<PathBuf, RunError> {
    host.interpreter(path).ok_or_else(|| {
        let path = path.display();
        let message = format!("{path} is where runs can write, so only the sandbox may start it");
        RunError::cannot_start("python-unusable", message)
            .with_hint("install Python outside of the project")
    })
}

/// Replaces the program of the run, also in the policy.
fn replace_program(run: &mut PackageRun<'_>, path: PathBuf) {
    for program in run.policy.programs.iter_mut().filter(|program| **program == run.program.path) {
        program.clone_from(&path);
    }
    run.program.path = path;
}

fn check_range(
    host: &HostPath,
    cache: &Path,
    range: &str,
    interpreter: &Path,
) -> Result<(), RunError> {
    let ask = || python_version(host, interpreter);
    let found = versions::cached_version(cache, interpreter, ask)
        .map_err(|error| RunError::cannot_start("python-unusable", &error))?;
    let failed = |message: String| RunError::cannot_start("python-version", message);
    match version::satisfies(range, &found) {
        Ok(true) => Ok(()),
        Ok(false) => {
            let path = interpreter.display();
            Err(failed(format!("the script needs Python {range}, {path} is {found}"))
                .with_hint("install a Python that fits, first on PATH"))
        }
        Err(error) => Err(failed(error.to_string())),
    }
}

/// Asks an interpreter for its version, outside of the sandbox.
pub(super) fn python_version(host: &HostPath, interpreter: &Path) -> Result<String, PythonError> {
    let variables = host.with_path(environment::variables(env::vars_os()));
    version::python_version(interpreter, &variables)
}

/// Returns the environment with these packages, and installs it if necessary.
pub(super) fn python_environment(
    cancel: &Cancel,
    cache: &Path,
    (host, interpreter): (&HostPath, &Path),
    requirements: &[Requirement],
    progress: &mut dyn FnMut(&str),
) -> Result<Environment, RunError> {
    let spec = EnvironmentSpec {
        python: interpreter,
        requirements,
        builds: Builds::Refused,
        installer: host.find("uv").map_or(Installer::Pip, Installer::Uv),
        variables: host.with_path(environment::variables(env::vars_os())),
    };
    environment::prepare_until(cancel, cache, &spec, progress).map_err(|error| failed(&error))
}

fn failed(error: &EnvironmentError) -> RunError {
    let failed = RunError::cannot_start("environment-failed", error);
    match error.hint() {
        Some(hint) => failed.with_hint(hint),
        None => failed,
    }
}

impl NodeNeeds {
    fn install(
        &self,
        run: &mut PackageRun<'_>,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), RunError> {
        let host = HostPath::of(run.policy);
        let modules = node_modules(run.cancel, run.home, &host, &self.manifest, progress)?;
        let shown_at = self.folder.join("node_modules");
        grant_entries(run, &self.folder)?;
        run.policy.mounts.push(Mount { path: shown_at.clone(), source: modules });
        prepend_to_path(run.policy, &shown_at.join(".bin"));
        if self.is_argument {
            let path = shown_at.to_string_lossy().into_owned();
            run.policy.environment.insert("NODE_PATH".to_owned(), Variable::Plain(path));
        }
        Ok(())
    }
}

/// Returns the folder with these npm packages, and installs them if necessary.
fn node_modules(
    cancel: &Cancel,
    home: &Home,
    host: &HostPath,
    manifest: &Manifest,
    progress: &mut dyn FnMut(&str),
) -> Result<PathBuf, RunError> {
    let cache = cache(home, "node")?;
    let program = |name: &str| {
        host.find(name).ok_or_else(|| {
            let message = format!("the skill needs npm packages, and there is no `{name}`");
            RunError::cannot_start("command-not-found", message)
                .with_hint(format!("install `{name}`, or remove the packages from the skill"))
        })
    };
    let (node, npm) = (program("node")?, program("npm")?);
    let tools = node::NodePrograms {
        node: &node,
        npm: &npm,
        variables: host.with_path(node::variables(env::vars_os())),
    };
    node::prepare(cancel, &cache, manifest, &tools, progress).map_err(|error| failed(&error))
}

/// Installs the `node_dependencies` of a skill whose tools are functions of a module. Node and `npx`
/// find them wherever the function starts them.
pub(super) fn add_node_dependencies(
    cancel: &Cancel,
    loaded_skill: &LoadedSkill,
    home: &Home,
    policy: &mut Policy,
    progress: &mut dyn FnMut(&str),
) -> Result<(), RunError> {
    if !runs_node(&loaded_skill.skill) {
        return Ok(());
    }
    let Some(manifest) = declared_manifest(loaded_skill)? else { return Ok(()) };
    let host = HostPath::of(policy);
    let modules = node_modules(cancel, home, &host, &manifest, progress)?;
    prepend_to_path(policy, &modules.join(".bin"));
    let path = modules.to_string_lossy().into_owned();
    policy.environment.insert("NODE_PATH".to_owned(), Variable::Plain(path));
    policy.paths.push(PathGrant::read(modules));
    Ok(())
}

/// Grants the entries of a folder of the skill one by one. `node_modules` cannot be mounted in a
/// folder of the host where it does not exist, and nothing is created on the host; a folder in
/// memory can have any mount point.
fn grant_entries(run: &mut PackageRun<'_>, folder: &Path) -> Result<(), RunError> {
    let failed = |message: String| RunError::cannot_start("packages-not-shown", message);
    let unreadable = |error| failed(format!("cannot read {}: {error}", folder.display()));
    let root = run.loaded_skill.folder.as_deref().unwrap_or(folder);
    run.policy.paths.push(PathGrant::hidden(folder));
    for (count, entry) in fs::read_dir(folder).map_err(unreadable)?.enumerate() {
        let entry = entry.map_err(unreadable)?;
        if count >= MAX_ENTRIES {
            let folder = folder.display();
            let message = format!("{folder} has more than {MAX_ENTRIES} files beside package.json");
            return Err(failed(message).with_hint("put them into folders"));
        }
        let (path, name) = (entry.path(), entry.file_name());
        if HISTORY_FOLDERS.iter().any(|history| name == OsStr::new(history)) {
            continue;
        }
        if !entry.file_type().map_err(unreadable)?.is_symlink() {
            run.policy.paths.push(PathGrant::read(path));
            continue;
        }
        // A symlink is shown as a mount of its target; a symlink that leads out of the skill is
        // left out, so it does not resolve in the sandbox.
        let real = path.canonicalize().ok().filter(|real| real.starts_with(root));
        run.policy.mounts.extend(real.map(|source| Mount { path, source }));
    }
    Ok(())
}

/// Puts a folder first on `PATH`.
fn prepend_to_path(policy: &mut Policy, folder: &Path) {
    let rest = match policy.environment.get("PATH") {
        Some(Variable::Plain(path)) => path.clone(),
        _ => String::new(),
    };
    let path = format!("{}:{rest}", folder.display());
    policy.environment.insert("PATH".to_owned(), Variable::Plain(path));
}
