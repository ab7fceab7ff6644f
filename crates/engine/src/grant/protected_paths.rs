//! [`ProtectedPaths`]: files that other programs execute or read as configuration.

use std::{
    collections::{HashMap, HashSet},
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use savoir_package::{Agent, agents::SharedFolder};

use super::{
    files::{PROTECTED_IN_PROJECT, protected_paths},
    git,
};
use crate::run_environment::RunEnvironment;

/// How a protected file may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WritePolicy {
    /// Text that users often let an agent edit. A tool may write it after a question of its own; a
    /// change by a command, which the user does not see, is put aside.
    Asked,
    /// Programs run commands that the file names, or take their rights from it: no tool writes it.
    Kept,
}

/// Names that are protected in every folder, besides those of [`PROTECTED_IN_PROJECT`] and the
/// folders of agents. The part before a slash is the parent folder.
const NAMES: [(&str, WritePolicy); 69] = [
    // Agents and editors run the servers, hooks and tasks that these name.
    ("opencode.json", WritePolicy::Kept),
    ("opencode.jsonc", WritePolicy::Kept),
    ("crush.json", WritePolicy::Kept),
    (".crush.json", WritePolicy::Kept),
    (".aider.conf.yml", WritePolicy::Kept),
    (".zed", WritePolicy::Kept),
    (".devcontainer", WritePolicy::Kept),
    (".devcontainer.json", WritePolicy::Kept),
    (".vs", WritePolicy::Kept),
    (".fleet", WritePolicy::Kept),
    (".amp", WritePolicy::Kept),
    (".copilot", WritePolicy::Kept),
    (".claude-plugin", WritePolicy::Kept),
    ("gemini-extension.json", WritePolicy::Kept),
    (".exrc", WritePolicy::Kept),
    (".gdbinit", WritePolicy::Kept),
    (".helix", WritePolicy::Kept),
    (".autoenv", WritePolicy::Kept),
    (".cody", WritePolicy::Kept),
    (".warp", WritePolicy::Kept),
    (".nvimrc", WritePolicy::Kept),
    (".nvim.lua", WritePolicy::Kept),
    (".vimrc", WritePolicy::Kept),
    (".dir-locals.el", WritePolicy::Kept),
    (".dir-locals-2.el", WritePolicy::Kept),
    // Other version control systems and agents store hooks there.
    (".hg", WritePolicy::Kept),
    (".jj", WritePolicy::Kept),
    (".amazonq", WritePolicy::Kept),
    (".github/hooks", WritePolicy::Kept),
    (".github/agents", WritePolicy::Kept),
    // A shell plugin runs them when the user enters the folder.
    ("mise.toml", WritePolicy::Kept),
    (".mise.toml", WritePolicy::Kept),
    ("mise.local.toml", WritePolicy::Kept),
    (".mise.local.toml", WritePolicy::Kept),
    (".mise", WritePolicy::Kept),
    ("mise.dev.toml", WritePolicy::Kept),
    (".rtx.toml", WritePolicy::Kept),
    // Hooks of git that projects store among their files.
    (".husky", WritePolicy::Kept),
    (".githooks", WritePolicy::Kept),
    // Agents follow these rules without showing them to the user.
    (".cursorrules", WritePolicy::Kept),
    (".windsurfrules", WritePolicy::Kept),
    (".clinerules", WritePolicy::Kept),
    (".roorules", WritePolicy::Kept),
    (".goosehints", WritePolicy::Kept),
    // Instructions and workflows are what a coding agent is asked to write.
    ("AGENTS.md", WritePolicy::Asked),
    ("AGENTS.override.md", WritePolicy::Asked),
    ("CLAUDE.md", WritePolicy::Asked),
    ("CLAUDE.local.md", WritePolicy::Asked),
    ("GEMINI.md", WritePolicy::Asked),
    ("QWEN.md", WritePolicy::Asked),
    ("AGENT.md", WritePolicy::Asked),
    ("CRUSH.md", WritePolicy::Asked),
    ("WARP.md", WritePolicy::Asked),
    (".rules", WritePolicy::Asked),
    (".github/prompts", WritePolicy::Asked),
    (".github/chatmodes", WritePolicy::Asked),
    (".gitlab-ci.yml", WritePolicy::Asked),
    (".circleci", WritePolicy::Asked),
    (".pre-commit-config.yaml", WritePolicy::Asked),
    ("lefthook.yml", WritePolicy::Asked),
    ("lefthook.yaml", WritePolicy::Asked),
    (".lefthook.yml", WritePolicy::Asked),
    ("lefthook-local.yml", WritePolicy::Asked),
    (".overcommit.yml", WritePolicy::Asked),
    // `savoir.toml` names the registries that skills come from.
    ("savoir.toml", WritePolicy::Asked),
    (".github/workflows", WritePolicy::Asked),
    (".github/actions", WritePolicy::Asked),
    (".github/instructions", WritePolicy::Asked),
    (".github/copilot-instructions.md", WritePolicy::Asked),
];

