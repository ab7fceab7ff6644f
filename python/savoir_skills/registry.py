"""The `@tool` decorator, the tool registry, and functions that call the tools of skills.

Functions decorated with `@tool` run in your process. Tools of skills run in the sandbox.
"""

from __future__ import annotations

import functools
import inspect
import os
import threading

from . import running
from ._native import check, tool_entries
from .errors import InvalidSkillError, SkillNotFoundError, WrongCallError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, TypeVar, overload

    from .running import Approve, PathArg, RunResult

    F = TypeVar("F", bound=Callable[..., Any])
    _Entries = dict[str, dict[str, Any]]
else:
    _Entries = dict

# The rules of `check` that compare a SKILL.md with its tools.py.
_TOOL_RULES = (
    "tool-not-declared",
    "tool-not-decorated",
    "tool-not-in-source",
    "tool-returns-no-json",
    "tool-signature-differs",
    "tool-without-docstring",
    "tools-py-unreadable",
)

_TYPES = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "list": "array",
    "tuple": "array",
    "dict": "object",
}

_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict,),
}


class SkillTool:
    """A tool of a skill as a function: `search(query="…")` runs it in the sandbox."""

    def __init__(self, entry: dict[str, Any], *, approve: Approve = None, untrusted: bool = False) -> None:
        self.name: str = entry["name"]
        """The short name, or `skill/tool` if two skills have a tool of this name."""
        self.qualified_name: str = entry["qualified_name"]
        self.api_name: str = entry["api_name"]
        """The name for model APIs that do not allow a slash."""
        self.description: str = entry["description"]
        self.parameters: dict[str, Any] = entry["parameters"]
        """JSON Schema of the arguments."""
        self.atomic: bool = entry["atomic"]
        self.skill: str = entry["skill"]
        self.skill_version: str | None = entry["skill_version"]
        self.read_only: bool = entry["policy"]["read_only"]
        path = entry["path"]
        folder = os.path.basename(path) in ("SKILL.md", "skill.md", "Skill.md", "SKILL.MD")
        self.directory: str = os.path.abspath(os.path.dirname(path) if folder else path)
        self.approve = approve
        self.untrusted = untrusted
        self.__name__ = self.api_name
        self.__doc__ = self.description

    @property
    def target(self) -> str:
        """The argument of `run` for this tool."""
        return os.path.join(self.directory, self.qualified_name.rpartition("/")[2])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the tool and return its value."""
        return self.run(*args, **kwargs).value

    def run(self, *args: Any, **kwargs: Any) -> RunResult:
        """Run the tool and return its whole result."""
        return running.run(self.target, self._params(args, kwargs), approve=self.approve, untrusted=self.untrusted)

    async def run_async(self, *args: Any, **kwargs: Any) -> RunResult:
        """Like `run`, for asyncio."""
        return await running.run_async(
            self.target, self._params(args, kwargs), approve=self.approve, untrusted=self.untrusted
        )

    def _params(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        names = list(self.parameters.get("properties", {}))
        if len(args) > len(names):
            raise WrongCallError(f"{self.name} takes {len(names)} arguments, not {len(args)}")
        positional = dict(zip(names, args))
        if both := sorted(positional.keys() & kwargs.keys()):
            raise WrongCallError(f"{self.name} got two values for {', '.join(both)}")
        return {**positional, **kwargs}

    def __repr__(self) -> str:
        return f"<SkillTool {self.qualified_name}>"


def load_tools(
    paths: PathArg | Sequence[PathArg], *, approve: Approve = None, untrusted: bool = False
) -> list[SkillTool]:
    """Find all skills at or below `paths` and return their tools as functions that run in the sandbox."""
    return [SkillTool(entry, approve=approve, untrusted=untrusted) for entry in tool_entries(paths)]


class ToolRegistry(_Entries):
    """Tools by name: `skill/tool` for those of skills, the name of the function for your own.

    Each value is a dict with `name`, `qualified_name`, `description`, `parameters`, `function`,
    `atomic`, `skill` and `skill_version`.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.RLock()

    def add_function(self, function: Callable[..., Any], *, atomic: bool = False) -> dict[str, Any]:
        """Add a function of this process."""
        name = function.__name__
        entry = {
            "name": name,
            "qualified_name": name,
            "display_name": name,
            "description": inspect.getdoc(function) or "",
            "parameters": _parameters(function),
            "function": function,
            "atomic": atomic,
            "skill": None,
            "skill_version": None,
        }
        with self._lock:
            self[name] = entry
        return entry

    def add_skill(
        self, directory: PathArg, *, approve: Approve = None, untrusted: bool = False
    ) -> dict[str, dict[str, Any]]:
        """Add the tools of a skill, all or none.

        Raises `InvalidSkillError` if tools.py does not match SKILL.md.
        """
        report = check(directory, select=_TOOL_RULES)
        if not report.ok:
            raise InvalidSkillError(
                f"{os.fspath(directory)}: tools.py does not match the declared tools; no tool was loaded",
                code="tools-invalid",
                diagnostics=report.diagnostics,
            )
        entries: dict[str, dict[str, Any]] = {}
        for one in load_tools(directory, approve=approve, untrusted=untrusted):
            short = one.qualified_name.rpartition("/")[2]
            entries[one.qualified_name] = {
                "name": short,
                "qualified_name": one.qualified_name,
                "display_name": f"{short} ({one.skill})",
                "description": one.description,
                "parameters": _declared(one.parameters),
                "function": one,
                "atomic": one.atomic,
                "skill": one.skill,
                "skill_version": one.skill_version,
            }
        with self._lock:
            self.update(entries)
        return entries

    def remove_skill(self, name: str) -> list[str]:
        """Remove the tools of a skill; returns their names."""
        with self._lock:
            removed = [key for key, entry in self.items() if entry["skill"] == name]
            for key in removed:
                del self[key]
        return removed

    def find(self, name: str) -> dict[str, Any]:
        """The entry of a tool, by its qualified name, or by its short name if only one tool has it."""
        with self._lock:
            entry = self.get(name) or self.get(name.replace("__", "/", 1))
            if entry is not None:
                return entry
            found = [entry for entry in self.values() if entry["name"] == name]
        if len(found) == 1:
            return found[0]
        names = sorted(entry["qualified_name"] for entry in found or self.values())
        known = [f"the tools are: {', '.join(names)}"] if names else []
        if found:
            raise SkillNotFoundError(f"several tools have the name `{name}`", code="ambiguous-tool", hints=known)
        raise SkillNotFoundError(f"there is no tool `{name}`", code="unknown-tool", hints=known)

    def call(self, name: str, arguments: dict[str, Any] | None = None) -> Any:
        """Check the arguments against the tool's parameters, then call the tool."""
        entry = self.find(name)
        arguments = arguments or {}
        if problems := list(_problems(entry["parameters"], arguments)):
            raise WrongCallError(f"{entry['qualified_name']}: {'; '.join(problems)}", code="invalid-arguments")
        return entry["function"](**arguments)


