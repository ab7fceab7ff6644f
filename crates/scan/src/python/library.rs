//! Evaluates calls of Python packages that send, ask, unpack or encrypt.

use super::{PythonReader, calls::Call, dotted_path};
use crate::{
    action::{Action, CodeOrigin, Taint},
    value::{self, TYPED_PASSWORDS, Value, most_dangerous_item},
};

pub(super) fn by_name<'t>(
    reader: &mut PythonReader<'t>,
    name: &str,
    call: &Call<'_, 't>,
) -> Option<Value> {
    let first = call.first();
    let last = name.rsplit('.').next().unwrap_or(name);
    Some(match name {
        "getpass.getpass" | "pwinput.pwinput" | "stdiomask.getpass" | "maskpass.askpass" => {
            Value::tainted(Taint::credential(TYPED_PASSWORDS))
        }
        "pyautogui.password"
        | "pymsgbox.password"
        | "easygui.passwordbox"
        | "easygui.multpasswordbox" => record_password_dialog(reader, call),
        _ if matches!(last, "askstring" | "Entry" | "CTkEntry")
            && call.keyword("show").is_some_and(|mark| mark.text_or_unknown() != "") =>
        {
            record_password_dialog(reader, call)
        }
        _ if call.keyword("password_char").is_some() => record_password_dialog(reader, call),
        _ if last == "getText" && hides_typed_text(call) => {
            let value = record_password_dialog(reader, call);
            Value { items: vec![value, Value::default()], ..Value::default() }
        }
        "input" | "click.prompt" | "rich.prompt.Prompt.ask"
            if value::asked_secret(first.text_or_unknown()).is_some() =>
        {
            let private = value::asked_secret(first.text_or_unknown());
            Value::tainted(Taint { private, ..Taint::default() })
        }
        "vars" | "dataclasses.asdict" | "attr.asdict" | "attrs.asdict"
            if first.name.as_deref() == Some("self") =>
        {
            reader.own_attributes()
        }
        "asyncio.open_connection" => {
            let to = call.at(0, "host").cloned().unwrap_or_default();
            let value = value::record_send(&to, &[], &[], call.span, &mut reader.actions);
            let stream = Value { name: Some(SOCKET_STREAM.into()), text: to.text, ..value };
            Value { items: vec![stream.clone(), stream], ..Value::default() }
        }
        "pyperclip.copy" | "clipboard.copy" | "xerox.copy" | "win32clipboard.SetClipboardText" => {
            if reader.loops > 0 {
                reader.harmful_calls.copies.get_or_insert(call.span);
            }
            Value::default()
        }
        "re.match" | "re.fullmatch" | "re.search" | "re.sub" | "re.compile" => {
            reader.harmful_calls.matches = true;
            Value::tainted(call.taint())
        }
        "os.chmod" => {
            record_chmod(reader, &first, call);
            Value::default()
        }
        "dns.resolver.resolve"
        | "dns.resolver.query"
        | "socket.gethostbyname"
        | "socket.getaddrinfo"
        | "socket.gethostbyname_ex" => {
            value::record_dns_lookup(&first, call.span, &mut reader.actions)
        }
        "tarfile.open" | "tarfile.TarFile" | "zipfile.ZipFile" | "gzip.GzipFile" | "gzip.open"
        | "csv.writer" | "csv.DictWriter" => writer_to(reader, name, call),
        "shutil.make_archive" => {
            let root = call.at(2, "root_dir").cloned().unwrap_or_default();
            let mut value = reader.read_file(&root, call.span);
            value.taint.files |= value::is_users_folder(root.text_or_unknown());
            value.text = first.text.map(|text| format!("{text}.{}", extension(call)));
            let taint = value.taint.clone();
            reader.state.write(&value, &taint);
            value
        }
        "shutil.unpack_archive" => {
            let taint = reader.read_file(&first, call.span).taint;
            let target = call.at(1, "extract_dir").cloned().unwrap_or_default();
            reader.state.write(&target, &taint);
            Value::default()
        }
        "shutil.copyfileobj" => {
            let taint = first.all_taint();
            if let Some(target) = call.positional.get(1) {
                reader.state.write(&Value { name: None, ..target.clone() }, &taint);
            }
            if let Some(at) = call.expressions.get(1) {
                reader.add_taint_to(at, &taint);
            }
            Value::default()
        }
        "json.dump" | "pickle.dump" | "yaml.dump" | "yaml.safe_dump" => {
            let target = call.at(1, "fp").cloned().unwrap_or_default();
            reader.state.write(&Value { name: None, ..target }, &first.all_taint());
            Value::tainted(first.all_taint())
        }
        "importlib.util.spec_from_file_location" => {
            let path = call.at(1, "location").cloned().unwrap_or_default();
            let mut taint = path.all_taint();
            taint.add(&reader.state.contents(path.text_or_unknown()));
            execute_fetched(reader, &taint, call);
            Value::tainted(taint)
        }
        "smtplib.SMTP" | "smtplib.SMTP_SSL" | "ftplib.FTP" | "ftplib.FTP_TLS"
        | "telnetlib.Telnet" | "paramiko.Transport" | "imaplib.IMAP4_SSL" | "imaplib.IMAP4"
        | "poplib.POP3_SSL" | "poplib.POP3" => {
            let to = call.at(0, "host").cloned().unwrap_or_default();
            let to = to.items.first().cloned().unwrap_or(to);
            let items = hard_coded_login(call, 2);
            Value { name: Some(format!("{name}()")), text: to.text, items, ..Value::default() }
        }
        "paramiko.SFTPClient.from_transport" => {
            Value { name: Some("paramiko.sftp()".into()), ..first }
        }
        "requests.Session"
        | "requests.session"
        | "httpx.Client"
        | "httpx.AsyncClient"
        | "aiohttp.ClientSession"
        | "urllib3.PoolManager"
        | "httpx.session" => {
            let options: Vec<(&str, &Value)> =
                call.keywords.iter().map(|(key, value)| (key.as_str(), value)).collect();
            value::record_api_client(name, &options, call.span, &mut reader.actions);
            let text = call.at(usize::MAX, "base_url").and_then(|url| url.text.clone());
            Value { name: Some(format!("{name}()")), text, taint: call.taint(), ..Value::default() }
        }
        "boto3.client" | "boto3.resource" | "boto3.session.Session" => {
            let to = call.keyword("endpoint_url").and_then(|url| url.text.clone());
            let options: Vec<(&str, &Value)> =
                call.keywords.iter().map(|(key, value)| (key.as_str(), value)).collect();
            value::record_api_client(name, &options, call.span, &mut reader.actions);
            Value { name: Some("boto3.client()".into()), text: to, ..Value::default() }
        }
        "dotenv_values" | "dotenv.dotenv_values" => {
            Value::tainted(Taint { tokens: vec![".env".into()], ..Taint::default() })
        }
        "google.auth.default"
        | "google.oauth2.credentials.Credentials.from_authorized_user_file"
        | "google_auth_oauthlib.flow.InstalledAppFlow.from_client_secrets_file" => {
            Value::tainted(Taint::private("the user's Google login"))
        }
        "tempfile.mkstemp" => {
            let file = Value::text("<temporary file>");
            Value { items: vec![file.clone(), file], ..Value::default() }
        }
        "os.write" => {
            let data = call.positional.get(1).cloned().unwrap_or_default();
            reader.write_file(&first, &data, call.span);
            Value::default()
        }
        "os.urandom" | "secrets.token_bytes" | "random.randbytes" => {
            reader.harmful_calls.noise = true;
            return None;
        }
        "AES.new"
        | "Crypto.Cipher.AES.new"
        | "Cryptodome.Cipher.AES.new"
        | "ChaCha20.new"
        | "Crypto.Cipher.ChaCha20.new"
        | "pyAesCrypt.encryptFile" => {
            reader.harmful_calls.encrypts = true;
            Value::tainted(call.taint())
        }
        _ => return None,
    })
}

