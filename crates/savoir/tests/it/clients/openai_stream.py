"""Asks a model as the client of OpenAI does, and prints how many pieces came and how it ended."""

import sys

import openai

client = openai.OpenAI(base_url=sys.argv[1], api_key="none")
model = client.models.list().data[0].id
stream = client.chat.completions.create(
    model=model,
    messages=[{"role": "user", "content": "Say hello."}],
    temperature=0,
    max_tokens=8,
    stream=True,
)
pieces, finish = 0, None
for chunk in stream:
    for choice in chunk.choices:
        pieces += bool(choice.delta.content)
        finish = choice.finish_reason or finish
print(pieces, finish)
