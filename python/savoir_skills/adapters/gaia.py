"""Provides the tools of skills to AMD GAIA. Needs `amd-gaia`.

GAIA itself refuses skills that use files, programs or the environment, because it would run them in
its own process. Here they run in the sandbox of Savoir.
"""

from __future__ import annotations

from gaia.agents.base import tools as _gaia

from ..registry import ToolRegistry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..running import Approve, PathArg


def register(directory: PathArg, *, approve: Approve = None) -> dict[str, dict[str, Any]]:
    """Add the tools of a skill to GAIA's tool registry, all or none, with names like `skill/tool`."""
    entries = ToolRegistry().add_skill(directory, approve=approve)
    # GAIA looks up a tool by the `name` of its entry, so the name must equal the key.
    entries = {key: {**entry, "name": key} for key, entry in entries.items()}
    registry: dict[str, dict[str, Any]] = getattr(_gaia, "_TOOL_REGISTRY")  # noqa: B009
    registry.update(entries)
    return entries
