//! [`Obeyed`]: what other programs execute or obey, wherever it lies.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use savoir_package::{Agent, agents::Foreign};

use super::files::{PROTECTED_IN_PROJECT, protected_paths};
use crate::ground::Ground;

/// Settings of agents and editors that no folder of skills leads to.
const SETTINGS: [&str; 7] = [
    "opencode.json",
    "opencode.jsonc",
    "crush.json",
    ".crush.json",
    ".aider.conf.yml",
    ".zed",
    ".devcontainer",
];

/// What of a folder makes git take it for a repository, and read its settings.
pub(crate) const SIGNS_OF_GIT: [&str; 4] = ["HEAD", "commondir", "objects", "refs"];

/// Names that are obeyed in every folder, and places that are obeyed where they are.
#[derive(Clone, Debug)]
pub(crate) struct Obeyed {
    /// In small letters, since some disks do not tell them apart.
    names: HashSet<String>,
    places: HashSet<PathBuf>,
}

impl Obeyed {
    /// What is obeyed around a place of work.
    pub(crate) fn of(ground: &Ground) -> Self {
        let own = PROTECTED_IN_PROJECT.iter().chain(&SETTINGS).map(|name| (*name).to_owned());
        let mut names: HashSet<String> = own.collect();
        let mut places: HashSet<PathBuf> = protected_paths(ground, &[]).into_iter().collect();
        for folder in Agent::ALL.iter().flat_map(project_folders) {
            match folder.split('/').next() {
                // `.github` has more than skills in it.
                Some(first) if first.starts_with('.') && first != ".github" => {
                    names.insert(first.to_owned());
                }
                _ => {
                    let roots = [Some(&ground.directory), ground.repository.as_ref()];
                    places.extend(roots.into_iter().flatten().map(|root| root.join(folder)));
                }
            }
        }
        Self { names, places }
    }

    /// Whether it is obeyed what lies at a path.
    pub(crate) fn is(&self, path: &Path) -> bool {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| self.names.contains(&name.to_ascii_lowercase()))
            || self.places.contains(path)
    }

    /// Whether a path below a folder is obeyed, or lies in something that is.
    pub(crate) fn covers(&self, path: &Path, root: &Path) -> bool {
        path.ancestors().take_while(|part| *part != root).any(|part| self.is(part))
    }
}

fn project_folders(agent: &Agent) -> impl Iterator<Item = &'static str> {
    let others = agent.also_reads.iter().filter_map(|folder| match folder {
        Foreign::Project(folder) => Some(*folder),
        Foreign::User(_) => None,
    });
    agent.project.iter().copied().chain(others)
}

/// Whether git takes a folder for a repository, of which some of the [signs](SIGNS_OF_GIT) are there.
pub(crate) fn is_repository(has: impl Fn(&str) -> bool) -> bool {
    has("HEAD") && (has("commondir") || (has("objects") && has("refs")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_count_everywhere_and_folders_where_agents_look() {
        let mut ground = Ground::at(Path::new("/w/sub"), Path::new("/h"));
        ground.repository = Some("/w".into());
        let obeyed = Obeyed::of(&ground);
        let covers = |path: &str| obeyed.covers(Path::new(path), Path::new("/w"));
        for path in [
            "/w/.git",
            "/w/a/b/.git/hooks/pre-commit",
            "/w/a/.GIT/config",
            "/w/a/.claude/skills/x/SKILL.md",
            "/w/.gemini/settings.json",
            "/w/.qwen/settings.json",
            "/w/a/.codex/config.toml",
            "/w/a/.cursor/mcp.json",
            "/w/a/.vscode/tasks.json",
            "/w/a/.mcp.json",
            "/w/opencode.json",
            "/w/a/Opencode.json",
            "/w/skills/x/SKILL.md",
            "/w/sub/skills",
            "/w/.github/skills/x",
        ] {
            assert!(covers(path), "{path}");
        }
        for path in ["/w/a/skills/x", "/w/.github/workflows/ci.yml", "/w/git", "/w/.gitignore"] {
            assert!(!covers(path), "{path}");
        }
        // Where the work happens is the person's choice.
        assert!(!obeyed.covers(Path::new("/x/.claude/w/a"), Path::new("/x/.claude/w")));
    }

    #[test]
    fn a_repository_has_a_head_and_something_behind_it() {
        let is = |there: &[&str]| is_repository(|name| there.contains(&name));
        assert!(is(&["HEAD", "objects", "refs"]) && is(&["HEAD", "commondir"]));
        assert!(!is(&["HEAD", "objects"]) && !is(&["objects", "refs", "commondir"]) && !is(&[]));
    }
}
