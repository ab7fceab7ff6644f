"""Read, check, convert, scan and run skills (SKILL.md) of every dialect.

    >>> import savoir_skills
    >>> skill = savoir_skills.read(text="---\\nname: hi\\ndescription: Says hi.\\n---\\nHi!\\n")
    >>> skill.name
    'hi'

Importing this package is fast, because each name below is loaded when it is first used.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._binary import find_binary as find_binary
    from ._native import DIALECTS as DIALECTS
    from ._native import CheckedFile as CheckedFile
    from ._native import CheckReport as CheckReport
    from ._native import Conversion as Conversion
    from ._native import Diagnostic as Diagnostic
    from ._native import Finding as Finding
    from ._native import FixedSkill as FixedSkill
    from ._native import ScanReport as ScanReport
    from ._native import Skill as Skill
    from ._native import __version__ as __version__
    from ._native import check as check
    from ._native import convert as convert
    from ._native import fix as fix
    from ._native import read as read
    from ._native import render as render
    from ._native import scan as scan
    from ._native import tools as tools
    from .agent import Agent as Agent
    from .agent import AgentMember as AgentMember
    from .errors import ApprovalNeededError as ApprovalNeededError
    from .errors import BinaryNotFoundError as BinaryNotFoundError
    from .errors import CommandError as CommandError
    from .errors import ConversionError as ConversionError
    from .errors import InvalidSkillError as InvalidSkillError
    from .errors import RenderError as RenderError
    from .errors import RunError as RunError
    from .errors import SavoirError as SavoirError
    from .errors import SkillNotFoundError as SkillNotFoundError
    from .errors import UnreadableSkillError as UnreadableSkillError
    from .errors import WrongCallError as WrongCallError
    from .manager import ManagedSkill as ManagedSkill
    from .manager import SkillManager as SkillManager
    from .manager import SkillRoot as SkillRoot
    from .manager import get_default_manager as get_default_manager
    from .manager import reset_default_manager as reset_default_manager
    from .openclaw import OpenClawAdapter as OpenClawAdapter
    from .registry import SkillTool as SkillTool
    from .registry import ToolRegistry as ToolRegistry
    from .registry import load_tools as load_tools
    from .registry import tool as tool
    from .registry import tool_registry as tool_registry
    from .running import Approval as Approval
    from .running import Event as Event
    from .running import RunResult as RunResult
    from .running import run as run
    from .running import run_async as run_async
    from .running import stream as stream
    from .running import stream_async as stream_async

_MODULES = {
    "_native": (
        "DIALECTS CheckReport CheckedFile Conversion Diagnostic Finding FixedSkill ScanReport Skill "
        "__version__ check convert fix read render scan tools"
    ),
    "_binary": "find_binary",
    "agent": "Agent AgentMember",
    "errors": (
        "ApprovalNeededError BinaryNotFoundError CommandError ConversionError InvalidSkillError RenderError "
        "RunError SavoirError SkillNotFoundError UnreadableSkillError WrongCallError"
    ),
    "manager": "ManagedSkill SkillManager SkillRoot get_default_manager reset_default_manager",
    "openclaw": "OpenClawAdapter",
    "registry": "SkillTool ToolRegistry load_tools tool tool_registry",
    "running": "Approval Event RunResult run run_async stream stream_async",
}
_NAMES = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = [  # noqa: F822
    "DIALECTS", "Agent", "AgentMember", "Approval", "ApprovalNeededError", "BinaryNotFoundError",
    "CheckReport", "CheckedFile", "CommandError", "Conversion", "ConversionError", "Diagnostic",
    "Event", "Finding", "FixedSkill", "InvalidSkillError", "ManagedSkill", "OpenClawAdapter",
    "RenderError", "RunError", "RunResult", "SavoirError", "ScanReport", "Skill", "SkillManager",
    "SkillNotFoundError", "SkillRoot", "SkillTool", "ToolRegistry", "UnreadableSkillError",
    "WrongCallError", "check", "convert", "find_binary", "fix", "get_default_manager",
    "load_tools", "read", "render", "reset_default_manager", "run", "run_async", "scan",
    "stream", "stream_async", "tool", "tool_registry", "tools",
]  # fmt: skip


def __getattr__(name: str) -> object:
    module = _NAMES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> "list[str]":
    return sorted({*globals(), *_NAMES})