pub(super) fn by_method<'t>(
    reader: &mut PythonReader<'t>,
    method: &str,
    name: &str,
    call: &Call<'_, 't>,
) -> Option<Value> {
    let host = call.receiver.name.as_deref().unwrap_or_default();
    let socket = host.contains("socket") || host.starts_with("telnetlib");
    Some(match method {
        "encrypt" | "encrypt_and_digest" => {
            reader.harmful_calls.encrypts = true;
            let mut taint = call.taint();
            taint.add(&call.receiver.taint);
            Value::tainted(taint)
        }
        "match" | "search" | "fullmatch" => {
            reader.harmful_calls.matches = true;
            return None;
        }
        "recv" | "recvfrom" | "makefile" | "receive_str" | "receive_json" | "receive"
        | "retrbinary" | "read_until" => {
            let from = call.receiver.text.clone().unwrap_or_default();
            let known = call.receiver.taint.fetched.clone();
            (socket || known.is_some())
                .then(|| Value::tainted(Taint::fetched(&known.unwrap_or(from))))?
        }
        "send" | "sendall" | "sendto" | "send_str" | "send_bytes" | "send_json"
            if socket || call.taint().is_secret() =>
        {
            send(reader, call)
        }
        "write" | "writelines" if host == SOCKET_STREAM => send(reader, call),
        "setEchoMode" if hides_typed_text(call) => {
            reader
                .actions
                .push(Action::AsksForSecret("a password in a window of its own"), call.span);
            if let Some(at) = call.receiver_at {
                reader.add_taint_to(at, &Taint::credential(TYPED_PASSWORDS));
            }
            Value::default()
        }
        "send_message" | "sendmail" | "send_email" | "send"
            if !socket && record_mail_recipients(reader, call) =>
        {
            send(reader, call)
        }
        "sendmail" | "send_message" | "storbinary" | "storlines" | "putfo" | "put_object"
        | "upload_fileobj" | "upload_blob" | "upload_from_string" | "send_raw_email"
        | "send_email" | "send_document" | "send_file" | "publish" | "putheader" | "endheaders" => {
            send(reader, call)
        }
        "upload_file" | "upload_from_filename" | "put" if sends_file(host, method) => {
            let path = call.at(0, "Filename").cloned().unwrap_or_default();
            let mut content = reader.read_file(&path, call.span);
            content.taint.add(&path.all_taint());
            content.taint.files |= has_hard_coded_login(call.receiver);
            value::record_send(&host_of(call), &[&content], &[], call.span, &mut reader.actions)
        }
        "extractall" | "extract"
            if host.starts_with("tarfile.") || host.starts_with("zipfile.") =>
        {
            let mut taint = call.receiver.all_taint();
            taint.add(&reader.state.contents(call.receiver.text_or_unknown()));
            let target = call.at(usize::from(method == "extract"), "path").cloned();
            reader.state.write(&target.unwrap_or_default(), &taint);
            Value::tainted(taint)
        }
        "communicate" if name.starts_with("subprocess.") => {
            Value { name: None, ..call.receiver.clone() }
        }
        "chmod" => {
            let path = call.receiver.clone();
            record_chmod(reader, &path, call);
            Value::default()
        }
        "open_sftp" => Value { name: Some("paramiko.sftp()".into()), ..call.receiver.clone() },
        "connect" if host.starts_with("paramiko.") => {
            let to = call.at(0, "hostname").cloned().unwrap_or_default();
            if let Some(at) = call.receiver_at {
                let text = to.text.or_else(|| call.receiver.text.clone());
                let items = hard_coded_login(call, 3);
                reader.assign_in_scope(at, Value { text, items, ..call.receiver.clone() });
            }
            Value::default()
        }
        "login" if host.starts_with("ftplib.") => {
            if let Some(at) = call.receiver_at {
                let items = hard_coded_login(call, 1);
                reader.assign_in_scope(at, Value { items, ..call.receiver.clone() });
            }
            Value::default()
        }
        "map" | "imap" if call.positional.first().is_some_and(|value| value.name.is_some()) => {
            let list = call.positional.get(1).map(most_dangerous_item).unwrap_or_default();
            let value = reader.invoke(&call.first(), &[list], call.span);
            Value { items: vec![value], ..Value::default() }
        }
        _ => return None,
    })
}

