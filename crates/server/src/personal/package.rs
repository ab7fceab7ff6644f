//! Reads an imported skill from a file, an archive or a folder.

use bytes::Bytes;
use savoir_package::{
    Tree, TreeError,
    archive::{self, ArchiveError},
};
use savoir_skill::{
    Diagnostic, Dialect, Document, Position, Safety, Source,
    dialect::{
        agent_flow::yaml_slips,
        personal_agent::{
            add_description, derive_handle, has_description, prepare_export, prepare_import,
            repair_fences,
        },
    },
    folder::is_skill_file,
    limits::MAX_FILE_BYTES,
};
use savoir_store::Resource;
use thiserror::Error;

/// Folders of an archive whose files belong to a skill.
const RESOURCE_FOLDERS: [&str; 3] = ["references/", "scripts/", "assets/"];
/// The file with the tools of a skill. If it exists but cannot be stored, the import fails, because
/// the skill would not work without its tools.
const TOOLS_FILE: &str = "tools.py";
/// Maximum bytes of a file that is stored.
const MAX_RESOURCE_BYTES: usize = 256 * 1024;
/// Maximum number of files in a note.
const MAX_SHOWN_FILES: usize = 10;
/// Maximum number of errors in a note.
const MAX_SHOWN_SLIPS: usize = 3;
/// Maximum bytes of a SKILL.md: leaves room for the owner.
const MAX_TEXT_BYTES: usize = MAX_FILE_BYTES - 1024;

/// An imported skill.
#[derive(Clone, Debug)]
pub struct Package {
    /// The name under which the skill is stored.
    pub name: String,
    /// The text of SKILL.md.
    pub text: String,
    /// All other files.
    pub resources: Vec<Resource>,
    /// What was repaired, for the user.
    pub notes: Vec<String>,
}

/// Which text files of a skill are stored, if they are not too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceSelection {
    /// Files in `references`, `scripts` and `assets`, and `tools.py`.
    Known,
    All,
}

/// Why files cannot be stored as a skill.
#[derive(Debug, Error)]
pub enum PackageError {
    #[error("the archive is refused: {0}")]
    Archive(#[from] ArchiveError),
    /// The files cannot be those of a skill.
    #[error("{0}")]
    Tree(#[from] TreeError),
    /// The archive has no SKILL.md, or more than one.
    #[error("{0}; pack one folder with a SKILL.md in it")]
    Layout(&'static str),
    /// The folder has no SKILL.md.
    #[error("it has no SKILL.md; add one, or move the folder elsewhere")]
    NoManifest,
    /// SKILL.md is not a text.
    #[error("SKILL.md cannot be read: {0}")]
    Text(String),
    /// SKILL.md has a NUL byte, which many programs treat as the end of the text.
    #[error(
        "SKILL.md:{line}:{column}: there is a NUL byte here; delete it, or look at it with savoir check"
    )]
    Nul { line: usize, column: usize },
    /// The frontmatter has an error that agents do not repair when they read it.
    #[error("Invalid YAML frontmatter: SKILL.md:{line}:{column}: {message}; {repair}")]
    Frontmatter { line: usize, column: usize, message: String, repair: &'static str },
    /// SKILL.md is too large.
    #[error("SKILL.md has {0} bytes, the maximum is {MAX_TEXT_BYTES}; move parts into references")]
    TooLarge(usize),
    /// `tools.py` cannot be stored.
    #[error(
        "tools.py has {0} bytes; it must be UTF-8 text without NUL bytes, of at most {MAX_RESOURCE_BYTES} bytes; the skill is not imported without its tools"
    )]
    Tools(usize),
    /// `tools.py` is a folder.
    #[error("tools.py is a folder, and must be a file: give the folder another name")]
    ToolsFolder,
    /// The skill has no name.
    #[error(
        "the skill has no name with Latin letters or digits; add `name: THE-NAME` to its frontmatter"
    )]
    NoName,
    /// The skill has no description and no text.
    #[error(
        "SKILL.md has no `description`, so that no agent knows what the skill is for; add `description: WHAT IT DOES AND WHEN TO USE IT` to its frontmatter"
    )]
    NoDescription,
}

