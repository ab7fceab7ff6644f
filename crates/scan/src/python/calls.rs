//! Evaluates calls of Python's standard library and records their actions.

use ruff_python_ast::Expr;
use savoir_skill::Span;

use super::{
    PythonReader, comes_from_dotenv, defaults, dispatch, dotted_path, environment, format, library,
    sources, web,
};
use crate::{
    action::{Action, CodeOrigin, Taint},
    decode,
    fragment::Language,
    value::{self, Value, most_dangerous_item},
};

/// A call with the values of its receiver and arguments.
pub(super) struct Call<'c, 't> {
    /// The dotted name of the called function.
    pub(super) name: &'c str,
    pub(super) method: Option<&'c str>,
    pub(super) receiver: &'c Value,
    /// The expression of the receiver, for methods that change it.
    pub(super) receiver_at: Option<&'t Expr>,
    pub(super) positional: &'c [Value],
    pub(super) keywords: &'c [(String, Value)],
    pub(super) expressions: &'t [Expr],
    pub(super) span: Span,
}

impl Call<'_, '_> {
    pub(super) fn first(&self) -> Value {
        self.positional.first().cloned().unwrap_or_default()
    }

    pub(super) fn at(&self, index: usize, keyword: &str) -> Option<&Value> {
        self.keyword(keyword).or_else(|| self.positional.get(index))
    }

    pub(super) fn keyword(&self, name: &str) -> Option<&Value> {
        self.keywords.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// The taint of all arguments.
    pub(super) fn taint(&self) -> Taint {
        let mut taint = Taint::default();
        let keywords = self.keywords.iter().map(|(_, value)| value);
        self.positional.iter().chain(keywords).for_each(|value| taint.add(&value.all_taint()));
        taint
    }
}

/// Returns the result of a call, if the function is known.
pub(super) fn call<'t>(reader: &mut PythonReader<'t>, call: &Call<'_, 't>) -> Option<Value> {
    let bare = call
        .name
        .strip_prefix("builtins.")
        .or_else(|| call.name.strip_prefix("__builtins__."))
        .unwrap_or(call.name);
    let bare = bare.strip_suffix(".__call__").unwrap_or(bare);
    web::by_name(reader, bare, call)
        .or_else(|| defaults::by_name(bare, call))
        .or_else(|| sources::by_name(reader, bare, call))
        .or_else(|| sources::by_method(reader, call.method?, call))
        .or_else(|| by_name(reader, bare, call))
        .or_else(|| library::by_name(reader, bare, call))
        .or_else(|| library::by_method(reader, call.method?, bare, call))
        .or_else(|| by_method(reader, call.method?, bare, call))
        .or_else(|| defaults::by_method(reader, call.method?, call))
}

/// Calls functions that are passed as arguments, with the arguments that follow them.
pub(super) fn call_function_arguments<'t>(
    reader: &mut PythonReader<'t>,
    call: &Call<'_, 't>,
) -> Option<Value> {
    if sources::receives_outside_data(call.name) {
        let taint = call.receiver.taint.clone();
        return Some(Value { taint, ..Value::named(format!("{}()", call.name)) });
    }
    if let Some(target) = call.keyword("target").or_else(|| call.keyword("func")) {
        let passed_values = call.keyword("args").map(|list| list.items.clone()).unwrap_or_default();
        return Some(reader.invoke(target, &passed_values, call.span));
    }
    let at = call.positional.iter().position(|value| reader.is_skill_function(value))?;
    let function = call.positional[at].clone();
    let rest = &call.positional[at + 1..];
    let method = call.method.unwrap_or_default();
    let each = matches!(method, "map" | "imap" | "imap_unordered" | "starmap" | "map_async");
    let passed_values: Vec<Value> = if each {
        rest.iter().map(most_dangerous_item).collect()
    } else if let ([list], true) =
        (rest, method.starts_with("apply") || call.name.ends_with("Timer"))
    {
        list.items.clone()
    } else {
        rest.to_vec()
    };
    let passed_values = if method == "starmap" {
        passed_values.first().map(|list| list.items.clone()).unwrap_or_default()
    } else {
        passed_values
    };
    let value = reader.invoke(&function, &passed_values, call.span);
    let items = if each { vec![value.clone()] } else { Vec::new() };
    Some(Value { name: None, items, ..value })
}

