//! Models the values of expressions as far as they are known without running the code.
//!
//! The Python and JavaScript readers compute a [`Value`] for each expression and call the functions
//! below when the code executes, reads, sends or writes one. These functions record the actions.

mod command;
mod cross_file;
mod harmful_combinations;
mod mail;
mod password_forms;
mod payments;
mod secret_searches;

use savoir_skill::Span;

pub(super) use self::{
    command::{output_taint, printed_secret, record_command, record_piped_data},
    cross_file::{CallArguments, CrossFileState, MAX_ARGUMENTS},
    harmful_combinations::HarmfulCalls,
    mail::{record_fixed_recipients, record_mailed_secrets, record_message_recipients},
    password_forms::{asked_secret, has_password_field, password_form_targets, secret_argument},
    payments::{Choice, replaced_by},
    secret_searches::{
        is_dotenv_path, mark_picked, picks_secret_files, read_keychain, record_assembled_tokens,
        record_secret_name_list, searched_secrets,
    },
};

use super::{
    action::{Action, Actions, CodeOrigin, Taint},
    fragment::Language,
    sensitive_path, service,
};

/// Replaces each unknown part of a text.
pub(super) const UNKNOWN: &str = "{}";

/// Description of passwords that a program asks the user for.
pub(super) const TYPED_PASSWORDS: &str = "passwords that the user types";

/// Description of PINs and one-time codes that a program asks the user for.
pub(super) const TYPED_CODES: &str = "codes that the user types";

/// Descriptions of clipboard and screen contents.
pub(super) const CLIPBOARD: &str = "clipboard content";
pub(super) const SCREENSHOTS: &str = "screenshots";
pub(super) const KEYSTROKES: &str = "keystrokes";
pub(super) const COOKIES: &str = "cookies of the browser";
pub(super) const FILE_CONTENT: &str = "parts of files";
pub(super) const PROGRAM_REQUESTS: &str = "network requests of the user's programs";

/// Kinds of credentials that count as a login, not as sent data, when they are passed as a
/// password.
const LOGIN_KINDS: [&str; 3] = [TYPED_PASSWORDS, "stored passwords", "keychains"];

pub(super) const MAX_ITEMS: usize = 4096;

/// What there is too much of if code is made of a value that a limit cut off.
pub(super) const TOO_LONG: &str = "longer texts and lists that become code than are read";

/// What there is too much of if a limit cut off the address or the path that code opens.
const TOO_LONG_ADDRESS: &str = "longer addresses and lists of them than are read";

pub(super) const MAX_TEXT_BYTES: usize = 256 * 1024;

/// The known parts of an expression's value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Value {
    /// The text, with [`UNKNOWN`] in place of each unknown part.
    pub(super) text: Option<String>,
    /// The dotted name of a module, of a function or of the function that returned the value.
    pub(super) name: Option<String>,
    /// The items of a list, or the entries of an object (see [`Value::entry`]).
    pub(super) items: Vec<Self>,
    pub(super) taint: Taint,
}