/// Suffixes of protected names: an editor runs the tasks of such a file.
const ENDS: [&str; 1] = [".code-workspace"];

/// Lists of commands that git runs when the user continues a rebase or a cherry-pick.
const UNDER_WAY: [&str; 3] = [".git/rebase-merge", ".git/rebase-apply", ".git/sequencer"];

/// The entries by which git recognizes a folder as a repository, whose settings it then reads.
pub const SIGNS_OF_GIT: [&str; 4] = ["HEAD", "commondir", "objects", "refs"];

/// The set of protected paths of a run: names that are protected in every folder, and full paths.
#[derive(Clone, Debug)]
pub struct ProtectedPaths {
    names: HashMap<String, WritePolicy>,
    places: HashMap<PathBuf, WritePolicy>,
    /// The last components of the places. Few paths end with one, and looking up whole paths is
    /// slow.
    last_names: HashSet<OsString>,
    /// Paths that the user opened by name: they and everything below them are not protected.
    opened: Vec<PathBuf>,
    /// Folders in which a file that the user opened does not exist yet: the folders themselves are
    /// not protected, but their other entries are.
    made_in: Vec<PathBuf>,
}

impl ProtectedPaths {
    /// Collects the protected paths for a run in `run_env`.
    pub fn of(run_env: &RunEnvironment) -> Self {
        let names: HashMap<String, WritePolicy> =
            names().map(|(name, care)| (as_compared(name, care), care)).collect();
        let mut places = protected_paths(run_env, &[]);
        let roots =
            || [Some(&run_env.directory), run_env.repository.as_ref()].into_iter().flatten();
        for folder in Agent::ALL.iter().flat_map(project_folders) {
            if agent_name(folder).is_none() {
                let found = roots().map(|root| root.join(folder));
                // A user whose working directory is called `skills` does not mean the folder of an
                // agent. `.github/skills` always belongs to an agent.
                let is_hidden = folder.starts_with('.');
                let is_agents =
                    |place: &PathBuf| is_hidden || !run_env.directory.starts_with(place);
                places.extend(found.filter(is_agents));
            }
        }
        places.extend(roots().flat_map(|root| UNDER_WAY.map(|name| root.join(name))));
        let (last_names, opened, made_in) = (HashSet::new(), Vec::new(), Vec::new());
        let mut protected = Self { names, places: HashMap::new(), last_names, opened, made_in };
        for place in places {
            protected.insert(place, WritePolicy::Kept);
        }
        for root in roots() {
            let led = git::led_by_all(root, &run_env.home);
            protected
                .add(led.into_iter().map(|place| (place, WritePolicy::Kept)), &run_env.directory);
        }
        protected
    }

