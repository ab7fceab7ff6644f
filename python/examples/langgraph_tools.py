"""Tools of a skill in LangGraph, with a scripted message instead of a model."""

from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from savoir_skills.adapters import langchain

# `approve` is called for every run that needs approval. This example approves all of them.
tools = langchain.tools("examples/hello-world", approve=lambda asked: True)

graph = StateGraph(MessagesState)
graph.add_node("tools", ToolNode(tools))
graph.add_edge(START, "tools")

message = AIMessage("", tool_calls=[{"name": "say_hello", "args": {"name": "Ada"}, "id": "1"}])
state = graph.compile().invoke({"messages": [message]})
print(state["messages"][-1].content)
# prints: {"greeting": "Hello, Ada!"}
