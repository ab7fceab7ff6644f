#!/usr/bin/env python3
"""Lists the tests that were skipped completely or in part, grouped by reason: skipped.py JUNIT_FILE

A test that skips something prints the reason to standard error and passes. nextest hides the output of
tests that pass, so it also writes the output into a JUnit file (.config/nextest.toml), which this reads.
SAVOIR_SKIPPED_TESTS names a file for the list.
"""

import collections
import os
import pathlib
import re
import sys
import xml.etree.ElementTree as tree

# Markers that tests print when they skip something. The reason is the rest of the line.
MARKERS = [
    re.compile(r"^(?:=== )?(?:SKIPPED|LEFT OUT|skipped|left out): (?P<reason>.*?)(?: ===)?$"),
    re.compile(r"^note: (?P<reason>.*?),? so this test checks nothing.*$"),
    re.compile(r"^note: (?P<reason>.* (?:are not checked|is not run|is not asked|is tested))$"),
]


def reasons(output):
    for line in output.splitlines():
        found = next(filter(None, (marker.match(line.strip()) for marker in MARKERS)), None)
        if found:
            yield found["reason"]


def skipped(junit):
    """Returns the names of the skipped tests, grouped by reason."""
    found = collections.defaultdict(set)
    for suite in tree.parse(junit).getroot().iter("testsuite"):
        for case in suite.iter("testcase"):
            for output in case.iter("system-err"):
                for reason in reasons(output.text or ""):
                    found[reason].add(f"{suite.get('name')} {case.get('name')}")
    return found


def main():
    junit = pathlib.Path(sys.argv[1])
    if not junit.exists():
        return
    found = skipped(junit)
    count = len(set().union(*found.values()))
    lines = [f"=== skipped, in whole or in part: {count} tests ===" if count else "=== no test was skipped ==="]
    for reason, names in sorted(found.items()):
        lines += [f"{reason}:", *(f"    {name}" for name in sorted(names))]
    text = "\n".join(lines) + "\n"
    sys.stdout.write(text)
    if file := os.environ.get("SAVOIR_SKIPPED_TESTS"):
        pathlib.Path(file).write_text(text)


if __name__ == "__main__":
    main()
