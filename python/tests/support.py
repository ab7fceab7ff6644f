"""Shared test helpers: paths of the examples, and skills in temporary folders."""

from __future__ import annotations

import os
import pathlib
import tempfile
import unittest

ROOT = pathlib.Path(os.environ.get("SAVOIR_TEST_ROOT") or pathlib.Path(__file__).resolve().parents[2])
EXAMPLES = ROOT / "examples"

# A minimal skill in the format of GAIA's specification, with one tool, `greet`.
MINIMAL = """---
name: {name}
version: 0.1.0
description: "A minimal example skill. Use when somebody arrives."
author: developer
license: MIT
permissions:
  - filesystem:none
  - network:none
tools:
  - name: greet
    description: "Return a greeting"
    parameters:
      name: {{type: string, required: true}}
security_tier: experimental
---

# Hello World Skill

A minimal skill that returns a greeting.
"""

TOOLS = '''from gaia.agents.base.tools import tool


@tool
def greet(name: str) -> dict:
    """Return a greeting for the given name."""
    return {"message": f"Hello, {name}!"}
'''


class SkillTestCase(unittest.TestCase):
    """A test case with a temporary folder, and with an empty home so that no run is approved."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        home = self.folder / "home"
        home.mkdir()
        before = os.environ.copy()

        def restore() -> None:
            os.environ.clear()
            os.environ.update(before)

        self.addCleanup(restore)
        for name in list(os.environ):
            if name.startswith(("XDG_", "GAIA_")):
                del os.environ[name]
        os.environ["HOME"] = str(home)
        self.home = home

    def skill(self, parent: str | pathlib.Path, name: str, text: str | None = None, tools: str | None = TOOLS):
        """Write a skill and return its folder."""
        folder = self.folder / parent / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "SKILL.md").write_text(text or MINIMAL.format(name=name))
        if tools is not None:
            (folder / "tools.py").write_text(tools)
        return folder


def yes(_asked: object) -> bool:
    return True
