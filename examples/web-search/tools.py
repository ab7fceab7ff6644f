"""Searching the web with the Brave Search API, without any dependency."""

import json
import os
import urllib.error
import urllib.parse
import urllib.request

from gaia.agents.base.tools import tool

BRAVE = "https://api.search.brave.com/res/v1/web/search"
MOST_RESULTS = 20
SECONDS = 15


@tool
def search_web(query: str, max_results: int = 5) -> dict:
    """Search the web and list titles, addresses and short descriptions."""
    count = max(1, min(max_results, MOST_RESULTS))
    base = os.environ.get("BRAVE_SEARCH_URL") or BRAVE
    address = base + "?" + urllib.parse.urlencode({"q": query, "count": count})
    headers = {"Accept": "application/json", "X-Subscription-Token": os.environ["BRAVE_API_KEY"]}
    request = urllib.request.Request(address, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as response:
            answer = json.load(response)
    except urllib.error.HTTPError as error:
        raise RuntimeError(f"the search answered {error.code} {error.reason}") from None
    found = (answer.get("web") or {}).get("results") or []
    results = [
        {"title": item.get("title", ""), "url": item.get("url", ""), "description": item.get("description", "")}
        for item in found[:count]
    ]
    return {"query": query, "results": results}