    /// Removes the protection of paths that the user opened by name. Opening a whole project does
    /// not open the protected files in it.
    #[must_use]
    pub fn opening(mut self, paths: Vec<PathBuf>) -> Self {
        let is_obeyed = |path: &PathBuf| path.ancestors().any(|above| self.care(above).is_some());
        self.opened = paths.into_iter().filter(is_obeyed).collect();
        let missing = self.opened.iter().filter(|path| path.symlink_metadata().is_err());
        let folders = missing.filter_map(|path| path.ancestors().skip(1).find(|at| at.is_dir()));
        let kept = folders.filter(|folder| self.care(folder) == Some(WritePolicy::Kept));
        self.made_in = kept.map(Path::to_owned).collect();
        self
    }

    /// Adds places that are below a folder; returns whether the set changed.
    pub fn add(
        &mut self,
        places: impl IntoIterator<Item = (PathBuf, WritePolicy)>,
        below: &Path,
    ) -> bool {
        let is_below = |place: &Path| place.starts_with(below) && place != below;
        let mut is_new = false;
        for (place, care) in places.into_iter().filter(|(place, _)| is_below(place)) {
            if self.care(&place) < Some(care) {
                self.insert(place, care);
                is_new = true;
            }
        }
        is_new
    }

    fn insert(&mut self, place: PathBuf, care: WritePolicy) {
        self.last_names.extend(place.file_name().map(OsStr::to_owned));
        self.places.insert(place, care);
    }

    /// The write policy of a path; none if it is not protected itself.
    pub fn care(&self, path: &Path) -> Option<WritePolicy> {
        let is_opened = self.opened.iter().any(|opened| path.starts_with(opened));
        if is_opened || self.made_in.iter().any(|folder| folder == path) {
            return None;
        }
        let last = path.file_name();
        let is_placed = last.is_none_or(|name| self.last_names.contains(name));
        let placed = if is_placed { self.places.get(path).copied() } else { None };
        let Some(name) = last.map(OsStr::to_string_lossy) else { return placed };
        let name = &*name;
        let folder = path.parent().and_then(Path::file_name).and_then(OsStr::to_str);
        let pair = folder.filter(|folder| folder.eq_ignore_ascii_case(".github"));
        let pair = pair.map(|folder| format!("{folder}/{name}"));
        let known = |name: &str| {
            let exact = self.names.get(name).copied();
            // Some file systems ignore case.
            exact.or_else(|| self.names.get(&name.to_ascii_lowercase()).copied())
        };
        let small = name.to_ascii_lowercase();
        let by_end = ENDS.iter().any(|end| small.ends_with(end)).then_some(WritePolicy::Kept);
        placed.max(known(name)).max(pair.as_deref().and_then(known)).max(by_end)
    }

    /// For a path that is a symlink, returns the protected places below it: the rest of each path
    /// after the link, and its policy.
    pub fn beyond(&self, path: &Path) -> impl Iterator<Item = (&Path, WritePolicy)> {
        let beyond = self.places.iter().map(move |(place, care)| (place.strip_prefix(path), *care));
        beyond
            .filter_map(|(rest, care)| Some((rest.ok()?, care)))
            .filter(|(rest, _)| !rest.as_os_str().is_empty())
    }

    /// The strictest write policy of a path and of the folders between it and `root`.
    pub fn strictest(&self, path: &Path, root: &Path) -> Option<WritePolicy> {
        path.ancestors().take_while(|part| *part != root).filter_map(|part| self.care(part)).max()
    }
}

/// Most names are compared in lower case. `Asked` names are not, where the file system is
/// case-sensitive: a page `docs/agents.md` does not contain instructions for agents.
fn as_compared(name: &str, care: WritePolicy) -> String {
    match care {
        WritePolicy::Asked if cfg!(target_os = "linux") => name.to_owned(),
        _ => name.to_ascii_lowercase(),
    }
}