fn by_name<'t>(
    reader: &mut PythonReader<'t>,
    name: &str,
    arguments: &Call<'_, 't>,
) -> Option<Value> {
    let first = arguments.first();
    let span = arguments.span;
    let actions = &mut reader.actions;
    Some(match name {
        "runpy.run_path" | "runpy.run_module" | "execfile" => {
            let code = reader.read_file(&first, span);
            if code.taint.fetched.is_some() || code.taint.decoded {
                value::record_execution(
                    &Value::tainted(code.taint),
                    Language::Python,
                    span,
                    &mut reader.actions,
                );
            }
            Value::default()
        }
        "exec" | "eval" | "compile" | "types.FunctionType" => {
            value::record_execution(&first, Language::Python, span, actions);
            Value { ..first }
        }
        "os.system"
        | "os.popen"
        | "os.startfile"
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
            let input = arguments.keyword("input").or_else(|| arguments.keyword("stdin"));
            value::record_command(&command, input, &reader.state, span, actions);
            // A shell whose streams are a socket is a reverse shell.
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
                taint: value::output_taint(&command),
                ..Value::default()
            }
        }
        "os.execl"
        | "os.execv"
        | "os.execvp"
        | "os.spawnl"
        | "asyncio.create_subprocess_exec"
        | "os.execlp" => {
            let items = match arguments.positional {
                [_, list] if !list.items.is_empty() => list.items.clone(),
                other => other.to_vec(),
            };
            let command = Value { items, ..Value::default() };
            value::record_command(&command, None, &reader.state, span, actions);
            let name = Some("subprocess.Popen()".into());
            Value { name, taint: value::output_taint(&command), ..Value::default() }
        }
        "pty.spawn" | "os.dup2" => {
            reader.hands_over = true;
            if name == "pty.spawn" {
                value::record_command(&first, None, &reader.state, span, actions);
            }
            Value::default()
        }
        "base64.b64decode"
        | "base64.urlsafe_b64decode"
        | "base64.standard_b64decode"
        | "base64.decodebytes"
        | "binascii.a2b_base64" => first.decoded(decode::decode_base64),
        "bytes.fromhex" | "bytearray.fromhex" | "binascii.unhexlify" | "base64.b16decode" => {
            first.decoded(decode::decode_hex)
        }
        "codecs.decode" => match arguments.positional.get(1).and_then(Value::known) {
            Some("rot13" | "rot_13") => first.decoded(|text| Some(rot13(text))),
            Some("hex" | "hex_codec") => first.decoded(decode::decode_hex),
            _ => first.decoded(decode::decode_base64),
        },
        "zlib.decompress" | "gzip.decompress" | "bz2.decompress" | "lzma.decompress"
        | "marshal.loads" | "base64.b85decode" | "base64.b32decode" | "base64.a85decode" => {
            Value { text: None, ..first.decoded(|_| None) }
        }
        "pickle.loads" | "pickle.load" | "dill.loads" => {
            let taint = first.all_taint();
            if let Some(from) = taint.fetched {
                actions.push(Action::ExecutesCode(CodeOrigin::Fetched(from)), span);
            } else if taint.decoded {
                actions.push(Action::ExecutesCode(CodeOrigin::Decoded), span);
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
            taint: first.all_taint(),
            text: first.characters().or(first.text),
            ..Value::default()
        },
        "repr" if first.text.is_some() => {
            Value { text: Some(format::quote_as_python(&first)), ..first }
        }
        "string.Template" => Value { name: None, ..first },
        "str"
        | "repr"
        | "list"
        | "tuple"
        | "dict"
        | "sorted"
        | "set"
        | "json.dumps"
        | "iter"
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
        "map" => map(reader, &first, arguments.positional.get(1), span),
        "filter" => {
            let list = arguments.positional.get(1).cloned().unwrap_or_default();
            reader.invoke(&first, &[most_dangerous_item(&list)], span);
            list
        }
        "next" | "min" | "max" | "random.choice" => most_dangerous_item(&first),
        "zip" => {
            let pair: Vec<Value> = arguments.positional.iter().map(most_dangerous_item).collect();
            Value { items: vec![Value { items: pair, ..Value::default() }], ..Value::default() }
        }
        "enumerate" => {
            let pair = vec![Value::default(), most_dangerous_item(&first)];
            Value { items: vec![Value { items: pair, ..Value::default() }], ..Value::default() }
        }
        "asyncio.run" | "asyncio.create_task" | "asyncio.ensure_future" | "asyncio.wait_for" => {
            first
        }
        "asyncio.gather" | "itertools.chain" => {
            Value { items: arguments.positional.to_vec(), ..Value::default() }
        }
        "functools.partial" => {
            let passed_values = arguments.positional.get(1..).unwrap_or_default();
            reader.invoke(&first, passed_values, span);
            Value { name: first.name, taint: arguments.taint(), ..Value::default() }
        }
        "pathlib.Path" | "Path" | "pathlib.PurePath" => {
            let value = Value::joined(arguments.positional, "/");
            value::record_credential_mention(value.text_or_unknown(), span, actions);
            Value { name: Some("pathlib.Path()".into()), ..value }
        }
        "pathlib.Path.home" | "Path.home" => {
            Value { name: Some("pathlib.Path()".into()), ..Value::text("~") }
        }
        "os.path.join" => {
            let value = Value::joined(arguments.positional, "/");
            value::record_credential_mention(value.text_or_unknown(), span, actions);
            value
        }
        "os.path.dirname" => {
            let text = first.text.as_deref().and_then(|text| text.rsplit_once('/'));
            Value { text: text.map(|(parent, _)| parent.to_owned()), ..first.clone() }
        }
        "os.getenv" | "os.environ.get" | "os.environ.pop" => {
            let all = first.taint.environment;
            let unknown = Value::tainted(Taint { environment: all, ..Taint::default() });
            let value = first.known().map_or(unknown, environment);
            defaults::with_default_address(value, arguments.at(1, "default"))
        }
        "os.environ.copy" | "os.environ.items" | "os.environ.values" | "os.environ.keys" => {
            Value::tainted(Taint { environment: true, ..Taint::default() })
        }
        "os.walk" | "glob.glob" | "os.listdir" | "os.scandir" | "glob.iglob" => {
            reader.harmful_calls.walks |=
                name == "os.walk" || first.text_or_unknown().contains("**");
            let mut found = reader.read_file(&first, span);
            found.taint.walked = true;
            found.taint.files |= value::is_users_folder(first.text_or_unknown());
            listed_paths(name, &first, found)
        }
        "open" | "io.open" | "codecs.open" | "sqlite3.connect" | "aiofiles.open" | "os.open" => {
            open(reader, arguments, name)
        }
        "shutil.copy" | "shutil.copy2" | "shutil.copyfile" | "shutil.copytree" | "shutil.move" => {
            let value = reader.read_file(&first, span);
            if let Some(target) = arguments.positional.get(1) {
                reader.write_file(target, &value, span);
                return Some(Value { text: target.text.clone(), ..value });
            }
            value
        }
        "shutil.rmtree" => {
            let below_home = first.text_or_unknown() == "~/{}" && reader.loops > 0;
            if value::is_destructive_path(first.text_or_unknown())
                || crate::sensitive_path::is_precious_folder(first.text_or_unknown())
                || below_home
            {
                actions.push(Action::DestroysData(first.text_or_unknown().to_owned()), span);
            }
            Value::default()
        }
        "os.remove" | "os.unlink" | "os.rmdir" => {
            record_file_deletion(reader, &first, span);
            Value::default()
        }
        "getattr" | "__import__" | "importlib.import_module"
            if arguments
                .positional
                .iter()
                .any(|value| value.name.is_none() && value.taint.decoded) =>
        {
            actions.push(Action::Obfuscates("a function is looked up by an encoded name"), span);
            first
        }
        "boto3.Session().get_credentials" | "boto3.session.Session().get_credentials" => {
            actions.push(Action::ReadsCredentials("AWS credentials"), span);
            Value::tainted(Taint::credential("AWS credentials"))
        }
        "getattr" => match arguments.positional.get(1).and_then(Value::known) {
            Some(attribute) if first.name.is_some() => {
                let name = first.name.as_ref().map(|name| format!("{name}.{attribute}"));
                reader.record_assembled_name(&Value::text(attribute), arguments);
                Value { name, ..Value::default() }
            }
            Some(_) => first,
            None => {
                let name = arguments.positional.get(1).cloned().unwrap_or_default();
                if let Some(any) = reader.methods_matching(&name) {
                    return Some(any);
                }
                let actions = &mut reader.actions;
                if first.name.as_deref().is_some_and(|name| {
                    matches!(name, "os" | "subprocess" | "builtins" | "__builtins__" | "sys")
                }) {
                    actions.push(
                        Action::Obfuscates(
                            "a function is looked up by a name that is put together",
                        ),
                        span,
                    );
                }
                first
            }
        },
        "__import__" | "importlib.import_module" => {
            let taint = first.all_taint();
            if taint.fetched.is_some() {
                value::record_execution(&Value::tainted(taint), Language::Python, span, actions);
            }
            if first.known().is_none() && name == "__import__" {
                actions.push(
                    Action::Obfuscates("a module is imported by a name that is put together"),
                    span,
                );
            }
            reader.record_assembled_name(&first, arguments);
            first.known().map(Value::named).unwrap_or_default()
        }
        "socket.create_connection" => {
            reader.connects = true;
            reader.connected_at = span;
            let to = first.items.first().cloned().unwrap_or_default();
            let value = value::record_send(&to, &[], &[], span, &mut reader.actions);
            Value { name: Some("socket.socket()".into()), text: to.text, ..value }
        }
        _ if is_request(name) => request(reader, name, arguments),
        _ => return None,
    })
}