impl Value {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }

    pub(super) fn named(name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..Self::default() }
    }

    pub(super) fn tainted(taint: Taint) -> Self {
        Self { taint, ..Self::default() }
    }

    /// The text, or [`UNKNOWN`].
    pub(super) fn text_or_unknown(&self) -> &str {
        self.text.as_deref().unwrap_or(UNKNOWN)
    }

    /// The text, if all of it is known.
    pub(super) fn known(&self) -> Option<&str> {
        self.text.as_deref().filter(|text| !text.contains(UNKNOWN))
    }

    pub(super) fn number(&self) -> Option<i64> {
        self.text.as_deref()?.parse().ok()
    }

    /// How many steps it costs to copy the value, so that large values count as many expressions.
    pub(super) fn weight(&self) -> usize {
        const LONG_TEXT_BYTES: usize = 4 * 1024;
        const BYTES_PER_STEP: usize = 128;
        const STEPS_PER_ITEM: usize = 4;
        let length = self.text.as_ref().map_or(0, String::len);
        let own = if length > LONG_TEXT_BYTES { length / BYTES_PER_STEP } else { 0 };
        own + self.items.iter().map(|item| STEPS_PER_ITEM + item.weight()).sum::<usize>()
    }

    /// The taint of the value and of all its items.
    pub(super) fn all_taint(&self) -> Taint {
        let mut taint = self.taint.clone();
        self.items.iter().take(MAX_ITEMS).for_each(|item| taint.add(&item.all_taint()));
        taint.is_cut |= self.items.len() > MAX_ITEMS;
        taint
    }

    /// Makes an entry of an object or a dictionary: a value whose name is the key and a colon.
    pub(super) fn entry(key: &str, value: Self) -> Self {
        Self { name: Some(format!("{key}:")), items: vec![value], ..Self::default() }
    }

    /// The key and the value, if this value was made by [`Value::entry`].
    pub(super) fn as_entry(&self) -> Option<(&str, &Self)> {
        Some((self.name.as_deref()?.strip_suffix(':')?, self.items.first()?))
    }

    /// Returns the value of a key of an object or a dictionary.
    pub(super) fn under(&self, key: &str) -> Option<&Self> {
        let mut entries = self.items.iter().rev().filter_map(Self::as_entry);
        entries.find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// Sets the value of a key of an object or a dictionary.
    pub(super) fn put(&mut self, key: &str, value: Self) {
        let entry = format!("{key}:");
        let full = self.items.len() >= MAX_ITEMS;
        let known = self.items.iter_mut().find(|item| item.name.as_deref() == Some(&entry));
        match known {
            Some(known) => known.items = vec![value],
            None if full => {
                self.taint.add(&value.all_taint());
                self.taint.is_cut = true;
            }
            None => self.items.push(Self::entry(key, value)),
        }
    }

    /// Concatenates the texts of the values with `between` as separator.
    pub(super) fn joined(values: &[Self], between: &str) -> Self {
        let mut taint = Taint::default();
        for value in values {
            taint.add(&value.all_taint());
        }
        let some = values.iter().any(|value| value.text.is_some());
        let texts: Vec<&str> = values.iter().map(Self::text_or_unknown).collect();
        let text = some.then(|| texts.join(between));
        taint.is_cut |= text.as_ref().is_some_and(|text| text.len() > MAX_TEXT_BYTES);
        let text = text.filter(|text| text.len() <= MAX_TEXT_BYTES);
        Self { text, taint, ..Self::default() }
    }

    /// Applies `decode` to the text and marks the result as decoded.
    pub(super) fn decoded(&self, decode: impl Fn(&str) -> Option<String>) -> Self {
        let mut taint = self.taint.clone();
        taint.decoded = true;
        Self { text: self.known().and_then(decode), taint, ..Self::default() }
    }

    /// Adds an item to a list, or merges it with the last one if the list is full.
    pub(super) fn push_item(items: &mut Vec<Self>, value: Self) {
        if items.len() < MAX_ITEMS {
            return items.push(value);
        }
        if let Some(last) = items.last_mut() {
            last.merge(&value);
            last.taint.is_cut = true;
        }
    }

    /// Adds the items of another list. Those that do not fit are merged with the last one.
    pub(super) fn push_items(items: &mut Vec<Self>, mut more: Vec<Self>) {
        let rest = more.split_off(more.len().min(MAX_ITEMS.saturating_sub(items.len())));
        items.append(&mut more);
        if let Some(last) = items.last_mut().filter(|_| !rest.is_empty()) {
            for item in &rest {
                last.merge(item);
                last.taint.add(&item.all_taint());
            }
            last.taint.is_cut = true;
        }
    }

    /// Converts a list of character codes to text.
    pub(super) fn characters(&self) -> Option<String> {
        let numbers = self.items.iter().take(MAX_ITEMS);
        let text: Option<String> =
            numbers.map(|item| char::from_u32(u32::try_from(item.number()?).ok()?)).collect();
        text.filter(|text| !text.is_empty())
    }
}

/// A text that is repeated, unless it becomes too long.
pub(super) fn repeated(text: &str, count: usize) -> String {
    const MAX_REPEATED_BYTES: usize = 4 * 1024;
    if text.len().saturating_mul(count) > MAX_REPEATED_BYTES {
        return UNKNOWN.to_owned();
    }
    text.repeat(count)
}

