//! Determines how a program or a script of a skill is started. Scripts do not need the execute bit:
//! authors forget it, and archives and some file systems lose it.

use std::{
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};

use crate::{
    approval::Program,
    error::RunError,
    grant::{self, ProgramError},
    loaded_skill::LoadedSkill,
};

/// Interpreters by file extension. The first one that is installed is used.
const BY_END: [(&str, &[&str]); 14] = [
    ("sh", &["bash", "sh"]),
    ("bash", &["bash"]),
    ("zsh", &["zsh"]),
    ("fish", &["fish"]),
    ("py", &["python3"]),
    ("js", &["node", "bun", "deno"]),
    ("mjs", &["node", "bun", "deno"]),
    ("cjs", &["node", "bun"]),
    ("ts", &["tsx", "bun", "deno", "node"]),
    ("mts", &["tsx", "bun", "deno", "node"]),
    ("rb", &["ruby"]),
    ("pl", &["perl"]),
    ("php", &["php"]),
    ("lua", &["lua"]),
];

/// Programs whose first argument that is not an option is a script, each with the options that are
/// followed by code or a module instead.
const TAKE_SCRIPTS: [(&str, &[&str]); 15] = [
    ("bash", &["-c"]),
    ("bun", &["-e", "--eval", "-p", "--print"]),
    ("dash", &["-c"]),
    ("deno", &["eval"]),
    ("fish", &["-c"]),
    ("ksh", &["-c"]),
    ("lua", &["-e"]),
    ("node", &["-e", "--eval", "-p", "--print"]),
    ("perl", &["-e", "-E"]),
    ("php", &["-r"]),
    ("python", &["-c", "-m"]),
    ("ruby", &["-e"]),
    ("sh", &["-c"]),
    ("tsx", &["-e", "--eval"]),
    ("zsh", &["-c"]),
];

/// Bytes of a script that are read to find its first line.
const MAX_SHEBANG_BYTES: u64 = 512;

/// A program, with the arguments that must come before those of the caller.
pub(crate) struct Start {
    pub(crate) program: Program,
    pub(crate) arguments: Vec<String>,
}

/// Resolves a program name of a skill: a program of the system, or a file of the skill.
pub(crate) fn start(loaded_skill: &LoadedSkill, word: &str) -> Result<Start, RunError> {
    let folder = loaded_skill.folder.as_deref();
    match resolve(word, folder) {
        Err(ProgramError::NotExecutable { path, .. }) if path.is_file() => interpreted(&path, word),
        // The kernel cannot start a script without a `#!` line.
        Ok(program) if is_text_without_interpreter(&program.path) => {
            interpreted(&program.path, word)
        }
        Ok(program) if is_run_by_another(&program.path) => interpreted(&program.path, word),
        program => Ok(Start { program: program?, arguments: Vec::new() }),
    }
}

/// Finds a program. `python` falls back to `python3`, the only name on many systems.
fn resolve(word: &str, folder: Option<&Path>) -> Result<Program, ProgramError> {
    match grant::resolve(word, folder) {
        Err(ProgramError::NotFound(_)) if is_python(word) => grant::resolve("python3", None),
        found => found,
    }
}

fn is_python(word: &str) -> bool {
    matches!(word, "python" | "/usr/bin/python" | "/usr/local/bin/python" | "/bin/python")
}

/// Replaces the script in the arguments of an interpreter by its absolute path, if it is a file of
/// the skill: authors write `python3 scripts/x.py`, but the program starts in the user's folder.
/// Only the first `written` arguments are examined, which the skill's author wrote.
pub(super) fn locate_script(
    loaded_skill: &LoadedSkill,
    program: &Program,
    arguments: &mut [String],
    written: usize,
) {
    let name = program.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let Some((_, no_script)) = TAKE_SCRIPTS.iter().find(|(known, _)| *known == name) else {
        return;
    };
    let written = arguments.iter_mut().take(written);
    let written = written.take_while(|word| !no_script.contains(&word.as_str()));
    for word in written.filter(|word| !word.starts_with('-')) {
        if let Some(path) = loaded_skill.folder.as_deref().and_then(|folder| file_in(folder, word))
        {
            *word = path.to_string_lossy().into_owned();
            return;
        }
    }
}

/// Replaces placeholders for the skill's folder in a word of the author, since no shell does it. In
/// a text of several words, which is code, variables are left to the shell.
pub(super) fn fill_folder(loaded_skill: &LoadedSkill, word: &str) -> String {
    let Some(folder) = &loaded_skill.folder else { return word.to_owned() };
    let folder = folder.to_string_lossy();
    let mut word = word.replace("{baseDir}", &folder);
    if !word.contains(char::is_whitespace) {
        for name in ["SKILL_DIR", "CLAUDE_SKILL_DIR"] {
            word = word.replace(&format!("${{{name}}}"), &folder);
            if let Some(rest) = word.strip_prefix(&format!("${name}/")) {
                word = format!("{folder}/{rest}");
            }
        }
    }
    word
}

/// The absolute path of a file in the skill's folder.
fn file_in(folder: &Path, word: &str) -> Option<PathBuf> {
    let path = folder.join(word).canonicalize().ok()?;
    (path.starts_with(folder) && path.is_file()).then_some(path)
}

