"""Asks with JSON and prints the events of the answer, as sseclient-py reads them, one a line."""

import json
import sys

import requests
import sseclient

url, token, body = sys.argv[1:]
answer = requests.post(
    url,
    json=json.loads(body),
    headers={"Authorization": f"Bearer {token}", "Accept": "text/event-stream"},
    stream=True,
    timeout=120,
)
answer.raise_for_status()
kind = answer.headers["Content-Type"]
assert kind == "text/event-stream; charset=utf-8", kind
for event in sseclient.SSEClient(answer.iter_content(chunk_size=None)).events():
    print(json.dumps({"event": event.event, "data": json.loads(event.data)}), flush=True)
