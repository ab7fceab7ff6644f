//! Analyzes commands that a program starts: what they execute, send and print.

use savoir_skill::Span;

use super::{CLIPBOARD, CrossFileState, SCREENSHOTS, TOO_LONG, TYPED_PASSWORDS, UNKNOWN, Value};
use crate::{
    action::{Action, Actions, CodeOrigin, Taint},
    fragment::Language,
    host, sensitive_path, shell,
};

/// Commands that print a credential, and the kind of credential.
const CREDENTIAL_COMMANDS: &[(&str, &str)] = &[
    ("git credential fill", "Git credentials"),
    ("git credential-", "Git credentials"),
    ("security dump-keychain", "keychains"),
    ("security find-generic-password", "keychains"),
    ("security find-internet-password", "keychains"),
    ("secret-tool lookup", "keychains"),
    ("secret-tool search", "keychains"),
    ("keyring get", "keychains"),
    ("bw list", "stored passwords"),
    ("bw get", "stored passwords"),
    ("bw export", "stored passwords"),
    ("bw unlock", "stored passwords"),
    ("op item", "stored passwords"),
    ("op read", "stored passwords"),
    ("op document", "stored passwords"),
    ("pass show", "stored passwords"),
    ("lpass show", "stored passwords"),
    ("lpass export", "stored passwords"),
    ("aws configure export-credentials", "AWS credentials"),
    ("aws configure get aws_", "AWS credentials"),
    ("aws sts get-session-token", "AWS credentials"),
    ("kubectl get secret", "Kubernetes credentials"),
    ("kubectl config view --raw", "Kubernetes credentials"),
    ("gpg --export-secret", "GnuPG keys"),
    ("gpg --armor --export-secret", "GnuPG keys"),
    ("history", "the shell's history"),
    ("cmdkey /list", "stored passwords"),
    ("docker-credential-", "Docker credentials"),
    ("docker config inspect", "Docker credentials"),
    ("oc get secret", "Kubernetes credentials"),
    ("gopass show", "stored passwords"),
    ("rbw get", "stored passwords"),
    ("keepassxc-cli export", "stored passwords"),
    ("keepassxc-cli show", "stored passwords"),
    ("wg showconf", "keys of private networks"),
];

/// Commands that print a token, and the environment variable that usually contains it.
const TOKEN_COMMANDS: &[(&str, &str)] = &[
    ("gh auth token", "GITHUB_TOKEN"),
    ("gcloud auth print-", "GOOGLE_TOKEN"),
    ("gcloud auth application-default print-", "GOOGLE_TOKEN"),
    ("az account get-access-token", "AZURE_TOKEN"),
    ("heroku auth:token", "HEROKU_TOKEN"),
    ("glab auth token", "GITLAB_TOKEN"),
    ("npm config get //registry", "NPM_TOKEN"),
    ("fly auth token", "FLY_TOKEN"),
    ("flyctl auth token", "FLY_TOKEN"),
    ("oc whoami -t", "KUBE_TOKEN"),
    ("kubectl create token", "KUBE_TOKEN"),
    ("aws ecr get-login-password", "AWS_TOKEN"),
    // The service that these secrets belong to is unknown.
    ("aws secretsmanager get-secret-value", "a stored secret"),
    ("aws ssm get-parameter", "a stored secret"),
    ("vault kv get", "a stored secret"),
    ("vault read", "a stored secret"),
    ("gcloud secrets versions access", "a stored secret"),
    ("az keyvault secret show", "a stored secret"),
    ("doppler secrets", "a stored secret"),
    ("infisical secrets", "a stored secret"),
];

/// Parts of commands that ask for a password in a dialog window.
const PASSWORD_DIALOG_MARKERS: [&str; 6] = [
    "hidden answer", "hiddenanswer", "zenity --password", "kdialog --password", "ssh-askpass",
    "get-credential",
];

/// Commands that print the clipboard or capture the screen.
const PRIVATE_DATA_COMMANDS: [(&str, &str); 8] = [
    ("pbpaste", CLIPBOARD),
    ("wl-paste", CLIPBOARD),
    ("xsel", CLIPBOARD),
    ("xclip", CLIPBOARD),
    ("powershell get-clipboard", CLIPBOARD),
    ("get-clipboard", CLIPBOARD),
    ("screencapture", SCREENSHOTS),
    ("scrot", SCREENSHOTS),
];

/// Words that can precede the program in a command.
const COMMAND_PREFIXES: [&str; 10] =
    ["sudo", "nohup", "env", "exec", "start", "setsid", "time", "nice", "cmd", "cmd.exe"];

/// Programs that execute the file that is passed to them.
const INTERPRETERS: [&str; 18] = [
    "sh", "bash", "zsh", "dash", "python", "python3", "python.exe", "node", "perl", "ruby", "php",
    "pwsh", "powershell", "powershell.exe", "deno", "bun", "tsx", "source",
];

/// Maximum length of a command whose output is examined. Reaching the limit is recorded.
const MAX_COMMAND_BYTES: usize = 16 * 1024;

