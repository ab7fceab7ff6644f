#!/usr/bin/env python3
"""Checks the public API of the library crates, and the examples in their READMEs.

    libraries.py DOC_FOLDER            prints new items; fails if one was removed or changed
    libraries.py DOC_FOLDER --write    writes the lists of the public API

DOC_FOLDER is what `cargo doc` writes, such as target/doc. A list has one line for each item, with its
signature, and for each public method, field and variant. A removed or changed line breaks the code of
users, so it needs a new minor version and a line in CHANGELOG.md. Implemented traits are not listed.
Each example in a README must also be in the crate's documentation, where it is tested.
"""

import html
import html.parser
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CRATES = ("skill", "sandbox")

# Implementations that the compiler or other crates add to every type.
FOREIGN = re.compile(r"(blanket|auto|synthetic)-implementations|trait-implementations")
ENTRY = re.compile(
    r"(method|tymethod|associatedconstant|associatedtype|structfield)\.|variant\.\w+(\.field\.\w+)?$"
)


class Page(html.parser.HTMLParser):
    """Parses the documentation page of an item: its declaration, methods, fields and variants."""

    def __init__(self, text):
        super().__init__()
        self.declaration = ""
        self.entries = {}
        self._stack = []
        self._foreign = False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        if tag in ("br", "img", "input", "link", "meta", "wbr", "hr"):
            return
        attributes = dict(attributes)
        names, identity = attributes.get("class") or "", attributes.get("id") or ""
        if FOREIGN.match(identity):
            self._foreign = True
        into = self._stack[-1][1] if self._stack else None
        if tag == "pre" and "item-decl" in names:
            into = "declaration"
        elif not self._foreign and ENTRY.match(identity) and into is None:
            # The signature of a method is in a heading within its section.
            into = f"wait {identity}" if tag == "section" and not identity.startswith("variant") else identity
            self.entries.setdefault(identity, "")
        elif into and into.startswith("wait ") and tag == "h4":
            into = into[5:]
        elif tag == "summary" and "hideme" in names or tag == "a" and ("src" in names or "anchor" in names):
            into = "nothing"
        self._stack.append((tag, into))

    def handle_endtag(self, tag):
        while self._stack:
            open_tag, _ = self._stack.pop()
            if open_tag == tag:
                return

    def handle_data(self, data):
        into = self._stack[-1][1] if self._stack else None
        if into == "declaration":
            self.declaration += data
        elif into in self.entries:
            self.entries[into] += data


def plain(text):
    return " ".join(html.unescape(text).replace("\u00a7", "").split())


def api(folder):
    """Returns the public API of a crate as sorted lines."""
    index = (folder / "all.html").read_text()
    lines = set()
    for link in re.findall(r'<a href="([^"#]+\.html)"', index.split('id="main-content"', 1)[1]):
        page = Page((folder / link).read_text())
        path = "::".join([*pathlib.PurePosixPath(link).parts[:-1], link.rsplit("/", 1)[-1].split(".")[1]])
        declaration = plain(page.declaration)
        # Fields and variants have their own lines.
        if re.match(r"(pub )?(unsafe )?(struct|enum|union)\b", declaration):
            declaration = declaration.split("{")[0].rstrip()
        lines.add(f"{path}: {declaration}")
        lines.update(f"{path}::{key.split('.', 1)[1]}: {plain(text)}" for key, text in page.entries.items())
    return sorted(lines)


def untested_examples(crate):
    """Returns the examples of a README that are missing in the crate's documentation."""
    head = []
    for line in (ROOT / "crates" / crate / "src" / "lib.rs").read_text().splitlines():
        if not line.startswith("//!"):
            break
        line = line[4:]
        # rustdoc compiles lines that start with `#`, but does not show them.
        if not line.startswith("# ") and line != "#":
            head.append(line)
    readme = (ROOT / "crates" / crate / "README.md").read_text()
    examples = re.findall(r"^```rust\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    return [example for example in examples if example not in "\n".join(head) + "\n"]


def main():
    docs, write = pathlib.Path(sys.argv[1]), "--write" in sys.argv[2:]
    is_broken = False
    for crate in CRATES:
        if untested_examples(crate):
            sys.exit(
                f"error: an example in crates/{crate}/README.md is not in crates/{crate}/src/lib.rs\n"
                "hint: copy it from there, where it is tested"
            )
        found = api(docs / f"savoir_{crate}")
        path = ROOT / "crates" / crate / "public-api.txt"
        known = path.read_text().splitlines() if path.exists() else []
        if write:
            path.write_text("\n".join(found) + "\n")
            continue
        removed, added = sorted(set(known) - set(found)), sorted(set(found) - set(known))
        for sign, lines in (("-", removed), ("+", added)):
            for line in lines:
                print(f"savoir-{crate}: {sign} {line}")
        is_broken |= bool(removed)
    if is_broken:
        sys.exit(
            "error: public items were removed or changed, which breaks programs that use them\n"
            f"hint: if that is intended, run scripts/libraries.py {docs} --write"
        )


if __name__ == "__main__":
    main()
