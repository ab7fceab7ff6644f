"""Tests the adapters with the real frameworks. The models are test models of the frameworks."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import unittest
from support import EXAMPLES, ROOT, SkillTestCase, yes

HELLO = EXAMPLES / "hello-world"


class LangChain(SkillTestCase):
    def test_tool(self):
        from savoir_skills.adapters import langchain

        (tool,) = langchain.tools(HELLO, approve=yes)
        self.assertEqual((tool.name, tool.description), ("say_hello", "Greet somebody by name"))
        self.assertEqual(tool.invoke({"name": "Ada"}), {"greeting": "Hello, Ada!"})
        self.assertEqual(asyncio.run(tool.ainvoke({"name": "Bo"})), {"greeting": "Hello, Bo!"})

    def test_tool_schema_for_the_model(self):
        from langchain_core.utils.function_calling import convert_to_openai_tool

        from savoir_skills.adapters import langchain

        (tool,) = langchain.tools(HELLO)
        function = convert_to_openai_tool(tool)["function"]
        self.assertEqual(function["name"], "say_hello")
        self.assertEqual(function["parameters"]["properties"]["name"]["type"], "string")

    def test_langgraph_tool_node(self):
        from langchain_core.messages import AIMessage
        from langgraph.graph import START, MessagesState, StateGraph
        from langgraph.prebuilt import ToolNode

        from savoir_skills.adapters import langchain

        graph = StateGraph(MessagesState)
        graph.add_node("tools", ToolNode(langchain.tools(HELLO, approve=yes)))
        graph.add_edge(START, "tools")
        call = {"name": "say_hello", "args": {"name": "Ada"}, "id": "1", "type": "tool_call"}
        state = graph.compile().invoke({"messages": [AIMessage("", tool_calls=[call])]})
        self.assertIn("Hello, Ada!", state["messages"][-1].content)


class OpenAiAgents(SkillTestCase):
    def test_tool(self):
        from agents.tool_context import ToolContext

        from savoir_skills.adapters import openai_agents

        (tool,) = openai_agents.tools(HELLO, approve=yes)
        self.assertEqual(tool.params_json_schema["properties"]["name"]["type"], "string")
        arguments = json.dumps({"name": "Ada"})
        context = ToolContext(context=None, tool_name=tool.name, tool_call_id="1", tool_arguments=arguments)
        self.assertEqual(asyncio.run(tool.on_invoke_tool(context, arguments)), {"greeting": "Hello, Ada!"})


class PydanticAi(SkillTestCase):
    def test_agent_calls_the_tool(self):
        from pydantic_ai import Agent
        from pydantic_ai.models.test import TestModel

        from savoir_skills.adapters import pydantic_ai

        agent = Agent(TestModel(), tools=pydantic_ai.tools(HELLO, approve=yes))
        result = agent.run_sync("Greet Ada")
        self.assertIn("Hello, ", result.output)


class Examples(SkillTestCase):
    """Runs each example as a program and compares its output with its last line."""

    def test_examples(self):
        for path in sorted((ROOT / "python" / "examples").glob("*.py")):
            if path.stem == "gaia_local":
                continue
            with self.subTest(path.name):
                done = subprocess.run(
                    [sys.executable, path], capture_output=True, text=True, check=False, cwd=ROOT, timeout=120
                )
                self.assertEqual(done.returncode, 0, done.stderr)
                wanted = path.read_text().rstrip().rpartition("# prints: ")[2]
                self.assertEqual(done.stdout.strip().splitlines()[-1], wanted)


class Types(unittest.TestCase):
    def test_pyright_accepts_package_and_examples(self):
        done = subprocess.run(
            [sys.executable, "-m", "pyright", "--project", ROOT / "python", "--pythonpath", sys.executable],
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    unittest.main()