/// The names that are protected in every folder.
pub(super) fn names() -> impl Iterator<Item = (&'static str, WritePolicy)> {
    let kept = PROTECTED_IN_PROJECT.iter().map(|name| (*name, WritePolicy::Kept));
    let agents = Agent::ALL.iter().flat_map(project_folders).filter_map(agent_name);
    kept.chain(NAMES).chain(agents.map(|name| (name, WritePolicy::Kept)))
}

/// The first component of an agent's folder, if the agent alone uses it: `.github` has more than
/// skills.
fn agent_name(folder: &'static str) -> Option<&'static str> {
    let first = folder.split('/').next()?;
    (first.starts_with('.') && first != ".github").then_some(first)
}

fn project_folders(agent: &Agent) -> impl Iterator<Item = &'static str> {
    let others = agent.also_reads.iter().filter_map(|folder| match folder {
        SharedFolder::Project(folder) => Some(*folder),
        SharedFolder::User(_) => None,
    });
    agent.project.iter().copied().chain(others)
}

/// Whether git takes a folder for a repository, if `has` tells which of the [signs](SIGNS_OF_GIT)
/// exist.
pub fn is_repository(has: impl Fn(&str) -> bool) -> bool {
    has("HEAD") && (has("commondir") || (has("objects") && has("refs")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_count_everywhere_and_folders_where_agents_look() {
        let mut run_env = RunEnvironment::at(Path::new("/w/sub"), Path::new("/h"));
        run_env.repository = Some("/w".into());
        let protected = ProtectedPaths::of(&run_env);
        let covers = |path: &str| {
            protected.strictest(Path::new(path), Path::new("/w")) == Some(WritePolicy::Kept)
        };
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
        for path in [
            "/w/a/.cursorrules",
            "/w/.amazonq/cli-agents/a.json",
            "/w/a/mise.toml",
            "/w/my.code-workspace",
            "/w/.husky/pre-commit",
            "/w/.git/rebase-merge/git-rebase-todo",
        ] {
            assert_eq!(
                protected.strictest(Path::new(path), Path::new("/w")),
                Some(WritePolicy::Kept),
                "{path}"
            );
        }
        for path in
            ["/w/a/AGENTS.md", "/w/CLAUDE.md", "/w/GEMINI.md", "/w/.github/workflows/ci.yml"]
        {
            assert_eq!(
                protected.strictest(Path::new(path), Path::new("/w")),
                Some(WritePolicy::Asked),
                "{path}"
            );
        }
        for path in
            ["/w/workflows/a", "/w/.github/dependabot.yml", "/w/docs/agents", "/w/README.md"]
        {
            assert_eq!(protected.strictest(Path::new(path), Path::new("/w")), None, "{path}");
        }
        let run_env = RunEnvironment { directory: "/w/skills/a".into(), ..run_env };
        let inside = ProtectedPaths::of(&run_env);
        let care = |path: &str| inside.strictest(Path::new(path), Path::new("/w"));
        assert_eq!(care("/w/skills/report.md"), None, "the user works there");
        assert_eq!(care("/w/skills/.claude/skills/x"), Some(WritePolicy::Kept));
        let run_env = RunEnvironment { directory: "/w/.github/skills".into(), ..run_env };
        let path = Path::new("/w/.github/skills/x");
        assert_eq!(
            ProtectedPaths::of(&run_env).strictest(path, Path::new("/w")),
            Some(WritePolicy::Kept)
        );
        // Where the work happens is the person's choice.
        assert_eq!(
            protected.strictest(Path::new("/x/.claude/w/a"), Path::new("/x/.claude/w")),
            None
        );
    }

    #[test]
    fn a_repository_has_a_head_and_something_behind_it() {
        let is = |there: &[&str]| is_repository(|name| there.contains(&name));
        assert!(is(&["HEAD", "objects", "refs"]) && is(&["HEAD", "commondir"]));
        assert!(!is(&["HEAD", "objects"]) && !is(&["objects", "refs", "commondir"]) && !is(&[]));
    }
}
