//! Defines [`ProtectedPaths`]: files that other programs execute or read as configuration.

use std::{
    collections::{HashMap, HashSet},
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use savoir_package::{Agent, agents::SharedFolder};
use savoir_skill::permission::PROTECTED_IN_PROJECT;

use super::{files::protected_paths, git};
use crate::run_environment::RunEnvironment;

/// How a protected file may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WritePolicy {
    /// Text that users often let an agent edit. A tool may write it after a question of its own; a
    /// change by a command, which the user does not see, is moved aside.
    AskFirst,
    /// Programs run commands that the file names, or take their rights from it: no tool writes it.
    ReadOnly,
}

/// Names that are protected in every folder, besides those of [`PROTECTED_IN_PROJECT`] and the
/// folders of agents. The part before a slash is the parent folder.
const PROTECTED_NAMES: [(&str, WritePolicy); 114] = [
    // Agents and editors run the servers, hooks and tasks that these name.
    ("opencode.json", WritePolicy::ReadOnly),
    ("opencode.jsonc", WritePolicy::ReadOnly),
    ("crush.json", WritePolicy::ReadOnly),
    (".crush.json", WritePolicy::ReadOnly),
    (".aider.conf.yml", WritePolicy::ReadOnly),
    (".zed", WritePolicy::ReadOnly),
    (".devcontainer", WritePolicy::ReadOnly),
    (".devcontainer.json", WritePolicy::ReadOnly),
    (".vs", WritePolicy::ReadOnly),
    (".fleet", WritePolicy::ReadOnly),
    (".amp", WritePolicy::ReadOnly),
    (".agent", WritePolicy::ReadOnly),
    (".copilot", WritePolicy::ReadOnly),
    (".claude-plugin", WritePolicy::ReadOnly),
    ("gemini-extension.json", WritePolicy::ReadOnly),
    (".exrc", WritePolicy::ReadOnly),
    (".gdbinit", WritePolicy::ReadOnly),
    (".lldbinit", WritePolicy::ReadOnly),
    (".lazy.lua", WritePolicy::ReadOnly),
    (".helix", WritePolicy::ReadOnly),
    (".autoenv", WritePolicy::ReadOnly),
    (".cody", WritePolicy::ReadOnly),
    (".warp", WritePolicy::ReadOnly),
    (".nvimrc", WritePolicy::ReadOnly),
    (".nvim.lua", WritePolicy::ReadOnly),
    (".vimrc", WritePolicy::ReadOnly),
    (".dir-locals.el", WritePolicy::ReadOnly),
    (".dir-locals-2.el", WritePolicy::ReadOnly),
    // Other version control systems and agents store hooks there.
    (".hg", WritePolicy::ReadOnly),
    (".jj", WritePolicy::ReadOnly),
    (".amazonq", WritePolicy::ReadOnly),
    (".github/hooks", WritePolicy::ReadOnly),
    (".github/agents", WritePolicy::ReadOnly),
    // A shell plugin runs them when the user enters the folder.
    ("mise.toml", WritePolicy::ReadOnly),
    (".mise.toml", WritePolicy::ReadOnly),
    ("mise.local.toml", WritePolicy::ReadOnly),
    (".mise.local.toml", WritePolicy::ReadOnly),
    (".mise", WritePolicy::ReadOnly),
    ("mise.dev.toml", WritePolicy::ReadOnly),
    (".rtx.toml", WritePolicy::ReadOnly),
    // Hooks of git that projects store among their files.
    (".husky", WritePolicy::ReadOnly),
    (".githooks", WritePolicy::ReadOnly),
    // Agents follow these rules without showing them to the user.
    (".cursorrules", WritePolicy::ReadOnly),
    (".windsurfrules", WritePolicy::ReadOnly),
    (".clinerules", WritePolicy::ReadOnly),
    (".roorules", WritePolicy::ReadOnly),
    (".goosehints", WritePolicy::ReadOnly),
    // Instructions and workflows are what a coding agent is asked to write.
    ("AGENTS.md", WritePolicy::AskFirst),
    ("AGENTS.override.md", WritePolicy::AskFirst),
    ("CLAUDE.md", WritePolicy::AskFirst),
    ("CLAUDE.local.md", WritePolicy::AskFirst),
    ("GEMINI.md", WritePolicy::AskFirst),
    ("QWEN.md", WritePolicy::AskFirst),
    ("AGENT.md", WritePolicy::AskFirst),
    ("CRUSH.md", WritePolicy::AskFirst),
    ("WARP.md", WritePolicy::AskFirst),
    (".rules", WritePolicy::AskFirst),
    (".github/prompts", WritePolicy::AskFirst),
    (".github/chatmodes", WritePolicy::AskFirst),
    (".gitlab-ci.yml", WritePolicy::AskFirst),
    (".circleci", WritePolicy::AskFirst),
    (".forgejo/workflows", WritePolicy::AskFirst),
    (".gitea/workflows", WritePolicy::AskFirst),
    (".buildkite", WritePolicy::AskFirst),
    (".drone.yml", WritePolicy::AskFirst),
    (".travis.yml", WritePolicy::AskFirst),
    (".woodpecker", WritePolicy::AskFirst),
    (".woodpecker.yml", WritePolicy::AskFirst),
    (".woodpecker.yaml", WritePolicy::AskFirst),
    ("azure-pipelines.yml", WritePolicy::AskFirst),
    ("bitbucket-pipelines.yml", WritePolicy::AskFirst),
    ("cloudbuild.yaml", WritePolicy::AskFirst),
    ("Jenkinsfile", WritePolicy::AskFirst),
    (".pre-commit-config.yaml", WritePolicy::AskFirst),
    ("lefthook.yml", WritePolicy::AskFirst),
    ("lefthook.yaml", WritePolicy::AskFirst),
    (".lefthook.yml", WritePolicy::AskFirst),
    ("lefthook-local.yml", WritePolicy::AskFirst),
    (".overcommit.yml", WritePolicy::AskFirst),
    // Package managers and build tools run the programs and plugins that these name, or take
    // packages and passwords from there.
    (".npmrc", WritePolicy::AskFirst),
    (".pnpmfile.cjs", WritePolicy::AskFirst),
    (".pnpmfile.mjs", WritePolicy::AskFirst),
    (".pnp.cjs", WritePolicy::AskFirst),
    (".pnp.loader.mjs", WritePolicy::AskFirst),
    (".yarnrc", WritePolicy::AskFirst),
    (".yarnrc.yml", WritePolicy::AskFirst),
    (".yarn/plugins", WritePolicy::AskFirst),
    (".yarn/releases", WritePolicy::AskFirst),
    ("bunfig.toml", WritePolicy::AskFirst),
    (".bunfig.toml", WritePolicy::AskFirst),
    ("pip.conf", WritePolicy::AskFirst),
    ("pip.ini", WritePolicy::AskFirst),
    (".pypirc", WritePolicy::AskFirst),
    ("uv.toml", WritePolicy::AskFirst),
    ("poetry.toml", WritePolicy::AskFirst),
    (".condarc", WritePolicy::AskFirst),
    (".cargo/config", WritePolicy::AskFirst),
    (".cargo/config.toml", WritePolicy::AskFirst),
    (".gemrc", WritePolicy::AskFirst),
    (".bundle/config", WritePolicy::AskFirst),
    ("nuget.config", WritePolicy::AskFirst),
    ("NuGet.Config", WritePolicy::AskFirst),
    (".mvn", WritePolicy::AskFirst),
    (".bazelrc", WritePolicy::AskFirst),
    (".tool-versions", WritePolicy::AskFirst),
    ("rust-toolchain", WritePolicy::AskFirst),
    ("rust-toolchain.toml", WritePolicy::AskFirst),
    ("sitecustomize.py", WritePolicy::AskFirst),
    ("usercustomize.py", WritePolicy::AskFirst),
    // `savoir.toml` names the registries that skills come from.
    ("savoir.toml", WritePolicy::AskFirst),
    (".github/workflows", WritePolicy::AskFirst),
    (".github/actions", WritePolicy::AskFirst),
    (".github/instructions", WritePolicy::AskFirst),
    (".github/copilot-instructions.md", WritePolicy::AskFirst),
];