impl PackageError {
    /// A stable error code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Archive(error) => error.code(),
            Self::Tree(error) => error.code(),
            Self::Layout(_) | Self::NoManifest => "layout",
            Self::Frontmatter { .. } => "invalid-frontmatter",
            Self::Text(_) => "skill-not-text",
            Self::TooLarge(_) => "file-too-large",
            Self::Nul { .. } => "nul-byte",
            Self::Tools(_) | Self::ToolsFolder => "tools-not-kept",
            Self::NoName => "no-name",
            Self::NoDescription => "no-description",
        }
    }
}

/// Reads a SKILL.md or a zip. The file name is used if the skill itself has no name.
pub fn from_bytes(file: Option<&str>, bytes: &[u8]) -> Result<Package, PackageError> {
    let called = file.and_then(|file| file.rsplit(['/', '\\']).next());
    let stem = called.map(|name| name.rsplit_once('.').map_or(name, |(stem, _)| stem));
    let stem = stem.filter(|stem| !stem.eq_ignore_ascii_case("skill"));
    let is_zip = called.is_some_and(|name| name.to_ascii_lowercase().ends_with(".zip"));
    if is_zip || archive::kind(bytes).is_some() {
        let tree = archive::unpack(bytes)?;
        let (folder, tree) = only_skill(tree)?;
        return from_tree(folder.as_deref().or(stem), &tree, ResourceSelection::Known);
    }
    package(None, stem, bytes, Vec::new())
}

/// Reads a SKILL.md in a folder. The folder name is used if the skill has no name.
pub fn from_manifest(folder: &str, bytes: &[u8]) -> Result<Package, PackageError> {
    package(Some(folder), None, bytes, Vec::new())
}

/// Reads the files of a skill from a folder. The folder name is used if the skill has no name.
pub fn from_tree(
    folder: Option<&str>,
    tree: &Tree,
    keep: ResourceSelection,
) -> Result<Package, PackageError> {
    let manifest = tree.files().find(|(path, _)| is_skill_file(path));
    let Some((_, manifest)) = manifest else {
        return Err(PackageError::NoManifest);
    };
    let is_below_tools =
        |path: &str| path.strip_prefix(TOOLS_FILE).is_some_and(|rest| rest.starts_with('/'));
    if tree.files().any(|(path, _)| is_below_tools(path)) {
        return Err(PackageError::ToolsFolder);
    }
    let mut resources = Vec::new();
    let mut left_out = LeftOut::default();
    for (path, file) in tree.files() {
        let wanted = keep == ResourceSelection::All
            || path == TOOLS_FILE
            || RESOURCE_FOLDERS.iter().any(|known| path.starts_with(known));
        let fits = file.bytes.len() <= MAX_RESOURCE_BYTES
            && is_text(&file.bytes)
            && Resource::can_be_at(path);
        if wanted && fits {
            resources.push(Resource {
                path: path.to_owned(),
                bytes: Bytes::copy_from_slice(&file.bytes),
                executable: file.executable,
            });
        } else if path == TOOLS_FILE {
            return Err(PackageError::Tools(file.bytes.len()));
        } else if !is_skill_file(path) {
            tracing::debug!(path, "a file of a skill is left out");
            left_out.list(wanted).push(path.to_owned());
        }
    }
    let mut package = package(folder, None, &manifest.bytes, resources)?;
    package.notes.extend(left_out.notes());
    Ok(package)
}

/// The files of a skill that are not stored.
#[derive(Default)]
struct LeftOut {
    /// Those in folders that are not stored.
    elsewhere: Vec<String>,
    /// Those that cannot be stored.
    unfit: Vec<String>,
}

impl LeftOut {
    fn list(&mut self, wanted: bool) -> &mut Vec<String> {
        if wanted { &mut self.unfit } else { &mut self.elsewhere }
    }