/// Name of a stream of a socket connection.
const SOCKET_STREAM: &str = "socket.stream()";

/// Whether an input widget hides the typed text: `QLineEdit.EchoMode.Password`.
fn hides_typed_text(call: &Call<'_, '_>) -> bool {
    let passed_values = call.positional.iter().chain(call.keywords.iter().map(|(_, value)| value));
    passed_values.filter_map(|value| value.name.as_deref()).any(|name| name.ends_with(".Password"))
}

/// Records fixed recipients of a mail; returns whether the call sends one.
fn record_mail_recipients<'t>(reader: &mut PythonReader<'t>, call: &Call<'_, 't>) -> bool {
    let actions = &mut reader.actions;
    if let Some(message) = call.positional.first().filter(|first| first.under("to").is_some()) {
        value::record_message_recipients(message, call.span, actions);
    }
    let listed = if call.method == Some("sendmail") { call.positional.get(1) } else { None };
    let listed = listed.or_else(|| call.keyword("to_addrs"));
    let hidden: Vec<&Value> = call.keyword("bcc").into_iter().collect();
    let open: Vec<&Value> = listed.into_iter().chain(call.keyword("to")).collect();
    value::record_fixed_recipients(&open, &hidden, call.span, actions);
    if let (Some("sendmail"), Some(message)) = (call.method, call.positional.get(2)) {
        value::record_mailed_secrets(&open, &message.all_taint(), call.span, actions);
    }
    call.method != Some("send") || call.taint().is_secret()
}

