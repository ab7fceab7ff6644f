"""The exceptions of this package.

Each has a stable `code`, `hints` that say what to do, and `diagnostics` if a check found problems.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from ._native import Diagnostic
    from .running import RunResult

# Maximum number of diagnostics in a message; `diagnostics` has all of them.
_MAX_SHOWN = 10


class SavoirError(Exception):
    """The base class of all errors of this package."""

    def __init__(
        self,
        message: str,
        *,
        code: str = "failed",
        hints: Iterable[str] = (),
        diagnostics: Sequence[Diagnostic] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.hints: list[str] = list(hints)
        self.diagnostics: list[Diagnostic] = list(diagnostics)

    def __str__(self) -> str:
        shown = [str(found) for found in self.diagnostics[:_MAX_SHOWN]]
        more = len(self.diagnostics) - len(shown)
        lines = [self.message, *shown, *([f"and {more} more"] if more else [])]
        return "\n".join([*lines, *(f"hint: {hint}" for hint in self.hints)])


class WrongCallError(SavoirError, ValueError):
    """The arguments of a call are wrong."""


class UnreadableSkillError(SavoirError):
    """A file or folder does not exist, or cannot be read."""


class InvalidSkillError(SavoirError):
    """A skill that cannot be used; `diagnostics` say why."""


class ConversionError(InvalidSkillError):
    """A skill that cannot be converted."""


class RenderError(SavoirError):
    """A prompt that cannot be rendered: an input is missing, wrong or unknown."""


class SkillNotFoundError(SavoirError, LookupError):
    """There is no skill or tool of that name."""


class BinaryNotFoundError(SavoirError):
    """The program `savoir` was not found."""


class CommandError(SavoirError):
    """The program `savoir` failed; `details` has the other fields of its error."""

    def __init__(
        self, message: str, *, details: Mapping[str, Any] | None = None, exit_code: int = 1, **fields: Any
    ) -> None:
        super().__init__(message, **fields)
        self.details: dict[str, Any] = dict(details or {})
        self.exit_code = exit_code


class RunError(CommandError):
    """A run failed. `result` has its output if a program was started."""

    def __init__(self, message: str, *, result: RunResult | None = None, **fields: Any) -> None:
        super().__init__(message, **fields)
        self.result = result


class ApprovalNeededError(RunError):
    """A run was not approved.

    `fingerprint` identifies this run and the current contents of its files. Pass it as `approve=`
    to approve the run.
    """

    @property
    def fingerprint(self) -> str:
        return str(self.details.get("fingerprint", ""))

    @property
    def permissions(self) -> list[str]:
        return list(self.details.get("permissions", ()))

    @property
    def reasons(self) -> list[str]:
        return list(self.details.get("reasons", ()))


# Aliases with the names that GAIA uses.
SkillError = SavoirError
SkillValidationError = InvalidSkillError
SkillPermissionError = ApprovalNeededError