    fn notes(&self) -> impl Iterator<Item = String> {
        let note = |files: &[String], why: &str| {
            let shown = files.iter().take(MAX_SHOWN_FILES).map(|path| format!("`{path}`"));
            let shown = shown.collect::<Vec<_>>().join(", ");
            let more = files.len().saturating_sub(MAX_SHOWN_FILES);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            (!files.is_empty()).then(|| format!("not stored: {shown}{more}; {why}"))
        };
        let elsewhere = "only files in references, scripts and assets are";
        let unfit = "files must be UTF-8 text of at most 256 KiB, with a plain name";
        note(&self.elsewhere, elsewhere).into_iter().chain(note(&self.unfit, unfit))
    }
}

fn package(
    folder: Option<&str>,
    stem: Option<&str>,
    bytes: &[u8],
    resources: Vec<Resource>,
) -> Result<Package, PackageError> {
    if bytes.len() > MAX_TEXT_BYTES {
        return Err(PackageError::TooLarge(bytes.len()));
    }
    let source = Source::from_bytes(bytes.to_vec());
    let source = source.map_err(|error| PackageError::Text(error.to_string()))?;
    let text = source.text();
    if let Some(nul) = text.find('\0') {
        let Position { line, column } = source.position(nul);
        return Err(PackageError::Nul { line, column });
    }
    if text.trim().is_empty() {
        return Err(PackageError::Text("it is empty".to_owned()));
    }
    let mut notes = Vec::new();
    let stripped = without_leading_blank_lines(text);
    if stripped.len() < text.len() {
        notes.push("blank lines before the frontmatter were removed".to_owned());
    }
    let fenced = repair_fences(stripped);
    if let Some((_, repairs)) = &fenced {
        let repairs = repairs.join("; ");
        notes
            .push(format!("the frontmatter was repaired as savoir check --fix does it: {repairs}"));
    }
    let text = fenced.as_ref().map_or(stripped, |(text, _)| text.as_str());
    notes.extend(read_frontmatter(text)?);
    let name = derive_handle(text, folder, stem).ok_or(PackageError::NoName)?;
    let original = text;
    let mut text = prepare_import(original, &name);
    if !has_description(&text) {
        check_can_be_edited(original)?;
        let is_replaced = has_value(&text, "description");
        text = add_description(&text).ok_or(PackageError::NoDescription)?;
        notes.push(if is_replaced {
            "the `description` of SKILL.md is not a text; the first paragraph of the instructions \
             replaces it"
                .to_owned()
        } else {
            "SKILL.md has no `description`; the first paragraph of its text was added as one"
                .to_owned()
        });
    }
    if let Some(note) = describe_metadata(&text) {
        notes.push(note);
    }
    Ok(Package { name, text, resources, notes })
}

/// Refuses a frontmatter whose YAML has errors: a new line in it could change the others.
fn check_can_be_edited(text: &str) -> Result<(), PackageError> {
    let slip = yaml_slips(text).ok().and_then(|slips| slips.into_iter().next());
    slip.map_or(Ok(()), |problem| {
        let source = Source::new(text.to_owned());
        let Position { line, column } = source.position(problem.span.start);
        let repair = "repair it with: savoir check --fix";
        Err(PackageError::Frontmatter { line, column, message: problem.message, repair })
    })
}

/// Checks the YAML of a file. Returns a note if it has errors that agents repair when they read it,
/// or if the file has an opening fence but no frontmatter.
fn read_frontmatter(text: &str) -> Result<Option<String>, PackageError> {
    let source = Source::new(text.to_owned());
    let slips = yaml_slips(text).map_err(|problem| {
        let Position { line, column } = source.position(problem.span.start);
        let repair = match problem.fix.as_ref().map(|fix| fix.safety) {
            Some(Safety::Safe) => "repair it with: savoir check --fix",
            Some(Safety::Unsafe) => {
                "repair it, or see what savoir check --fix --unsafe would change"
            }
            None => "repair it; savoir check shows the place",
        };
        PackageError::Frontmatter { line, column, message: problem.message, repair }
    })?;
    let shown: Vec<String> = slips
        .iter()
        .take(MAX_SHOWN_SLIPS)
        .map(|Diagnostic { span, message, .. }| {
            format!("SKILL.md:{}: {message}", source.position(span.start).line)
        })
        .collect();
    if !shown.is_empty() {
        return Ok(Some(format!(
            "{}; agents read the file as if this were repaired, and so does this server; the file is \
             stored unchanged: to repair it, run savoir check --fix",
            shown.join("; ")
        )));
    }
    let document = Document::parse_with(source, Dialect::PERSONAL_AGENT.fences());
    let is_unclosed = document.layout().block.is_some_and(|block| block.close.is_none());
    Ok(is_unclosed.then(|| {
        "the frontmatter of SKILL.md is never closed, so the whole file counts as instructions; if it \
         has fields, add a line `---` after the last one"
            .to_owned()
    }))
}

