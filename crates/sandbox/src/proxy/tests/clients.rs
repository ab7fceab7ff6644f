//! Tests common clients, if they are installed.

use std::process::Command;

use super::{origin::HELLO, *};

/// The output of curl; `None` if curl is not installed.
pub(super) fn curl(arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("curl");
    command.args(["--max-time", "10"]).args(arguments);
    output(command)
}

fn output(mut command: Command) -> Option<String> {
    for name in ["http_proxy", "https_proxy", "no_proxy", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"] {
        command.env_remove(name);
    }
    let output = command.output().ok()?;
    Some(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

/// A proxy, a host with TLS, and the certificate authority of the run in a file.
fn https() -> (Origin, Run, tempfile::NamedTempFile) {
    let origin = Origin::tls(&["a.example"], HELLO);
    let grants = vec![grant(MethodGroup::Read, "*.a.example", origin.port)];
    let run = Run::with(grants, secret(), origin.trust());
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &run.pem).unwrap();
    (origin, run, file)
}

/// curl offers HTTP/2 and falls back to HTTP/1.1.
#[test]
fn curl_over_tls() {
    let (origin, run, authority) = https();
    let proxy = format!("http://{}", run.address);
    let url = format!("https://a.example:{}/", origin.port);
    let authority = authority.path().to_str().unwrap();
    let key = format!("X-Key: {MARK}");
    let common = ["-sS", "--proxy", &proxy, "--cacert", authority, "-H", &key, &url];
    let Some(answer) = curl(&common) else { return };
    assert_eq!(answer, "hello");
    assert!(origin.received()[0].contains(&format!("X-Key: {VALUE}\r\n")));
    let post = curl(&[&common[..], &["-d", "data"]].concat()).unwrap();
    assert_eq!(
        post,
        "savoir: POST to a.example is not granted (network:write:a.example would be)\n"
    );
    let fronting = curl(&[&common[..], &["-H", "Host: evil.com"]].concat()).unwrap();
    assert!(fronting.contains("its Host header says evil.com"), "{fronting}");
    let tunnel = curl(&["-sS", "--proxy", &proxy, "https://evil.com/"]).unwrap();
    assert!(tunnel.contains("403"), "{tunnel}");
}

#[test]
fn python_over_tls() {
    let (origin, run, authority) = https();
    let script = format!(
        "import ssl, urllib.request, urllib.error\n\
         context = ssl.create_default_context(cafile={:?})\n\
         context.verify_flags |= ssl.VERIFY_X509_STRICT\n\
         proxy = urllib.request.ProxyHandler({{'https': 'http://{}'}})\n\
         opener = urllib.request.build_opener(proxy, urllib.request.HTTPSHandler(context=context))\n\
         url = 'https://a.example:{}/'\n\
         print(opener.open(url, timeout=10).read().decode())\n\
         try:\n    opener.open(url, data=b'data', timeout=10)\n\
         except urllib.error.HTTPError as error:\n    print(error.code, error.read().decode())\n",
        authority.path(),
        run.address,
        origin.port
    );
    let mut command = Command::new("python3");
    command.args(["-c", &script]);
    let Some(answer) = output(command) else { return };
    assert_eq!(
        answer,
        "hello\n403 savoir: POST to a.example is not granted \
         (network:write:a.example would be)\n\n"
    );
    assert_eq!(run.events(), ["GET a.example/ allowed 1", "POST a.example/ method-not-granted 1"]);
}
