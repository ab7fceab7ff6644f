//! Evaluates calls of the standard library of JavaScript and Node and records their actions.

use oxc_ast::ast::Expression;
use savoir_skill::Span;

use super::{
    JavaScriptReader, dispatch, environment, library, member, normalize_module_name, sources,
};
use crate::{
    action::{Action, Taint},
    decode,
    fragment::Language,
    value::{self, Value},
};

/// A call with the values of its receiver and arguments.
pub(super) struct Call<'c, 't> {
    /// The dotted name of the called function.
    pub(super) name: &'c str,
    pub(super) method: Option<&'c str>,
    pub(super) receiver: &'c Value,
    /// The expression of the receiver, for methods that change it.
    pub(super) receiver_at: Option<&'t Expression<'t>>,
    pub(super) arguments: &'c [Value],
    pub(super) span: Span,
}

/// Returns the result of `new …`.
pub(super) fn construct(
    reader: &mut JavaScriptReader<'_>,
    name: &str,
    arguments: &[Value],
    span: Span,
) -> Value {
    let first = arguments.first().cloned().unwrap_or_default();
    match name {
        "Function" | "vm.Script" => {
            let code = if name == "Function" { arguments.last() } else { arguments.first() };
            let code = code.cloned().unwrap_or_default();
            value::record_execution(&code, Language::JavaScript, span, &mut reader.actions);
            constructed_function(name, arguments)
        }
        "WebSocket"
        | "ws"
        | "ws.WebSocket"
        | "isomorphic-ws"
        | "undici.WebSocket"
        | "EventSource"
        | "eventsource"
        | "eventsource.EventSource"
        | "reconnecting-websocket" => {
            let log_in: Vec<&Value> = arguments.iter().skip(1).collect();
            let value = value::record_send(&first, &[], &log_in, span, &mut reader.actions);
            Value { name: Some("WebSocket()".into()), ..value }
        }
        "net.Socket" => Value::named("net.connect()"),
        "URL" | "url.URL" => {
            let taint = Value { items: arguments.to_vec(), ..Value::default() }.all_taint();
            // `new URL(path, base)`: the path follows the base address.
            let base = arguments.get(1).filter(|base| base.text_or_unknown().contains("://"));
            let text = match (base, first.text) {
                (Some(base), Some(path)) if !path.contains("://") => {
                    let (base, path) = (base.text_or_unknown(), path.trim_start_matches('/'));
                    Some(format!("{}/{path}", base.trim_end_matches('/')))
                }
                (Some(base), None) => Some(base.text_or_unknown().to_owned()),
                (_, text) => text,
            };
            Value { text, taint, ..Value::default() }
        }
        "Promise" => {
            reader.state.call_arguments.remove("resolve");
            reader.invoke(&first, &[Value::named("resolve")], span);
            let passed_values = reader.state.call_arguments.remove("resolve");
            passed_values
                .and_then(|passed_values| passed_values.positional.into_iter().next())
                .unwrap_or_default()
        }
        "Worker" | "worker_threads.Worker" => {
            library::record_module_load(reader, &first, span);
            Value::default()
        }
        _ => {
            library::client(reader, name, arguments, span);
            let mut taint = Taint::default();
            for value in arguments {
                taint.add(&value.all_taint());
            }
            reader.call_skill_function(super::name_within_file(name), arguments);
            let text = first.text.filter(|_| name.ends_with("Glob"));
            Value { name: Some(format!("{name}()")), text, taint, ..Value::default() }
        }
    }
}

/// Returns the result of a call, if the function is known.
pub(super) fn call<'t>(reader: &mut JavaScriptReader<'t>, call: &Call<'_, 't>) -> Option<Value> {
    sources::by_method(reader, call.method.unwrap_or_default(), call)
        .or_else(|| by_name(reader, call.name, call.receiver, call.arguments, call.span))
        .or_else(|| library::by_method(reader, call.method?, call))
        .or_else(|| by_method(reader, call.method?, call))
}

