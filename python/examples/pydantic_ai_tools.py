"""Tools of a skill in Pydantic AI, with its model for tests, which calls every tool once."""

from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

from savoir_skills.adapters import pydantic_ai

tools = pydantic_ai.tools("examples/hello-world", approve=lambda asked: True)
agent = Agent(TestModel(), tools=tools)
print(agent.run_sync("Greet Ada").output)
# prints: {"say_hello":{"greeting":"Hello, world!"}}
