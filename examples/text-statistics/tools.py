"""Counting words, without any dependency."""

import re
from collections import Counter

from gaia.agents.base.tools import tool

WORD = re.compile(r"\w+(?:['’]\w+)*")
SENTENCE_END = re.compile(r"[.!?]+(?:\s|$)")


@tool
def count_words(text: str) -> dict:
    """Count words and sentences."""
    words = WORD.findall(text)
    sentences = len(SENTENCE_END.findall(text)) or (1 if words else 0)
    return {"words": len(words), "sentences": sentences, "characters": len(text)}


@tool
def frequent_words(text: str, limit: int = 10) -> dict:
    """List the most frequent words, the most frequent first."""
    counts = Counter(word.lower() for word in WORD.findall(text))
    return {"words": [{"word": word, "count": count} for word, count in counts.most_common(limit)]}