/// Returns the paths that a folder listing yields.
fn listed_paths(name: &str, folder: &Value, found: Value) -> Value {
    if name != "os.walk" {
        return found;
    }
    let base = Value { text: folder.text.clone(), ..found.clone() };
    let names = Value::tainted(found.taint.clone());
    let entry = Value { items: vec![base, names.clone(), names], ..Value::default() };
    Value { items: vec![entry], ..found }
}

/// Records that a single file is deleted.
fn record_file_deletion(reader: &mut PythonReader<'_>, path: &Value, span: Span) {
    if path.taint.files && reader.loops > 0 {
        reader.actions.push(Action::DestroysData("~".into()), span);
    }
    if reader.loops > 0 || !reader.frames.is_empty() {
        reader.harmful_calls.deletes.get_or_insert(span);
    }
}

fn is_request(name: &str) -> bool {
    const MODULES: [&str; 10] = [
        "curl_cffi.", "requests.", "httpx.", "urllib.request.", "urllib3.", "aiohttp.", "urllib2.",
        "http.client.", "websocket.", "websockets.",
    ];
    const VERBS: [&str; 17] = [
        "ws_connect", "options", "get", "post", "put", "patch", "delete", "request", "urlopen",
        "urlretrieve", "Request", "HTTPSConnection", "HTTPConnection", "head", "stream", "connect",
        "create_connection",
    ];
    let last = name.rsplit('.').next().unwrap_or(name);
    MODULES.iter().any(|module| name.starts_with(module)) && VERBS.contains(&last)
}

