"""A skill that reads files, in AMD GAIA. Needs `pip install amd-gaia savoir-skills`.

GAIA has no sandbox, so it refuses a skill that asks for files. With Savoir, the tool runs in one: it
reads the folder that the skill declares, and nothing else.
"""

import pathlib
import tempfile

from gaia.agents.base.tools import get_tool_metadata
from gaia.skills import SkillManager, SkillPermissionError, register_skill_tools

from savoir_skills.adapters import gaia

SKILL = """---
name: note-lines
version: 1.0.0
description: Counts the lines of notes. Use when somebody asks how long a note is.
license: MIT
metadata:
  gaia:
    security_tier: experimental
    permissions: ["filesystem:read:{notes}/**"]
    tools:
      - name: count_lines
        description: Count the lines of a note
        parameters:
          path: {{type: string, required: true}}
---
# Notes

Call `count_lines`.
"""

TOOLS = '''from gaia.agents.base.tools import tool


@tool
def count_lines(path: str) -> int:
    """Count the lines of a note."""
    with open(path) as file:
        return len(file.readlines())
'''

with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name).resolve()
    notes, skill = folder / "notes", folder / "skills" / "note-lines"
    notes.mkdir()
    skill.mkdir(parents=True)
    (notes / "a.txt").write_text("one\ntwo\n")
    (folder / "secret.txt").write_text("secret\n")
    (skill / "SKILL.md").write_text(SKILL.format(notes=notes))
    (skill / "tools.py").write_text(TOOLS)

    try:
        manager = SkillManager(agent_skill_dirs=[skill.parent], include_claude_roots=False)
        register_skill_tools(manager.load("note-lines"))
    except SkillPermissionError as error:
        print("GAIA alone:", str(error).partition(".")[0])

    gaia.register(skill, approve=lambda asked: True)
    entry = get_tool_metadata("note-lines/count_lines")
    assert entry is not None
    count = entry["function"]
    try:
        count(path=str(folder / "secret.txt"))
    except Exception as error:
        print("outside of the folder:", type(error).__name__)
    print("lines:", count(path=str(notes / "a.txt")))
# prints: lines: 2
