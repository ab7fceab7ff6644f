"""Reads pairs of texts as PyYAML and as Python's json do, and prints the pairs that differ."""

import json
import re
import sys

import yaml

BLOCK = re.compile(r"^\ufeff?---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(\r?\n|$)", re.S)


def fields(text):
    """The frontmatter as PyYAML reads it; None where it does not read."""
    found = BLOCK.match(text)
    try:
        value = yaml.safe_load(found.group(1)) if found else None
    except (yaml.YAMLError, ValueError):
        return None
    return repr(value) if isinstance(value, dict) else None


def metadata(text):
    """The line of `metadata` as JSON, as loaders of one-line metadata take it."""
    found = BLOCK.match(text)
    for line in found.group(1).splitlines() if found else []:
        if line.startswith("metadata:"):
            try:
                return json.loads(line[len("metadata:") :])
            except ValueError:
                return None
    return None


for index, (before, after) in enumerate(json.load(sys.stdin)):
    for loader in (fields, metadata):
        value = loader(before)
        if value is not None and value != loader(after):
            print(index, loader.__name__)