def _problems(parameters: dict[str, dict[str, Any]], arguments: dict[str, Any]) -> Iterator[str]:
    for name in arguments:
        if name not in parameters:
            yield f"there is no parameter `{name}`"
    for name, parameter in parameters.items():
        if name not in arguments:
            if parameter.get("required"):
                yield f"`{name}` is missing"
            continue
        wanted = _PYTHON_TYPES.get(parameter.get("type", ""))
        value = arguments[name]
        is_bool = isinstance(value, bool) and wanted != (bool,)
        if wanted and (is_bool or not isinstance(value, wanted)):
            yield f"`{name}` must be of the type {parameter['type']}"


def _declared(schema: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Converts a JSON Schema to GAIA's format of parameters."""
    required = schema.get("required", ())
    return {
        name: {"type": "unknown", **one, "required": name in required}
        for name, one in schema.get("properties", {}).items()
    }


def _parameters(function: Callable[..., Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name, one in inspect.signature(function).parameters.items():
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            continue
        entry: dict[str, Any] = {"type": _type(one.annotation), "required": one.default is one.empty}
        if one.default is not one.empty:
            entry["default"] = one.default
        found[name] = entry
    return found


def _type(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return _TYPES.get(text.partition("[")[0].rpartition(".")[2].lower(), "unknown")


tool_registry = ToolRegistry()
"""The tools of this process."""

if TYPE_CHECKING:

    @overload
    def tool(function: F) -> F: ...
    @overload
    def tool(function: None = None, *, atomic: bool = False, **ignored: Any) -> Callable[[F], F]: ...


def tool(function: Any = None, *, atomic: bool = False, **ignored: Any) -> Any:
    """Add a function to the registry: `@tool`, `@tool()` or `@tool(atomic=True)`.

    The function is returned unchanged. Unknown keywords are ignored, as in GAIA.
    """
    if function is None:
        return functools.partial(tool, atomic=atomic)
    tool_registry.add_function(function, atomic=atomic)
    return function