/// Name of the item that marks a connection with a hard-coded password.
const HARD_CODED_LOGIN: &str = "a log-in that is written down";

/// Returns the mark for a connection whose password is hard-coded.
fn hard_coded_login(call: &Call<'_, '_>, at: usize) -> Vec<Value> {
    let password = ["password", "passwd"].iter().find_map(|key| call.keyword(key));
    let password = password.or_else(|| call.positional.get(at));
    let known = password.and_then(Value::known).is_some_and(|text| text.len() > 3);
    if known { vec![Value::named(HARD_CODED_LOGIN)] } else { Vec::new() }
}

/// Whether a connection goes to a server whose address and password are both in the skill.
fn has_hard_coded_login(connection: &Value) -> bool {
    let marked = connection.items.iter().any(|item| item.name.as_deref() == Some(HARD_CODED_LOGIN));
    let host = connection.known().unwrap_or_default();
    marked
        && host.contains('.')
        && !host.starts_with("192.168.")
        && !host.starts_with("10.")
        && !host.starts_with("127.")
}

fn sends_file(host: &str, method: &str) -> bool {
    method != "put" || host.contains("sftp") || host.contains("SFTP")
}

/// Records that a window asks the user for a secret.
fn record_password_dialog<'t>(reader: &mut PythonReader<'t>, call: &Call<'_, 't>) -> Value {
    reader.actions.push(Action::AsksForSecret("a password in a window of its own"), call.span);
    Value::tainted(Taint::credential(TYPED_PASSWORDS))
}

/// Records that data is sent over an existing connection.
fn send<'t>(reader: &mut PythonReader<'t>, call: &Call<'_, 't>) -> Value {
    let mut parts = Value::tainted(call.taint());
    let uploads = matches!(call.method, Some("storbinary" | "storlines" | "putfo"));
    parts.taint.files |= uploads && has_hard_coded_login(call.receiver);
    let mut sent = call.receiver.taint.clone();
    (sent.fetched, sent.tokens) = (None, Vec::new());
    value::record_send(
        &host_of(call),
        &[&parts, &Value::tainted(sent)],
        &[],
        call.span,
        &mut reader.actions,
    )
}

/// Returns the host of a connection, or the target of a single packet.
fn host_of(call: &Call<'_, '_>) -> Value {
    if call.method == Some("sendto")
        && let Some(host) = call.positional.last().and_then(|address| address.items.first())
    {
        return Value { items: Vec::new(), ..host.clone() };
    }
    Value { text: call.receiver.text.clone(), ..Value::default() }
}

/// Makes an object that writes to another one, which is stored in its items.
fn writer_to<'t>(reader: &mut PythonReader<'t>, name: &str, call: &Call<'_, 't>) -> Value {
    let file = call.keyword("fileobj").cloned().unwrap_or_else(|| call.first());
    let mut taint = file.all_taint();
    taint.add(&reader.state.contents(file.text_or_unknown()));
    // The variable is known if it is passed directly.
    let behind = call.expressions.first().and_then(dotted_path);
    let mut items: Vec<Value> = Vec::new();
    items.extend(behind.map(|variable| Value::named(format!("behind {variable}"))));
    for scope in reader.scopes.iter().rev() {
        let same = scope.iter().filter(|(_, value)| **value == file && value.name.is_some());
        items.extend(same.map(|(variable, _)| Value::named(format!("behind {variable}"))).take(4));
    }
    Value { name: Some(format!("{name}()")), text: file.text, items, taint }
}

fn extension(call: &Call<'_, '_>) -> String {
    match call.positional.get(1).and_then(Value::known) {
        Some("gztar") => "tar.gz".into(),
        Some(other) => other.to_owned(),
        None => "zip".into(),
    }
}

fn execute_fetched<'t>(reader: &mut PythonReader<'t>, taint: &Taint, call: &Call<'_, 't>) {
    if let Some(from) = &taint.fetched {
        reader.actions.push(Action::ExecutesCode(CodeOrigin::Fetched(from.clone())), call.span);
    }
}

/// Records that a downloaded file is made executable.
fn record_chmod<'t>(reader: &mut PythonReader<'t>, path: &Value, call: &Call<'_, 't>) {
    let mode = call.positional.last().cloned().unwrap_or_default();
    let runs = mode.number().is_none_or(|mode| mode & 0o111 != 0);
    let mut taint = path.taint.clone();
    taint.add(&reader.state.contents(path.text_or_unknown()));
    if runs {
        execute_fetched(reader, &taint, call);
    }
}
