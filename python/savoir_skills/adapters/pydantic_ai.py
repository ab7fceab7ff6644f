"""Tools of skills for Pydantic AI. Needs `pydantic-ai-slim`."""

from __future__ import annotations

# Frameworks evaluate annotations of functions, so `Any` must exist at run time.
from typing import Any

from pydantic_ai import Tool

from ..registry import load_tools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..registry import SkillTool
    from ..running import Approve, PathArg


def tools(paths: PathArg | Sequence[PathArg], *, approve: Approve = None) -> list[Tool[Any]]:
    """The tools of the skills at or below some paths."""
    return [wrap(one) for one in load_tools(paths, approve=approve)]


def wrap(tool: SkillTool) -> Tool[Any]:
    """One tool of a skill."""

    async def call(**arguments: Any) -> Any:
        return (await tool.run_async(**arguments)).value

    # The framework does not say what this returns.
    return Tool.from_schema(  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        call, name=tool.api_name, description=tool.description, json_schema=tool.parameters, takes_ctx=False
    )
