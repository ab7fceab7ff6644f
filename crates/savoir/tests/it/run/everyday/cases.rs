//! Ordinary skills with their expected output and files.

/// A skill with one script, tool or code block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) content: &'static str,
    pub(super) words: &'static [&'static str],
    pub(super) stdin: &'static str,
    /// The expected output, or a part of it.
    pub(super) prints: &'static str,
    /// A file that the skill creates, with a part of its content.
    pub(super) leaves: Option<(&'static str, &'static str)>,
    /// Programs that the case needs; it is skipped without them.
    pub(super) needs: &'static [&'static str],
    /// Whether it works without extra permissions.
    pub(super) at_first: bool,
    /// Whether the case needs a repository.
    pub(super) in_repository: bool,
}

/// The dialect, and how the content becomes a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A script of the base format, run by its path.
    Script(&'static str),
    /// A script with `allowed-tools` of Claude Code.
    Claude(&'static str),
    /// A gibb.eri.sh command.
    Command,
    /// A gibb.eri.sh command that runs a file of the skill.
    CommandWith(&'static str, &'static str),
    /// A GAIA function with its permissions.
    Gaia(&'static [&'static str]),
    /// Code blocks of skillrt with its fields.
    Blocks(&'static str),
    /// An OpenClaw handler with its fields.
    Handler(&'static str, &'static str),
}

const fn case(name: &'static str, kind: Kind, content: &'static str, prints: &'static str) -> Case {
    Case {
        name,
        kind,
        content,
        words: &[],
        stdin: "",
        prints,
        leaves: None,
        needs: &[],
        at_first: true,
        in_repository: false,
    }
}

impl Case {
    const fn words(mut self, words: &'static [&'static str]) -> Self {
        self.words = words;
        self
    }

    const fn reads(mut self, stdin: &'static str) -> Self {
        self.stdin = stdin;
        self
    }

    const fn leaves(mut self, file: &'static str, content: &'static str) -> Self {
        self.leaves = Some((file, content));
        self
    }

    const fn needs(mut self, programs: &'static [&'static str]) -> Self {
        self.needs = programs;
        self
    }

    const fn after_a_hint(mut self) -> Self {
        self.at_first = false;
        self
    }

    const fn in_repository(mut self) -> Self {
        self.in_repository = true;
        self
    }
}

use Kind::{Blocks, Claude, Command, CommandWith, Gaia, Handler, Script};