/// Folders of which only some entries are protected, in lower case.
const PARTLY_PROTECTED_FOLDERS: [&str; 6] =
    [".github", ".forgejo", ".gitea", ".yarn", ".cargo", ".bundle"];

/// Suffixes of protected names: an editor runs the tasks of such a file.
const PROTECTED_SUFFIXES: [&str; 1] = [".code-workspace"];

/// Lists of commands that git runs when the user continues a rebase or a cherry-pick.
const GIT_OPERATION_FOLDERS: [&str; 3] =
    [".git/rebase-merge", ".git/rebase-apply", ".git/sequencer"];

/// The entries by which git recognizes a folder as a repository, whose settings it then reads.
pub const GIT_MARKERS: [&str; 4] = ["HEAD", "commondir", "objects", "refs"];

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
    creatable_folders: Vec<PathBuf>,
}

impl ProtectedPaths {
    /// Collects the protected paths for a run in `run_env`.
    pub fn of(run_env: &RunEnvironment) -> Self {
        let names: HashMap<String, WritePolicy> = names()
            .map(|(name, write_policy)| (comparison_key(name, write_policy), write_policy))
            .collect();
        let mut places = protected_paths(run_env, &[]);
        let roots =
            || [Some(&run_env.directory), run_env.repository.as_ref()].into_iter().flatten();
        for folder in Agent::ALL.iter().flat_map(project_folders) {
            if agent_name(folder).is_none() {
                let found = roots().map(|root| root.join(folder));
                // A user whose working directory is called `skills` does not mean the folder of an
                // agent. `.github/skills` always belongs to an agent.
                let is_hidden = folder.starts_with('.');
                let belongs_to_agent =
                    |place: &PathBuf| is_hidden || !run_env.directory.starts_with(place);
                places.extend(found.filter(belongs_to_agent));
            }
        }
        places.extend(roots().flat_map(|root| GIT_OPERATION_FOLDERS.map(|name| root.join(name))));
        let (last_names, opened, creatable_folders) = (HashSet::new(), Vec::new(), Vec::new());
        let mut protected =
            Self { names, places: HashMap::new(), last_names, opened, creatable_folders };
        for place in places {
            protected.insert(place, WritePolicy::ReadOnly);
        }
        for root in roots() {
            let git_paths = git::paths_from_all_git_configs(root, &run_env.home);
            protected.add(
                git_paths.into_iter().map(|place| (place, WritePolicy::ReadOnly)),
                &run_env.directory,
            );
        }
        protected
    }