/// Whether an object stores its arguments until a later call sends them.
fn is_client(last: &str) -> bool {
    matches!(
        last,
        "Request"
            | "HTTPSConnection"
            | "HTTPConnection"
            | "connect"
            | "ws_connect"
            | "create_connection"
    )
}

fn request<'t>(reader: &mut PythonReader<'t>, name: &str, call: &Call<'_, 't>) -> Value {
    let last = name.rsplit('.').next().unwrap_or(name);
    let over_connection =
        call.receiver.name.as_deref().is_some_and(|name| name.starts_with("http.client.HTTP"));
    let url_at = usize::from(matches!(last, "request" | "stream"));
    let mut url = call.at(url_at, "url").cloned().unwrap_or_default();
    if url_at == 1
        && !url.text_or_unknown().contains("://")
        && let Some(found) = call.positional.iter().find(|value| is_url(value))
    {
        url = found.clone();
    }
    // The argument is a path that is appended to the host of a connection or client.
    if let Some(base) =
        call.receiver.text.as_deref().filter(|_| !url.text_or_unknown().contains("://"))
    {
        let scheme = if over_connection && !base.contains("://") { "https://" } else { "" };
        url.text = Some(format!("{scheme}{base}{}", url.text.as_deref().unwrap_or_default()));
    }
    let log_in = |key: &str| {
        matches!(key, "headers" | "auth" | "cookies" | "header" | "extra_headers" | "cert")
            || key == "additional_headers"
    };
    let headers_at = match last {
        "Request" => 2,
        "request" if over_connection => 3,
        _ => usize::MAX,
    };
    let named = |wanted: bool| {
        let of = call.keywords.iter().filter(move |(key, _)| {
            // The entries of `**options` are also present under their own names.
            log_in(key) == wanted && key != "url" && key != "**"
        });
        of.map(|(_, value)| value)
    };
    let mut parts: Vec<&Value> = named(false).collect();
    let mut headers: Vec<&Value> = named(true).collect();
    for (index, value) in call.positional.iter().enumerate() {
        if index == headers_at { headers.push(value) } else { parts.push(value) }
    }
    let session = session_login(reader, call);
    headers.push(&session);
    for hook in call.keyword("hooks").into_iter().flat_map(|hooks| &hooks.items) {
        let seen = Value::tainted(Taint::private(value::PROGRAM_REQUESTS));
        if let Some((_, hook)) = hook.as_entry() {
            reader.invoke(hook, &[seen], call.span);
        }
    }
    let mut value = value::record_send(&url, &parts, &headers, call.span, &mut reader.actions);
    // A request object passes its data on to the call that sends it.
    if is_client(last) {
        for part in parts {
            value.taint.add(&part.all_taint());
        }
        value.text = url.text;
    }
    if last == "urlretrieve" || last == "download_file" {
        let target = call.at(1, "filename").cloned().unwrap_or_default();
        reader.write_file(&target, &Value::tainted(value.taint.clone()), call.span);
    }
    value.name = Some(format!("{name}()"));
    value
}

