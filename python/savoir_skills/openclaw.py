"""Uses OpenClaw skills as tools without converting them."""

from __future__ import annotations

from ._native import read
from .manager import ManagedSkill
from .registry import load_tools, tool_registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .registry import SkillTool, ToolRegistry
    from .running import Approve, PathArg

_ROOT = "openclaw"


class OpenClawAdapter:
    """A skill of OpenClaw. It is always experimental and untrusted, even if its file claims otherwise.

    Its handlers run in the sandbox with the permissions that its file declares. `approve` must
    approve every run (see `run`).
    """

    def __init__(self, path: PathArg, *, approve: Approve = None) -> None:
        self.skill = read(path, dialect="openclaw")
        self.approve = approve
        self._path = path

    @property
    def name(self) -> str:
        return self.skill.name

    @property
    def security_tier(self) -> str:
        return "experimental"

    @property
    def permissions(self) -> list[str]:
        return self.skill.permissions

    def tools(self) -> list[SkillTool]:
        """The actions of the skill, as functions that run in the sandbox."""
        return load_tools(self._path, approve=self.approve, untrusted=True)

    def register(self, registry: ToolRegistry | None = None, approve: Approve = None) -> ManagedSkill:
        """Add the actions to a registry. `load_skill` of a manager or an agent calls this."""
        skill = _OpenClawSkill(self.skill, _ROOT, read_only=True)
        target = tool_registry if registry is None else registry
        if skill.tools:
            target.add_skill(skill.directory, approve=self.approve or approve, untrusted=True)
        return skill


class _OpenClawSkill(ManagedSkill):
    @property
    def security_tier(self) -> str:
        return "experimental"
