//! Evaluates calls of Node modules and packages and records their actions.

use savoir_skill::Span;

use super::{
    JavaScriptReader,
    calls::{Call, invoke_callback, is_connection},
};
use crate::{
    action::{Action, CodeOrigin, Taint},
    fragment::Language,
    value::{self, TYPED_PASSWORDS, Value, most_dangerous_item},
};

/// Records an API client that is created with a custom address.
pub(super) fn client(
    reader: &mut JavaScriptReader<'_>,
    name: &str,
    arguments: &[Value],
    span: Span,
) {
    let entries = arguments.iter().flat_map(|argument| &argument.items);
    let mut options: Vec<(&str, &Value)> = entries.filter_map(Value::as_entry).collect();
    // `new Client(token, { apiUrl })`
    let alone = arguments.iter().filter(|argument| argument.items.is_empty());
    options.extend(alone.map(|argument| ("key", argument)));
    if !options.is_empty() {
        value::record_api_client(name, &options, span, &mut reader.actions);
    }
}

/// Records fixed recipients of a mail.
pub(super) fn record_mail_recipients(reader: &mut JavaScriptReader<'_>, call: &Call<'_, '_>) {
    let last = call.name.rsplit('.').next().unwrap_or(call.name);
    let method = call.method.unwrap_or(last);
    let named = method.starts_with("send") || method == "create" && call.name.contains("mail");
    for message in call.arguments.iter().filter(|_| named) {
        value::record_message_recipients(message, call.span, &mut reader.actions);
    }
}

/// Records that a module is loaded; a downloaded module is executed code.
pub(super) fn record_module_load(reader: &mut JavaScriptReader<'_>, source: &Value, span: Span) {
    let mut taint = source.all_taint();
    taint.add(&reader.state.contents(source.text_or_unknown()));
    let remote = source.known().filter(|url| url.starts_with("http") && url.contains("://"));
    let remote = remote.map(str::to_owned);
    if let Some(from) = taint.fetched.or(remote) {
        reader.actions.push(Action::ExecutesCode(CodeOrigin::Fetched(from)), span);
    }
    if let Some(text) = source.known().filter(|text| text.starts_with("data:")) {
        let code = text.split_once(',').map_or("", |(_, code)| code);
        let hidden_in = text.contains(";base64").then_some("an encoded text");
        let code = crate::decode::decode_base64(code).filter(|_| hidden_in.is_some());
        let code = code.unwrap_or_else(|| text.to_owned());
        reader.actions.push_embedded(code, hidden_in, Some(Language::JavaScript), span);
    }
}

/// Records that a command is run, and returns the process.
pub(super) fn shell(
    reader: &mut JavaScriptReader<'_>,
    command: &Value,
    input: Option<&Value>,
    span: Span,
) -> Value {
    value::record_command(command, input, &reader.state, span, &mut reader.actions);
    let words: Vec<&str> = if command.items.is_empty() {
        vec![command.text_or_unknown()]
    } else {
        command.items.iter().map(Value::text_or_unknown).collect()
    };
    Value {
        name: Some("child_process()".into()),
        text: Some(words.join(" ")),
        taint: value::output_taint(command),
        ..Value::default()
    }
}

/// Records that one stream is piped into another.
pub(super) fn record_pipe(
    reader: &mut JavaScriptReader<'_>,
    from: &Value,
    to: &Value,
    span: Span,
) -> Value {
    let name = to.name.as_deref().unwrap_or_default();
    if is_connection(name) && !is_connection(from.name.as_deref().unwrap_or_default()) {
        let host = Value { text: to.taint.fetched.clone(), ..Value::default() };
        value::record_send(&host, &[from], &[], span, &mut reader.actions);
    }
    if name == FILE_WRITER {
        reader.state.write(&Value { name: None, ..to.clone() }, &from.all_taint());
    }
    if name.starts_with("child_process()") {
        value::record_piped_data(
            to.text_or_unknown(),
            &from.all_taint(),
            span,
            &mut reader.actions,
        );
    }
    let mut taint = from.all_taint();
    taint.add(&to.taint);
    Value { name: to.name.clone(), text: to.text.clone(), taint, ..Value::default() }
}

