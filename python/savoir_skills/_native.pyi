"""The functions and classes that are written in Rust."""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, final

_Path = str | PathLike[str]
_Severity = Literal["error", "warning"]
_Safety = Literal["safe", "unsafe"]

DIALECTS: list[str]
__version__: str

@final
class Diagnostic:
    """A problem in a file and its position. Line and column numbers start at one."""

    code: str
    severity: _Severity
    message: str
    help: str | None
    field: str | None
    path: str | None
    line: int
    column: int
    end_line: int
    end_column: int
    fix: _Safety | None

@final
class CheckedFile:
    """The diagnostics of one file. `path` is `None` if a text was checked."""

    path: str | None
    dialect: str | None
    diagnostics: list[Diagnostic]
    @property
    def ok(self) -> bool: ...

@final
class CheckReport:
    """The result of a check, file by file."""

    files: list[CheckedFile]
    errors: int
    warnings: int
    @property
    def ok(self) -> bool: ...
    @property
    def diagnostics(self) -> list[Diagnostic]: ...
    def raise_for_errors(self) -> None:
        """Raise `InvalidSkillError` with all findings if one of them is an error."""
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...

@final
class FixedSkill:
    """The fixed text of a skill. The file is not changed."""

    path: Path | None
    text: str
    changed: bool
    fixed: list[str]
    remaining: list[Diagnostic]

@final
class Conversion:
    """A converted skill: its files, and how each field was converted."""

    files: dict[str, str]
    dialect: str
    @property
    def text(self) -> str: ...
    @property
    def report(self) -> list[dict[str, Any]]: ...

@final
class Finding:
    """One finding of a scan."""

    rule: str
    severity: Literal["info", "low", "medium", "high", "critical"]
    confidence: Literal["low", "medium", "high"]
    message: str
    path: str
    line: int
    column: int
    excerpt: str
    blocks: bool

@final
class ScanReport:
    """The result of a scan."""

    verdict: Literal["allow", "review", "block"]
    findings: list[Finding]

@final
class Skill:
    """A skill of any dialect."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str | None: ...
    @property
    def description(self) -> str: ...
    @property
    def when_to_use(self) -> str | None: ...
    @property
    def dialect(self) -> str: ...
    @property
    def dialect_reason(self) -> str: ...
    @property
    def body(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def path(self) -> Path | None: ...
    @property
    def directory(self) -> Path | None: ...
    @property
    def authors(self) -> list[str]: ...
    @property
    def license(self) -> str | None: ...
    @property
    def compatibility(self) -> str | None: ...
    @property
    def tags(self) -> list[str]: ...
    @property
    def resources(self) -> list[str]: ...
    @property
    def permissions(self) -> list[str]: ...
    @property
    def security_tier(self) -> Literal["verified", "community", "experimental"] | None: ...
    @property
    def tools(self) -> list[dict[str, Any]]: ...
    @property
    def inputs(self) -> list[dict[str, Any]]: ...
    @property
    def requirements(self) -> dict[str, Any]: ...
    @property
    def policy(self) -> dict[str, Any]: ...
    @property
    def extra(self) -> dict[str, Any]: ...
    @property
    def diagnostics(self) -> list[Diagnostic]: ...
    @property
    def is_valid(self) -> bool: ...
    def to_dict(self) -> dict[str, Any]: ...

def read(path: _Path | None = None, *, text: str | None = None, dialect: str | None = None) -> Skill:
    """Read a skill: its folder, its file, or its text. Raise `InvalidSkillError` if no agent could use it."""

def check(
    paths: _Path | Sequence[_Path] | None = None,
    *,
    text: str | None = None,
    dialect: str | None = None,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    targets: Sequence[str] = (),
    strict: bool = False,
) -> CheckReport:
    """Check all skills at or below some paths, or a text."""

def fix(
    path: _Path | None = None,
    *,
    text: str | None = None,
    unsafe_fixes: bool = False,
    dialect: str | None = None,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    targets: Sequence[str] = (),
    strict: bool = False,
) -> FixedSkill:
    """Fix the text of one skill. The file is not written."""

def convert(
    path: _Path | None = None, to: str | None = None, *, text: str | None = None, dialect: str | None = None
) -> Conversion:
    """Convert a skill to another dialect. Nothing is written."""

def render(
    path: _Path | None = None,
    inputs: Mapping[str, Any] | None = None,
    *,
    text: str | None = None,
    dialect: str | None = None,
) -> str:
    """Insert inputs into the prompt of a skill. Nothing is executed."""

def scan(path: _Path | None = None, *, text: str | None = None) -> ScanReport:
    """Scan one skill for malicious behavior: its folder, an archive of it, or a text."""

def tools(
    paths: _Path | Sequence[_Path],
    format: Literal["openai", "anthropic", "mcp", "json"] = "openai",
    *,
    skip_invalid: bool = False,
) -> list[dict[str, Any]]:
    """List the tools of the skills at or below some paths, in the format of a model API."""

def tool_entries(paths: _Path | Sequence[_Path]) -> list[dict[str, Any]]: ...