/// Whether a field has a value, of any type.
fn has_value(text: &str, field: &str) -> bool {
    let document = Document::parse(Source::new(text.to_owned()));
    let yaml = Dialect::PERSONAL_AGENT.yaml();
    document.field(field).is_some_and(|node| !node.is_null(yaml) && node.text() != Some(""))
}

/// Explains what an export does with a `metadata` that is not a map.
fn describe_metadata(text: &str) -> Option<String> {
    let document = Document::parse(Source::new(text.to_owned()));
    let metadata = document.field("metadata")?;
    let is_map = metadata.entries().is_some() || metadata.is_null(Dialect::PERSONAL_AGENT.yaml());
    (!is_map).then(|| {
        "`metadata` is not a map of fields, which other programs may refuse; an export writes its \
         value as the field `metadata` of a map"
            .to_owned()
    })
}

/// Removes blank lines before the frontmatter. Other programs do not recognize a frontmatter after
/// blank lines.
fn without_leading_blank_lines(text: &str) -> &str {
    let mut rest = text;
    while let Some((line, after)) = rest.split_once('\n')
        && line.trim().is_empty()
    {
        rest = after;
    }
    let first = rest.lines().next().unwrap_or_default();
    if first.trim_end() == "---" { rest } else { text }
}

/// Whether a file can be shown to a model. A file with a NUL byte is binary, even if it is UTF-8.
pub(crate) fn is_text(bytes: &[u8]) -> bool {
    !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok()
}

/// The only skill of an archive, at its root or one folder down, with the name of that folder.
/// Files beside that folder are ignored.
fn only_skill(tree: Tree) -> Result<(Option<String>, Tree), PackageError> {
    let mut folders = tree.files().filter_map(|(path, _)| match path.split_once('/') {
        None if is_skill_file(path) => Some(String::new()),
        Some((folder, name)) if is_skill_file(name) => Some(folder.to_owned()),
        _ => None,
    });
    let folder = match (folders.next(), folders.next()) {
        (Some(folder), None) => folder,
        (None, _) => {
            return Err(PackageError::Layout("it has no SKILL.md at its root or one folder down"));
        }
        (Some(_), Some(_)) => return Err(PackageError::Layout("it has more than one SKILL.md")),
    };
    drop(folders);
    if folder.is_empty() {
        return Ok((None, tree));
    }
    let mut skill = Tree::default();
    for (path, file) in tree.into_files() {
        let inside = path.strip_prefix(&folder).and_then(|rest| rest.strip_prefix('/'));
        if let Some(inside) = inside {
            skill.add(inside.to_owned(), file)?;
        }
    }
    Ok((Some(folder), skill))
}

/// An exported skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exported {
    /// The SKILL.md, if there are no other files.
    Text(String),
    /// A zip with the folder of the skill.
    Zip(Vec<u8>),
}

