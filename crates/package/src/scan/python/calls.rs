//! What calls of Python's library do.

use savoir_skill::Span;

use super::{Reader, environment, formatted};
use crate::scan::{
    act::{Act, Code, Taint},
    decode,
    piece::Language,
    value::{self, Value},
};

/// The arguments of a call.
pub(super) struct Arguments<'a> {
    pub(super) positional: &'a [Value],
    pub(super) keywords: &'a [(String, Value)],
}

impl Arguments<'_> {
    fn first(&self) -> Value {
        self.positional.first().cloned().unwrap_or_default()
    }

    fn at(&self, index: usize, keyword: &str) -> Option<&Value> {
        self.keyword(keyword).or_else(|| self.positional.get(index))
    }

    fn keyword(&self, name: &str) -> Option<&Value> {
        self.keywords.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }
}

/// What a call gives, when it is a known one.
pub(super) fn call(
    reader: &mut Reader,
    name: &str,
    method: Option<&str>,
    receiver: &Value,
    arguments: &Arguments<'_>,
    span: Span,
) -> Option<Value> {
    let bare = name
        .strip_prefix("builtins.")
        .or_else(|| name.strip_prefix("__builtins__."))
        .unwrap_or(name);
    by_name(reader, bare, arguments, span)
        .or_else(|| by_method(reader, method?, bare, receiver, arguments, span))
}