/// Returns the login of a session: its constructor arguments and its headers.
fn session_login<'t>(reader: &PythonReader<'t>, call: &Call<'_, 't>) -> Value {
    let mut taint = Taint { fetched: None, ..call.receiver.taint.clone() };
    if let Some(path) = call.receiver_at.and_then(dotted_path) {
        for part in ["headers", "auth", "cookies", "params"] {
            if let Some(value) = reader.lookup(&format!("{path}.{part}")) {
                taint.add(&value.all_taint());
            }
        }
    }
    Value::tainted(taint)
}

fn open<'t>(reader: &mut PythonReader<'t>, call: &Call<'_, 't>, name: &str) -> Value {
    let path = call.first();
    let mode = call.at(1, "mode").and_then(Value::known).unwrap_or("r").to_owned();
    if name != "sqlite3.connect" && is_write_mode(&mode) {
        let action =
            Action::WritesFile { path: path.text_or_unknown().to_owned(), text: String::new() };
        reader.actions.push(action, call.span);
        record_overwrite(reader, &path, call.span);
        return Value { name: Some(FILE_WRITER.into()), text: path.text, ..Value::default() };
    }
    let value = reader.read_file(&path, call.span);
    Value { name: Some("open()".into()), ..value }
}

fn is_write_mode(mode: &str) -> bool {
    mode.len() < 4 && mode.contains(['w', 'a', 'x', '+'])
}

/// Records that a file of the user is overwritten.
fn record_overwrite(reader: &mut PythonReader<'_>, path: &Value, span: Span) {
    if path.taint.files && (reader.loops > 0 || !reader.frames.is_empty()) {
        reader.harmful_calls.overwrites.get_or_insert(span);
    }
}

/// Name of a file that is open for writing; the text of the value is its path.
pub(super) const FILE_WRITER: &str = "open(w)";

/// Calls a function on the items of a list, as `map` does.
fn map(reader: &mut PythonReader<'_>, function: &Value, list: Option<&Value>, span: Span) -> Value {
    let list = list.cloned().unwrap_or_default();
    if list.items.is_empty() {
        let value = reader.invoke(function, &[most_dangerous_item(&list)], span);
        return Value { items: vec![value], taint: list.taint, ..Value::default() };
    }
    let mut items = Vec::new();
    for item in list.items.iter().take(value::MAX_ITEMS) {
        items.push(reader.invoke(function, std::slice::from_ref(item), span));
    }
    Value { items, taint: list.taint, ..Value::default() }
}