/// Starts a script with its interpreter. `word` is the script as the command names it.
pub(super) fn interpreted(script: &Path, word: &str) -> Result<Start, RunError> {
    let first = first_line(script);
    let (program, mut arguments) = match first.as_deref().and_then(|line| line.strip_prefix("#!")) {
        Some(line) => by_first_line(script, word, line)?,
        None => (by_end(script, word)?, Vec::new()),
    };
    arguments.push(script.to_string_lossy().into_owned());
    Ok(Start { program, arguments })
}

/// The interpreter that the first line names, with its arguments. If its path does not exist on
/// this machine, it is searched by its name.
fn by_first_line(
    script: &Path,
    word: &str,
    line: &str,
) -> Result<(Program, Vec<String>), RunError> {
    let mut words = interpreter_words(line);
    let name = words.next().unwrap_or_default();
    if name.is_empty() {
        return Ok((by_end(script, word)?, Vec::new()));
    }
    let base = name.rsplit('/').next().unwrap_or(name);
    if base == UV {
        return Ok((grant::resolve("python3", None)?, Vec::new()));
    }
    let program = grant::resolve(name, None).or_else(|_| resolve(base, None));
    let program = program.map_err(|error| {
        let message = format!("{} needs `{base}`: {error}", script.display());
        RunError::cannot_start(error.code(), message).with_hint(format!("install `{base}`"))
    })?;
    Ok((program, words.map(str::to_owned).collect()))
}

/// The words of a `#!` line, without `env`.
fn interpreter_words(line: &str) -> impl Iterator<Item = &str> {
    let mut words = line.split_whitespace().peekable();
    if words.next_if(|word| word.ends_with("/env")).is_some() {
        words.next_if(|word| matches!(*word, "-S" | "--split-string"));
    }
    words
}

/// `uv run --script` installs packages and starts Python. Savoir installs the packages before the
/// run, so only Python is started.
const UV: &str = "uv";

/// The number of words of `uv run --script x.py` before the script, if that is the command. Only
/// words that the skill's author wrote are examined.
pub(super) fn words_of_uv(program: &str, arguments: &[String], written: usize) -> Option<usize> {
    const OPTIONS: [&str; 7] =
        ["--script", "-s", "--quiet", "-q", "--no-project", "--isolated", "python3"];
    let mut words = arguments.iter().take(written).map(String::as_str);
    if program != UV || words.next() != Some("run") {
        return None;
    }
    let count = 1 + words.clone().take_while(|word| OPTIONS.contains(word)).count();
    let script = words.find(|word| !OPTIONS.contains(word))?;
    Path::new(script).extension().is_some_and(|end| end == "py").then_some(count)
}

/// The name of the interpreter in the first line of a script.
pub(super) fn named_interpreter(script: &Path) -> Option<String> {
    let line = first_line(script)?;
    let word = interpreter_words(line.strip_prefix("#!")?).next()?;
    let name = word.rsplit('/').next().unwrap_or(word);
    Some(if name == UV { "python3" } else { name }.to_owned())
}

/// Whether a script must be started by another program than its `#!` line names.
fn is_run_by_another(script: &Path) -> bool {
    let line = first_line(script);
    let words = line.as_deref().and_then(|line| line.strip_prefix("#!")).map(interpreter_words);
    let Some(word) = words.and_then(|mut words| words.next()) else { return false };
    word.rsplit('/').next() == Some(UV) || is_python(word) && grant::resolve(word, None).is_err()
}

/// Whether a file of a skill looks by its name like a script that a user runs.
pub fn is_script_name(path: &str) -> bool {
    let path = Path::new(path);
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
    match path.extension().and_then(|end| end.to_str()) {
        Some(end) => is_known_end(end) && !name.starts_with("__"),
        None => !name.starts_with('.') && name.chars().any(char::is_lowercase),
    }
}

fn is_known_end(end: &str) -> bool {
    BY_END.iter().any(|(known, _)| end.eq_ignore_ascii_case(known))
}

fn by_end(script: &Path, word: &str) -> Result<Program, RunError> {
    let end = script.extension().and_then(|end| end.to_str()).unwrap_or_default();
    let end = end.to_ascii_lowercase();
    let Some((_, names)) = BY_END.iter().find(|(known, _)| *known == end) else {
        let is_text = first_line(script).is_some_and(|line| !line.contains('\0'));
        let error =
            RunError::cannot_start("permission-denied", format!("Permission denied: {word}"));
        return Err(error.with_hint(if is_text {
            "it is not known which program runs it: begin the file with a line such as \
             #!/usr/bin/env python3"
                .to_owned()
        } else {
            format!("chmod +x {}", script.display())
        }));
    };
    let found = names.iter().find_map(|name| grant::resolve(name, None).ok());
    found.ok_or_else(|| {
        let message = format!("{} needs `{}`, which is not installed", script.display(), names[0]);
        RunError::cannot_start("command-not-found", message)
            .with_hint(format!("install `{}`", names[0]))
    })
}

/// Whether a file is a script without a `#!` line.
fn is_text_without_interpreter(path: &Path) -> bool {
    path.extension().and_then(|end| end.to_str()).is_some_and(is_known_end)
        && first_line(path).is_some_and(|line| !line.starts_with("#!"))
}

/// The first line of a text.
fn first_line(path: &Path) -> Option<String> {
    let mut head = Vec::new();
    File::open(path).ok()?.take(MAX_SHEBANG_BYTES).read_to_end(&mut head).ok()?;
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    String::from_utf8(line.strip_suffix(b"\r").unwrap_or(line).to_vec()).ok()
}
