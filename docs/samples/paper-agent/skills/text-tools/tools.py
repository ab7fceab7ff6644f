from gaia.agents.base.tools import tool


@tool
def split_text(text: str, size: int = 1000) -> list:
    """Cut a text into parts."""
    return [text[start : start + size] for start in range(0, len(text), size)]