pub(super) const CASES: &[Case] = &[
    // Shell scripts:
    case("coreutils", Script("a.sh"), "seq 3 | tac | tr '\\n' ' '; date +%Y | cut -c1-2\n", "3 2 1 20"),
    case("temporary files", Script("a.sh"), "t=$(mktemp); echo hi > \"$t\"; cat \"$t\"\n", "hi"),
    case("own folder in tmp", Script("a.sh"), "mkdir -p /tmp/x/y && touch /tmp/x/y/z && ls /tmp/x/y\n", "z"),
    case("home is writable", Script("a.sh"), "echo 1 > ~/.state && cat ~/.state\n", "1"),
    case("pipes", Script("a.sh"), "printf 'b 2\\na 1\\n' | sort | awk '{s+=$2} END {print s}'\n", "3"),
    case("reads the project", Script("a.sh"), "wc -l < notes.txt\n", "2"),
    case("finds files", Script("a.sh"), "find . -name '*.csv' | sed 's|^./||'\n", "data/sales.csv"),
    case("greps files", Script("a.sh"), "grep -rn second . | cut -d: -f2\n", "2"),
    case("stdin filter", Script("a.sh"), "tr a-z A-Z\n", "HELLO").reads("hello\n"),
    case("arguments", Script("a.sh"), "echo \"$# $2\"\n", "2 b c").words(&["a", "b c"]),
    case("progress", Script("a.sh"), "for i in 1 2 3; do printf '\\r%s' $i; sleep 0.02; done; echo\n", "3"),
    case("background work", Script("a.sh"), "(sleep 0.05; echo late) & echo early; wait\n", "late"),
    case("heredoc", Script("a.sh"), "cat <<EOF\nname: $(basename \"$0\")\nEOF\n", "name: a.sh"),
    case("its own files", Script("a.sh"), "cat \"$(dirname \"$0\")/../references/help.md\"\n", "Help text"),
    case("SKILL_DIR", Script("a.sh"), "cat \"$SKILL_DIR/references/help.md\"\n", "Help text"),
    case("process substitution", Script("a.bash"), "diff <(echo a) <(echo a) && echo same\n", "same"),
    case("strict mode", Script("a"), "#!/usr/bin/env bash\nset -euo pipefail\necho \"${1:-none}\"\n", "none"),
    case("an archive", Script("a.sh"), "tar -C data -czf /tmp/a.tgz . && tar -tzf /tmp/a.tgz | grep csv\n", "sales.csv").needs(&["tar", "gzip"]),
    case("jq", Script("a.sh"), "jq -r '.items[].name' config.json\n", "first\nsecond").needs(&["jq"]),
    case("awk over a table", Claude("a.sh"), "awk -F, 'NR>1 {s+=$2} END {print s}' data/sales.csv\n", "30"),
    case("checksum", Claude("a.sh"), "sha256sum notes.txt | cut -c1-4\n", ""),
    // Python:
    case("python json", Script("a.py"), "import json\nprint(json.load(open('config.json'))['items'][0]['name'])\n", "first"),
    case("python csv", Script("a.py"), "import csv\nprint(sum(int(r['amount']) for r in csv.DictReader(open('data/sales.csv'))))\n", "30"),
    case("python stdin", Script("a.py"), "import sys\nprint(len(sys.stdin.read().split()))\n", "3").reads("a b c"),
    case("python subprocess", Script("a.py"), "import subprocess\nprint(subprocess.run(['sort'], input='b\\na\\n', text=True, capture_output=True).stdout.split()[0])\n", "a"),
    case("python processes", Script("a.py"), "from multiprocessing import Pool\ndef f(x):\n    return x * x\nif __name__ == '__main__':\n    with Pool(2) as p:\n        print(sum(p.map(f, range(4))))\n", "14"),
    case("python threads", Script("a.py"), "from concurrent.futures import ThreadPoolExecutor as T\nprint(sum(T(4).map(abs, range(-3, 1))))\n", "6"),
    case("python temporary folder", Script("a.py"), "import tempfile, os\nwith tempfile.TemporaryDirectory() as d:\n    open(os.path.join(d, 'x'), 'w').close()\n    print(os.listdir(d))\n", "['x']"),
    case("python sqlite", Script("a.py"), "import sqlite3\nc = sqlite3.connect('/tmp/a.db')\nc.execute('create table t (x)')\nc.execute('insert into t values (7)')\nprint(c.execute('select x from t').fetchone()[0])\n", "7"),
    case("python module beside it", Script("a.py"), "from helper import word\nprint(word())\n", "from the helper"),
    case("python arguments", Script("a.py"), "import argparse\np = argparse.ArgumentParser()\np.add_argument('--n', type=int)\nprint(p.parse_args().n + 1)\n", "4").words(&["--n", "3"]),
    case("python home", Script("a.py"), "from pathlib import Path\np = Path.home() / '.cache' / 'x'\np.mkdir(parents=True)\nprint(p.is_dir())\n", "True"),
    // Others:
    case("node", Script("a.js"), "const fs = require('fs');\nconsole.log(JSON.parse(fs.readFileSync('config.json')).items.length)\n", "2").needs(&["node"]),
    case("node modules of its own", Script("a.mjs"), "import { readFileSync } from 'node:fs';\nconsole.log(readFileSync(0, 'utf8').trim().length)\n", "5").reads("hello").needs(&["node"]),
    case("perl", Script("a.pl"), "while (<STDIN>) { print scalar reverse; }\n", "cba").reads("abc").needs(&["perl"]),
    // Commands of gibb.eri.sh:
    case("git log", Command, "git log --oneline -1", "first commit").needs(&["git"]).in_repository(),
    case("git status", Command, "git status --short", "").needs(&["git"]).in_repository(),
    case("git diff", CommandWith("bash diff.sh", "diff.sh"), "git diff --stat && echo clean\n", "clean").needs(&["git"]).in_repository(),
    case("a system program", Command, "/usr/bin/basename /a/b.txt", "b.txt"),
    case("a script in a command", CommandWith("python3 scripts/x.py", "scripts/x.py"), "print(open('notes.txt').readline().strip())\n", "first line"),
    case("node in a command", CommandWith("node scripts/x.js", "scripts/x.js"), "console.log(process.cwd().split('/').pop())\n", "work").needs(&["node"]),
    case("the folder of the skill", CommandWith("bash {baseDir}/run.sh", "run.sh"), "echo ran\n", "ran"),
    case("a file into a repository", CommandWith("bash w.sh", "w.sh"), "mkdir -p out && echo made > out/r.txt && echo ok\n", "ok").leaves("out/r.txt", "made").in_repository(),
    // Functions of GAIA:
    case("gaia", Gaia(&[]), "return {'sum': 1 + 2}", "\"sum\":3"),
    case("gaia reads", Gaia(&["filesystem:read:./data/**"]), "return {'n': len(open('data/sales.csv').readlines())}", "\"n\":3"),
    case("gaia writes", Gaia(&["filesystem:write:./out/**"]), "import os\n    os.makedirs('out', exist_ok=True)\n    open('out/a.txt', 'w').write('kept')\n    return {}", "{}").leaves("out/a.txt", "kept"),
    case("gaia shell", Gaia(&["shell:execute"]), "import subprocess\n    return {'o': subprocess.check_output('echo a | tr a b', shell=True, text=True)}", "b"),
    case("gaia database", Gaia(&["database:write:./app.sqlite"]), "import sqlite3\n    c = sqlite3.connect('app.sqlite')\n    c.execute('create table t (x)')\n    c.commit()\n    return {'ok': True}", "true").leaves("app.sqlite", "SQLite"),
    // Code blocks of skillrt:
    case("a block", Blocks(""), "bash\necho from a block\n", "from a block"),
    case("a block with an input", Blocks("inputs:\n  - {name: who, type: string, default: Ada}\n"), "bash\necho \"hello $INPUT_WHO\"\n", "hello Ada"),
    case("a python block", Blocks(""), "python\nprint(6 * 7)\n", "42"),
    // A handler of OpenClaw:
    case("a handler", Handler("h.py", ""), "def run(**kw):\n    return {'from': 'handler'}\n", "handler"),
    // Skills that need extra permissions:
    case("writes a report", Script("a.sh"), "echo done > report.txt && echo ok\n", "ok").leaves("report.txt", "done").after_a_hint(),
    case("writes a folder", Script("a.py"), "import os\nos.makedirs('out/deep', exist_ok=True)\nopen('out/deep/a.txt', 'w').write('x')\nprint('ok')\n", "ok").leaves("out/deep/a.txt", "x").after_a_hint(),
    case("changes a file", Script("a.sh"), "sed -i s/first/changed/ notes.txt && echo ok\n", "ok").leaves("notes.txt", "changed").after_a_hint(),
    case("git commit", Script("a.sh"), "set -e\ngit add -A\ngit -c user.name=A -c user.email=a@b.c commit --allow-empty -qm second\ngit log --oneline | wc -l\n", "2").needs(&["git"]).after_a_hint().in_repository(),
    case("git identity", Script("a.sh"), "set -e\ngit config --get user.email\n", "ada@example.com").needs(&["git"]).after_a_hint().in_repository(),
    case("reads elsewhere", Script("a.sh"), "cat ../shared/list.txt\n", "from elsewhere").after_a_hint(),
    case("node fetch", Script("a.mjs"), "import { readFileSync } from 'node:fs';\nconst port = readFileSync('port.txt', 'utf8').trim();\nconst answer = await fetch(`http://127.0.0.1:${port}/x`);\nif (!answer.ok) throw new Error(await answer.text());\nconsole.log(await answer.text())\n", "served").needs(&["node"]).after_a_hint(),
    case("curl", Script("a.sh"), "curl -sSf \"http://127.0.0.1:$(cat port.txt)/x\"\n", "served").needs(&["curl"]).after_a_hint(),
    case("python request", Script("a.py"), "import urllib.request\nprint(urllib.request.urlopen('http://127.0.0.1:%s/x' % open('port.txt').read().strip()).read().decode())\n", "served").after_a_hint(),
    case("a variable", Script("a.sh"), ": \"${ACME_REGION:?not set}\"; echo $ACME_REGION\n", "north").after_a_hint(),
    case("a listed program only", Gaia(&["shell:execute:git"]), "import subprocess\n    return {'o': subprocess.check_output(['seq', '2'], text=True)}", "2").needs(&["git"]).after_a_hint(),
    case("a picture", Script("a.sh"), "convert -size 2x2 xc:red out.png && identify out.png | cut -d' ' -f2\n", "PNG").needs(&["convert", "identify"]).leaves("out.png", "PNG").after_a_hint(),
];
