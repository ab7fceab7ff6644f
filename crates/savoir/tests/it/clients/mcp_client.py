"""Drives a server with the official client and prints what it saw as one line of JSON.

mcp_client.py stdio PROGRAM WORDS...      over standard input and output
mcp_client.py http URL TOKEN              over HTTP
"""

import asyncio
import json
import sys
from contextlib import asynccontextmanager

import httpx2
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult

questions = []


async def agree(_context, params):
    questions.append(params.message)
    return ElicitResult(action="accept", content={"answer": "once"})


@asynccontextmanager
async def streams(how, words):
    if how == "stdio":
        server = StdioServerParameters(command=words[0], args=words[1:], env=None)
        async with stdio_client(server) as both:
            yield both[0], both[1]
    else:
        headers = {"Authorization": f"Bearer {words[1]}"}
        async with httpx2.AsyncClient(headers=headers, trust_env=False) as client:
            async with streamable_http_client(words[0], http_client=client) as both:
                yield both[0], both[1]


def plain(result):
    return json.loads(result.model_dump_json(by_alias=True, exclude_none=True))


async def main(how, words):
    async with streams(how, words) as (read, write):
        async with ClientSession(read, write, elicitation_callback=agree) as session:
            begun = plain(await session.initialize())
            seen = {"begun": begun, "before": plain(await session.list_tools())}
            seen["found"] = plain(await session.call_tool("search_skills", {"query": "words"}))
            name = seen["found"]["structuredContent"]["skills"][0]["name"]
            seen["used"] = plain(await session.call_tool("use_skill", {"name": name}))
            seen["after"] = plain(await session.list_tools())
            tools = seen["used"]["structuredContent"].get("tools", [])
            if tools:
                seen["ran"] = plain(await session.call_tool(tools[0], {"text": "one two three."}))
            seen["prompts"] = plain(await session.list_prompts())
            resources = await session.list_resources()
            seen["resources"] = plain(resources)
            seen["read"] = plain(await session.read_resource(resources.resources[0].uri))
            seen["refused"] = plain(await session.call_tool("use_skill", {"name": "none"}))
            seen["questions"] = questions
            print(json.dumps(seen))


asyncio.run(main(sys.argv[1], sys.argv[2:]))