/// Exports a skill.
pub fn to_others(
    name: &str,
    text: &str,
    resources: Vec<Resource>,
) -> Result<Exported, PackageError> {
    let text = prepare_export(text, name);
    if resources.is_empty() {
        return Ok(Exported::Text(text));
    }
    let mut tree = Tree::default();
    let manifest = savoir_package::File { bytes: text.into_bytes(), executable: false };
    tree.add("SKILL.md".to_owned(), manifest)?;
    for resource in resources {
        let Resource { path, bytes, executable } = resource;
        tree.add(path, savoir_package::File { bytes: bytes.into(), executable })?;
    }
    Ok(Exported::Zip(archive::pack(name, &tree)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Tree {
        let mut tree = Tree::default();
        for (path, text) in files {
            let file = savoir_package::File { bytes: text.as_bytes().to_vec(), executable: false };
            tree.add((*path).to_owned(), file).unwrap();
        }
        tree
    }

    #[test]
    fn archive_import_keeps_skill_files() {
        let large = "x".repeat(MAX_RESOURCE_BYTES + 1);
        let all = tree(&[
            ("SKILL.md", "---\nname: Pdf Tools\ndescription: d\n---\nx\n"),
            ("references/a.md", "a"),
            ("scripts/run.sh", "#!"),
            ("references/large.md", &large),
            ("notes.md", "n"),
            ("references/.hidden", "h"),
        ]);
        let zip = archive::pack("pdf", &all).unwrap();
        let package = from_bytes(Some("pdf.zip"), &zip).unwrap();
        assert_eq!(package.name, "pdf-tools");
        assert!(package.text.starts_with("---\nname: pdf-tools\n"), "{}", package.text);
        let paths: Vec<_> = package.resources.iter().map(|one| one.path.as_str()).collect();
        assert_eq!(paths, ["references/a.md", "scripts/run.sh"]);
        let [elsewhere, unfit] = package.notes.as_slice() else { panic!("{:?}", package.notes) };
        let known = "not stored: `notes.md`; only files in references, scripts and assets are";
        assert_eq!(elsewhere, known);
        assert!(unfit.contains("`references/large.md`") && unfit.contains("256 KiB"), "{unfit}");
        let every = from_tree(None, &all, ResourceSelection::All).unwrap();
        assert_eq!(every.resources.len(), 3, "for integrations, other files, too");

        let again = to_others(&package.name, &package.text, package.resources.clone()).unwrap();
        let Exported::Zip(zip) = again else { panic!("it has files") };
        let again = from_bytes(None, &zip).unwrap();
        assert_eq!((again.text, again.resources), (package.text, package.resources));
    }

    #[test]
    fn missing_description_is_repaired_and_reported() {
        let package = from_bytes(None, b"---\nname: tea\n---\nBoil water.\n").unwrap();
        assert_eq!(package.text, "---\nname: tea\ndescription: Boil water.\n---\nBoil water.\n");
        assert!(package.notes[0].contains("has no `description`"), "{:?}", package.notes);
        let fine = from_bytes(None, b"---\nname: a\ndescription: d\n---\nx\n").unwrap();
        assert!(fine.notes.is_empty());
    }

    #[test]
    fn blank_lines_before_the_frontmatter_are_removed_and_reported() {
        for blank in ["\n\n", " \n", "\r\n"] {
            let text = format!("{blank}---\nname: tea\ndescription: d\n---\nBoil.\n");
            let package = from_bytes(None, text.as_bytes()).unwrap();
            assert_eq!(package.text, text[blank.len()..]);
            assert_eq!(package.notes, ["blank lines before the frontmatter were removed"]);
        }
        let plain = from_bytes(Some("tea.md"), b"\n\nBoil water.\n").unwrap();
        assert!(plain.notes.is_empty() && plain.text.contains("Boil water."), "{plain:?}");
    }

    #[test]
    fn errors_that_agents_repair_are_stored_and_reported() {
        for (fields, message) in [
            ("description: Reviews code: style and bugs", "SKILL.md:3:"),
            ("description: @team reviews", "SKILL.md:3:"),
            ("description: \"Reviews\" code", "SKILL.md:3:"),
            ("description: d\nallowed-tools: - Read", "SKILL.md:4:"),
        ] {
            let text = format!("---\nname: col\n{fields}\n---\nB\n");
            let package = from_bytes(None, text.as_bytes()).unwrap();
            assert_eq!(package.text, text);
            let notes = package.notes.join("\n");
            assert!(notes.starts_with(message) && notes.contains("savoir check --fix"), "{notes}");
        }
        for (text, message) in [
            ("---\nname: [x\ndescription: d\n---\nB\n", "SKILL.md:"),
            ("---\nname: x\nwhen-to-use: a: b\ndescription: d\n---\nB\n", "SKILL.md:3:"),
            ("---\nname: x\n\t- {: [\n---\nB\n", "SKILL.md:"),
        ] {
            let error = from_bytes(None, text.as_bytes()).unwrap_err();
            assert_eq!(error.code(), "invalid-frontmatter", "{error}");
            let shown = error.to_string();
            assert!(shown.contains(message) && shown.contains("savoir check"), "{shown}");
        }
    }

    #[test]
    fn missing_fences_are_added_and_reported() {
        let package = from_bytes(None, b"---\nname: a\ndescription: d\n\nB\n").unwrap();
        assert_eq!(package.text, "---\nname: a\ndescription: d\n---\n\nB\n");
        assert!(package.notes[0].contains("is never closed"), "{:?}", package.notes);
        let prose = from_bytes(Some("tea.md"), b"---\nBoil water.\n").unwrap();
        assert!(prose.notes[0].contains("is never closed"), "{:?}", prose.notes);
    }

    #[test]
    fn fields_of_other_types_are_reported() {
        let text = b"---\nname: a\ndescription: [a, b]\nmetadata: just text\n---\nBoil.\n";
        let Package { text, notes, .. } = from_bytes(None, text).unwrap();
        assert!(text.contains("description: Boil.\nmetadata: just text\n"), "{text}");
        assert!(notes[0].starts_with("the `description` of SKILL.md is not a text"), "{notes:?}");
        assert!(notes[1].starts_with("`metadata` is not a map"), "{notes:?}");
    }

    #[test]
    fn folder_names_a_skill_without_a_usable_name() {
        for text in ["Boil water.", "---\nname: \u{65e5}\u{672c}\ndescription: d\n---\n# Foo Bar\n"]
        {
            assert_eq!(from_manifest("green-tea", text.as_bytes()).unwrap().name, "green-tea");
        }
    }

    #[test]
    fn files_with_nul_bytes_are_binary() {
        let files = [
            ("SKILL.md", "---\nname: a\ndescription: d\n---\nx\n"),
            ("references/a.bin", "a\0b"),
            ("references/b.md", "b"),
        ];
        let package = from_tree(None, &tree(&files), ResourceSelection::All).unwrap();
        let paths: Vec<_> = package.resources.iter().map(|one| one.path.as_str()).collect();
        assert_eq!(paths, ["references/b.md"]);
    }

    #[test]
    fn invalid_skills_are_rejected() {
        let two = archive::pack("x", &tree(&[("a.md", "a")])).unwrap();
        for (file, bytes, code) in [
            (None, &b""[..], "skill-not-text"),
            (None, b"\xff\xfe\x00", "skill-not-text"),
            (None, b"---\nname: a\n---\nx\0", "nul-byte"),
            (None, b"text without a name", "no-name"),
            (None, b"---\nname: a\n---\n# A\n", "no-description"),
            (None, b"---\nname: a\ndescription: ''\n---\n", "no-description"),
            (Some("x.zip"), b"no zip", "not_an_archive"),
            (None, &two, "layout"),
        ] {
            let error = from_bytes(file, bytes).unwrap_err();
            assert_eq!(error.code(), code, "{error}");
        }
        let manifest = ("SKILL.md", "---\nname: a\n---\nx\n");
        for files in [[manifest, ("tools.py/x", "x")], [manifest, ("tools.py", "x\0")]] {
            for keep in [ResourceSelection::Known, ResourceSelection::All] {
                let error = from_tree(None, &tree(&files), keep).unwrap_err();
                assert_eq!(error.code(), "tools-not-kept", "{error}");
            }
        }
        assert_eq!(from_bytes(Some("Tea.md"), b"Boil water.").unwrap().name, "tea");
        assert!(from_bytes(Some("SKILL.md"), b"Boil water.").is_err());
    }
}
