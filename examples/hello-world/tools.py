"""The smallest tool."""

from gaia.agents.base.tools import tool


@tool
def say_hello(name: str = "world") -> dict:
    """Greet somebody by name."""
    return {"greeting": f"Hello, {name}!"}
