//! What calls of JavaScript's and Node's library do.

use savoir_skill::Span;

use super::{Reader, bare, environment, member};
use crate::scan::{
    act::{Act, Taint},
    decode,
    piece::Language,
    value::{self, Value},
};

/// What `new …` gives.
pub(super) fn construct(reader: &mut Reader, name: &str, arguments: &[Value], span: Span) -> Value {
    let first = arguments.first().cloned().unwrap_or_default();
    match name {
        "Function" => {
            let code = arguments.last().cloned().unwrap_or_default();
            value::execute(&code, Language::JavaScript, span, &mut reader.acts);
            Value::default()
        }
        "WebSocket" | "ws" => {
            value::send(&first, &[], &[], span, &mut reader.acts);
            Value::named("WebSocket()")
        }
        "net.Socket" => Value::named("net.connect()"),
        "URL" => first,
        _ => {
            let mut taint = Taint::default();
            for value in arguments {
                taint.add(&value.all_taint());
            }
            Value { name: Some(format!("{name}()")), taint, ..Value::default() }
        }
    }
}

/// What a call gives, when it is a known one.
pub(super) fn call(
    reader: &mut Reader,
    name: &str,
    method: Option<&str>,
    receiver: &Value,
    arguments: &[Value],
    span: Span,
) -> Option<Value> {
    by_name(reader, name, arguments, span)
        .or_else(|| by_method(reader, method?, name, receiver, arguments, span))
}

fn by_name(reader: &mut Reader, name: &str, arguments: &[Value], span: Span) -> Option<Value> {
    let first = arguments.first().cloned().unwrap_or_default();
    let acts = &mut reader.acts;
    Some(match name {
        "require" | "process.mainModule.require" | "module.require" => {
            if first.known().is_none() && !first.shown().contains('/') && name == "require" {
                acts.push(Act::Obscures("a module is loaded by a name that is put together"), span);
            }
            first.known().map(|module| Value::named(bare(module))).unwrap_or_default()
        }
        "eval"
        | "vm.runInThisContext"
        | "vm.runInNewContext"
        | "vm.runInContext"
        | "Function"
        | "setTimeout"
        | "setInterval" => {
            let timer = name.starts_with("set");
            if !timer || first.text.is_some() {
                value::execute(&first, Language::JavaScript, span, acts);
            }
            Value::default()
        }
        "child_process.exec"
        | "child_process.execSync"
        | "shelljs.exec"
        | "execa.command"
        | "Bun.$" => {
            value::run(&first, span, acts);
            shell_started(reader, &first);
            Value {
                name: Some("child_process()".into()),
                taint: output_of(&first),
                ..Value::default()
            }
        }
        "child_process.spawn"
        | "child_process.spawnSync"
        | "child_process.execFile"
        | "child_process.execFileSync"
        | "execa"
        | "cross-spawn" => {
            let mut items = vec![first.clone()];
            items.extend(arguments.get(1).map(|list| list.items.clone()).unwrap_or_default());
            let command = Value { items, ..Value::default() };
            value::run(&command, span, acts);
            shell_started(reader, &first);
            Value {
                name: Some("child_process()".into()),
                taint: output_of(&command),
                ..Value::default()
            }
        }
        "atob" => first.decoded(decode::base64),
        "Buffer.from" => match arguments.get(1).and_then(Value::known) {
            Some("base64" | "base64url") => first.decoded(decode::base64),
            Some("hex") => first.decoded(decode::hex),
            _ => Value {
                text: first.characters().or(first.text),
                taint: first.taint,
                ..Value::default()
            },
        },
        "unescape" | "decodeURIComponent" => first.decoded(|text| Some(percent(text))),
        "String.fromCharCode" | "String.fromCodePoint" => {
            let list = if arguments.len() == 1 && !first.items.is_empty() {
                first
            } else {
                Value { items: arguments.to_vec(), ..Value::default() }
            };
            Value { text: list.characters(), ..Value::default() }
        }
        "parseInt" | "Number" => match (first.known(), arguments.get(1).and_then(Value::number)) {
            (Some(text), Some(16)) => i64::from_str_radix(text, 16)
                .map(|n| Value::text(n.to_string()))
                .unwrap_or_default(),
            _ => first,
        },
        "os.homedir" => Value::text("~"),
        "path.join" | "path.resolve" => Value::joined(arguments, "/"),
        "JSON.stringify" | "String" | "Object.entries" | "Object.values" | "Object.assign"
        | "encodeURIComponent" | "btoa" | "structuredClone" => {
            let mut taint = Taint::default();
            for value in arguments {
                taint.add(&value.all_taint());
            }
            Value { text: first.text.filter(|_| name == "String"), taint, ..Value::default() }
        }
        "Object.keys" => Value::default(),
        "Reflect.get" => arguments
            .get(1)
            .and_then(Value::known)
            .map(|property| member(&first, property))
            .unwrap_or_default(),
        "fs.readFileSync"
        | "fs.readFile"
        | "fs.createReadStream"
        | "Bun.file"
        | "Deno.readTextFile"
        | "Deno.readTextFileSync"
        | "fs.readdirSync"
        | "fs.readdir"
        | "fs.copyFileSync" => {
            let mut value = value::read(&first, span, acts);
            value.taint.files |= first.shown() == "~";
            value
        }
        "fs.writeFileSync"
        | "fs.writeFile"
        | "fs.appendFileSync"
        | "fs.appendFile"
        | "fs.createWriteStream"
        | "Deno.writeTextFile"
        | "Bun.write" => {
            let text = arguments.get(1).map(|text| text.shown().to_owned()).unwrap_or_default();
            acts.push(Act::Writes { path: first.shown().to_owned(), text }, span);
            Value::default()
        }
        "fs.rmSync" | "fs.rm" | "fs.rmdirSync" => {
            if matches!(first.shown().trim_end_matches('/'), "" | "~" | "/home" | "/etc") {
                acts.push(Act::Deletes(first.shown().to_owned()), span);
            }
            Value::default()
        }
        "Deno.env.get" => first.known().map(environment).unwrap_or_default(),
        "Deno.env.toObject" => Value::tainted(Taint { environment: true, ..Taint::default() }),
        "net.connect" | "net.createConnection" | "tls.connect" => {
            reader.connects = true;
            reader.connected_at = span;
            value::send(&first, &[], &[], span, &mut reader.acts);
            Value::named("net.connect()")
        }
        "dns.lookup" | "dns.resolve" | "dns.resolve4" | "dns.resolveTxt" => {
            value::send(&first, &[], &[], span, acts)
        }
        _ if is_request(name) => request(reader, name, arguments, span),
        _ => return None,
    })
}