/// Records that the code in `value` is executed.
pub(super) fn record_execution(
    value: &Value,
    language: Language,
    span: Span,
    actions: &mut Actions,
) {
    let taint = value.all_taint();
    if taint.is_cut {
        actions.cut(TOO_LONG, span);
    }
    if let Some(from) = taint.fetched {
        actions.push(Action::ExecutesCode(CodeOrigin::Fetched(from)), span);
    } else if taint.decoded || taint.data {
        actions.push(Action::ExecutesCode(CodeOrigin::Decoded), span);
    } else if value.known().is_none() {
        actions.push(Action::ExecutesCode(CodeOrigin::Computed), span);
    }
    if let Some(text) = value.known() {
        let hidden_in = taint.decoded.then_some("an encoded text");
        actions.push_embedded(text.to_owned(), hidden_in, Some(language), span);
    }
}

/// Records that a file is read, and returns a value with the taint of its contents.
pub(super) fn read(path: &Value, span: Span, actions: &mut Actions) -> Value {
    let mut taint = path.taint.clone();
    taint.read = true;
    if taint.is_cut {
        actions.cut(TOO_LONG_ADDRESS, span);
    }
    let text = path.text_or_unknown();
    if let Some(what) = sensitive_path::credential_at(text) {
        actions.push(Action::ReadsCredentials(what), span);
        taint.add(&Taint::credential(what));
    } else if text != UNKNOWN {
        actions.push(Action::ReadsFile(text.to_owned()), span);
        taint.data |= is_data(text);
        if is_dotenv_path(text) {
            taint.tokens.push(".env".into());
        }
    }
    Value::tainted(taint)
}

/// Whether a file is data, judging by its extension.
fn is_data(path: &str) -> bool {
    const DATA_FILE_EXTENSIONS: [&str; 14] = [
        ".txt", ".csv", ".tsv", ".png", ".jpg", ".jpeg", ".gif", ".ico", ".dat", ".bin", ".woff",
        ".wav", ".log", ".pdf",
    ];
    let path = path.to_ascii_lowercase();
    DATA_FILE_EXTENSIONS.iter().any(|ending| path.ends_with(ending))
}

/// Records that data is sent to a host, and returns the response. Secrets in `log_in` only
/// authenticate the sender, so they do not count as sent data.
pub(super) fn record_send(
    to: &Value,
    parts: &[&Value],
    log_in: &[&Value],
    span: Span,
    actions: &mut Actions,
) -> Value {
    let mut sends = to.taint.clone();
    for part in parts {
        sends.add(&part.all_taint());
    }
    let mut proofs = Taint::default();
    for part in log_in {
        let mut taint = part.all_taint();
        proofs.add(&taint);
        taint.tokens.clear();
        (taint.private, taint.read) = (None, false);
        taint.credential = taint.credential.filter(|what| !LOGIN_KINDS.contains(what));
        sends.add(&taint);
    }
    sends.fetched = None;
    if to.taint.is_cut {
        actions.cut(TOO_LONG_ADDRESS, span);
    }
    let url = to.text_or_unknown().to_owned();
    actions.push(Action::Connects { to: url.clone(), sends, log_in: proofs.tokens }, span);
    if let Some(what) = sensitive_path::credential_at(&url) {
        actions.push(Action::ReadsCredentials(what), span);
        return Value { taint: Taint::credential(what), ..Value::default() };
    }
    Value::tainted(Taint::fetched(&url))
}

/// Records a DNS lookup, which sends the name to the owner of the domain. A secret in a name never
/// counts as a login.
pub(super) fn record_dns_lookup(name: &Value, span: Span, actions: &mut Actions) -> Value {
    let mut sent = name.all_taint();
    if !sent.tokens.is_empty() && sent.credential.is_none() {
        sent.credential = Some("secrets of the environment");
    }
    let text =
        name.text.as_deref().map(|text| text.rsplit("{}.").next().unwrap_or(text).to_owned());
    // A program that looks up hosts from a file puts nothing before a domain.
    if sent.read && text != name.text {
        sent.private = sent.private.or(Some(FILE_CONTENT));
    }
    record_send(&Value { text, ..Value::default() }, &[&Value::tainted(sent)], &[], span, actions)
}