/// Name of a file that is open for writing; the text of the value is its path.
const FILE_WRITER: &str = "fs.createWriteStream()";

pub(super) fn by_name(
    reader: &mut JavaScriptReader<'_>,
    name: &str,
    arguments: &[Value],
    span: Span,
) -> Option<Value> {
    let first = arguments.first().cloned().unwrap_or_default();
    let second = arguments.get(1).cloned().unwrap_or_default();
    Some(match name {
        "fs.readFileSync"
        | "fs.readFile"
        | "fs.createReadStream"
        | "Bun.file"
        | "Deno.readTextFile"
        | "Deno.readTextFileSync"
        | "Deno.readFile"
        | "fs.openAsBlob"
        | "fs.readJsonSync"
        | "fs.readJson" => {
            let value = reader.read_file(&first, span);
            invoke_callback(reader, arguments, &value, span);
            value
        }
        "fs.readdirSync" | "fs.readdir" | "fs.opendir" | "Deno.readDir" | "glob" | "glob.glob"
        | "glob.sync" | "glob.globSync" | "fast-glob" | "fast-glob.sync" | "globby"
        | "globby.globby" | "tiny-glob" | "fs.globSync" | "fs.glob" => {
            reader.harmful_calls.walks = true;
            let mut value = reader.read_file(&first, span);
            value.taint.walked = true;
            value.taint.files |= value::is_users_folder(first.text_or_unknown());
            invoke_callback(reader, arguments, &value, span);
            value
        }
        "fs.copyFileSync" | "fs.copyFile" | "fs.cpSync" | "fs.cp" | "fs.renameSync"
        | "fs.rename" | "fs.copySync" | "fs.copy" => {
            let value = reader.read_file(&first, span);
            reader.write_file(&second, &value, span);
            value
        }
        "fs.writeFileSync"
        | "fs.writeFile"
        | "fs.appendFileSync"
        | "fs.appendFile"
        | "Deno.writeTextFile"
        | "Deno.writeTextFileSync"
        | "Deno.writeFile"
        | "Bun.write"
        | "fs.outputFileSync"
        | "fs.outputFile" => {
            // The same text is written to every file of the user.
            if first.taint.files && second.known().is_some() && name.contains("write") {
                let what = "the user's files by writing over them".into();
                reader.actions.push(Action::DestroysData(what), span);
            }
            reader.write_file(&first, &second, span);
            invoke_callback(reader, arguments, &Value::default(), span);
            Value::default()
        }
        "fs.createWriteStream" => {
            reader.write_file(&first, &Value::text(""), span);
            Value { name: Some(FILE_WRITER.into()), text: first.text, ..Value::default() }
        }
        "fs.chmodSync" | "fs.chmod" => {
            let mut taint = first.all_taint();
            taint.add(&reader.state.contents(first.text_or_unknown()));
            let runs = second.known().is_none_or(|mode| {
                let number = mode.parse().ok().or_else(|| i64::from_str_radix(mode, 8).ok());
                number.is_none_or(|mode: i64| mode & 0o111 != 0)
            });
            if let Some(from) = taint.fetched.filter(|_| runs) {
                reader.actions.push(Action::ExecutesCode(CodeOrigin::Fetched(from)), span);
            }
            Value::default()
        }
        "fs.rmSync" | "fs.rm" | "fs.rmdirSync" | "fs.removeSync" | "fs.remove" | "rimraf"
        | "rimraf.sync" | "rimraf.rimraf" | "fs.unlinkSync" | "fs.unlink" | "Deno.remove" => {
            if value::is_destructive_path(first.text_or_unknown()) {
                reader.actions.push(Action::DestroysData(first.text_or_unknown().to_owned()), span);
            } else if first.taint.files && reader.loops > 0 {
                reader.actions.push(Action::DestroysData("~".into()), span);
            }
            if reader.loops > 0 || !reader.frames.is_empty() {
                reader.harmful_calls.deletes.get_or_insert(span);
            }
            Value::default()
        }
        "crypto.createCipheriv" | "crypto.createCipher" => {
            reader.harmful_calls.encrypts = true;
            return None;
        }
        "nodemailer.createTransport" => Value {
            name: Some("nodemailer.createTransport()".into()),
            text: first.under("host").and_then(|host| host.text.clone()),
            ..Value::default()
        },
        "stream.pipeline" | "stream.finished" => {
            let pairs = arguments.windows(2);
            let mut last = first;
            for pair in pairs {
                last = record_pipe(reader, &last, &pair[1], span);
            }
            last
        }
        "inquirer.prompt"
        | "prompts"
        | "enquirer.prompt"
        | "read"
        | "readline-sync.question"
        | "readline-sync.questionNewPassword"
        | "@inquirer/prompts.password"
        | "read.read"
        | "prompt-sync()"
        | "@clack/prompts.password"
            if name.ends_with("assword") || arguments.iter().any(hides_typed_text) =>
        {
            Value::tainted(Taint::credential(TYPED_PASSWORDS))
        }
        "keytar.findCredentials" => {
            reader.actions.push(Action::ReadsCredentials("keychains"), span);
            Value::tainted(Taint::credential("keychains"))
        }
        "http.createServer" | "https.createServer" if reader.is_function(&first) => {
            // Request parameters of a web server come from outside.
            let private = reader.asks_password.then_some(TYPED_PASSWORDS);
            let response_value = Value::tainted(Taint { private, ..Taint::fetched("") });
            reader.invoke(&first, &[response_value], span);
            Value::named("http.createServer()")
        }
        _ => return None,
    })
}

