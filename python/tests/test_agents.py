"""Tests `@tool`, the tool registry, agents and the adapter for OpenClaw."""

from __future__ import annotations

import savoir_skills
from savoir_skills import Agent, OpenClawAdapter, SkillManager, SkillNotFoundError, ToolRegistry, WrongCallError
from support import EXAMPLES, SkillTestCase, yes

AGENT = """name: greeter
version: 0.24.0
description: Greets everybody.
skills:
  - name: hello-one
    version: ">=0.1.0"
    required: true
  - name: not-here
    required: false
model: {{default: "{model}", minimum: ">=7B", context: ">=32K"}}
"""


class Decorator(SkillTestCase):
    def setUp(self):
        super().setUp()
        savoir_skills.tool_registry.clear()
        self.addCleanup(savoir_skills.tool_registry.clear)

    def test_function_is_registered_and_unchanged(self):
        def add(first: int, second: float = 1.5, flag: bool = False, items: list[str] = [], extra=None) -> dict:  # noqa: B006
            """Add two numbers."""
            return {"sum": first + second}

        self.assertIs(savoir_skills.tool(add), add)
        entry = savoir_skills.tool_registry["add"]
        self.assertEqual(entry["description"], "Add two numbers.")
        types = {name: (one["type"], one["required"]) for name, one in entry["parameters"].items()}
        self.assertEqual(
            types,
            {"first": ("integer", True), "second": ("number", False), "flag": ("boolean", False),
             "items": ("array", False), "extra": ("unknown", False)},
        )  # fmt: skip

    def test_keywords(self):
        @savoir_skills.tool(atomic=True, display_label="x")
        def one() -> None:
            """One."""

        @savoir_skills.tool()
        def two() -> None:
            """Two."""

        self.assertTrue(savoir_skills.tool_registry["one"]["atomic"])
        self.assertFalse(savoir_skills.tool_registry["two"]["atomic"])

    def test_arguments_are_checked_before_the_call(self):
        @savoir_skills.tool
        def add(first: int, note: str = "") -> int:
            """Add."""
            raise AssertionError("it was called")

        for arguments in ({}, {"first": "1"}, {"first": True}, {"first": 1, "other": 2}):
            with self.assertRaises(WrongCallError):
                savoir_skills.tool_registry.call("add", arguments)


class Registry(SkillTestCase):
    def test_short_name_works_unless_ambiguous(self):
        registry = ToolRegistry()
        registry.add_skill(self.skill("x", "one"), approve=yes)
        self.assertEqual(registry.find("greet")["skill"], "one")
        registry.add_skill(self.skill("x", "two"), approve=yes)
        with self.assertRaises(SkillNotFoundError) as caught:
            registry.find("greet")
        self.assertIn("one/greet", str(caught.exception))
        self.assertEqual(registry.find("two/greet")["skill"], "two")
        self.assertEqual(registry.remove_skill("one"), ["one/greet"])
        self.assertEqual(registry.find("greet")["skill"], "two")

    def test_loaded_tools_are_callable(self):
        greet = savoir_skills.load_tools(EXAMPLES / "hello-world", approve=yes)[0]
        self.assertEqual((greet.name, greet.__name__), ("say_hello", "say_hello"))
        self.assertEqual(greet("Ada"), {"greeting": "Hello, Ada!"})
        self.assertEqual(greet(name="Bo"), {"greeting": "Hello, Bo!"})
        with self.assertRaises(WrongCallError):
            greet("Ada", name="Bo")
        with self.assertRaises(WrongCallError):
            greet("Ada", "Bo")


class Agents(SkillTestCase):
    def test_subclass_loads_skills(self):
        self.skill("agent", "hello-one")

        class Greeter(Agent):
            name = "greeter"

            def _register_tools(self):
                self.load_skill("hello-one")

        agent = Greeter(manager=SkillManager(agent_skill_dirs=[self.folder / "agent"]), approve=yes)

        @agent.tool
        def now() -> str:
            """Tell the time."""
            return "noon"

        self.assertEqual(set(agent.tools), {"hello-one/greet", "now"})
        self.assertEqual(agent.call("greet", {"name": "Ada"}), {"message": "Hello, Ada!"})
        self.assertEqual(agent.call("now"), "noon")
        self.assertIn("A minimal skill", agent.instructions())
        schemas = {one["function"]["name"]: one["function"]["parameters"] for one in agent.tool_schemas()}
        self.assertEqual(schemas["greet"]["required"], ["name"])
        self.assertEqual(savoir_skills.tool_registry, {})

    def write_agent(self, model="Qwen3.5-35B"):
        path = self.folder / "agent" / "AGENT.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(AGENT.format(model=model))
        return path

    def test_agent_from_file(self):
        path = self.write_agent()
        self.skill("agent/skills", "hello-one")
        agent = Agent.from_file(path, approve=yes)
        self.assertEqual((agent.name, agent.manifest.version, agent.manifest.model), ("greeter", "0.24.0", "Qwen3.5-35B"))
        self.assertEqual([(one.name, one.role) for one in agent.manifest.members], [("hello-one", "required")])
        self.assertTrue(any("not-here" in text for text in agent.manifest.warnings))
        self.assertEqual(agent.call("hello-one/greet", {"name": "Ada"}), {"message": "Hello, Ada!"})

    def test_missing_required_skill_is_an_error(self):
        with self.assertRaises(savoir_skills.SavoirError) as caught:
            Agent.from_file(self.write_agent())
        self.assertEqual(caught.exception.code, "agent-incomplete")
        self.assertIn("hello-one", str(caught.exception))

    def test_missing_file(self):
        with self.assertRaises(savoir_skills.CommandError):
            Agent.from_file(self.folder / "none.yaml")


class OpenClaw(SkillTestCase):
    def test_adapter_is_experimental_and_sandboxed(self):
        asked = []
        adapter = OpenClawAdapter(EXAMPLES / "word-count-claw", approve=lambda one: asked.append(one) or True)
        self.assertEqual(adapter.security_tier, "experimental")
        agent = Agent(manager=SkillManager(include_claude_roots=False))
        loaded = agent.load_skill(adapter)
        self.assertEqual(loaded.security_tier, "experimental")
        entry = next(iter(agent.tools.values()))
        text = {name: "one two three" for name, one in entry["parameters"].items() if one["required"]}
        self.assertIn("3", str(agent.call(entry["qualified_name"], text)))
        agent.call(entry["qualified_name"], text)
        self.assertEqual(len(asked), 2, "every run is asked about")