pub(super) fn by_name(
    reader: &mut JavaScriptReader<'_>,
    name: &str,
    receiver: &Value,
    arguments: &[Value],
    span: Span,
) -> Option<Value> {
    // `fs.promises.readFile` is `fs.readFile`.
    let short = name.replacen(".promises.", ".", 1);
    let name = short.as_str();
    let known = sources::by_name(reader, name, arguments, span);
    if let Some(value) = known.or_else(|| library::by_name(reader, name, arguments, span)) {
        return Some(value);
    }
    let first = arguments.first().cloned().unwrap_or_default();
    let actions = &mut reader.actions;
    Some(match name {
        "require" | "process.mainModule.require" | "module.require" => {
            if first.known().is_none()
                && !first.text_or_unknown().contains('/')
                && name == "require"
            {
                actions.push(
                    Action::Obfuscates("a module is loaded by a name that is put together"),
                    span,
                );
            }
            if let Some(module) = first.known() {
                reader.record_assembled_name(module, span);
            }
            library::record_module_load(reader, &first, span);
            first
                .known()
                .map(|module| Value::named(normalize_module_name(module)))
                .unwrap_or_default()
        }
        "eval"
        | "vm.runInThisContext"
        | "vm.runInNewContext"
        | "vm.runInContext"
        | "vm.compileFunction"
        | "Function" => {
            let code = if name == "Function" { arguments.last() } else { arguments.first() };
            let code = code.cloned().unwrap_or_default();
            value::record_execution(&code, Language::JavaScript, span, actions);
            constructed_function(name, arguments)
        }
        "setTimeout" | "setInterval" | "setImmediate" | "process.nextTick" | "queueMicrotask" => {
            let fetched = first.taint.fetched.is_some()
                && first.name.as_deref().is_none_or(|name| name.contains("()."));
            if first.text.is_some() || fetched {
                value::record_execution(&first, Language::JavaScript, span, actions);
            }
            let behind = usize::from(matches!(name, "setTimeout" | "setInterval")) + 1;
            reader.loops += usize::from(name == "setInterval");
            reader.invoke(&first, arguments.get(behind..).unwrap_or_default(), span);
            reader.loops -= usize::from(name == "setInterval");
            Value::default()
        }
        "child_process.exec"
        | "child_process.execSync"
        | "shelljs.exec"
        | "execa.command"
        | "execa.execaCommand"
        | "Bun.$" => {
            let input = arguments.get(1).and_then(|options| options.under("input")).cloned();
            record_shell_start(reader, &first);
            let value = library::shell(reader, &first, input.as_ref(), span);
            invoke_callback(reader, arguments, &value, span);
            value
        }
        "child_process.spawn"
        | "child_process.spawnSync"
        | "child_process.execFile"
        | "child_process.execFileSync"
        | "child_process.fork"
        | "execa"
        | "execa.execa"
        | "cross-spawn"
        | "Bun.spawn"
        | "Bun.spawnSync" => {
            let mut items =
                if first.items.is_empty() { vec![first.clone()] } else { first.items.clone() };
            let rest = arguments.get(1).map(|list| list.items.clone()).unwrap_or_default();
            items.extend(rest.into_iter().filter(|item| item.as_entry().is_none()));
            if name == "child_process.fork" {
                items.insert(0, Value::text("node"));
            }
            let command = Value { items, ..Value::default() };
            let mut options = arguments.iter().skip(1);
            let input = options.find_map(|options| options.under("input")).cloned();
            record_shell_start(reader, &first);
            let value = library::shell(reader, &command, input.as_ref(), span);
            invoke_callback(reader, arguments, &value, span);
            value
        }
        "atob" => first.decoded(decode::decode_base64),
        "Buffer.from" => match arguments.get(1).and_then(Value::known) {
            Some("base64" | "base64url") => first.decoded(decode::decode_base64),
            Some("hex") => first.decoded(decode::decode_hex),
            _ => Value {
                taint: first.all_taint(),
                text: first.characters().or(first.text),
                ..Value::default()
            },
        },
        "unescape" | "decodeURIComponent" => first.decoded(|text| Some(decode_percent(text))),
        "String.fromCharCode" | "String.fromCodePoint" => {
            let list = if arguments.len() == 1 && !first.items.is_empty() {
                first
            } else {
                Value { items: arguments.to_vec(), ..Value::default() }
            };
            let text = list.characters();
            let taint = Taint { decoded: text.is_none(), ..list.all_taint() };
            Value { text, taint, ..Value::default() }
        }
        "parseInt" | "Number" => match (first.known(), arguments.get(1).and_then(Value::number)) {
            (Some(text), Some(16)) => i64::from_str_radix(text, 16)
                .map(|n| Value::text(n.to_string()))
                .unwrap_or_default(),
            _ => first,
        },
        "os.homedir" => Value::text("~"),
        "path.join" | "path.resolve" => {
            let value = Value::joined(arguments, "/");
            value::record_credential_mention(value.text_or_unknown(), span, actions);
            value
        }
        "path.dirname" => {
            let text = first.text.as_deref().and_then(|text| text.rsplit_once('/'));
            Value { text: text.map(|(parent, _)| parent.to_owned()), ..first.clone() }
        }
        "url.pathToFileURL" | "url.fileURLToPath" | "Promise.all" | "Promise.allSettled"
        | "Promise.race" | "Promise.any" | "Promise.resolve" | "util.promisify" | "Array.from" => {
            first
        }
        "Object.entries" if !first.items.is_empty() => {
            let pair = |item: &Value| match item.as_entry() {
                Some((key, value)) => vec![Value::text(key), value.clone()],
                None => vec![Value::default(), item.clone()],
            };
            let items =
                first.items.iter().map(|item| Value { items: pair(item), ..Value::default() });
            Value { items: items.collect(), taint: first.taint.clone(), ..Value::default() }
        }
        "Object.values" if !first.items.is_empty() => {
            let value = |item: &Value| item.as_entry().map_or(item, |(_, value)| value).clone();
            let items = first.items.iter().map(value).collect();
            Value { items, taint: first.taint.clone(), ..Value::default() }
        }
        "JSON.stringify" | "String" | "Object.entries" | "Object.values" | "Object.assign"
        | "Object.fromEntries" | "encodeURIComponent" | "btoa" | "structuredClone"
        | "JSON.parse" => {
            let mut taint = Taint::default();
            for value in arguments {
                taint.add(&value.all_taint());
            }
            Value { text: first.text.filter(|_| name == "String"), taint, ..Value::default() }
        }
        "Object.keys" => {
            let environment = first.taint.environment;
            Value::tainted(Taint { environment, ..Taint::default() })
        }
        "Object.getPrototypeOf" => Value::named("Function.prototype"),
        "Reflect.construct" => {
            let made = first.name.unwrap_or_default();
            let list = arguments.get(1).map(|list| list.items.clone()).unwrap_or_default();
            construct(reader, &made, &list, span)
        }
        "Reflect.apply" => {
            let list = arguments.get(2).map(|list| list.items.clone()).unwrap_or_default();
            reader.invoke(&first, &list, span)
        }
        "Reflect.get" => arguments
            .get(1)
            .and_then(Value::known)
            .map(|property| member(&first, property))
            .unwrap_or_default(),
        "Deno.env.get" => first.known().map(environment).unwrap_or_default(),
        "Deno.env.toObject" => Value::tainted(Taint { environment: true, ..Taint::default() }),
        "net.connect" | "net.createConnection" | "tls.connect" => {
            reader.connects = true;
            reader.connected_at = span;
            let host = first.under("host").or_else(|| arguments.get(1)).cloned();
            let to = host.filter(|host| host.text.is_some()).unwrap_or(first);
            let value = value::record_send(&to, &[], &[], span, &mut reader.actions);
            let socket = Value { name: Some("net.connect()".into()), ..value };
            invoke_callback(reader, arguments, &Value::default(), span);
            socket
        }
        "dns.lookup" | "dns.resolve" | "dns.resolve4" | "dns.resolve6" | "dns.resolveTxt"
        | "dns.resolveAny" | "dns.resolveCname" => {
            let value = value::record_dns_lookup(&first, span, actions);
            invoke_callback(reader, arguments, &value, span);
            value
        }
        // Objects made by `new Resolver()` have the same methods.
        _ if ["resolveTxt", "resolve4", "resolve6", "resolveAny", "resolveCname"]
            .iter()
            .any(|method| name.rsplit('.').next() == Some(method)) =>
        {
            value::record_dns_lookup(&first, span, actions)
        }
        _ if is_request(name) => request(reader, name, receiver, arguments, span),
        _ => return None,
    })
}