/// Records an execution of downloaded code if both the path and the content of a written file come
/// from the network and the path can be anywhere.
pub(super) fn record_downloaded_write(
    path: &Value,
    text: &Value,
    span: Span,
    actions: &mut Actions,
) {
    let anywhere = matches!(path.text_or_unknown(), UNKNOWN | "~" | "~/{}" | "/{}");
    if let Some(from) = path.taint.fetched.clone().filter(|_| anywhere)
        && text.all_taint().fetched.is_some()
    {
        actions.push(Action::ExecutesCode(CodeOrigin::Fetched(from)), span);
    }
}

/// Whether the name of a variable says that it lists things to exclude.
pub(super) fn is_exclusion_list(variable: &str) -> bool {
    let lower = variable.to_lowercase();
    ["skip", "ignor", "exclu", "deny", "block", "forbid", "sensitive", "redact"]
        .iter()
        .any(|word| lower.contains(word))
}

/// Whether a path is a home folder or a folder of the user's own files.
pub(super) fn is_users_folder(path: &str) -> bool {
    const OWN: [&str; 8] =
        ["documents", "desktop", "downloads", "pictures", "movies", "videos", "onedrive", "icloud"];
    let path = path.to_lowercase().replace('\\', "/");
    if path.contains(".claude/projects") {
        return true;
    }
    let Some(rest) = ["~", "/users", "/home"].iter().find_map(|home| path.strip_prefix(home))
    else {
        return false;
    };
    let first = rest.trim_start_matches('/').split('/').next().unwrap_or_default();
    first.is_empty() || first.starts_with('*') || OWN.iter().any(|own| first.starts_with(own))
}

/// Whether a path contains so many files of the user or the system that deleting it is destructive.
pub(super) fn is_destructive_path(path: &str) -> bool {
    const OWN: [&str; 14] = [
        "documents", "desktop", "downloads", "pictures", "music", "movies", "videos", "projects",
        "code", "repos", "work", "dev", "src", "library",
    ];
    let path = path.to_lowercase().replace('\\', "/");
    let path = path.trim_end_matches(['/', '*']);
    let folder = path.strip_prefix("~/");
    matches!(path, "" | "~" | "/home" | "/etc" | "/usr" | "/users" | "/var" | "c:")
        || folder.is_some_and(|folder| OWN.contains(&folder) || folder == UNKNOWN)
}

/// How many items of an item are ranked, because that is done for every merge. [`hides_danger`] checks
/// the others.
const MAX_RANKED_ITEMS: usize = 64;

/// Whether an item that is not ranked names credentials or a host.
fn hides_danger(value: &Value) -> bool {
    let rest = value.items.iter().skip(MAX_RANKED_ITEMS);
    let mut inner = rest.map(|item| item.as_entry().map_or(item, |(_, value)| value));
    inner.any(|item| {
        let text = item.text.as_deref().unwrap_or_default();
        text.contains("://") || sensitive_path::credential_at(text).is_some()
    })
}

/// How dangerous a value is: 4 for a credential, 3 for secret or downloaded data, 2 for the address of
/// a host that belongs to no known service, 1 for other known values, 0 for unknown ones.
fn danger_rank(value: &Value) -> usize {
    let own = match &value.text {
        Some(text) if sensitive_path::credential_at(text).is_some() => 4,
        Some(text) if text.len() < 200 && output_taint(&Value::text(text.as_str())).is_secret() => {
            4
        }
        _ if value.taint.is_secret() || value.taint.fetched.is_some() => 3,
        Some(text) if text.contains("://") && !service::is_known_host(text) => 2,
        Some(text) => usize::from(!text.is_empty()),
        None => usize::from(value.name.is_some()),
    };
    let inside = value.items.iter().take(MAX_RANKED_ITEMS).map(danger_rank).max().unwrap_or(0);
    own.max(inside)
}

