"""Agents that combine skills with Python functions of your own."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from ._binary import call_json
from ._native import read
from .errors import SavoirError
from .manager import ROOT_AGENT_BUNDLED, ManagedSkill, SkillManager
from .registry import ToolRegistry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .openclaw import OpenClawAdapter
    from .running import Approve, PathArg


@dataclass(frozen=True)
class AgentMember:
    """A skill of an agent."""

    name: str
    version: str | None
    tier: str
    role: str
    """`required`, `optional` or `dependency`."""
    directory: Path | None


@dataclass(frozen=True)
class AgentManifest:
    """The contents of an AGENT.yaml, with the skills that were found."""

    name: str
    version: str | None = None
    description: str | None = None
    model: str | None = None
    members: list[AgentMember] = field(default_factory=lambda: [])
    permissions: list[dict[str, Any]] = field(default_factory=lambda: [])
    warnings: list[str] = field(default_factory=lambda: [])


class Agent:
    """The skills and tools of an agent, in a tool registry that no other agent shares.

    You write the loop that calls the model. Use `Agent.from_file("AGENT.yaml")`, or a subclass:

        class SearchAgent(Agent):
            def _register_tools(self):
                self.load_skill("web-search")
    """

    name: str = "agent"

    def __init__(self, *, manager: SkillManager | None = None, approve: Approve = None) -> None:
        self.tools = ToolRegistry()
        self.skills: dict[str, ManagedSkill] = {}
        self.manifest = AgentManifest(name=type(self).name)
        self._approve = approve
        self._manager = manager if manager is not None else SkillManager()
        self._register_tools()

    def _register_tools(self) -> None:
        """Called by the constructor; override it in a subclass to load skills."""

    @classmethod
    def from_file(
        cls,
        path: PathArg = ".",
        *,
        set: str | None = None,
        skills: Sequence[PathArg] = (),
        manager: SkillManager | None = None,
        approve: Approve = None,
    ) -> Agent:
        """Create the agent that an AGENT.yaml describes.

        Raises `SavoirError` if a required skill is missing or has the wrong version. `skills` are
        folders that are searched first; `set` chooses a skill set.
        """
        words = ["agent", "check", "--json", *(f"--skills={os.fspath(one)}" for one in skills)]
        words += [f"--set={set}"] if set is not None else []
        manifest = _manifest(call_json([*words, "--", os.fspath(path)]))
        agent = cls(manager=manager, approve=approve)
        agent.manifest, agent.name = manifest, manifest.name
        for member in manifest.members:
            if member.directory is not None:
                skill = read(member.directory)
                agent._add(ManagedSkill(skill, ROOT_AGENT_BUNDLED, read_only=True))
        return agent

    def load_skill(self, skill: str | ManagedSkill | OpenClawAdapter) -> ManagedSkill:
        """Add a skill with its tools. `skill` is a name, a `ManagedSkill` or an `OpenClawAdapter`."""
        from .openclaw import OpenClawAdapter

        if isinstance(skill, OpenClawAdapter):
            loaded = skill.register(self.tools, self._approve)
            self.skills[loaded.name] = loaded
            return loaded
        return self._add(self._manager.load(skill) if isinstance(skill, str) else skill)

    def _add(self, skill: ManagedSkill) -> ManagedSkill:
        if skill.tools:
            self.tools.add_skill(skill.directory, approve=self._approve)
        self.skills[skill.name] = skill
        return skill

    def tool(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Add a function as a tool of this agent only."""
        self.tools.add_function(function)
        return function

    def call(self, name: str, arguments: dict[str, Any] | None = None) -> Any:
        """Call a tool by its qualified name, or by its short name if only one tool has it."""
        return self.tools.call(name, arguments)

    def tool_schemas(self) -> list[dict[str, Any]]:
        """The schemas of all tools in OpenAI's format. Pass the names in it to `call`."""
        schemas: list[dict[str, Any]] = []
        short = [entry["name"] for entry in self.tools.values()]
        for entry in self.tools.values():
            name = entry["name"] if short.count(entry["name"]) == 1 else entry["qualified_name"].replace("/", "__")
            parameters = entry["parameters"]
            properties = {key: _schema(one) for key, one in parameters.items()}
            required = [key for key, one in parameters.items() if one.get("required")]
            schema = {"type": "object", "properties": properties, "required": required}
            function = {"name": name, "description": entry["description"], "parameters": schema}
            schemas.append({"type": "function", "function": function})
        return schemas

    def instructions(self) -> str:
        """The instructions of all skills, for the system prompt."""
        parts = [f"# Skill: {skill.name}\n\n{skill.body.strip()}" for skill in self.skills.values() if skill.body.strip()]
        return "\n\n".join(parts)


def _schema(parameter: dict[str, Any]) -> dict[str, Any]:
    unknown = parameter.get("type") == "unknown"
    return {key: value for key, value in parameter.items() if key != "required" and not (unknown and key == "type")}


def _manifest(document: dict[str, Any]) -> AgentManifest:
    findings = document["findings"]
    if errors := [one for one in findings if one["level"] == "error"]:
        hints = [hint for one in errors for hint in one["hints"]]
        message = f"the agent cannot start: {'; '.join(one['message'] for one in errors)}"
        raise SavoirError(message, code="agent-incomplete", hints=list(dict.fromkeys(hints)))
    agent = document["agent"]
    return AgentManifest(
        name=agent["name"],
        version=agent["version"],
        description=agent["description"],
        model=document["model"]["name"],
        members=[
            AgentMember(
                name=one["name"],
                version=one["version"],
                tier=one["tier"],
                role=one["role"],
                directory=Path(os.path.abspath(one["folder"])) if one["folder"] else None,
            )
            for one in document["skills"]
        ],
        permissions=document["permissions"],
        warnings=[one["message"] for one in findings if one["level"] == "warning"],
    )