/// The words of a command as one text, with [`UNKNOWN`] for unknown words.
fn command_text(command: &Value) -> String {
    if command.items.is_empty() {
        return command.text_or_unknown().to_owned();
    }
    command.items.iter().map(Value::text_or_unknown).collect::<Vec<_>>().join(" ")
}

/// Records that a command is run: by a shell if the value is a text, directly if it is a list.
/// `input` is its standard input.
pub(crate) fn record_command(
    command: &Value,
    input: Option<&Value>,
    state: &CrossFileState,
    span: Span,
    actions: &mut Actions,
) {
    let mut taint = command.all_taint();
    if taint.is_cut {
        actions.cut(TOO_LONG, span);
    }
    let text = command_text(command);
    if text.len() > MAX_COMMAND_BYTES {
        actions.cut("longer commands than are followed", span);
    }
    if command.items.is_empty() {
        if command.text.is_some() {
            let hidden_in = taint.decoded.then_some("an encoded text");
            actions.push_embedded(text.clone(), hidden_in, Some(Language::Shell), span);
        }
    } else {
        let word = |item: &Value| match item.name.as_deref() {
            // The interpreter that runs the analyzed program itself.
            Some("sys.executable") => "python3".to_owned(),
            Some("process.execPath" | "process.argv0") => "node".to_owned(),
            _ => item.text_or_unknown().to_owned(),
        };
        let words: Vec<String> = command.items.iter().map(word).collect();
        let found = shell::read_words(&words, span);
        found.located.into_iter().for_each(|seen| actions.push(seen.action, span));
        found.cuts.into_iter().for_each(|cut| actions.cut(cut.what, span));
        actions.embedded.extend(found.embedded.into_iter().map(|mut inner| {
            inner.span = span;
            inner
        }));
    }
    if let Some(from) = fetched_program(command, state) {
        actions.push(Action::ExecutesCode(CodeOrigin::Fetched(from)), span);
    }
    if taint.decoded {
        actions.push(Action::ExecutesCode(CodeOrigin::Decoded), span);
    }
    let lower = text.to_lowercase();
    if lower.contains("hidden answer") || lower.contains("hiddenanswer") {
        actions.push(Action::AsksForSecret("a password in a window of its own"), span);
    }
    for word in text.split_whitespace() {
        let file = word.trim_start_matches(['@', '-', '=']).rsplit(['=', '@']).next();
        taint.add(&Taint { fetched: None, ..state.contents(file.unwrap_or(word)) });
    }
    if let Some(input) = input {
        let input_taint = input.all_taint();
        if let Some(from) = input_taint.fetched.clone().filter(|_| executes_stdin(&text)) {
            actions.push(Action::ExecutesCode(CodeOrigin::Fetched(from)), span);
        }
        taint.add(&input_taint);
    }
    record_piped_data(&text, &taint, span, actions);
}

/// Whether a command executes its standard input: an interpreter without a file argument.
fn executes_stdin(command: &str) -> bool {
    let mut words = command.split_whitespace().skip_while(|word| COMMAND_PREFIXES.contains(word));
    let program = words.next().unwrap_or_default();
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    INTERPRETERS.contains(&name)
        && words.all(|word| matches!(word, "-" | "-s" | "-x" | "-e" | "-i"))
}

/// Records that a command such as curl sends data, if `taint` is secret.
pub(crate) fn record_piped_data(command: &str, taint: &Taint, span: Span, actions: &mut Actions) {
    const SENDERS: [&str; 9] =
        ["curl", "wget", "nc ", "ncat", "scp ", "rsync ", "ftp ", "dig ", "nslookup "];
    if !taint.is_secret() || !SENDERS.iter().any(|name| command.contains(name)) {
        return;
    }
    let to = host::find_urls(command).first().map(|(_, url)| (*url).to_owned()).unwrap_or_default();
    let sends = Taint { fetched: None, ..taint.clone() };
    // A header usually authenticates; which word contains the secret is unknown here.
    let header = command.contains("-H") || command.contains("--header");
    let only_tokens = !sends.environment && !sends.files && sends.credential.is_none();
    if header && only_tokens {
        let log_in = sends.tokens;
        return actions.push(Action::Connects { to, sends: Taint::default(), log_in }, span);
    }
    actions.push(Action::Connects { to, sends, log_in: Vec::new() }, span);
}

/// Returns the address that the started program was downloaded from, if any.
fn fetched_program(command: &Value, state: &CrossFileState) -> Option<String> {
    if command.items.is_empty() {
        let from = command.taint.fetched.as_ref();
        let parts = command.text_or_unknown().split(['|', ';', '&', '\n']);
        return parts.into_iter().find_map(|part| {
            let words = part.split_whitespace().map(|word| {
                let known = state.contents(word).fetched;
                (
                    word.to_owned(),
                    known.or_else(|| from.filter(|_| word.contains(UNKNOWN)).cloned()),
                )
            });
            executed_download(&words.collect::<Vec<_>>())
        });
    }
    let words = command.items.iter().map(|item| {
        let known = state.contents(item.text_or_unknown()).fetched;
        let unknown = item.known().is_none()
            || sensitive_path::credential_at(item.text_or_unknown()).is_some();
        let own = item.all_taint().fetched.filter(|_| unknown);
        (item.text_or_unknown().to_owned(), known.or(own))
    });
    executed_download(&words.collect::<Vec<_>>())
}

