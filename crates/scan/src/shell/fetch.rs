//! Analyzes programs such as curl: which data they send, and where they write the response.

use savoir_skill::Span;

use super::{ShellReader, tokens::Word};
use crate::{
    action::{Action, Taint},
    host, sensitive_path,
};

/// Options whose value, or the file that the value names, is sent.
const BODY_OPTIONS: [&str; 19] = [
    "-d", "-F", "-T", "--data", "--data-binary", "--data-raw", "--data-ascii", "--data-urlencode",
    "--form", "--form-string", "--json", "--upload-file", "--post-data", "--post-file",
    "--body-data", "--body-file", "-Body", "-InFile", "--url-query",
];

/// Options that authenticate the request.
const LOGIN_OPTIONS: [&str; 5] = ["-H", "--header", "-u", "--user", "--oauth2-bearer"];

/// Variables that contain the path of a credential file.
const CREDENTIAL_FILE_VARIABLES: [(&str, &str); 10] = [
    ("KUBECONFIG", "Kubernetes credentials"),
    ("GOOGLE_APPLICATION_CREDENTIALS", "Google Cloud credentials"),
    ("CLOUDSDK_CONFIG", "Google Cloud credentials"),
    ("AWS_SHARED_CREDENTIALS_FILE", "AWS credentials"),
    ("AWS_CONFIG_FILE", "AWS credentials"),
    ("DOCKER_CONFIG", "Docker credentials"),
    ("NPM_CONFIG_USERCONFIG", "npm tokens"),
    ("GNUPGHOME", "GnuPG keys"),
    ("PGPASSFILE", "stored passwords"),
    ("NETRC", "stored passwords"),
];

/// Whether a path is the standard input.
pub(super) fn is_standard_input(path: &str) -> bool {
    matches!(path, "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0")
}

/// Returns the file name in an argument: `x=@file;type=a/b`, `--post-file=file`, `name@file`.
pub(super) fn file_in_argument(text: &str) -> &str {
    let sent = text.split_once('@').is_some_and(|(_, file)| file.contains(';'));
    let text = if sent { text.split(';').next().unwrap_or(text) } else { text };
    let text = text.rsplit_once(['@', '=']).map_or(text, |(_, path)| path);
    text.strip_prefix('<').unwrap_or(text)
}

/// Returns the options of a command with their values, in any notation.
fn options_with_values<'t>(texts: &[&'t str]) -> Vec<(&'t str, &'t str)> {
    let mut found = Vec::new();
    for (index, text) in texts.iter().enumerate().filter(|(_, text)| text.starts_with('-')) {
        let next = texts.get(index + 1).copied().unwrap_or_default();
        if text.starts_with("--") {
            found.push(text.split_once('=').unwrap_or((text, next)));
            continue;
        }
        found.push((*text, next));
        // `-d@-`, `-sT file`, `-H"…"`
        for letter in ["d", "F", "T", "H", "u"] {
            if let Some(at) = text[1..].find(letter).filter(|at| *at < 5) {
                let flags = &text[1..=at];
                if flags.bytes().all(|byte| b"sSfkLvgiN46#".contains(&byte)) {
                    let value = &text[at + 2..];
                    let flag = SHORT_OPTIONS.iter().find(|flag| flag.ends_with(letter));
                    found
                        .push((flag.unwrap_or(&"-d"), if value.is_empty() { next } else { value }));
                    break;
                }
            }
        }
    }
    found
}

const SHORT_OPTIONS: [&str; 5] = ["-d", "-F", "-T", "-H", "-u"];

