//! Reading skill files from disk, within limits and without leaving the place that was asked for.

use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};

use savoir_skill::{
    Diagnostic, Dialect, Folder, Reading, Source, SourceError, Span, folder::is_skill_file, limits,
    read, read_as,
};

use crate::error::CommandError;

/// A skill that a command works on.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) path: PathBuf,
    pub(crate) folder: Option<Folder>,
    pub(crate) reading: Reading,
}

/// Loads the skill at a path: a folder with SKILL.md, or a file.
pub(crate) fn load(path: &Path, dialect: Option<Dialect>) -> Result<Loaded, CommandError> {
    let file = skill_file(path)?;
    let folder = folder_of(&file);
    let source = source(&file, file.parent().filter(|_| file.is_symlink())).map_err(|problem| {
        CommandError::input(format!("{}: {}", file.display(), problem.message))
            .hint(problem.help.clone().unwrap_or_default())
    })?;
    let reading = match dialect {
        Some(dialect) => read_as(source, dialect, folder.as_ref()),
        None => read(source, folder.as_ref()),
    };
    Ok(Loaded { path: file, folder, reading })
}

/// The folder of a skill file; a file of another name stands alone.
fn folder_of(file: &Path) -> Option<Folder> {
    let name = file.file_name()?.to_string_lossy();
    let parent = file.parent().filter(|_| is_skill_file(&name))?;
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    Folder::open(parent).ok()
}

fn skill_file(path: &Path) -> Result<PathBuf, CommandError> {
    let shown = path.display();
    let metadata = fs::metadata(path).map_err(|error| {
        let problem = match error.kind() {
            std::io::ErrorKind::NotFound => "there is no such file or folder".to_owned(),
            _ => error.to_string(),
        };
        CommandError::input(format!("{shown}: {problem}"))
    })?;
    if !metadata.is_dir() {
        return Ok(path.to_owned());
    }
    ["SKILL.md", "skill.md", "Skill.md"]
        .iter()
        .map(|name| path.join(name))
        .find(|file| file.is_file())
        .ok_or_else(|| {
            CommandError::input(format!("{shown}: the folder has no SKILL.md"))
                .hint("name a skill's folder, or a file; `savoir new NAME` makes one")
        })
}

/// The text of a file, or a finding that says why there is none. A link, which has a `link_root`,
/// may lead anywhere below that and nowhere else: what a stranger's repository links to is not ours
/// to print.
pub(crate) fn source(path: &Path, link_root: Option<&Path>) -> Result<Source, Box<Diagnostic>> {
    let unreadable =
        |message: String| Diagnostic::error("unreadable-file", Span::default(), message);
    if let Some(root) = link_root {
        let inside = path.canonicalize().map_err(|_| {
            let found = unreadable("the link leads nowhere".to_owned());
            Box::new(found.help("remove it, or restore its target"))
        })?;
        let root = if root.as_os_str().is_empty() { Path::new(".") } else { root };
        if root.canonicalize().is_ok_and(|root| !inside.starts_with(root)) {
            let found = unreadable("the link leads out of the folder that is checked".to_owned());
            return Err(Box::new(found.help("replace the link by the file")));
        }
    }
    let file = fs::File::open(path).map_err(|error| Box::new(unreadable(error.to_string())))?;
    let metadata = file.metadata().map_err(|error| Box::new(unreadable(error.to_string())))?;
    if !metadata.is_file() {
        let found = unreadable("it is not a file".to_owned());
        return Err(Box::new(found.help("SKILL.md must be a text file")));
    }
    if metadata.len() > limits::MAX_FILE_BYTES as u64 {
        return Err(refused(&SourceError::TooLarge { size: metadata.len() }));
    }
    let mut bytes = Vec::with_capacity(metadata.len() as usize + 1);
    file.take(limits::MAX_FILE_BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Box::new(unreadable(error.to_string())))?;
    Source::from_bytes(bytes).map_err(|error| refused(&error))
}

fn refused(error: &SourceError) -> Box<Diagnostic> {
    let (code, help) = match error {
        SourceError::TooLarge { .. } => {
            ("file-too-large", "move data and reference text into files of the skill")
        }
        SourceError::NotUtf8 { .. } => ("not-utf8", "save the file as UTF-8"),
    };
    Box::new(Diagnostic::error(code, Span::default(), error.to_string()).help(help))
}

/// Refuses a skill that its dialect does not let a lenient reader use.
pub(crate) fn require_usable(loaded: &Loaded) -> Result<(), CommandError> {
    if loaded.reading.is_usable() {
        return Ok(());
    }
    Err(refusal(loaded, loaded.reading.error()))
}

/// Refuses a skill with any finding of its reading.
pub(crate) fn require_clean(loaded: &Loaded) -> Result<(), CommandError> {
    match loaded.reading.diagnostics.first() {
        None => Ok(()),
        found => Err(refusal(loaded, found)),
    }
}

fn refusal(loaded: &Loaded, found: Option<&Diagnostic>) -> CommandError {
    let path = loaded.path.display();
    let place = found.map_or_else(String::new, |found| {
        let at = loaded.reading.document.source().position(found.span.start);
        format!(":{}:{}: {}", at.line, at.column, found.message)
    });
    CommandError::findings(format!("{path}{place}"))
        .hint(format!("see everything with: savoir check {path}"))
}
