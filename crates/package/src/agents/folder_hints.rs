//! Guesses the dialect of a skill from its folder.

use std::path::{Component, Path};

use savoir_skill::{Dialect, Hint};

use super::{Agent, FolderBase, table};

/// The folder that marks a plugin, or a plugin marketplace, of Claude Code.
pub const PLUGIN_FOLDER: &str = ".claude-plugin";

/// The dialect hint for skills in a plugin of Claude Code.
pub fn plugin_hint() -> Hint {
    let why = format!("it is part of a plugin: there is a `{PLUGIN_FOLDER}`");
    Hint { dialect: Dialect::CLAUDE_CODE, why }
}

/// Returns the dialect hint of a path without accessing the disk: whether the path contains the
/// skills folder of an agent, such as `.claude/skills`. The innermost one counts.
///
/// ```
/// use savoir_package::agents::hint_of_path;
/// use savoir_skill::Dialect;
///
/// let hint = hint_of_path("app/.claude/skills/pdf".as_ref()).map(|hint| hint.dialect);
/// assert_eq!(hint, Some(Dialect::CLAUDE_CODE));
/// assert_eq!(hint_of_path("app/skills/pdf".as_ref()), None);
/// ```
pub fn hint_of_path(path: &Path) -> Option<Hint> {
    let parts: Vec<&str> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(part) => part.to_str(),
            _ => None,
        })
        .collect();
    let starts = (0..parts.len()).rev().filter(|at| parts[*at].starts_with('.'));
    starts.into_iter().find_map(|at| {
        let mut folders = skills_folders();
        let (folder, dialect) =
            folders.find(|(folder, _)| starts_with_folder(&parts[at..], *folder))?;
        let folder: Vec<&str> = parts_of(folder).collect();
        Some(Hint { dialect, why: format!("it lies in `{}`", folder.join("/")) })
    })
}

/// Returns the dialect hint of a folder on disk: from its path, or from the plugin that contains
/// it.
pub fn hint_at(folder: &Path) -> Option<Hint> {
    let absolute = folder.canonicalize().ok()?;
    hint_of_path(&absolute).or_else(|| is_in_plugin(&absolute).then(plugin_hint))
}

/// Whether a folder is a plugin or inside one; the search ends at the root of the repository.
pub fn is_in_plugin(absolute: &Path) -> bool {
    for folder in absolute.ancestors() {
        if folder.join(PLUGIN_FOLDER).is_dir() {
            return true;
        }
        if folder.join(".git").exists() {
            return false;
        }
    }
    false
}

/// A path in two parts, of which the first may be empty.
type FolderParts = [&'static str; 2];

/// Returns the skills folders of all agents with their dialects; shared folders come first.
fn skills_folders() -> impl Iterator<Item = (FolderParts, Dialect)> {
    let shared = (["", table::AGENTS], Dialect::AGENTSKILLS);
    let own = Agent::ALL.iter().flat_map(|agent| {
        let project = agent.project.iter().map(|folder| ["", *folder]);
        let user = agent.user.iter().chain(agent.former).filter_map(|folder| match folder.base {
            FolderBase::Home => Some(["", folder.path]),
            FolderBase::Variable { otherwise, .. } => Some([otherwise, folder.path]),
            FolderBase::Config => Some([".config", folder.path]),
            FolderBase::System => None,
        });
        project.chain(user).map(|folder| (folder, agent.dialect))
    });
    let is_own = |folder: &FolderParts| parts_of(*folder).count() > 1;
    std::iter::once(shared).chain(own.filter(move |(folder, _)| is_own(folder)))
}

fn parts_of(folder: FolderParts) -> impl Iterator<Item = &'static str> {
    folder.into_iter().flat_map(|piece| piece.split('/')).filter(|part| !part.is_empty())
}

fn starts_with_folder(parts: &[&str], folder: FolderParts) -> bool {
    let mut parts = parts.iter();
    parts_of(folder).all(|part| parts.next() == Some(&part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn innermost_agent_folder_decides_dialect() {
        let dialect = |path: &str| hint_of_path(path.as_ref()).map(|hint| hint.dialect);
        assert_eq!(dialect("/home/a/.claude/skills/x"), Some(Dialect::CLAUDE_CODE));
        assert_eq!(dialect(".codex/skills/group/x"), Some(Dialect::CODEX));
        assert_eq!(dialect("a/.agents/skills/x"), Some(Dialect::AGENTSKILLS));
        assert_eq!(dialect(".gaia/skills/x"), Some(Dialect::GAIA));
        assert_eq!(dialect(".openclaw/skills/x"), Some(Dialect::OPENCLAW));
        assert_eq!(dialect("a/.config/gibberish/skills/x"), Some(Dialect::GIBBERISH));
        assert_eq!(dialect(".config/gibberish/other/x"), None);
        assert_eq!(dialect(".claude/skills/x/.codex/skills/y"), Some(Dialect::CODEX));
        assert_eq!(dialect(".claude/other/x"), None);
        assert_eq!(dialect("skills/x"), None);
    }

    #[test]
    fn plugin_includes_its_whole_repository() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        std::fs::create_dir_all(at("plugin/.claude-plugin")).unwrap();
        std::fs::create_dir_all(at("plugin/skills/x")).unwrap();
        std::fs::create_dir_all(at("plugin/other/.git")).unwrap();
        std::fs::create_dir_all(at("plugin/other/y")).unwrap();
        assert_eq!(hint_at(&at("plugin/skills/x")), Some(plugin_hint()));
        assert_eq!(hint_at(&at("plugin/other/y")), None);
        assert_eq!(hint_at(&at("missing")), None);
    }
}
