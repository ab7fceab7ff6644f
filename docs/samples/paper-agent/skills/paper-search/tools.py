from pathlib import Path

from gaia.agents.base.tools import tool


@tool
def search_papers(query: str) -> list:
    """Find passages in the papers."""
    words = query.lower().split()
    found = []
    for paper in sorted(Path.home().joinpath("papers").glob("**/*.txt")):
        for number, line in enumerate(paper.read_text().splitlines(), start=1):
            if all(word in line.lower() for word in words):
                found.append({"paper": paper.name, "line": number, "text": line})
    return found
