#!/usr/bin/env python3
"""Compares the language server and the Python package with `savoir check`, and prints Markdown tables.

    python3 benches/editor.py                    10,000 skills, programs in target/dist
    python3 benches/editor.py --built quick      programs in target/quick
    python3 benches/editor.py --skills 1000

The time of a key press is from sending the edit to the end of the response with the diagnostics.
"""

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

import compare

KEYS = 100


class Server:
    """Starts `savoir lsp` and exchanges LSP messages with it."""

    def __init__(self, program, folder):
        self.process = subprocess.Popen(
            [program, "lsp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder, bufsize=0
        )
        self.output = self.process.stdout
        self.number = 0
        self.buffer = b""
        workspace = [{"uri": f"file://{folder}", "name": "skills"}]
        capabilities = {"textDocument": {"diagnostic": {}}}
        self.request("initialize", capabilities=capabilities, workspaceFolders=workspace, processId=None, rootUri=None)

    def send(self, message):
        text = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(text) + text)

    def notify(self, method, **params):
        self.send({"method": method, "params": params})

    def request(self, method, **params):
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        while True:
            message = self.read()
            if message.get("id") == self.number and "method" not in message:
                if "error" in message:
                    sys.exit(f"{method}: {message['error']}")
                return message["result"]

    def fill(self):
        more = os.read(self.output.fileno(), 1 << 20)
        if not more:
            sys.exit("the server ended")
        self.buffer += more

    def read(self):
        while b"\r\n\r\n" not in self.buffer:
            self.fill()
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        while len(self.buffer) < length:
            self.fill()
        text, self.buffer = self.buffer[:length], self.buffer[length:]
        return json.loads(text)

    def memory(self):
        """Peak memory in MiB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 1024

    def end(self):
        self.request("shutdown")
        self.notify("exit")
        self.process.wait()


def milliseconds(action):
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1000


def key_presses(program, folder):
    """Milliseconds of a key press in a skill of 50 KB, and of `savoir check` of the same text."""
    skill = folder / "large"
    skill.mkdir()
    rng = random.Random(50)
    head = f"---\nname: large\ndescription: {compare.sentence(rng, 25)} Use when asked.\n---\n\n"
    text = head + compare.body(rng, 50_000 - len(head))
    path = skill / "SKILL.md"
    path.write_text(text)
    check = statistics.median(
        milliseconds(lambda: subprocess.run([program, "check", path], stdout=subprocess.DEVNULL, check=True))
        for _ in range(20)
    )
    server = Server(program, skill)
    server.notify("initialized")
    document = {"uri": f"file://{path}", "version": 1}
    server.notify("textDocument/didOpen", textDocument={**document, "languageId": "markdown", "text": text})
    server.request("textDocument/diagnostic", textDocument=document)
    times = []
    line = text[: len(text) // 2].count("\n")
    for key in range(KEYS):
        place = {"line": line, "character": 0}
        change = {"range": {"start": place, "end": place}, "text": "x"}

        def press(change=change, version=key + 2):
            server.notify(
                "textDocument/didChange", textDocument={**document, "version": version}, contentChanges=[change]
            )
            server.request("textDocument/diagnostic", textDocument=document)

        times.append(milliseconds(press))
    server.end()
    return len(text), statistics.median(times), sorted(times)[KEYS * 99 // 100], check


def index(program, skills):
    """Seconds until all skills are indexed, peak memory in MiB, and seconds of `savoir check`."""
    check = statistics.median(
        milliseconds(lambda: subprocess.run([program, "check", skills], stdout=subprocess.DEVNULL, check=True)) / 1000
        for _ in range(3)
    )
    times, memory = [], 0
    path = next(skills.glob("*/*/SKILL.md"))
    document = {"uri": f"file://{path}"}
    text = "---\nname: demo\ndescription: Shows it.\n---\nSee /\n"
    for _ in range(3):
        server = Server(program, skills)
        opened = {**document, "languageId": "markdown", "version": 1, "text": text}
        server.notify("textDocument/didOpen", textDocument=opened)

        def first_names(server=server):
            server.notify("initialized")
            # After a slash, the server completes names of skills; the response waits for the index.
            place = {"line": 4, "character": 5}
            found = server.request("textDocument/completion", textDocument=document, position=place)
            if not found:
                sys.exit("no skills were found")

        times.append(milliseconds(first_names) / 1000)
        memory = max(memory, server.memory())
        server.end()
    return statistics.median(times), memory, check


def python_package(built, folder):
    """Creates a virtual environment with the package. Returns its Python interpreter."""
    place = folder / "python"
    venv.create(place, with_pip=True)
    program, native = folder / "savoir", folder / "libsavoir_native.so"
    for path in (program, native):
        # With debug information, the wheel would be very large.
        subprocess.run(["strip", "-o", path, built / path.name], check=True)
    wheel = [sys.executable, compare.ROOT / "packaging/wheel.py", program, folder, "--glibc", "auto", "--compress", "0"]
    subprocess.run(wheel, check=True, stdout=subprocess.DEVNULL)
    pip = [place / "bin/python", "-m", "pip", "install", "--quiet", "--no-index", *folder.glob("*.whl")]
    subprocess.run(pip, check=True)
    return place / "bin" / "python"


def importing(python, module):
    """Milliseconds of an import in a new process, without the start of Python."""
    code = f"import time; start = time.perf_counter(); import {module}; print(time.perf_counter() - start)"
    times = []
    for _ in range(31):
        done = subprocess.run([python, "-c", code], capture_output=True, check=True)
        times.append(float(done.stdout) * 1000)
    return statistics.median(times)


def python_check(python, skills):
    """Seconds of `savoir_skills.check`, without the start of Python."""
    code = (
        "import sys, time, savoir_skills\n"
        "savoir_skills.check(text='---\\nname: a\\ndescription: b\\n---\\n')\n"
        "start = time.perf_counter(); report = savoir_skills.check(sys.argv[1])\n"
        "print(time.perf_counter() - start, len(report))"
    )
    done = [subprocess.run([python, "-c", code, skills], capture_output=True, check=True).stdout.split() for _ in range(3)]
    return statistics.median(float(seconds) for seconds, _ in done), int(done[0][1])


def row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--skills", type=int, default=10_000)
    parser.add_argument("--built", default="dist", help="the folder in target with the programs")
    args = parser.parse_args()
    built = compare.BUILT.parent / args.built
    program = built / "savoir"

    folder = Path(tempfile.mkdtemp(prefix="savoir-editor-")).resolve()
    try:
        size, median, slow, check = key_presses(program, folder)
        skills = folder / "skills"
        compare.make_skills(skills, args.skills)
        indexed, memory, checked = index(program, skills)
        row("what", "measured", "`savoir check`", "ratio", "goal")
        row("---", "---:", "---:", "---:", "---:")
        row(f"a key press in a skill of {size:,} bytes, median", f"{median:.1f} ms", f"{check:.1f} ms", f"{median / check:.2f}", 2)
        row("the same, 99th percentile", f"{slow:.1f} ms", f"{check:.1f} ms", f"{slow / check:.2f}", "")
        row(f"index of {args.skills:,} skills", f"{indexed:.2f} s", f"{checked:.2f} s", f"{indexed / checked:.2f}", 2)
        row("peak memory of the server with this index", f"{memory:.0f} MiB", "", "", "60 MB")
        if (built / "libsavoir_native.so").exists():
            python = python_package(built, folder)
            ours, json_module = importing(python, "savoir_skills"), importing(python, "json")
            seconds, count = python_check(python, skills)
            row(f"`savoir_skills.check` of {count:,} skills", f"{seconds:.2f} s", f"{checked:.2f} s", f"{seconds / checked:.2f}", 1.2)
            print()
            print(f"`import savoir_skills` takes {ours:.2f} ms, `import json` {json_module:.2f} ms: ratio {ours / json_module:.2f}.")
        else:
            print(f"({built} has no libsavoir_native.so; the Python package is left out)")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