    /// Removes the protection of paths that the user opened by name. Opening a whole project does
    /// not open the protected files in it.
    #[must_use]
    pub fn with_opened(mut self, paths: Vec<PathBuf>) -> Self {
        let is_protected =
            |path: &PathBuf| path.ancestors().any(|above| self.write_policy(above).is_some());
        self.opened = paths.into_iter().filter(is_protected).collect();
        let missing = self.opened.iter().filter(|path| path.symlink_metadata().is_err());
        let folders = missing.filter_map(|path| path.ancestors().skip(1).find(|at| at.is_dir()));
        let read_only =
            folders.filter(|folder| self.write_policy(folder) == Some(WritePolicy::ReadOnly));
        self.creatable_folders = read_only.map(Path::to_owned).collect();
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
        for (place, write_policy) in places.into_iter().filter(|(place, _)| is_below(place)) {
            if self.write_policy(&place) < Some(write_policy) {
                self.insert(place, write_policy);
                is_new = true;
            }
        }
        is_new
    }

    fn insert(&mut self, place: PathBuf, write_policy: WritePolicy) {
        self.last_names.extend(place.file_name().map(OsStr::to_owned));
        self.places.insert(place, write_policy);
    }

    /// The write policy of a path; none if it is not protected itself.
    pub fn write_policy(&self, path: &Path) -> Option<WritePolicy> {
        let is_opened = self.opened.iter().any(|opened| path.starts_with(opened));
        if is_opened || self.creatable_folders.iter().any(|folder| folder == path) {
            return None;
        }
        let last = path.file_name();
        let may_be_listed = last.is_none_or(|name| self.last_names.contains(name));
        let by_path = if may_be_listed { self.places.get(path).copied() } else { None };
        let Some(name) = last.map(OsStr::to_string_lossy) else { return by_path };
        let name = &*name;
        let folder = path.parent().and_then(Path::file_name).and_then(OsStr::to_str);
        let is_partly = |folder: &&str| {
            PARTLY_PROTECTED_FOLDERS.iter().any(|partly| folder.eq_ignore_ascii_case(partly))
        };
        let pair = folder.filter(is_partly);
        let pair = pair.map(|folder| format!("{folder}/{name}"));
        let known = |name: &str| {
            let exact = self.names.get(name).copied();
            // Some file systems ignore case.
            exact.or_else(|| self.names.get(&name.to_ascii_lowercase()).copied())
        };
        let lower_case = name.to_ascii_lowercase();
        let by_end = PROTECTED_SUFFIXES
            .iter()
            .any(|end| lower_case.ends_with(end))
            .then_some(WritePolicy::ReadOnly);
        by_path.max(known(name)).max(pair.as_deref().and_then(known)).max(by_end)
    }