fn is_request(name: &str) -> bool {
    matches!(
        name,
        "fetch"
            | "node-fetch"
            | "axios"
            | "got"
            | "undici.request"
            | "undici.fetch"
            | "http.request"
            | "https.request"
            | "http.get"
            | "https.get"
            | "request"
            | "needle"
            | "navigator.sendBeacon"
            | "superagent.post"
    ) || ["axios.", "got.", "needle.", "request.", "superagent.", "ky."]
        .iter()
        .any(|module| name.starts_with(module))
}

fn request(reader: &mut Reader, name: &str, arguments: &[Value], span: Span) -> Value {
    let mut first = arguments.first().cloned().unwrap_or_default();
    // Options may come first: `{ hostname, url }`.
    for key in ["url", "uri", "hostname", "host"] {
        let part = member(&Value { name: None, ..first.clone() }, key);
        if first.text.is_none() && part.text.is_some() {
            first.text = part.text;
        }
    }
    let (mut parts, mut log_in) = (Vec::new(), Vec::new());
    for argument in arguments {
        for item in std::iter::once(argument).chain(&argument.items) {
            match item.name.as_deref() {
                Some("headers:" | "auth:") => log_in.push(item),
                _ if !std::ptr::eq(item, argument) || argument.items.is_empty() => parts.push(item),
                _ => {}
            }
        }
    }
    let mut value = value::send(&first, &parts, &log_in, span, &mut reader.acts);
    value.name = Some(format!("{name}()"));
    value
}

