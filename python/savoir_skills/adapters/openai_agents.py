"""Provides the tools of skills to the OpenAI Agents SDK. Needs `openai-agents`."""

from __future__ import annotations

import json
from typing import Any

from agents import FunctionTool
from agents.tool_context import ToolContext

from ..registry import load_tools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..registry import SkillTool
    from ..running import Approve, PathArg


def tools(paths: PathArg | Sequence[PathArg], *, approve: Approve = None) -> list[FunctionTool]:
    """Find all skills at or below `paths` and return their tools for this framework."""
    return [wrap(one) for one in load_tools(paths, approve=approve)]


def wrap(tool: SkillTool) -> FunctionTool:
    """Convert one tool of a skill."""

    async def call(_context: ToolContext[Any], arguments: str) -> Any:
        return (await tool.run_async(**json.loads(arguments or "{}"))).value

    return FunctionTool(
        name=tool.api_name,
        description=tool.description,
        params_json_schema=tool.parameters,
        on_invoke_tool=call,
        # The strict mode of OpenAI does not allow optional parameters.
        strict_json_schema=False,
    )