fn by_method<'t>(
    reader: &mut PythonReader<'t>,
    method: &str,
    name: &str,
    arguments: &Call<'_, 't>,
) -> Option<Value> {
    let (receiver, span) = (arguments.receiver, arguments.span);
    let first = arguments.first();
    Some(match method {
        "decode" | "encode" | "strip" | "rstrip" | "lstrip" | "lower" | "copy" | "absolute"
        | "resolve" | "expanduser" | "as_posix" | "getvalue" | "result" | "upper" | "items"
            if method != "items" || receiver.items.is_empty() =>
        {
            match (method, first.known()) {
                ("decode", Some("base64")) => receiver.decoded(decode::decode_base64),
                ("decode", Some("hex")) => receiver.decoded(decode::decode_hex),
                _ => receiver.clone(),
            }
        }
        "read" | "json" => Value {
            text: receiver.text.clone().filter(|_| receiver.name.is_none()),
            ..receiver.clone()
        },
        "items" => {
            let pair = |item: &Value| match item.as_entry() {
                Some((key, value)) => vec![Value::text(key), value.clone()],
                None => vec![Value::default(), item.clone()],
            };
            let items =
                receiver.items.iter().map(|item| Value { items: pair(item), ..Value::default() });
            Value { items: items.collect(), taint: receiver.taint.clone(), ..Value::default() }
        }
        "values" if !receiver.items.is_empty() => {
            let value = |item: &Value| item.as_entry().map_or(item, |(_, value)| value).clone();
            let items = receiver.items.iter().map(value).collect();
            Value { items, taint: receiver.taint.clone(), ..Value::default() }
        }
        "get" | "pop" if first.known().is_some_and(|key| receiver.under(key).is_some()) => {
            first.known().and_then(|key| receiver.under(key)).cloned().unwrap_or_default()
        }
        "get" if first.known().is_none() && dispatch::has_functions(receiver) => {
            dispatch::any_function_of(receiver)?
        }
        "get" if comes_from_dotenv(&receiver.taint) && first.known().is_some() => {
            first.known().map(environment).unwrap_or_default()
        }
        "join" if !receiver.text_or_unknown().contains("{}") => {
            let list =
                if first.items.is_empty() { std::slice::from_ref(&first) } else { &first.items };
            let mut value = Value::joined(list, receiver.text_or_unknown());
            value.taint.add(&first.taint);
            value
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
        "substitute" | "safe_substitute" if receiver.text.is_some() => {
            format::format_template(receiver, arguments.keywords)
        }
        "format" => format::format_braces(receiver, arguments.positional, arguments.keywords),
        "endswith" => {
            if !reader.leaves_out {
                value::record_secret_name_list(&first, span, &mut reader.actions);
            }
            return None;
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
        "with_name" | "with_suffix" | "with_stem" => {
            let parent = receiver.text.as_deref().and_then(|text| text.rsplit_once('/'));
            let text = match (method, parent) {
                ("with_name", Some((parent, _))) => format!("{parent}/{}", first.text_or_unknown()),
                ("with_name", None) => first.text_or_unknown().to_owned(),
                _ => format!("{}{}", receiver.text_or_unknown(), first.text_or_unknown()),
            };
            Value { text: Some(text), ..receiver.clone() }
        }
        "open" if is_write_mode(first.known().unwrap_or("r")) => {
            let path = receiver.text_or_unknown().to_owned();
            record_overwrite(reader, receiver, span);
            reader.actions.push(Action::WritesFile { path, text: String::new() }, span);
            Value {
                name: Some(FILE_WRITER.into()),
                text: receiver.text.clone(),
                ..Value::default()
            }
        }
        "read_text" | "read_bytes" | "open" => reader.read_file(receiver, span),
        "rglob" | "glob" | "iterdir" => {
            reader.harmful_calls.walks |=
                method == "rglob" || first.text_or_unknown().contains("**");
            let whole = Value::joined(&[receiver.clone(), first.clone()], "/");
            let place = if method == "iterdir" { receiver } else { &whole };
            let mut value = reader.read_file(place, span);
            value.taint.walked = true;
            if crate::sensitive_path::credential_at(receiver.text_or_unknown()).is_some() {
                value.taint.add(&reader.read_file(receiver, span).taint);
            }
            value.taint.files |= value::is_users_folder(place.text_or_unknown())
                || receiver.text_or_unknown() == "~";
            let text = value.text.or_else(|| place.text.clone());
            Value { name: Some("pathlib.Path()".into()), text, ..value }
        }
        "write_text" | "write_bytes" => {
            record_overwrite(reader, receiver, span);
            let new = !first.all_taint().read && !first.all_taint().files;
            if new && reader.harmful_calls.walks && reader.loops > 0 && receiver.taint.files {
                let what = "the user's files by writing over them".into();
                reader.actions.push(Action::DestroysData(what), span);
            }
            reader.write_file(receiver, &first, span);
            if let Some(at) = arguments.receiver_at.filter(|_| first.taint.fetched.is_some()) {
                let from = Taint { fetched: first.taint.fetched, ..Taint::default() };
                reader.add_taint_to(at, &from);
            }
            Value::default()
        }
        "unlink" | "rmdir" if first.text.is_none() => {
            record_file_deletion(reader, receiver, span);
            Value::default()
        }
        "write" | "writelines" if receiver.name.as_deref() == Some(FILE_WRITER) => {
            let path = Value { name: None, ..receiver.clone() };
            reader.write_file(&path, &first, span);
            Value::default()
        }
        "append" | "extend" | "update" | "add" | "insert" | "setdefault" | "write"
        | "appendleft" | "put" | "put_nowait" | "writelines" | "writestr" | "writerow"
        | "writerows" | "add_attachment" | "set_content" | "attach" | "set_payload"
        | "add_field" | "addfile" | "add_header" | "add_related" | "add_alternative" | "push"
            if !(method == "put" && first.text_or_unknown().contains("://")) =>
        {
            add_arguments_to_receiver(reader, arguments)
        }
        "connect" | "connect_ex" if name.starts_with("socket.") => {
            reader.connects = true;
            reader.connected_at = span;
            let to = first.items.first().cloned().unwrap_or(first);
            let value = value::record_send(&to, &[], &[], span, &mut reader.actions);
            let socket = Value { name: Some("socket.socket()".into()), text: to.text, ..value };
            if let Some(at) = arguments.receiver_at {
                reader.assign_in_scope(at, socket.clone());
            }
            socket
        }
        "post" | "put" | "patch" | "delete" | "request" | "urlopen" | "get" | "stream"
        | "ws_connect"
            if ["requests.", "httpx.", "aiohttp.", "urllib", "http.client.", "curl_cffi."]
                .iter()
                .any(|module| name.starts_with(module))
                || (method != "get" && arguments.positional.iter().take(2).any(is_url)) =>
        {
            request(reader, method, arguments)
        }
        _ => return None,
    })
}

fn is_url(value: &Value) -> bool {
    value.text_or_unknown().starts_with("http") && value.text_or_unknown().contains("://")
}

/// Adds the arguments of a method call such as `append` to its receiver.
fn add_arguments_to_receiver<'t>(reader: &mut PythonReader<'t>, call: &Call<'_, 't>) -> Value {
    let mut taint = call.taint();
    let archive = call
        .receiver
        .name
        .as_deref()
        .is_some_and(|name| name.starts_with("tarfile.") || name.starts_with("zipfile."));
    if archive && matches!(call.method, Some("add" | "write")) {
        taint.add(&reader.read_file(&call.first(), call.span).taint);
    }
    if reader.picks > 0 {
        value::mark_picked(&mut taint);
    }
    let mut value = call.receiver.clone();
    value.taint.add(&taint);
    // Lists store their items, so that loops over them see each one.
    if let Some("append" | "add" | "appendleft") = call.method
        && value.name.is_none()
        && value.items.len() < 256
        && let Some(item) = call.positional.first()
    {
        value.items.push(Value { taint: Taint::default(), ..item.clone() });
    }
    let Some(at) = call.receiver_at else { return value };
    if value.name.is_none() && at.is_name_expr() {
        reader.assign_in_scope(at, value.clone());
    } else {
        reader.add_taint_to(at, &taint);
    }
    // The file that an archive is written to gets its taint as well.
    for behind in call.receiver.items.iter().filter_map(|item| item.name.as_deref()) {
        if let Some(variable) = behind.strip_prefix("behind ") {
            reader.add_taint(variable, &taint);
        }
    }
    if archive && call.receiver.text.is_some() {
        reader.state.write(&Value { name: None, ..call.receiver.clone() }, &taint);
    }
    value
}

fn rot13(text: &str) -> String {
    let turn = |c: char| match c {
        'a'..='m' | 'A'..='M' => char::from(c as u8 + 13),
        'n'..='z' | 'N'..='Z' => char::from(c as u8 - 13),
        _ => c,
    };
    text.chars().map(turn).collect()
}

impl PythonReader<'_> {
    /// Adds taint to a variable.
    fn add_taint(&mut self, variable: &str, taint: &Taint) {
        let mut scopes = self.scopes.iter_mut().rev();
        if let Some(value) = scopes.find_map(|scope| scope.get_mut(variable)) {
            value.taint.add(taint);
        }
    }
}
