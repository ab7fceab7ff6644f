"""`SkillManager`: finds skills in several folders by precedence, as GAIA does.

Precedence, highest first: folders of the agent, `~/.gaia/skills` (or `$GAIA_CONFIG_DIR/skills`),
`./.claude/skills`, `~/.claude/skills`. If two folders have a skill of the same name, the one in the
earlier folder is used; `shadowed` lists the others.
"""

from __future__ import annotations

import logging
import os
import threading
from dataclasses import dataclass
from pathlib import Path

from ._binary import call_json
from ._native import Skill, read
from .errors import InvalidSkillError, SavoirError, SkillNotFoundError
from .registry import tool_registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from .openclaw import OpenClawAdapter
    from .registry import ToolRegistry
    from .running import Approve, PathArg

_log = logging.getLogger("savoir_skills")

ROOT_AGENT_BUNDLED = "agent-bundled"
ROOT_USER = "user"
ROOT_CLAUDE_IMPORT = "claude-import"

_SKILL_FILE = "SKILL.md"

# Polling interval of the watcher, in seconds.
_WATCH_INTERVAL = 0.5

# Limits of the watcher on files and folder depth, for huge folders and symlink loops.
_MAX_WATCHED = 20_000
_MAX_WATCH_DEPTH = 8
_IGNORED_FOLDERS = frozenset({".git", "node_modules", "__pycache__", ".venv"})


@dataclass(frozen=True)
class SkillRoot:
    """A folder in which skills are searched."""

    label: str
    path: Path
    read_only: bool = False

    def __str__(self) -> str:
        return f"{self.label}:{self.path}"


class ManagedSkill:
    """A skill that a `SkillManager` found: all fields of `Skill`, and the folder in which it was found."""

    def __init__(self, skill: Skill, root: str, *, read_only: bool) -> None:
        self._skill = skill
        self.root = root
        self.read_only = read_only
        directory = skill.directory
        if directory is None:
            raise SavoirError("a managed skill needs a folder")
        self.directory: Path = directory

    @property
    def skill(self) -> Skill:
        return self._skill

    @property
    def security_tier(self) -> str:
        """The tier that the file claims, and `experimental` if it claims none."""
        return self._skill.security_tier or "experimental"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._skill, name)

    if TYPE_CHECKING:
        name: str
        version: str | None
        description: str
        dialect: str
        body: str
        path: Path | None
        tools: list[dict[str, Any]]
        permissions: list[str]
        requirements: dict[str, Any]
        resources: list[str]

    def __repr__(self) -> str:
        return f"<ManagedSkill {self._skill.name} in {self.root}>"


def user_skills_dir() -> Path:
    """`~/.gaia/skills`, or `skills` in `GAIA_CONFIG_DIR`."""
    base = os.environ.get("GAIA_CONFIG_DIR")
    return (Path(base) if base else Path.home() / ".gaia") / "skills"