/// Calls the callback at the end of the arguments with an error and the result.
pub(super) fn invoke_callback(
    reader: &mut JavaScriptReader<'_>,
    arguments: &[Value],
    value: &Value,
    span: Span,
) {
    let Some(last) = arguments.last().filter(|last| reader.is_function(last)).cloned() else {
        return;
    };
    let passed_values = Value { name: None, text: None, ..value.clone() };
    reader.invoke(&last, &[Value::default(), passed_values.clone(), passed_values], span);
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

fn request(
    reader: &mut JavaScriptReader<'_>,
    name: &str,
    receiver: &Value,
    arguments: &[Value],
    span: Span,
) -> Value {
    let mut first = arguments.first().cloned().unwrap_or_default();
    if matches!(name, "axios.create" | "got.extend" | "ky.create" | "ky.extend") {
        library::client(reader, name, arguments, span);
        let base = ["baseURL", "prefixUrl"].iter().find_map(|key| first.under(key)).cloned();
        let name = name.split('.').next().map(str::to_owned);
        let text = base.and_then(|base| base.text);
        return Value { name, text, taint: first.all_taint(), ..Value::default() };
    }
    // Options may come first: `{ hostname, url }`.
    for key in ["url", "uri", "hostname", "host"] {
        let part = member(&Value { name: None, ..first.clone() }, key);
        if first.text.is_none() && part.text.is_some() {
            first.text = part.text;
        }
    }
    if let Some(base) =
        receiver.text.as_deref().filter(|_| !first.text_or_unknown().contains("://"))
    {
        first.text = Some(format!("{base}{}", first.text.as_deref().unwrap_or_default()));
    }
    let (mut parts, mut log_in) = (Vec::new(), Vec::new());
    for argument in arguments {
        for item in std::iter::once(argument).chain(&argument.items) {
            match item.name.as_deref() {
                Some("headers:" | "auth:" | "cookies:") => log_in.push(item),
                _ if !std::ptr::eq(item, argument) || argument.items.is_empty() => parts.push(item),
                _ => {}
            }
        }
    }
    let session = Value::tainted(Taint { fetched: None, ..receiver.taint.clone() });
    log_in.push(&session);
    // The values of the options are among the parts; the address only has its own taint.
    let to = Value { items: Vec::new(), ..first };
    let mut value = value::record_send(&to, &parts, &log_in, span, &mut reader.actions);
    value.name = Some(format!("{name}()"));
    if let Some(last) = arguments.last().filter(|last| reader.is_function(last)).cloned() {
        reader.invoke(&last, std::slice::from_ref(&value), span);
    }
    value
}

fn by_method<'t>(
    reader: &mut JavaScriptReader<'t>,
    method: &str,
    call: &Call<'_, 't>,
) -> Option<Value> {
    let (name, receiver, arguments, span) = (call.name, call.receiver, call.arguments, call.span);
    let first = arguments.first().cloned().unwrap_or_default();
    let actions = &mut reader.actions;
    Some(match method {
        "toString" | "trim" | "text" | "json" | "toLowerCase" | "slice" | "concat"
        | "arrayBuffer" | "flat" | "sort" | "bytes" | "blob" => {
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
        "repeat" => {
            let count = first.number().and_then(|count| usize::try_from(count).ok());
            let text =
                receiver.known().zip(count).map(|(text, count)| value::repeated(text, count));
            Value { text, ..Value::tainted(receiver.all_taint()) }
        }
        "reverse" => {
            Value { items: receiver.items.iter().rev().cloned().collect(), ..receiver.clone() }
        }
        "join" => {
            let mut value = Value::joined(&receiver.items, first.known().unwrap_or(","));
            value.taint.add(&receiver.taint);
            value
        }
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
        "apply" | "call" | "bind" => return evaluate_apply(reader, name, method, arguments, span),
        "push" | "append" | "set" | "unshift" | "add" | "setHeader" => {
            add_arguments_to_receiver(reader, call)
        }
        "write" | "end" | "send" if receiver.name.as_deref().is_some_and(is_connection) => {
            let parts: Vec<&Value> = arguments.iter().collect();
            value::record_send(
                &Value { text: receiver.taint.fetched.clone(), ..Value::default() },
                &parts,
                &[],
                span,
                actions,
            )
        }
        "connect" if receiver.name.as_deref() == Some("net.connect()") => {
            reader.connects = true;
            reader.connected_at = span;
            let host =
                first.under("host").or_else(|| arguments.get(1)).cloned().unwrap_or_default();
            let taint = Taint::fetched(host.text_or_unknown());
            if let Some(at) = call.receiver_at {
                reader.add_taint_to(at, &taint);
            }
            invoke_callback(reader, arguments, &Value::default(), span);
            Value { taint, ..Value::named("net.connect()") }
        }
        "pipe" | "pipeTo" | "pipeThrough" => {
            // A shell whose streams are a socket is a reverse shell.
            let socket = first.name.as_deref() == Some("net.connect()")
                || receiver.name.as_deref() == Some("net.connect()");
            reader.connects |= socket;
            library::record_pipe(reader, receiver, &first, span)
        }
        _ => return None,
    })
}

/// Makes the value of `Function(…)`, which can be called later.
fn constructed_function(name: &str, arguments: &[Value]) -> Value {
    if name != "Function" {
        return Value::default();
    }
    Value { items: arguments.to_vec(), ..Value::named(dispatch::CONSTRUCTED_FUNCTION) }
}

/// Adds the arguments of a method call such as `push` to its receiver.
fn add_arguments_to_receiver<'t>(reader: &mut JavaScriptReader<'t>, call: &Call<'_, 't>) -> Value {
    let mut taint = Taint::default();
    call.arguments.iter().for_each(|part| taint.add(&part.all_taint()));
    if reader.picks > 0 {
        value::mark_picked(&mut taint);
    }
    let mut value = call.receiver.clone();
    value.taint.add(&taint);
    match call.receiver_at {
        // Lists store their items, so that loops over them see each one.
        Some(Expression::Identifier(id))
            if matches!(call.method, Some("push" | "unshift"))
                && value.name.is_none()
                && value.items.len() < 256 =>
        {
            value.items.extend(call.arguments.iter().cloned());
            reader.assign_variable(id.name.as_str(), value.clone());
        }
        Some(at) => reader.add_taint_to(at, &taint),
        None => {}
    }
    value
}

