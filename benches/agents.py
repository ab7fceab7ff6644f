#!/usr/bin/env python3
"""Compares the start of `savoir mcp` with its peers, and measures how long the list of skills takes to build.

    python3 benches/agents.py                   1,000 skills
    python3 benches/agents.py --no-peers        without the peers, which come from PyPI
    python3 benches/agents.py --built release   the program in target/release

The time is from the start of the process to the end of the first response to `tools/list`, including the handshake.
"""

import argparse
import json
import os
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import compare

TIMEOUT_SECONDS = 60
FASTMCP = """
import sys
from fastmcp import FastMCP
from fastmcp.server.providers.skills import SkillsDirectoryProvider
server = FastMCP("skills")
server.add_provider(SkillsDirectoryProvider(roots=[sys.argv[1]]))
server.run(transport="stdio", show_banner=False)
"""


def flat(folder, count):
    """Creates the same skills as for `savoir check`, but in one folder, as agents install them."""
    made = folder / "made"
    compare.make_skills(made, count)
    skills = folder / "project" / ".claude" / "skills"
    skills.mkdir(parents=True)
    for skill in made.glob("*/*"):
        skill.rename(skills / skill.name)
    return skills


def send(process, message):
    process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    process.stdin.flush()


def answer(process, number):
    """Returns the line with the response to a request; ignores other messages before it."""
    end = time.monotonic() + TIMEOUT_SECONDS
    pending = b""
    while time.monotonic() < end:
        ready, _, _ = select.select([process.stdout], [], [], 1)
        read = os.read(process.stdout.fileno(), 1 << 20) if ready else b""
        if ready and not read:
            sys.exit(f"the server ended: {process.stderr.read()[-500:]!r}")
        pending += read
        *lines, pending = pending.split(b"\n")
        for line in lines:
            if json.loads(line).get("id") == number:
                return line
    sys.exit(f"no answer within {TIMEOUT_SECONDS} s")


def memory(pid):
    """Peak resident memory and anonymous memory in MB."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return tuple(int(fields[name].split()[0]) / 1000 * 1.024 for name in ("VmHWM", "RssAnon"))


def first_list(command, options):
    start = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options
    )
    try:
        hello = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        }
        send(process, {"id": 1, "method": "initialize", "params": hello})
        answer(process, 1)
        send(process, {"method": "notifications/initialized"})
        send(process, {"id": 2, "method": "tools/list", "params": {}})
        line = answer(process, 2)
        taken = time.perf_counter() - start
        peak, own = memory(process.pid)
        tools = json.loads(line)["result"]["tools"]
        return taken * 1e3, len(line), len(tools), peak, own
    finally:
        process.kill()
        process.communicate()


def peers(skills):
    found = []
    python = str(compare.PEERS / "bin" / "python")
    if compare.installed("fastmcp==4.1.2"):
        found.append(("FastMCP, SkillsDirectoryProvider", [python, "-c", FASTMCP, str(skills)], {}))
    if compare.installed("skillport-mcp==1.1.2"):
        program = str(compare.PEERS / "bin" / "skillport-mcp")
        # The first run creates the index and later runs use it, so the median does not include its creation.
        options = ["--skills-dir", str(skills), "--db-path", str(skills.parent / "skillport.lancedb")]
        found.append(("skillport-mcp", [program, *options, "--embedding-provider", "none"], {}))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--skills", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=21)
    parser.add_argument("--built", default="dist")
    parser.add_argument("--no-peers", action="store_true")
    args = parser.parse_args()
    built = compare.BUILT.parent / args.built
    folder = Path(tempfile.mkdtemp(prefix="savoir-bench-"))
    try:
        skills = flat(folder, args.skills)
        home = folder / "home"
        home.mkdir()
        programs = [("savoir mcp", [str(built / "savoir"), "mcp"], {})]
        programs += [] if args.no_peers else peers(skills)
        print(f"### First `tools/list` with {args.skills:,} skills\n")
        print("| server | median ms | slowest ms | times savoir | bytes | tools | peak MB | own MB |")
        print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
        base = None
        for name, command, environment in programs:
            options = {
                "cwd": skills.parent.parent,
                "env": {"HOME": str(home), "PATH": os.environ["PATH"], **environment},
            }
            runs = args.runs if base is None else 3
            results = [first_list(command, options) for _ in range(runs)]
            times = [result[0] for result in results]
            middle = statistics.median(times)
            base = base or middle
            _, size, tools, _, _ = results[-1]
            peak, own = (max(result[at] for result in results) for at in (3, 4))
            print(
                f"| {name} | {middle:.1f} | {max(times):.1f} | {middle / base:.1f} "
                f"| {size:,} | {tools} | {peak:.1f} | {own:.1f} |"
            )
        print("\n### The preamble, computed after loading\n")
        print("| | median ms | p99 ms | skills shown | tokens |")
        print("| --- | ---: | ---: | ---: | ---: |", flush=True)
        for budget in ("1000", "4000", "1000000"):
            subprocess.run([str(built / "bench-preamble"), str(skills), budget, "501"], check=True)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
