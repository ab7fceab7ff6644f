#!/usr/bin/env python3
"""Compares `savoir check` with its peers in one run and prints Markdown tables of ratios.

    python3 benches/compare.py                      10,000 skills, 1,000 for the slow peers
    python3 benches/compare.py --no-peers           without them
    python3 benches/compare.py --skills 1000,10000,100000 --no-peers

CPU seconds are user plus system time of the child process, the median of several runs.
"""

import argparse
import os
import random
import resource
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILT = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "dist"
PEERS = Path(tempfile.gettempdir()) / "savoir-bench-peers"
SLOW_PEERS_SKILLS = 1000
WORDS = (
    "skill agent report invoice weather commit branch deploy review summary table column filter "
    "search index token model prompt answer question file folder path link image chart value "
    "number string list map key field rule check fix convert install update remove verify sign "
    "when the user asks for this and then write result to disk use carefully with small steps"
).split()


def sentence(rng, words):
    return " ".join(rng.choice(WORDS) for _ in range(words)).capitalize() + "."


def body(rng, size):
    parts = ["# " + sentence(rng, 3).rstrip("."), ""]
    start = 0
    length = 0
    while length < size:
        length += sum(len(part) + 1 for part in parts[start:])
        start = len(parts)
        kind = rng.random()
        if kind < 0.15:
            parts += ["## " + sentence(rng, 3).rstrip("."), ""]
        elif kind < 0.3:
            parts += ["```bash", "echo " + sentence(rng, 6), "```", ""]
        elif kind < 0.45:
            parts += ["- " + sentence(rng, 10) for _ in range(4)] + [""]
        else:
            parts += [sentence(rng, 40), ""]
    return "\n".join(parts)


def make_skills(folder, count):
    """Creates skills like real ones: a quarter has a reference file, and all pass `savoir check`."""
    rng = random.Random(count)
    for number in range(count):
        name = f"skill-{number:06}"
        skill = folder / f"group-{number // 100:04}" / name
        skill.mkdir(parents=True)
        fields = [f"name: {name}", f"description: {sentence(rng, 25)} Use when asked."]
        if number % 3 == 0:
            fields += ["license: MIT", "metadata:", '  version: "1.0.0"', f"  author: {rng.choice(WORDS)}"]
        if number % 5 == 0:
            fields.append("allowed-tools: Read Grep Bash(git:*)")
        text = body(rng, rng.choice([1500, 3000, 6000, 9000, 15000]))
        if number % 4 == 0:
            (skill / "references").mkdir()
            (skill / "references" / "guide.md").write_text(body(rng, 800))
            text += "\nRead [the guide](references/guide.md).\n"
        (skill / "SKILL.md").write_text("---\n" + "\n".join(fields) + "\n---\n\n" + text + "\n")


def run(command, **options):
    """Runs a command. Returns its CPU seconds and wall-clock seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **options)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"{command} failed with {done.returncode}: {done.stderr[-500:]!r}")
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, wall


def peak_memory(command):
    """Peak resident memory in MiB, polled from /proc while the program runs."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        try:
            status = Path(f"/proc/{process.pid}/status").read_text()
        except OSError:
            break
        if "VmHWM:" in status and f"Name:\t{Path(command[0]).name[:15]}" in status:
            peak = int(status.split("VmHWM:")[1].split()[0])
        time.sleep(0.002)
    process.wait()
    return peak / 1024


def median(command, runs, **options):
    results = [run(command, **options) for _ in range(runs)]
    return statistics.median(r[0] for r in results), statistics.median(r[1] for r in results)


def installed(package):
    """Installs a package from PyPI into the environment for peers. Returns whether that worked."""
    python = PEERS / "bin" / "python"
    if not python.exists():
        venv.create(PEERS, with_pip=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", package]
    done = subprocess.run(pip, capture_output=True).returncode == 0
    if not done:
        print(f"({package} could not be installed; it is left out)\n")
    return done


def python_loop(folder):
    """A Python loop that calls the library skills-ref for each skill, as (name, command)."""
    if not installed("skills-ref"):
        return []
    loop = (
        "import sys, pathlib\n"
        "from skills_ref import validate\n"
        "for skill in pathlib.Path(sys.argv[1]).rglob('SKILL.md'):\n"
        "    validate(skill.parent)\n"
    )
    return [("skills-ref in a Python loop", [str(PEERS / "bin" / "python"), "-c", loop, str(folder)])]


def slow_peers(folder):
    """Peers with a command-line program, as (name, command)."""
    commands = {"skillport": ["validate", str(folder)], "skillsaw": ["lint", str(folder)]}
    return [
        (" ".join([name, arguments[0]]), [str(PEERS / "bin" / name), *arguments])
        for name, arguments in commands.items()
        if installed(name)
    ]


def compare(folder, count, peers, runs):
    savoir = [str(BUILT / "savoir"), "check", str(folder)]
    find = f"find {shlex.quote(str(folder))} -name SKILL.md -exec cat {{}} +"
    rows = [
        ("Rust program that walks and reads", median([str(BUILT / "peer-walk-read"), str(folder)], runs)),
        ("savoir check", median(savoir, runs)),
        ("find and cat", median(["sh", "-c", find], runs)),
    ]
    rows += [(name, median(command, 1)) for name, command in peers]
    base = rows[0][1][0]
    print(f"### {count:,} skills\n")
    print("| program | CPU s | wall s | CPU against walk-and-read |")
    print("| --- | ---: | ---: | ---: |")
    for name, (cpu, wall) in rows:
        print(f"| {name} | {cpu:.3f} | {wall:.3f} | {cpu / base:.2f} |")
    print(f"\nPeak memory of savoir check: {peak_memory(savoir):.1f} MiB\n")


def start_up(folder, runs=200):
    skill = next(folder.rglob("SKILL.md"))
    timings = {}
    commands = {
        "empty Rust program": [str(BUILT / "peer-empty")],
        "savoir check of one small skill": [str(BUILT / "savoir"), "check", str(skill)],
    }
    for name, command in commands.items():
        timings[name] = [run(command) for _ in range(runs)]
    base = statistics.median(t[1] for t in timings["empty Rust program"])
    base_cpu = statistics.mean(t[0] for t in timings["empty Rust program"])
    print("### One small skill\n")
    print("| program | wall ms | ratio | CPU ms | ratio |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, results in timings.items():
        wall = statistics.median(t[1] for t in results)
        cpu = statistics.mean(t[0] for t in results)
        print(f"| {name} | {wall * 1e3:.2f} | {wall / base:.2f} | {cpu * 1e3:.2f} | {cpu / base_cpu:.2f} |")
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--skills", default="10000")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, {sys.platform}\n")
    tables = [(int(count), python_loop) for count in options.skills.split(",")]
    if not options.no_peers:
        tables.append((SLOW_PEERS_SKILLS, slow_peers))
    for index, (count, peers) in enumerate(tables):
        folder = Path(tempfile.mkdtemp(prefix="savoir-bench-"))
        try:
            make_skills(folder, count)
            if index == 0:
                start_up(folder)
            compare(folder, count, [] if options.no_peers else peers(folder), options.runs)
        finally:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