class SkillManager:
    """Finds, installs and loads skills. It can be used from several threads."""

    def __init__(
        self,
        *,
        agent_skill_dirs: Iterable[PathArg] | None = None,
        user_skills_root: PathArg | None = None,
        claude_skill_dirs: Iterable[PathArg] | None = None,
        project_dir: PathArg | None = None,
        include_claude_roots: bool = True,
        registry: ToolRegistry | None = None,
        approve: Approve = None,
    ) -> None:
        """`approve` decides whether a tool may run: see `run`."""
        self._agent_dirs = [Path(path) for path in agent_skill_dirs or ()]
        self._user_root = None if user_skills_root is None else Path(user_skills_root)
        self._claude_dirs = None if claude_skill_dirs is None else [Path(path) for path in claude_skill_dirs]
        self._project_dir = None if project_dir is None else Path(project_dir)
        self._include_claude = include_claude_roots
        self._registry = tool_registry if registry is None else registry
        self._approve = approve
        self._lock = threading.RLock()
        self._found: dict[str, ManagedSkill] | None = None
        self._shadowed: dict[str, list[ManagedSkill]] = {}
        self._errors: dict[str, str] = {}
        self._watcher: _Watcher | None = None

    # --- folders

    @property
    def user_root(self) -> Path:
        """The folder into which `install` writes."""
        return self._user_root if self._user_root is not None else user_skills_dir()

    @property
    def roots(self) -> list[SkillRoot]:
        """The folders in which skills are searched, highest precedence first."""
        roots = [SkillRoot(ROOT_AGENT_BUNDLED, path, read_only=True) for path in self._agent_dirs]
        roots.append(SkillRoot(ROOT_USER, self.user_root))
        if self._include_claude:
            claude = self._claude_dirs
            if claude is None:
                project = self._project_dir or Path.cwd()
                claude = [project / ".claude" / "skills", Path.home() / ".claude" / "skills"]
            roots += [SkillRoot(ROOT_CLAUDE_IMPORT, path, read_only=True) for path in claude]
        return roots

    # --- discovery

    def discover(self, *, force: bool = False) -> dict[str, ManagedSkill]:
        """The skills by name. The folders are searched once; `force=True` or `reload` searches again."""
        with self._lock:
            if self._found is None or force:
                self._search()
            return dict(self._found or {})

    def _search(self) -> None:
        found: dict[str, ManagedSkill] = {}
        shadowed: dict[str, list[ManagedSkill]] = {}
        errors: dict[str, str] = {}
        for root in self.roots:
            for folder in _skill_folders(root.path, errors):
                try:
                    skill = ManagedSkill(read(folder), root.label, read_only=root.read_only)
                except SavoirError as error:
                    errors[str(folder)] = str(error)
                    _log.error("skipped the skill at %s: %s", folder, error.message)
                    continue
                if skill.name in found:
                    shadowed.setdefault(skill.name, []).append(skill)
                else:
                    found[skill.name] = skill
        self._found, self._shadowed, self._errors = found, shadowed, errors

    def reload(self) -> dict[str, ManagedSkill]:
        """Search all folders again."""
        return self.discover(force=True)

    def list_skills(self) -> list[ManagedSkill]:
        """All skills, sorted by name."""
        return sorted(self.discover().values(), key=lambda skill: skill.name)

    def list_installed(self) -> list[ManagedSkill]:
        """The skills in the user's folder, sorted by name."""
        return [skill for skill in self.list_skills() if skill.root == ROOT_USER]

    @property
    def discovery_errors(self) -> dict[str, str]:
        """The error for each folder whose skill cannot be read."""
        with self._lock:
            self.discover()
            return dict(self._errors)

    def shadowed(self, name: str | None = None) -> list[ManagedSkill]:
        """Skills that are not used, because an earlier folder has a skill of the same name."""
        with self._lock:
            self.discover()
            if name is not None:
                return list(self._shadowed.get(name, ()))
            return [skill for copies in self._shadowed.values() for skill in copies]

    # --- one skill

    def get(self, name: str) -> ManagedSkill:
        """The skill with this name, as it was when the folders were searched.

        Raises `SkillNotFoundError` if there is none, and the error of `read` if a folder of this name
        has a skill that cannot be read.
        """
        skills = self.discover()
        if name in skills:
            return skills[name]
        broken = self.discovery_errors
        for folder in broken:
            if os.path.basename(folder) == name:
                read(folder)
        searched = ", ".join(str(root.path) for root in self.roots)
        hints = [f"install it: savoir install {name} --agent gaia --user", f"searched in: {searched}"]
        if skills:
            hints.append(f"the skills are: {', '.join(sorted(skills))}")
        if broken:
            hints.append(f"skills that cannot be read: {len(broken)}, see discovery_errors")
        raise SkillNotFoundError(f"there is no skill `{name}`", code="no-skill", hints=hints)

    def load(self, name: str) -> ManagedSkill:
        """Read a skill from its folder again. Raises `InvalidSkillError` if it is no longer valid."""
        known = self.get(name)
        return ManagedSkill(read(known.directory), known.root, read_only=known.read_only)

    def load_skill(self, skill: str | ManagedSkill | OpenClawAdapter) -> ManagedSkill:
        """Load a skill by name, and add its tools to the registry, all or none.

        Loading executes no code of the skill. Its tools run in the sandbox when they are called.
        """
        from .openclaw import OpenClawAdapter

        if isinstance(skill, OpenClawAdapter):
            return skill.register(self._registry, self._approve)
        loaded = self.load(skill) if isinstance(skill, str) else skill
        if loaded.tools:
            self._registry.add_skill(loaded.directory, approve=self._approve)
        return loaded

    def resolve_path(self, name: str) -> Path:
        """The folder of a skill."""
        return self.get(name).directory

    def resource_path(self, name: str, relative: str) -> Path:
        """A file of a skill. Raises `InvalidSkillError` if it is outside the skill, or missing."""
        folder = self.resolve_path(name).resolve()
        path = (folder / relative).resolve()
        if path != folder and folder not in path.parents:
            raise InvalidSkillError(
                f"`{relative}` is outside the skill `{name}`",
                code="outside-skill",
                hints=[f"a skill has only the files below {folder}"],
            )
        if not path.exists():
            raise InvalidSkillError(
                f"the skill `{name}` has no file `{relative}`",
                code="no-such-file",
                hints=[f"its files are in {folder}"],
            )
        return path

    # --- installation

    def install(
        self,
        source: str,
        version: str | None = None,
        *,
        accept: Sequence[str] = (),
        force: bool = False,
        registry: str | None = None,
    ) -> list[ManagedSkill]:
        """Install a skill into the user's folder and return what is installed.

        By calling this you accept the permissions that the skill declares. If the scan blocks the
        skill, it is not installed.
        """
        root = self.user_root
        if root.name != "skills" or root.parent.name != ".gaia":
            raise SavoirError(
                f"skills cannot be installed into {root}",
                code="wrong-folder",
                hints=["use a folder whose path ends with .gaia/skills"],
            )
        before = {skill.name for skill in self.list_installed()}
        words = ["install", f"{source}@{version}" if version else source, "--agent", "gaia", "--user", "--yes", "--json"]
        words += [f"--accept={one}" for one in accept]
        words += ["--force"] if force else []
        words += [f"--registry={registry}"] if registry else []
        # `savoir install --user` writes to `.gaia/skills` in the home folder.
        env = dict(os.environ)
        if root.parent.parent != Path.home():
            env["HOME"] = str(root.parent.parent)
        document = call_json(words, env=env)
        named = _installed_names(document)
        self.reload()
        installed = self.list_installed()
        return [skill for skill in installed if skill.name in named or skill.name not in before]

    # --- watching

    def start_watching(self, on_change: Callable[[], None] | None = None) -> int:
        """Watch the folders. When a file changes, search again on the next use, and call `on_change`.

        Returns the number of watched folders. Folders that do not exist are not watched.
        """
        self.stop_watching()
        paths = [root.path for root in self.roots if root.path.is_dir()]

        def changed() -> None:
            with self._lock:
                self._found = None
            if on_change is not None:
                on_change()

        if paths:
            self._watcher = _Watcher(paths, changed)
            self._watcher.start()
        return len(paths)

    def stop_watching(self) -> None:
        """Stop watching. Does nothing if no folder is watched."""
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.stop()

    @property
    def is_watching(self) -> bool:
        return self._watcher is not None and self._watcher.is_alive()


