#!/usr/bin/env python3
"""Draws docs/check.svg from the output of `savoir check`: python3 scripts/picture.py SAVOIR"""

import html
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SKILL = """---
name: weekly-report
description: Writes the weekly report. Use for: status, summaries
allowed-tools: Read Grep
---

# Weekly report

Follow [the template](references/template.md).
"""
COLOURS = {"31": "#f7768e", "91": "#f7768e", "33": "#e0af68", "93": "#e0af68", "32": "#9ece6a", "92": "#9ece6a",
           "34": "#7aa2f7", "94": "#7aa2f7", "36": "#7dcfff", "96": "#7dcfff"}
WIDTH, LINE, LEFT, TOP = 820, 19, 20, 56


def spans(line):
    """Splits a line with ANSI escape codes into pieces of text with their colors."""
    colour, bold = "#c0caf5", False
    for piece in re.split(r"(\x1b\[[0-9;]*m)", line):
        if piece.startswith("\x1b["):
            for code in piece[2:-1].split(";"):
                if code in ("", "0"):
                    colour, bold = "#c0caf5", False
                elif code == "1":
                    bold = True
                elif code in COLOURS:
                    colour = COLOURS[code]
        elif piece:
            weight = ' font-weight="bold"' if bold else ""
            yield f'<tspan fill="{colour}"{weight}>{html.escape(piece)}</tspan>'


def main():
    savoir = str(Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        skill = Path(folder) / "weekly-report"
        (skill / "references").mkdir(parents=True)
        (skill / "references" / "template.md").write_text("# Week\n")
        (skill / "SKILL.md").write_text(SKILL)
        lines = []
        for command in (["check", "weekly-report"], ["check", "weekly-report", "--fix"], ["convert", "weekly-report", "--to", "codex", "-o", "codex/weekly-report"]):
            lines.append("\x1b[92m$\x1b[0m \x1b[1msavoir " + " ".join(command) + "\x1b[0m")
            done = subprocess.run([savoir, *command], cwd=folder, capture_output=True, text=True,
                                  env={"CLICOLOR_FORCE": "1", "TERM": "xterm-256color", "PATH": ""})
            lines += (done.stdout + done.stderr).rstrip("\n").split("\n") + [""]
    height = TOP + LINE * len(lines) + 10
    rows = "\n".join(
        f'<text x="{LEFT}" y="{TOP + LINE * index}" xml:space="preserve">{"".join(spans(line))}</text>'
        for index, line in enumerate(lines)
    )
    Path(__file__).resolve().parent.parent.joinpath("docs/check.svg").write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="13">\n'
        f'<title>savoir check finds an unquoted colon, fixes it, and convert writes the skill for Codex</title>\n'
        f'<rect width="100%" height="100%" rx="10" fill="#1a1b26"/>\n'
        f'<circle cx="22" cy="20" r="6" fill="#f7768e"/><circle cx="42" cy="20" r="6" fill="#e0af68"/>'
        f'<circle cx="62" cy="20" r="6" fill="#9ece6a"/>\n{rows}\n</svg>\n'
    )


if __name__ == "__main__":
    main()