fn by_name(
    reader: &mut Reader,
    name: &str,
    arguments: &Arguments<'_>,
    span: Span,
) -> Option<Value> {
    let first = arguments.first();
    let acts = &mut reader.acts;
    Some(match name {
        "exec" | "eval" | "runpy.run_path" | "compile" => {
            value::execute(&first, Language::Python, span, acts);
            Value { ..first }
        }
        "os.system"
        | "os.popen"
        | "subprocess.getoutput"
        | "subprocess.getstatusoutput"
        | "commands.getoutput"
        | "asyncio.create_subprocess_shell"
        | "subprocess.run"
        | "subprocess.call"
        | "subprocess.Popen"
        | "subprocess.check_output"
        | "subprocess.check_call" => {
            let command = arguments.at(0, "args").cloned().unwrap_or_default();
            value::run(&command, span, acts);
            // A shell whose streams are a socket.
            let streams = ["stdin", "stdout"].iter().filter_map(|name| arguments.keyword(name));
            let sockets = streams.filter(|value| {
                value
                    .name
                    .as_deref()
                    .is_some_and(|name| name.contains("fileno") || name.contains("socket"))
            });
            reader.hands_over |= sockets.count() > 0;
            Value {
                name: Some(format!("{name}()")),
                taint: output_of(&command),
                ..Value::default()
            }
        }
        "os.execl"
        | "os.execv"
        | "os.execvp"
        | "os.spawnl"
        | "asyncio.create_subprocess_exec"
        | "os.execlp" => {
            value::run(
                &Value { items: arguments.positional.to_vec(), ..Value::default() },
                span,
                acts,
            );
            Value::default()
        }
        "pty.spawn" | "os.dup2" => {
            reader.hands_over = true;
            if name == "pty.spawn" {
                value::run(&first, span, acts);
            }
            Value::default()
        }
        "base64.b64decode"
        | "base64.urlsafe_b64decode"
        | "base64.standard_b64decode"
        | "base64.decodebytes"
        | "binascii.a2b_base64" => first.decoded(decode::base64),
        "bytes.fromhex" | "bytearray.fromhex" | "binascii.unhexlify" | "base64.b16decode" => {
            first.decoded(decode::hex)
        }
        "codecs.decode" => match arguments.positional.get(1).and_then(Value::known) {
            Some("rot13" | "rot_13") => first.decoded(|text| Some(rot13(text))),
            Some("hex" | "hex_codec") => first.decoded(decode::hex),
            _ => first.decoded(decode::base64),
        },
        "zlib.decompress" | "gzip.decompress" | "bz2.decompress" | "lzma.decompress"
        | "marshal.loads" | "base64.b85decode" | "base64.b32decode" | "base64.a85decode" => {
            Value { text: None, ..first.decoded(|_| None) }
        }
        "pickle.loads" | "pickle.load" | "dill.loads" => {
            let taint = first.all_taint();
            if let Some(from) = taint.fetched {
                acts.push(Act::Executes(Code::Fetched(from)), span);
            } else if taint.decoded {
                acts.push(Act::Executes(Code::Decoded), span);
            }
            Value::default()
        }
        "chr" => Value {
            text: first
                .number()
                .and_then(|code| char::from_u32(u32::try_from(code).ok()?))
                .map(String::from),
            taint: Taint { decoded: false, ..first.taint },
            ..Value::default()
        },
        "ord" => Value {
            text: first
                .text
                .as_deref()
                .and_then(|text| text.chars().next())
                .map(|c| u32::from(c).to_string()),
            ..first
        },
        "int" => match (first.known(), arguments.positional.get(1).and_then(Value::number)) {
            (Some(text), Some(16)) => i64::from_str_radix(text.trim_start_matches("0x"), 16)
                .map(|number| Value::text(number.to_string()))
                .unwrap_or_default(),
            _ => first,
        },
        "bytes" | "bytearray" => Value {
            text: first.characters().or(first.text),
            taint: first.taint,
            ..Value::default()
        },
        "str"
        | "repr"
        | "list"
        | "tuple"
        | "dict"
        | "sorted"
        | "set"
        | "json.dumps"
        | "iter"
        | "enumerate"
        | "os.path.expanduser"
        | "os.path.abspath"
        | "os.path.realpath"
        | "os.fspath"
        | "os.path.expandvars"
        | "base64.b64encode"
        | "urllib.parse.quote"
        | "urllib.parse.urlencode"
        | "zlib.compress"
        | "gzip.compress"
        | "copy.deepcopy"
        | "copy.copy" => {
            let passed =
                matches!(name, "str" | "list" | "tuple" | "sorted" | "set" | "iter" | "json.dumps")
                    || name.starts_with("os.");
            let taint = first.all_taint();
            if passed { Value { name: None, taint, ..first } } else { Value::tainted(taint) }
        }
        "reversed" => Value {
            items: first.items.iter().rev().cloned().collect(),
            text: first.text.as_ref().map(|text| text.chars().rev().collect()),
            ..first
        },
        "map" => map(&first, arguments.positional.get(1)),
        "pathlib.Path" | "Path" | "pathlib.PurePath" => Value {
            name: Some("pathlib.Path()".into()),
            ..Value::joined(arguments.positional, "/")
        },
        "pathlib.Path.home" | "Path.home" => {
            Value { name: Some("pathlib.Path()".into()), ..Value::text("~") }
        }
        "os.path.join" => Value::joined(arguments.positional, "/"),
        "os.getenv" | "os.environ.get" | "os.environ.pop" => {
            first.known().map(environment).unwrap_or_default()
        }
        "os.environ.copy" | "os.environ.items" | "os.environ.values" => {
            Value::tainted(Taint { environment: true, ..Taint::default() })
        }
        "os.walk" | "glob.glob" | "os.listdir" | "os.scandir" | "glob.iglob" => {
            let home = first.shown().trim_end_matches(['/', '*']) == "~";
            let mut found = value::read(&first, span, acts);
            found.taint.files |= home;
            found
        }
        "open" | "io.open" | "codecs.open" | "sqlite3.connect" | "aiofiles.open" | "os.open" => {
            open(reader, arguments, name, span)
        }
        "shutil.copy" | "shutil.copy2" | "shutil.copyfile" | "shutil.copytree" | "shutil.move" => {
            let value = value::read(&first, span, acts);
            if let Some(target) = arguments.positional.get(1) {
                acts.push(
                    Act::Writes { path: target.shown().to_owned(), text: String::new() },
                    span,
                );
            }
            value
        }
        "shutil.rmtree" => {
            let path = first.shown().trim_end_matches('/');
            if matches!(path, "" | "~" | "/home" | "/etc" | "/usr") {
                acts.push(Act::Deletes(first.shown().to_owned()), span);
            }
            Value::default()
        }
        "keyring.get_password"
        | "browser_cookie3.chrome"
        | "browser_cookie3.load"
        | "browser_cookie3.firefox" => {
            let what = if name.starts_with("keyring") { "keychains" } else { "browser cookies" };
            acts.push(Act::Secret(what), span);
            Value::tainted(Taint::credential(what))
        }
        "getattr" => match arguments.positional.get(1).and_then(Value::known) {
            Some(attribute) if first.name.is_some() => Value {
                name: first.name.map(|name| format!("{name}.{attribute}")),
                ..Value::default()
            },
            Some(_) => first,
            None => {
                if first.name.as_deref().is_some_and(|name| {
                    matches!(name, "os" | "subprocess" | "builtins" | "__builtins__" | "sys")
                }) {
                    acts.push(
                        Act::Obscures("a function is looked up by a name that is put together"),
                        span,
                    );
                }
                first
            }
        },
        "__import__" | "importlib.import_module" => {
            if first.known().is_none() && name == "__import__" {
                acts.push(
                    Act::Obscures("a module is imported by a name that is put together"),
                    span,
                );
            }
            first.known().map(Value::named).unwrap_or_default()
        }
        "socket.create_connection" => {
            reader.connects = true;
            reader.connected_at = span;
            let to = first.items.first().cloned().unwrap_or_default();
            value::send(&to, &[], &[], span, &mut reader.acts);
            Value::named("socket.socket()")
        }
        _ if is_request(name) => request(reader, name, arguments, span),
        _ => return None,
    })
}

