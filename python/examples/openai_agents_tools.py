"""Tools of a skill in the OpenAI Agents SDK. `Runner.run_sync(agent, "Greet Ada")` needs a model."""

from agents import Agent

from savoir_skills.adapters import openai_agents

agent = Agent(
    name="Greeter",
    instructions="Greet people with your tool.",
    tools=[*openai_agents.tools("examples/hello-world", approve=lambda asked: True)],
)
print([tool.name for tool in agent.tools])
# prints: ['say_hello']
