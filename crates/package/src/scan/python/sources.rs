//! Where Python gets what belongs to the user: the clipboard, keys, the screen, cookies, mail; and
//! what others write to it.

use super::{Reader, calls::Call, path_of};
use crate::scan::{
    act::{Act, Taint},
    value::{self, CLIPBOARD, COOKIES, KEYS, REQUESTS, SCREEN, Value},
};
use ruff_python_ast::Expr;

/// Packages whose handlers get what somebody else has written.
const CHATS: [&str; 14] = [
    "discord",
    "nextcord",
    "disnake",
    "telebot",
    "telegram",
    "aiogram",
    "pyrogram",
    "telethon",
    "slack_bolt",
    "socketio",
    "paho",
    "nats",
    "irc",
    "websocket",
];

/// Modules whose functions are never those of a skill, even where it has one of the same name.
const LIBRARY: [&str; 27] = [
    "subprocess",
    "os",
    "sys",
    "requests",
    "httpx",
    "urllib",
    "urllib3",
    "aiohttp",
    "http",
    "socket",
    "json",
    "base64",
    "shutil",
    "asyncio",
    "smtplib",
    "ftplib",
    "paramiko",
    "keyring",
    "pyperclip",
    "pathlib",
    "re",
    "time",
    "glob",
    "zlib",
    "websockets",
    "codecs",
    "pickle",
];

fn root(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

/// Whether a dotted name is a module of the library, or in one.
pub(super) fn is_library(name: &str) -> bool {
    LIBRARY.contains(&root(name))
}

/// Whether something comes from a package through which others write.
pub(super) fn is_chat(name: &str) -> bool {
    CHATS.contains(&root(name))
}

pub(super) fn by_name<'t>(
    reader: &mut Reader<'t>,
    name: &str,
    call: &Call<'_, 't>,
) -> Option<Value> {
    let first = call.first();
    Some(match name {
        "pyperclip.paste"
        | "clipboard.paste"
        | "xerox.paste"
        | "pyperclip.waitForNewPaste"
        | "pyperclip.waitForPaste"
        | "PIL.ImageGrab.grabclipboard"
        | "pandas.read_clipboard"
        | "win32clipboard.GetClipboardData" => {
            reader.harm.pastes |= reader.loops > 0;
            Value::tainted(Taint::private(CLIPBOARD))
        }
        "PIL.ImageGrab.grab"
        | "ImageGrab.grab"
        | "pyautogui.screenshot"
        | "pyscreenshot.grab"
        | "mss.mss().grab"
        | "mss.mss().shot"
        | "mss.mss().save"
        | "mss.MSS().grab" => {
            let taint = Taint::private(SCREEN);
            let file = call.keyword("output").or_else(|| call.keyword("imageFilename"));
            reader.memory.write(file.unwrap_or(&first), &taint);
            Value { name: Some("image()".into()), ..Value::tainted(taint) }
        }
        "keyboard.record"
        | "keyboard.read_event"
        | "keyboard.read_key"
        | "keyboard.get_typed_strings" => Value::tainted(Taint::private(KEYS)),
        "pynput.keyboard.Listener"
        | "pynput.keyboard.Events"
        | "keyboard.on_press"
        | "keyboard.on_release"
        | "keyboard.hook"
        | "pyxhook.HookManager" => {
            let pressed = Value::tainted(Taint::private(KEYS));
            let handlers = call.keywords.iter().map(|(_, value)| value);
            for handler in call.positional.iter().chain(handlers) {
                reader.invoke(handler, std::slice::from_ref(&pressed), call.span);
            }
            Value { name: Some(format!("{name}()")), ..pressed }
        }
        "keyring.get_password" | "keyring.get_credential" => {
            value::keychain(&first, call.span, &mut reader.acts)
        }
        _ if name.starts_with("browser_cookie3.") || name.starts_with("rookiepy.") => {
            reader.acts.push(Act::Secret("browser cookies"), call.span);
            Value::tainted(Taint::credential("browser cookies"))
        }
        _ if is_chat(name) && name.ends_with("Handler") => {
            // `MessageHandler(filters.TEXT, run)`: the function gets what somebody wrote.
            handle(reader, call);
            Value::named(format!("{name}()"))
        }
        _ => return None,
    })
}

pub(super) fn by_method<'t>(
    reader: &mut Reader<'t>,
    method: &str,
    call: &Call<'_, 't>,
) -> Option<Value> {
    let host = call.receiver.name.as_deref().unwrap_or_default();
    Some(match method {
        "clipboard_get" => Value::tainted(Taint::private(CLIPBOARD)),
        "get_cookies" | "storage_state" | "cookies" if !is_library(host) => {
            let mut taint = call.receiver.all_taint();
            taint.add(&Taint::private(COOKIES));
            reader.memory.write(call.keyword("path").unwrap_or(&Value::default()), &taint);
            Value::tainted(taint)
        }
        "send" | "execute_cdp_cmd"
            if call.first().known().is_some_and(|text| {
                matches!(
                    text,
                    "Network.getAllCookies" | "Network.getCookies" | "Storage.getCookies"
                )
            }) =>
        {
            Value::tainted(Taint::private(COOKIES))
        }
        "save" if host == "image()" => {
            let taint = call.receiver.all_taint();
            reader.memory.write(&call.first(), &taint);
            if let Some(at) = call.expressions.first() {
                reader.put_into(at, &taint);
            }
            Value::default()
        }
        "append" if call.receiver_at.is_some_and(is_hooks) => {
            let seen = Value::tainted(Taint::private(REQUESTS));
            reader.invoke(&call.first(), &[seen], call.span)
        }
        "fetch" | "uid" | "retr" if host.starts_with("imaplib.") || host.starts_with("poplib.") => {
            Value::tainted(Taint::fetched(call.receiver.text.as_deref().unwrap_or_default()))
        }
        "message_callback_add" | "add_message_handler" | "register_message_handler" => {
            handle(reader, call);
            Value::default()
        }
        _ => return None,
    })
}

/// Whether it is where a session keeps what shall be called with every answer.
fn is_hooks(place: &Expr) -> bool {
    let place = if let Expr::Subscript(found) = place { &found.value } else { place };
    path_of(place).is_some_and(|path| path.ends_with(".hooks"))
}

/// The functions that are handed over get what somebody else has written.
fn handle<'t>(reader: &mut Reader<'t>, call: &Call<'_, 't>) {
    let written = Value::tainted(Taint::fetched(""));
    let given = [written.clone(), written.clone(), written];
    for handler in call.positional {
        if reader.is_own(handler) {
            reader.invoke(handler, &given, call.span);
        }
    }
}