fn is_request(name: &str) -> bool {
    const MODULES: [&str; 9] = [
        "requests.",
        "httpx.",
        "urllib.request.",
        "urllib3.",
        "aiohttp.",
        "urllib2.",
        "http.client.",
        "websocket.",
        "websockets.",
    ];
    const VERBS: [&str; 15] = [
        "get",
        "post",
        "put",
        "patch",
        "delete",
        "request",
        "urlopen",
        "urlretrieve",
        "Request",
        "HTTPSConnection",
        "HTTPConnection",
        "head",
        "stream",
        "connect",
        "create_connection",
    ];
    let last = name.rsplit('.').next().unwrap_or(name);
    MODULES.iter().any(|module| name.starts_with(module)) && VERBS.contains(&last)
}

fn request(reader: &mut Reader, name: &str, arguments: &Arguments<'_>, span: Span) -> Value {
    let last = name.rsplit('.').next().unwrap_or(name);
    let url_at =
        usize::from(matches!(last, "request" | "stream") && !name.starts_with("http.client"));
    let url = arguments.at(url_at, "url").cloned().unwrap_or_default();
    let log_in = |key: &str| matches!(key, "headers" | "auth" | "cookies");
    let parts: Vec<&Value> = arguments
        .positional
        .iter()
        .chain(
            arguments
                .keywords
                .iter()
                .filter(|(key, _)| !log_in(key) && key != "url")
                .map(|(_, value)| value),
        )
        .collect();
    let headers: Vec<&Value> =
        arguments.keywords.iter().filter(|(key, _)| log_in(key)).map(|(_, value)| value).collect();
    let mut value = value::send(&url, &parts, &headers, span, &mut reader.acts);
    // A request that is built first carries its data to the call that sends it.
    if matches!(last, "Request" | "HTTPSConnection" | "HTTPConnection") {
        for part in parts {
            value.taint.add(&part.all_taint());
        }
        value.text = url.text;
    }
    if last == "urlretrieve"
        && let Some(target) = arguments.positional.get(1)
    {
        reader
            .acts
            .push(Act::Writes { path: target.shown().to_owned(), text: String::new() }, span);
    }
    value.name = Some(format!("{name}()"));
    value
}

fn open(reader: &mut Reader, arguments: &Arguments<'_>, name: &str, span: Span) -> Value {
    let path = arguments.first();
    let mode = arguments.at(1, "mode").and_then(Value::known).unwrap_or("r").to_owned();
    if name != "sqlite3.connect" && mode.contains(['w', 'a', 'x', '+']) {
        reader.acts.push(Act::Writes { path: path.shown().to_owned(), text: String::new() }, span);
        return Value { name: Some("open()".into()), ..Value::default() };
    }
    let value = value::read(&path, span, &mut reader.acts);
    Value { name: Some("open()".into()), ..value }
}

/// Functions that are handed over by name.
fn map(function: &Value, list: Option<&Value>) -> Value {
    let list = list.cloned().unwrap_or_default();
    let each = |item: &Value| match function.name.as_deref() {
        Some("chr") => item
            .number()
            .and_then(|code| char::from_u32(u32::try_from(code).ok()?))
            .map(|c| Value::text(c.to_string()))
            .unwrap_or_default(),
        _ => item.clone(),
    };
    Value { items: list.items.iter().map(each).collect(), taint: list.taint, ..Value::default() }
}