/// Whether a prompt hides the typed text.
fn hides_typed_text(options: &Value) -> bool {
    let kind = options.under("type").and_then(Value::known);
    let on = |key: &str| options.under(key).is_some();
    matches!(kind, Some("password" | "invisible"))
        || on("silent")
        || on("hideEchoBack")
        || options.items.iter().any(|item| item.as_entry().is_none() && hides_typed_text(item))
}

pub(super) fn by_method<'t>(
    reader: &mut JavaScriptReader<'t>,
    method: &str,
    call: &Call<'_, 't>,
) -> Option<Value> {
    let (receiver, arguments, span) = (call.receiver, call.arguments, call.span);
    let first = arguments.first().cloned().unwrap_or_default();
    let host = receiver.name.as_deref().unwrap_or_default();
    let function = first.name.is_some();
    Some(match method {
        "then" if function => reader.invoke(&first, std::slice::from_ref(receiver), span),
        "then" => receiver.clone(),
        "catch" | "finally" => {
            // An error response is a response as well.
            let problem = Value::tainted(Taint {
                fetched: receiver.taint.fetched.clone().filter(|_| method == "catch"),
                ..Taint::default()
            });
            let other = reader.invoke(&first, &[problem], span);
            let mut value = receiver.clone();
            value.merge(&other);
            value
        }
        "map" | "flatMap" if function => {
            let each = &receiver.items;
            let items = if each.is_empty() || each.len() > 256 {
                vec![reader.invoke(&first, &[most_dangerous_item(receiver)], span)]
            } else {
                let items = each.iter();
                items.map(|item| reader.invoke(&first, std::slice::from_ref(item), span)).collect()
            };
            Value { items, ..Value::default() }
        }
        "forEach" | "filter" | "some" | "every" | "find" | "findLast" | "findIndex" if function => {
            let worst = most_dangerous_item(receiver);
            reader.loops += 1;
            reader.invoke(&first, std::slice::from_ref(&worst), span);
            reader.loops -= 1;
            let condition = call.span.slice(reader.source).rsplit_once("=>");
            let picks = matches!(method, "filter" | "find" | "findLast")
                && condition.is_some_and(|(_, test)| value::picks_secret_files(test));
            let mut kept = Value { name: None, ..receiver.clone() };
            let mut one = worst;
            if picks {
                value::mark_picked(&mut kept.taint);
                value::mark_picked(&mut one.taint);
            }
            match method {
                "filter" => kept,
                "find" | "findLast" => one,
                _ => Value::default(),
            }
        }
        "reduce" | "reduceRight" if function => {
            let start = arguments.get(1).cloned().unwrap_or_default();
            let mut value = reader.invoke(&first, &[start, most_dangerous_item(receiver)], span);
            value.taint.add(&receiver.all_taint());
            value
        }
        "on" | "once" | "addEventListener" | "addListener" => {
            let handler = arguments.get(1).cloned().unwrap_or_default();
            let mut passed_value = Value::tainted(receiver.taint.clone());
            // Chat messages come from outside.
            if first.known().is_some_and(|event| event.starts_with("message"))
                && passed_value.taint.fetched.is_none()
            {
                passed_value.taint.fetched = Some(String::new());
            }
            reader.invoke(&handler, &[passed_value.clone(), passed_value], span);
            receiver.clone()
        }
        "write" | "end" if host.starts_with("child_process()") => {
            let mut taint = Taint::default();
            for value in arguments {
                taint.add(&value.all_taint());
            }
            value::record_piped_data(receiver.text_or_unknown(), &taint, span, &mut reader.actions);
            Value::default()
        }
        "write" | "end" if host == FILE_WRITER => {
            reader.write_file(&Value { name: None, ..receiver.clone() }, &first, span);
            Value::default()
        }
        "scan" | "scanSync" if host.ends_with("Glob()") => {
            let pattern = Value { name: None, ..receiver.clone() };
            let whole = Value::joined(&[first, pattern], "/");
            let mut value = reader.read_file(&whole, span);
            value.taint.files |= value::is_users_folder(whole.text_or_unknown());
            value
        }
        "sendMail" | "send" if host.starts_with("nodemailer") => {
            let mut parts: Vec<Value> = arguments.to_vec();
            for path in attached_paths(&first, 0) {
                parts.push(reader.read_file(&path, span));
            }
            let to = Value { text: receiver.text.clone(), ..Value::default() };
            let parts: Vec<&Value> = parts.iter().collect();
            value::record_send(&to, &parts, &[], span, &mut reader.actions)
        }
        "question" | "prompt" if value::asked_secret(first.text_or_unknown()).is_some() => {
            let private = value::asked_secret(first.text_or_unknown());
            let typed = Value::tainted(Taint { private, ..Taint::default() });
            if let Some(handler) = arguments.last().filter(|last| reader.is_function(last)).cloned()
            {
                reader.invoke(&handler, std::slice::from_ref(&typed), span);
            }
            typed
        }
        // A single packet; the address follows the data.
        "send" if host.starts_with("dgram.createSocket") => {
            let to =
                arguments.iter().skip(1).rev().find(|value| value.text_or_unknown().contains('.'));
            value::record_send(
                &to.cloned().unwrap_or_default(),
                &[&first],
                &[],
                span,
                &mut reader.actions,
            )
        }
        "_compile" => {
            value::record_execution(&first, Language::JavaScript, span, &mut reader.actions);
            Value::default()
        }
        "test" | "match" | "exec" if !host.starts_with("child_process") => {
            reader.harmful_calls.matches = true;
            let mut taint = receiver.all_taint();
            for value in arguments {
                taint.add(&value.all_taint());
            }
            Value::tainted(taint)
        }
        _ => return None,
    })
}

/// Maximum nesting of the attachments of a message. The library has them in a list.
const MAX_ATTACHMENT_DEPTH: usize = 4;

/// Returns the paths of the files that are attached to a message.
fn attached_paths(message: &Value, depth: usize) -> Vec<Value> {
    let mut found = Vec::new();
    for item in &message.items {
        match item.as_entry() {
            Some(("path", path)) => found.push(path.clone()),
            Some((_, inner)) if depth < MAX_ATTACHMENT_DEPTH => {
                found.extend(attached_paths(inner, depth + 1));
            }
            None if depth < MAX_ATTACHMENT_DEPTH => found.extend(attached_paths(item, depth + 1)),
            _ => {}
        }
    }
    found
}
