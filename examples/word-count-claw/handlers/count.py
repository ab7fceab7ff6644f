"""The handler of the action, without any dependency."""


def word_count(text: str) -> dict:
    """Count the words, lines and characters of a text."""
    return {"words": len(text.split()), "lines": len(text.splitlines()), "characters": len(text)}