def _skill_folders(root: Path, errors: dict[str, str]) -> list[Path]:
    try:
        entries = sorted(root.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        errors[str(root)] = f"the folder cannot be listed: {error}"
        return []
    return [entry for entry in entries if (entry / _SKILL_FILE).is_file()]


def _installed_names(document: dict[str, Any]) -> set[str]:
    try:
        return {str(one["name"]) for one in document["skills"]}
    except (KeyError, TypeError):
        return set()


class _Watcher(threading.Thread):
    """Polls the times and sizes of files, because Python's standard library has no file watcher."""

    def __init__(self, paths: list[Path], changed: Callable[[], None]) -> None:
        super().__init__(name="savoir-skill-watcher", daemon=True)
        self._paths = paths
        self._changed = changed
        self._stopped = threading.Event()
        self._state = dict(_files(paths))

    def run(self) -> None:
        while not self._stopped.wait(_WATCH_INTERVAL):
            state = dict(_files(self._paths))
            if state == self._state:
                continue
            self._state = state
            try:
                self._changed()
            except Exception:
                _log.exception("on_change failed")

    def stop(self) -> None:
        self._stopped.set()
        if threading.current_thread() is not self:
            self.join()


def _files(paths: list[Path]) -> Iterator[tuple[str, tuple[int, int]]]:
    left = _MAX_WATCHED
    open_folders = [(str(path), 0) for path in paths]
    while open_folders:
        folder, depth = open_folders.pop()
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        for entry in entries:
            if left == 0:
                return
            try:
                if entry.is_dir(follow_symlinks=depth == 0):
                    if depth < _MAX_WATCH_DEPTH and entry.name not in _IGNORED_FOLDERS:
                        open_folders.append((entry.path, depth + 1))
                elif entry.name.endswith((".md", ".py")):
                    stat = entry.stat()
                    left -= 1
                    yield entry.path, (stat.st_mtime_ns, stat.st_size)
            except OSError:
                continue


_default: SkillManager | None = None
_default_lock = threading.Lock()


def get_default_manager() -> SkillManager:
    """The manager of this process, with the default folders."""
    global _default
    with _default_lock:
        if _default is None:
            _default = SkillManager()
        return _default


def reset_default_manager() -> None:
    """Stop the watcher of the default manager; the next `get_default_manager` creates a new manager."""
    global _default
    with _default_lock:
        manager, _default = _default, None
    if manager is not None:
        manager.stop_watching()