impl ShellReader {
    /// Records the request of a fetcher and returns the taint of its output.
    pub(super) fn fetch(
        &mut self,
        program: &str,
        texts: &[&str],
        flow: &Taint,
        taint: &Taint,
        span: Span,
    ) -> Taint {
        let plain = |text: &&&str| {
            !text.starts_with('-')
                && host::host_of_url(text).is_some_and(|host| host.rsplit('.').next() != Some("sh"))
        };
        let url =
            texts.iter().find(|text| text.contains("://")).or_else(|| texts.iter().find(plain));
        let url = url
            .or_else(|| texts.iter().find(|text| text.starts_with('$')))
            .copied()
            .unwrap_or_default();
        let options = options_with_values(texts);
        let bodies = || options.iter().filter(|(flag, _)| BODY_OPTIONS.contains(flag));
        // These programs always send their standard input.
        let always = matches!(program, "http" | "https" | "xh" | "xhs");
        let from_input = always
            || texts.iter().any(|text| text.ends_with("@-") || text.contains("@/dev/stdin"))
            || bodies()
                .any(|(flag, value)| *flag == "-T" || is_standard_input(file_in_argument(value)));
        let mut sends = taint.clone();
        sends.fetched = None;
        if from_input {
            sends.add(flow);
        }
        for text in texts {
            if let Some((_, file)) = text.split_once('@')
                && let Some(known) = self.files.get(file)
            {
                sends.add(&known.clone());
            }
        }
        // A token in a header authenticates; it is not sent data.
        let header =
            options.iter().any(|(flag, value)| LOGIN_OPTIONS.contains(flag) && value.contains('$'));
        let body = bodies().next().is_some();
        let log_in = if header { sends.tokens.clone() } else { Vec::new() };
        if header && !body {
            sends.tokens.clear();
        }
        self.actions.push(Action::Connects { to: url.to_owned(), sends, log_in }, span);
        let fetched = Taint::fetched(url);
        if let Some(name) = response_file(program, texts, url) {
            // A program in a folder of programs is started by its name alone.
            if let Some((folder, program)) = name.rsplit_once('/')
                && folder.ends_with("/bin")
            {
                self.files.insert(program.to_owned(), fetched.clone());
            }
            self.files.insert(name, fetched.clone());
        }
        fetched
    }

    pub(super) fn record_file_read(&mut self, path: &str, span: Span) -> Taint {
        let mut taint = self.written_file_taint(path);
        if let Some(what) = sensitive_path::credential_at(path) {
            self.actions.push(Action::ReadsCredentials(what), span);
            taint.add(&Taint::credential(what));
        } else if path.contains('/') && !path.contains("://") && !path.contains(' ') {
            let home =
                ["~/Documents", "~/Desktop", "$HOME/Documents", "$HOME/Desktop", "~/Downloads"];
            taint.files |= home.iter().any(|folder| path.starts_with(folder))
                || matches!(path, "~/" | "$HOME/" | "HOME/" | "/");
            self.actions.push(Action::ReadsFile(path.to_owned()), span);
        }
        if path == ".env" || path.ends_with("/.env") {
            taint.tokens.push(".env".into());
        }
        taint
    }

    /// Returns the taint of the file that a variable names, or of its default value.
    pub(super) fn read_variable_file(&mut self, word: &Word, span: Span) -> Taint {
        let mut taint = Taint::default();
        for path in &word.otherwise {
            taint.add(&self.record_file_read(path, span));
        }
        let named = |variable: &String| {
            let known = CREDENTIAL_FILE_VARIABLES.iter().find(|(name, _)| name == variable)?;
            // Matches `$KUBECONFIG` or a path below it, not any word that contains it.
            file_in_argument(&word.text).strip_prefix('$')?.starts_with(known.0).then_some(known.1)
        };
        taint.credential = taint.credential.or_else(|| word.variables.iter().find_map(named));
        taint
    }
}

/// Returns the file that the response is written to.
fn response_file(program: &str, texts: &[&str], url: &str) -> Option<String> {
    // The last letter of short options, as in `curl -fsSLo FILE` and `wget -qO FILE`.
    let letter = if program == "wget" { 'O' } else { 'o' };
    let output = texts.windows(2).find(|pair| {
        matches!(pair[0], "-o" | "--output" | "-O" | "-OutFile" | "-out" | "--output-document")
            || (pair[0].starts_with('-') && !pair[0].starts_with("--") && pair[0].ends_with(letter))
    });
    let output_option = texts.iter().find_map(|text| {
        ["--output-document=", "--output=", "--out="]
            .iter()
            .find_map(|flag| text.strip_prefix(flag))
    });
    let remote = texts
        .iter()
        .any(|text| text.starts_with('-') && !text.starts_with("--") && text.contains('O'));
    let output = output_option.map(str::to_owned).or_else(|| output.map(|pair| pair[1].to_owned()));
    let name = output.or_else(|| {
        let is_saved = program == "wget" || texts.len() == 1 || remote;
        is_saved.then(|| url.rsplit('/').next().unwrap_or_default().to_owned())
    });
    name.filter(|name| !name.is_empty() && name != "-")
}