pub(super) fn is_connection(name: &str) -> bool {
    let called = |module: &str| name.starts_with(module);
    called("http.request")
        || called("https.request")
        || called("net.connect")
        || called("WebSocket")
        || called("XMLHttpRequest")
        || called("tls.connect")
}

/// Evaluates `f.apply(this, [a])` and `f.call(this, a)` as `f(a)`.
fn evaluate_apply(
    reader: &mut JavaScriptReader<'_>,
    name: &str,
    method: &str,
    arguments: &[Value],
    span: Span,
) -> Option<Value> {
    let function = name.strip_suffix(method)?.strip_suffix('.')?.to_owned();
    if method == "bind" {
        return Some(Value::named(function));
    }
    let passed_values = arguments.get(1..).unwrap_or_default();
    let passed_values = if method == "apply" {
        passed_values.first().map(|list| list.items.clone()).unwrap_or_default()
    } else {
        passed_values.to_vec()
    };
    Some(reader.invoke(&Value::named(function), &passed_values, span))
}

fn record_shell_start(reader: &mut JavaScriptReader<'_>, program: &Value) {
    let name = program.text_or_unknown().rsplit('/').next().unwrap_or_default().to_owned();
    reader.pipes_shell |= matches!(
        name.trim_end_matches(".exe"),
        "sh" | "bash" | "zsh" | "dash" | "cmd" | "powershell" | "pwsh"
    );
}

fn decode_percent(text: &str) -> String {
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
