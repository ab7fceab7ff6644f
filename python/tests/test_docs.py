"""Tests that the first example of the guide prints the output that the guide shows."""

from __future__ import annotations

import contextlib
import io
import os

from support import ROOT, SkillTestCase


class Guide(SkillTestCase):
    def test_first_example(self):
        text = (ROOT / "docs" / "guides" / "python.md").read_text()
        block = text.partition("```python\n")[2].partition("```")[0]
        printed = io.StringIO()
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(ROOT)
        with contextlib.redirect_stdout(printed):
            exec(compile(block, "python.md", "exec"), {})
        self.assertEqual(printed.getvalue().strip(), block.rstrip().rpartition("# ")[2])
