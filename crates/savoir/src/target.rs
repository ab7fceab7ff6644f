//! What `savoir run` and its relatives are pointed at: a skill by path or name, and one of its
//! tools.

use std::{
    env,
    path::{Path, PathBuf},
};

use savoir_engine::Home;
use savoir_skill::folder::is_skill_file;

use crate::error::CommandError;

/// A skill and one of its tools, or a script of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) skill: PathBuf,
    pub(crate) tool: Option<String>,
}

/// Finds the skill: the longest beginning of the text that is one.
pub(crate) fn find(text: &str, home: &Home) -> Result<Target, CommandError> {
    let text = text.trim_end_matches('/');
    let mut end = text.len();
    loop {
        let (skill, rest) = text.split_at(end);
        let tool = Some(rest.trim_start_matches('/')).filter(|tool| !tool.is_empty());
        if let Some(skill) = skill_at(skill, home) {
            return Ok(Target { skill, tool: tool.map(str::to_owned) });
        }
        match skill.rfind('/') {
            Some(slash) if slash > 0 => end = slash,
            _ => break,
        }
    }
    Err(CommandError::input(format!("there is no skill at `{text}`"))
        .hint("name a skill's folder, a slash and one of its tools")
        .hint("skills are also found by name in ~/.local/share/savoir/skills, ~/.gaia/skills and ~/.config/gibberish/skills"))
}

/// A folder with a skill, a file, or the name of an installed skill.
fn skill_at(text: &str, home: &Home) -> Option<PathBuf> {
    let path = Path::new(text);
    if is_skill(path) {
        return Some(path.to_owned());
    }
    let is_name = !text.is_empty() && !text.contains('/') && !text.starts_with('.');
    let folders = shelves(home).into_iter().filter(|_| is_name);
    folders.map(|folder| folder.join(text)).find(|path| is_skill(path))
}

fn is_skill(path: &Path) -> bool {
    if path.is_file() {
        return path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("md"));
    }
    let entries = path.read_dir().into_iter().flatten().flatten();
    entries.into_iter().any(|entry| is_skill_file(&entry.file_name().to_string_lossy()))
}

/// Folders in which skills are found by name.
pub(crate) fn shelves(home: &Home) -> Vec<PathBuf> {
    let user = env::var_os("HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let of_user = [".gaia/skills", ".config/gibberish/skills"];
    let of_user = user.into_iter().flat_map(|user| of_user.map(|folder| user.join(folder)));
    std::iter::once(home.data().join("skills")).chain(of_user).collect()
}