/// Returns the most dangerous item of a list, with the taint of all items. A loop over the list is
/// analyzed with this one item.
pub(super) fn most_dangerous_item(list: &Value) -> Value {
    let mut worst: Option<(usize, &Value)> = None;
    for item in list.items.iter().take(MAX_ITEMS) {
        let rank = danger_rank(item);
        if worst.is_none_or(|(known, _)| rank > known) {
            worst = Some((rank, item));
        }
    }
    let mut taint = list.all_taint();
    taint.is_cut |= list.items.iter().take(MAX_ITEMS).any(hides_danger);
    match worst.map(|(_, item)| item) {
        // A loop over a dictionary iterates over its keys.
        Some(item) if item.as_entry().is_some() => {
            let text = item.as_entry().map(|(key, _)| key.to_owned());
            Value { text, taint, ..Value::default() }
        }
        Some(item) => Value { taint, ..item.clone() },
        None => Value::tainted(taint),
    }
}

/// The value of an environment variable, tainted if the name suggests a secret.
pub(super) fn environment(name: &str) -> Value {
    let mut value = Value::default();
    if sensitive_path::is_secret_name(name) {
        value.taint.tokens.push(name.to_owned());
    }
    if matches!(name, "HOME" | "USERPROFILE") {
        value.text = Some("~".into());
    }
    value
}

/// Records that a text in the code names a credential file or a search pattern for one.
pub(super) fn record_credential_mention(text: &str, span: Span, actions: &mut Actions) {
    // A long text with blanks is prose.
    if text.contains('\n') || text.len() > 300 && text.contains(' ') {
        return;
    }
    if let Some(what) = sensitive_path::credential_at(text)
        .or_else(|| sensitive_path::secrets_matched_by(text))
        .or_else(|| searched_secrets(text))
        && !actions.located.iter().any(|seen| seen.action == Action::MentionsCredentials(what))
    {
        actions.push(Action::MentionsCredentials(what), span);
    }
}

/// Options of API clients that set the server address.
const ADDRESS_OPTIONS: [&str; 16] = [
    "slackApiUrl", "apiUrl", "apiRoot", "base_url", "baseURL", "baseUrl", "api_base", "apiBase",
    "endpoint_url", "endpoint", "host", "proxy", "basePath", "serverURL", "api_url", "url",
];

/// Records that an API client is created that sends a secret to a custom address.
pub(super) fn record_api_client(
    name: &str,
    options: &[(&str, &Value)],
    span: Span,
    actions: &mut Actions,
) {
    let mut address = None;
    let mut log_in = Taint::default();
    let mut key = false;
    for (option, value) in options {
        let is_address = ADDRESS_OPTIONS.contains(option);
        match value.known() {
            Some(url) if is_address && url.contains("://") => address = Some(url.to_owned()),
            Some(host) if *option == "host" && host.contains('.') => {
                address = Some(format!("https://{host}"));
            }
            _ if is_address => {}
            _ => log_in.add(&value.all_taint()),
        }
        key |= option.to_lowercase().contains("key");
    }
    let Some(to) = address else { return };
    // Without a key option, these clients read the key from the environment.
    let class = name.rsplit('.').next().unwrap_or(name);
    let class = class.strip_prefix("Async").unwrap_or(class).to_ascii_uppercase();
    if !key && service::is_service_name(&class) {
        log_in.tokens.push(format!("{class}_API_KEY"));
    }
    if !log_in.tokens.is_empty() {
        actions.push(Action::Connects { to, sends: Taint::default(), log_in: log_in.tokens }, span);
    }
}

/// Records that an environment variable is set that redirects API clients, such as
/// `OPENAI_BASE_URL`.
pub(super) fn record_api_redirect(variable: &str, url: &Value, span: Span, actions: &mut Actions) {
    let endings = ["_BASE_URL", "_API_BASE", "_ENDPOINT_URL", "_ENDPOINT"];
    let service = endings.iter().find_map(|ending| variable.strip_suffix(ending));
    if let (Some(service), Some(to)) = (service, url.known().filter(|url| url.contains("://"))) {
        let log_in = vec![format!("{service}_API_KEY")];
        actions.push(Action::Connects { to: to.to_owned(), sends: Taint::default(), log_in }, span);
    }
}