fn by_method(
    reader: &mut Reader,
    method: &str,
    name: &str,
    receiver: &Value,
    arguments: &[Value],
    span: Span,
) -> Option<Value> {
    let first = arguments.first().cloned().unwrap_or_default();
    let acts = &mut reader.acts;
    Some(match method {
        "toString" | "trim" | "text" | "json" | "then" | "catch" | "toLowerCase" | "slice"
        | "concat" | "arrayBuffer" | "flat" | "filter" => {
            match (method, first.known(), receiver.taint.decoded) {
                ("toString", Some("base64"), false) | ("slice", _, _) => {
                    Value { text: None, ..receiver.clone() }
                }
                ("concat", _, _) => {
                    Value::joined(&[receiver.clone(), Value::joined(arguments, "")], "")
                }
                _ => receiver.clone(),
            }
        }
        "split" => {
            let items: Vec<Value> = match (receiver.known(), first.known()) {
                (Some(text), Some("")) => {
                    text.chars().map(|c| Value::text(c.to_string())).collect()
                }
                (Some(text), Some(mark)) => text.split(mark).map(Value::text).collect(),
                _ => Vec::new(),
            };
            Value { items, taint: receiver.taint.clone(), ..Value::default() }
        }
        "reverse" => {
            Value { items: receiver.items.iter().rev().cloned().collect(), ..receiver.clone() }
        }
        "join" => Value::joined(&receiver.items, first.known().unwrap_or(",")),
        "map" if first.name.as_deref() == Some("String.fromCharCode") => {
            let items = receiver
                .items
                .iter()
                .filter_map(|item| char::from_u32(u32::try_from(item.number()?).ok()?));
            Value { items: items.map(|c| Value::text(c.to_string())).collect(), ..Value::default() }
        }
        "replace" | "replaceAll" => {
            match (receiver.known(), first.known(), arguments.get(1).and_then(Value::known)) {
                (Some(text), Some(from), Some(to)) => {
                    Value { text: Some(text.replace(from, to)), ..receiver.clone() }
                }
                _ => receiver.clone(),
            }
        }
        "apply" | "call" | "bind" => return apply(reader, name, method, arguments, span),
        "push" | "append" | "set" | "unshift" => {
            let mut value = receiver.clone();
            for part in arguments {
                value.taint.add(&part.all_taint());
            }
            for scope in &mut reader.scopes {
                for known in
                    scope.values_mut().filter(|known| *known == receiver && known.name.is_none())
                {
                    known.taint.clone_from(&value.taint);
                }
            }
            value
        }
        "write" | "end" | "send" if receiver.name.as_deref().is_some_and(is_connection) => {
            let parts: Vec<&Value> = arguments.iter().collect();
            value::send(
                &Value { text: receiver.taint.fetched.clone(), ..Value::default() },
                &parts,
                &[],
                span,
                acts,
            )
        }
        "connect" if receiver.name.as_deref() == Some("net.connect()") => {
            reader.connects = true;
            reader.connected_at = span;
            Value::named("net.connect()")
        }
        "pipe" => {
            // A shell whose streams are a socket.
            let socket = first.name.as_deref() == Some("net.connect()")
                || receiver.name.as_deref() == Some("net.connect()");
            reader.connects |= socket;
            receiver.clone()
        }
        _ => return None,
    })
}

fn is_connection(name: &str) -> bool {
    let called = |module: &str| name.starts_with(module);
    called("http.request")
        || called("https.request")
        || called("net.connect")
        || called("WebSocket")
        || called("XMLHttpRequest")
        || called("tls.connect")
}

/// `f.apply(this, [a])` and `f.call(this, a)` are `f(a)`.
fn apply(
    reader: &mut Reader,
    name: &str,
    method: &str,
    arguments: &[Value],
    span: Span,
) -> Option<Value> {
    let function = name.strip_suffix(method)?.strip_suffix('.')?.to_owned();
    if method == "bind" {
        return Some(Value::named(function));
    }
    let given = arguments.get(1..).unwrap_or_default();
    let given = if method == "apply" {
        given.first().map(|list| list.items.clone()).unwrap_or_default()
    } else {
        given.to_vec()
    };
    by_name(reader, &function, &given, span)
}

fn shell_started(reader: &mut Reader, program: &Value) {
    let name = program.shown().rsplit('/').next().unwrap_or_default().to_owned();
    reader.pipes_shell |=
        matches!(name.as_str(), "sh" | "bash" | "cmd.exe" | "powershell.exe" | "zsh");
}

fn percent(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits
            .and_then(|digits| u8::from_str_radix(digits, 16).ok())
            .filter(|_| *first == b'%');
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn output_of(command: &Value) -> Taint {
    let words = if command.items.is_empty() {
        command.shown().to_owned()
    } else {
        command.items.iter().map(Value::shown).collect::<Vec<_>>().join(" ")
    };
    let mut taint = Taint {
        credential: words.split_whitespace().find_map(crate::scan::place::credential),
        ..Taint::default()
    };
    taint.environment = matches!(words.trim(), "env" | "printenv");
    if words.trim_start().starts_with("curl ") {
        taint.fetched = crate::scan::host::urls(&words).first().map(|(_, url)| (*url).to_owned());
    }
    taint
}