/// Returns the download address of the word that one command executes. Each word is paired with the
/// address that its file was downloaded from.
fn executed_download(words: &[(String, Option<String>)]) -> Option<String> {
    let mut rest = words.iter().skip_while(|(word, _)| {
        COMMAND_PREFIXES.contains(&word.as_str())
            || word.starts_with('-')
            || word.eq_ignore_ascii_case("/c")
    });
    let (program, from) = rest.next()?;
    if from.is_some() {
        return from.clone();
    }
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    if name == "chmod"
        && rest.clone().next().is_some_and(|(mode, _)| mode.contains(['x', '7', '5']))
    {
        return rest.find_map(|(_, from)| from.clone());
    }
    let interprets = INTERPRETERS.contains(&name) || name == UNKNOWN;
    let mut arguments = rest.skip_while(|(word, from)| word.starts_with('-') && from.is_none());
    arguments.next().filter(|_| interprets).and_then(|(_, from)| from.clone())
}

/// Whether a command begins with these words; options between them are skipped.
fn starts_with_words(command: &str, words: &str) -> bool {
    let mut wanted = words.split(' ').peekable();
    let mut option = false;
    for word in command.split_whitespace() {
        let Some(next) = wanted.peek() else { break };
        let same = word == *next
            || word.strip_suffix('s') == Some(next)
            || next.ends_with(['-', '_']) && word.starts_with(next);
        if same {
            wanted.next();
            option = false;
        } else if word.starts_with('-') {
            option = true;
        } else if !std::mem::take(&mut option) {
            return false;
        }
    }
    wanted.peek().is_none()
}

/// Whether a command begins with these words.
fn starts_with_exact_words(command: &str, start: &str) -> bool {
    command.strip_prefix(start).is_some_and(|rest| {
        start.ends_with(['-', '_']) || !rest.starts_with(|c: char| c.is_alphanumeric())
    })
}

/// The taint of the secret that a command prints; empty if it prints none.
pub(crate) fn printed_secret(command: &str) -> Taint {
    let first = command.split_whitespace().next().unwrap_or_default();
    let same = |start: &str| start.starts_with(first) || start.ends_with(['-', '_']);
    let listed = |start: &str| {
        same(start)
            && (starts_with_exact_words(command, start) || starts_with_words(command, start))
    };
    let secret = CREDENTIAL_COMMANDS.iter().find(|(start, _)| listed(start));
    let mut taint = Taint { credential: secret.map(|(_, what)| *what), ..Taint::default() };
    let token = TOKEN_COMMANDS.iter().find(|(start, _)| listed(start));
    taint.tokens.extend(token.map(|(_, name)| (*name).to_owned()));
    let searches =
        ["grep", "rg", "egrep"].iter().any(|name| starts_with_exact_words(command, name));
    if searches && ["AKIA", "ghp_", "PRIVATE KEY", "xoxb"].iter().any(|form| command.contains(form))
    {
        taint.credential = Some("secrets in files");
    }
    if starts_with_exact_words(command, "netsh") && command.contains("key=clear") {
        taint.credential = Some("passwords of networks");
    }
    taint
}

/// The taint of a command's output.
pub(crate) fn output_taint(command: &Value) -> Taint {
    let words = command_text(command);
    let mut taint = Taint::default();
    if words.len() > MAX_COMMAND_BYTES {
        taint.is_cut = true;
        return taint;
    }
    taint.credential = words.split_whitespace().find_map(sensitive_path::credential_at);
    let lower = words.to_lowercase();
    if PASSWORD_DIALOG_MARKERS.iter().any(|dialog| lower.contains(dialog)) {
        taint.credential = Some(TYPED_PASSWORDS);
    }
    for part in words.split(['|', ';', '&', '\n', '(', '`']) {
        let part = part.split_whitespace().collect::<Vec<_>>().join(" ");
        let part = part.strip_prefix("sudo ").unwrap_or(&part);
        let begins = |start: &str| starts_with_exact_words(part, start);
        taint.add(&printed_secret(part));
        let lower = part.to_ascii_lowercase();
        let copied = PRIVATE_DATA_COMMANDS
            .iter()
            .find(|(start, _)| self::starts_with_exact_words(&lower, start));
        taint.private = taint.private.or(copied.map(|(_, what)| *what));
        taint.environment |= matches!(part, "env" | "printenv" | "set" | "export -p");
        if let Some(name) = part.strip_prefix("printenv ")
            && sensitive_path::is_secret_name(name)
        {
            taint.tokens.push(name.to_owned());
        }
        let mut names = part.split_whitespace();
        let prints = names.clone().any(|word| matches!(word, "cat" | "head" | "tail" | "base64"));
        if prints && names.any(super::is_dotenv_path) {
            taint.tokens.push(".env".into());
        }
        if begins("curl") || begins("wget") {
            taint.fetched = host::find_urls(part).first().map(|(_, url)| (*url).to_owned());
        }
    }
    taint
}