fn by_method(
    reader: &mut Reader,
    method: &str,
    name: &str,
    receiver: &Value,
    arguments: &Arguments<'_>,
    span: Span,
) -> Option<Value> {
    let acts = &mut reader.acts;
    let first = arguments.first();
    Some(match method {
        "decode" | "encode" | "strip" | "rstrip" | "lstrip" | "lower" | "copy" | "absolute"
        | "resolve" | "expanduser" | "as_posix" | "read" | "json" | "getvalue" => {
            match (method, first.known()) {
                ("decode", Some("base64")) => receiver.decoded(decode::base64),
                ("decode", Some("hex")) => receiver.decoded(decode::hex),
                _ => receiver.clone(),
            }
        }
        "join" if !receiver.shown().contains("{}") => {
            let list =
                if first.items.is_empty() { std::slice::from_ref(&first) } else { &first.items };
            Value::joined(list, receiver.shown())
        }
        "replace" => {
            let (from, to) = (first.known(), arguments.positional.get(1).and_then(Value::known));
            match (receiver.known(), from, to) {
                (Some(text), Some(from), Some(to)) => {
                    Value { text: Some(text.replace(from, to)), ..receiver.clone() }
                }
                _ => receiver.clone(),
            }
        }
        "format" => {
            let mut value = formatted(
                receiver,
                &Value { items: arguments.positional.to_vec(), ..Value::default() },
                &["{}", "{0}", "{1}", "{2}"],
            );
            arguments
                .positional
                .iter()
                .chain(arguments.keywords.iter().map(|(_, value)| value))
                .for_each(|part| value.taint.add(&part.all_taint()));
            value
        }
        "split" => {
            let items = match (receiver.known(), first.known()) {
                (Some(text), Some(mark)) if !mark.is_empty() => {
                    text.split(mark).map(Value::text).collect()
                }
                (Some(text), None) => text.split_whitespace().map(Value::text).collect(),
                _ => Vec::new(),
            };
            Value { items, taint: receiver.taint.clone(), ..Value::default() }
        }
        "joinpath" => Value {
            name: receiver.name.clone(),
            ..Value::joined(&[receiver.clone(), Value::joined(arguments.positional, "/")], "/")
        },
        "read_text" | "read_bytes" | "rglob" | "glob" | "iterdir" => {
            let mut value = value::read(receiver, span, acts);
            value.taint.files |= receiver.shown() == "~";
            value
        }
        "write_text" | "write_bytes" => {
            acts.push(
                Act::Writes { path: receiver.shown().to_owned(), text: first.shown().to_owned() },
                span,
            );
            Value::default()
        }
        "append" | "extend" | "update" | "add" | "write" | "insert" | "setdefault" => {
            let mut value = receiver.clone();
            for part in arguments.positional {
                value.taint.add(&part.all_taint());
            }
            let known = receiver.name.clone();
            if known.is_none() {
                reader.remember(receiver, &value);
            }
            value
        }
        "connect" | "connect_ex" if name.starts_with("socket.") => {
            reader.connects = true;
            reader.connected_at = span;
            let to = first.items.first().cloned().unwrap_or(first);
            value::send(&to, &[], &[], span, &mut reader.acts)
        }
        "send" | "sendall" | "sendto" | "sendmail" | "send_message" | "storbinary" => {
            let parts: Vec<&Value> = arguments.positional.iter().collect();
            value::send(&Value::default(), &parts, &[], span, acts)
        }
        "post" | "put" | "patch" | "request" | "urlopen" | "get"
            if ["requests.", "httpx.", "aiohttp.", "urllib", "http.client."]
                .iter()
                .any(|module| name.starts_with(module))
                || (method != "get" && arguments.first().shown().contains("://")) =>
        {
            request(
                reader,
                if method == "request" { "http.client.request" } else { method },
                arguments,
                span,
            )
        }
        _ => return None,
    })
}

fn rot13(text: &str) -> String {
    let turn = |c: char| match c {
        'a'..='m' | 'A'..='M' => char::from(c as u8 + 13),
        'n'..='z' | 'N'..='Z' => char::from(c as u8 - 13),
        _ => c,
    };
    text.chars().map(turn).collect()
}

/// What the output of a command is made of.
fn output_of(command: &Value) -> Taint {
    let words = if command.items.is_empty() {
        command.shown().to_owned()
    } else {
        command.items.iter().map(Value::shown).collect::<Vec<_>>().join(" ")
    };
    let credential = words.split_whitespace().find_map(crate::scan::place::credential);
    let mut taint = Taint { credential, ..Taint::default() };
    if matches!(words.trim(), "env" | "printenv" | "set") {
        taint.environment = true;
    }
    if words.trim_start().starts_with("curl ") || words.trim_start().starts_with("wget ") {
        taint.fetched = crate::scan::host::urls(&words).first().map(|(_, url)| (*url).to_owned());
    }
    taint
}

impl Reader {
    /// A list that changed is the same list under all its names.
    fn remember(&mut self, old: &Value, new: &Value) {
        for scope in &mut self.scopes {
            for value in scope.values_mut().filter(|value| *value == old && value.name.is_none()) {
                value.taint.clone_from(&new.taint);
            }
        }
    }
}