    /// For a path that is a symlink, returns the protected places below it: the rest of each path
    /// after the link, and its policy.
    pub fn protected_below(&self, path: &Path) -> impl Iterator<Item = (&Path, WritePolicy)> {
        let protected_below = self
            .places
            .iter()
            .map(move |(place, write_policy)| (place.strip_prefix(path), *write_policy));
        protected_below
            .filter_map(|(rest, write_policy)| Some((rest.ok()?, write_policy)))
            .filter(|(rest, _)| !rest.as_os_str().is_empty())
    }

    /// The strictest write policy of a path and of the folders between it and `root`.
    pub fn strictest(&self, path: &Path, root: &Path) -> Option<WritePolicy> {
        path.ancestors()
            .take_while(|part| *part != root)
            .filter_map(|part| self.write_policy(part))
            .max()
    }
}

/// Most names are compared in lower case. `AskFirst` names are not, where the file system is
/// case-sensitive: a page `docs/agents.md` does not contain instructions for agents.
fn comparison_key(name: &str, write_policy: WritePolicy) -> String {
    match write_policy {
        WritePolicy::AskFirst if cfg!(target_os = "linux") => name.to_owned(),
        _ => name.to_ascii_lowercase(),
    }
}

/// The names that are protected in every folder.
pub(super) fn names() -> impl Iterator<Item = (&'static str, WritePolicy)> {
    let read_only = PROTECTED_IN_PROJECT.iter().map(|name| (*name, WritePolicy::ReadOnly));
    let agents = Agent::ALL.iter().flat_map(project_folders).filter_map(agent_name);
    read_only.chain(PROTECTED_NAMES).chain(agents.map(|name| (name, WritePolicy::ReadOnly)))
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

/// Whether git takes a folder for a repository, if `has` says which of the [markers](GIT_MARKERS)
/// exist.
pub fn is_repository(has: impl Fn(&str) -> bool) -> bool {
    has("HEAD") && (has("commondir") || (has("objects") && has("refs")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_protected_everywhere_and_agent_folders_in_projects() {
        let mut run_env = RunEnvironment::at(Path::new("/w/sub"), Path::new("/h"));
        run_env.repository = Some("/w".into());
        let protected = ProtectedPaths::of(&run_env);
        let covers = |path: &str| {
            protected.strictest(Path::new(path), Path::new("/w")) == Some(WritePolicy::ReadOnly)
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
                Some(WritePolicy::ReadOnly),
                "{path}"
            );
        }
        for path in
            ["/w/a/AGENTS.md", "/w/CLAUDE.md", "/w/GEMINI.md", "/w/.github/workflows/ci.yml"]
        {
            assert_eq!(
                protected.strictest(Path::new(path), Path::new("/w")),
                Some(WritePolicy::AskFirst),
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
        let write_policy = |path: &str| inside.strictest(Path::new(path), Path::new("/w"));
        assert_eq!(write_policy("/w/skills/report.md"), None, "the user works there");
        assert_eq!(write_policy("/w/skills/.claude/skills/x"), Some(WritePolicy::ReadOnly));
        let run_env = RunEnvironment { directory: "/w/.github/skills".into(), ..run_env };
        let path = Path::new("/w/.github/skills/x");
        assert_eq!(
            ProtectedPaths::of(&run_env).strictest(path, Path::new("/w")),
            Some(WritePolicy::ReadOnly)
        );
        // The user chose the working folder, so its own path is not protected.
        assert_eq!(
            protected.strictest(Path::new("/x/.claude/w/a"), Path::new("/x/.claude/w")),
            None
        );
    }

    /// Settings of agents, editors, shells and package managers that known attacks have used.
    #[test]
    fn every_name_that_runs_code_is_protected() {
        let mut run_env = RunEnvironment::at(Path::new("/h/w/sub"), Path::new("/h"));
        run_env.repository = Some("/h/w".into());
        let protected = ProtectedPaths::of(&run_env);
        let policy = |path: &str| protected.strictest(Path::new(path), Path::new("/h"));
        for name in [
            ".git/config",
            ".gemini/settings.json",
            ".github/workflows/ci.yml",
            ".github/actions/a/action.yml",
            ".github/hooks/x",
            ".github/agents/x.md",
            ".github/copilot-instructions.md",
            ".husky/pre-commit",
            ".zed/tasks.json",
            ".devcontainer/devcontainer.json",
            ".devcontainer.json",
            "opencode.json",
            "mise.toml",
            ".mise.toml",
            "CLAUDE.md",
            "AGENTS.md",
            "GEMINI.md",
            "savoir.toml",
            "savoir.lock",
            ".vscode/tasks.json",
            ".idea/workspace.xml",
            ".claude/settings.json",
            ".codex/config.toml",
            ".cursor/mcp.json",
            ".mcp.json",
            ".envrc",
            ".githooks/pre-push",
            ".npmrc",
            ".pnpmfile.cjs",
            ".pnp.cjs",
            ".yarnrc",
            ".yarnrc.yml",
            ".yarn/releases/yarn.cjs",
            ".yarn/plugins/x.cjs",
            "bunfig.toml",
            "pip.conf",
            ".pypirc",
            "uv.toml",
            "poetry.toml",
            ".condarc",
            ".cargo/config",
            ".cargo/config.toml",
            ".gemrc",
            ".bundle/config",
            "nuget.config",
            "NuGet.Config",
            ".mvn/jvm.config",
            ".bazelrc",
            ".tool-versions",
            "usercustomize.py",
        ] {
            for folder in ["/h/w", "/h/w/sub", "/h/w/sub/deep"] {
                assert!(policy(&format!("{folder}/{name}")).is_some(), "{folder}/{name}");
            }
        }
        for name in [
            ".bashrc",
            ".bash_aliases",
            ".profile",
            ".zshrc",
            ".kshrc",
            ".config/fish/config.fish",
            "bin/ls",
            ".local/bin/ls",
            ".local/lib/python3.12/site-packages/usercustomize.py",
            ".cargo/env",
            ".cargo/bin/cargo",
            ".cargo/config.toml",
            ".claude.json",
            ".claude/x",
            ".codex/config.toml",
            ".gemini/settings.json",
            ".gitconfig",
            ".config/git/config",
            ".ssh/config",
            ".gnupg/gpg.conf",
            ".vimrc",
            ".vim/plugin/x.vim",
            ".config/nvim/init.lua",
            ".emacs.d/init.el",
            ".config/zed/tasks.json",
            ".tmux.conf",
            ".gdbinit",
            ".npmrc",
            ".yarnrc.yml",
            ".config/pip/pip.conf",
            ".pip/pip.conf",
            ".pypirc",
            ".gemrc",
            ".bundle/config",
            ".condarc",
            ".bunfig.toml",
            ".m2/settings.xml",
            ".gradle/init.d/x.gradle",
            ".gradle/gradle.properties",
            ".nuget/NuGet/NuGet.Config",
            ".config/uv/uv.toml",
            ".config/mise/config.toml",
            ".config/direnv/direnvrc",
            ".curlrc",
            ".wgetrc",
            ".netrc",
            ".config/autostart/x.desktop",
            ".config/systemd/user/x.service",
        ] {
            let path = format!("/h/{name}");
            let strictest = protected.strictest(Path::new(&path), Path::new("/"));
            assert_eq!(strictest, Some(WritePolicy::ReadOnly), "{path}");
        }
        for name in [
            "package.json", ".yarn/cache/x.zip", ".cargo/registry/x", "Cargo.toml",
            "pyproject.toml", ".github/dependabot.yml", "docs/pip.md",
        ] {
            assert_eq!(policy(&format!("/h/w/{name}")), None, "{name}");
        }
    }

    #[test]
    fn repository_needs_head_and_objects_or_commondir() {
        let is = |there: &[&str]| is_repository(|name| there.contains(&name));
        assert!(is(&["HEAD", "objects", "refs"]) && is(&["HEAD", "commondir"]));
        assert!(!is(&["HEAD", "objects"]) && !is(&["objects", "refs", "commondir"]) && !is(&[]));
    }
}
