"""Provides the tools of skills to LangChain and LangGraph. Needs `langchain-core`."""

from __future__ import annotations

# Frameworks evaluate annotations of functions, so `Any` must exist at run time.
from typing import Any

from langchain_core.tools import StructuredTool

from ..registry import load_tools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..registry import SkillTool
    from ..running import Approve, PathArg


def tools(paths: PathArg | Sequence[PathArg], *, approve: Approve = None) -> list[StructuredTool]:
    """Find all skills at or below `paths` and return their tools for this framework."""
    return [wrap(one) for one in load_tools(paths, approve=approve)]


def wrap(tool: SkillTool) -> StructuredTool:
    """Convert one tool of a skill."""

    def call(**arguments: Any) -> Any:
        return tool.run(**arguments).value

    async def call_async(**arguments: Any) -> Any:
        return (await tool.run_async(**arguments)).value

    return StructuredTool.from_function(
        func=call,
        coroutine=call_async,
        name=tool.api_name,
        description=tool.description,
        args_schema=tool.parameters,
        infer_schema=False,
    )
