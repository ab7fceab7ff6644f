#!/usr/bin/env python3
"""Print the licenses of all crates that are linked into the program or the Python module.

    notices.py [> THIRD-PARTY-NOTICES]

Every license text is printed once, below the list of the crates that it belongs to. Needs cargo and
the sources of the crates, which a build has already downloaded.
"""

import functools
import hashlib
import json
import os
import pathlib
import re
import subprocess

from project import ROOT, PackagingError, main_with_hints

LICENSE_FILE = re.compile(r"(?i)(licen[sc]e|copying|notice|unlicense|copyright)")


@functools.cache
def notices():
    """The text of THIRD-PARTY-NOTICES."""
    texts, without = {}, []
    for crate in linked_crates():
        label = f"{crate['name']} {crate['version']}"
        files = license_files(pathlib.Path(crate["manifest_path"]).parent)
        if not files:
            without.append(f"{label}: {crate.get('license') or 'see its repository'}")
        for text in files:
            key = hashlib.sha256(" ".join(text.split()).encode()).digest()
            texts.setdefault(key, (text, []))[1].append(label)
    parts = ["Savoir contains these works of other people, under these licenses.\n"]
    for text, labels in sorted(texts.values(), key=lambda item: (-len(item[1]), item[1])):
        parts.append(f"{'=' * 80}\n{', '.join(labels)}\n{'-' * 80}\n{text.strip()}\n")
    if without:
        heading = "These works name their license, but do not contain its text:"
        parts.append("\n".join([f"{'=' * 80}\n{heading}", *without, ""]))
    return "\n".join(parts)


def linked_crates():
    """The packages of other people that the programs need at run time, on any platform."""
    command = [os.environ.get("CARGO", "cargo"), "metadata", "--locked", "--format-version", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise PackagingError(f"cargo metadata failed: {done.stderr.strip()}", "run cargo fetch first")
    metadata = json.loads(done.stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    open_ids = [id for id, package in packages.items() if package["name"] in ("savoir", "savoir-python")]
    seen = set(open_ids)
    while open_ids:
        for dep in nodes[open_ids.pop()]["deps"]:
            is_linked = any(kind["kind"] is None for kind in dep["dep_kinds"])
            if is_linked and dep["pkg"] not in seen:
                seen.add(dep["pkg"])
                open_ids.append(dep["pkg"])
    found = [packages[id] for id in seen if packages[id]["source"]]
    return sorted(found, key=lambda package: (package["name"], package["version"]))


def license_files(folder):
    """The texts of the license files of a crate, in the order of their names."""
    paths = sorted(path for path in folder.iterdir() if LICENSE_FILE.match(path.name))
    return [path.read_text("utf-8", "replace") for path in paths if path.is_file()]


if __name__ == "__main__":
    main_with_hints(lambda: print(notices(), end=""))
