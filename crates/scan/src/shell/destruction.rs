//! Commands that destroy files, history or backups.

use savoir_skill::Span;

use super::{
    ShellReader,
    programs::looks_for_keys,
    tokens::{Command, Pipeline, Word},
};
use crate::{
    action::{Action, Taint},
    sensitive_path, service,
};

/// File extensions of personal documents.
const DOCUMENT_EXTENSIONS: [&str; 22] = [
    "doc", "xls", "ppt", "pdf", "jpg", "jpeg", "png", "heic", "mp4", "mov", "mp3", "odt", "ods",
    "txt", "csv", "md", "zip", "psd", "sql", "kdbx", "raw", "key",
];

/// Devices that files are overwritten from.
const NOISE_DEVICES: [&str; 3] = ["/dev/urandom", "/dev/zero", "/dev/random"];

/// Shared branches, whose deletion by a push is recorded.
const MAIN_BRANCHES: [&str; 6] =
    ["main", "master", "production", "release", "refs/heads/main", "refs/heads/master"];

impl ShellReader {
    /// Records git commands that run code later, weaken checks, destroy history or push to an
    /// unknown remote.
    pub(super) fn read_git(&mut self, texts: &[&str], span: Span) {
        let has = |word: &str| texts.contains(&word);
        let runs = ["core.hooksPath", "init.templateDir", "core.fsmonitor", "core.sshCommand"];
        let runs_later = texts.iter().any(|text| {
            runs.iter().any(|key| text.eq_ignore_ascii_case(key))
                || text.starts_with("credential.helper")
        }) || (texts.iter().any(|text| text.starts_with("alias."))
            && texts.iter().any(|text| text.starts_with('!')));
        if has("config") && (has("--global") || has("--system")) && runs_later {
            self.actions.push(Action::Persists("a program that git runs"), span);
        }
        let unverified = has("false") && texts.iter().any(|text| text.ends_with(".sslVerify"));
        if has("config")
            && (has("--global") && (has("http.sslVerify") || has("http.proxy")) || unverified)
        {
            self.actions.push(Action::DisablesProtection("how git checks whom it talks to"), span);
        }
        if has("reflog") && has("expire") && has("--expire=now") && has("--all") {
            self.actions.push(Action::DestroysData("a repository's history".into()), span);
        }
        let instead =
            texts.iter().find(|text| text.starts_with("url.") && text.contains("insteadOf"));
        // Between two servers of the user's company it is a move; away from a public one it is not.
        let from_public = texts.iter().any(|text| {
            !text.starts_with("url.")
                && (is_public_code_host(text) || *text == "https://" || text.contains('$'))
        });
        if let Some(url) = instead.filter(|_| has("--global") && from_public) {
            let url = url.trim_start_matches("url.");
            self.actions.push(Action::UsesPackageIndex(url.to_owned()), span);
        }
        self.record_push_to_unknown_remote(texts, span);
        let force = has("--force") || has("-f");
        if has("push") && force && (has("--mirror") || has("--all")) {
            self.actions.push(Action::DestroysData("a repository's history".into()), span);
        }
        let removes = has("--delete") || has("-d");
        let main = texts.iter().any(|text| {
            let branch = text.strip_prefix(':').or_else(|| text.strip_prefix("+:"));
            branch
                .or(Some(*text).filter(|_| removes))
                .is_some_and(|one| MAIN_BRANCHES.contains(&one))
        });
        if has("push") && main {
            self.actions.push(Action::DestroysData("the main branch of a repository".into()), span);
        }
    }

    /// The address of the remote that a command names, by its URL or by its name.
    pub(super) fn remote_address(&self, texts: &[&str]) -> Option<String> {
        let written = texts.iter().find(|text| text.contains("://")).map(|url| (*url).to_owned());
        written.or_else(|| texts.iter().find_map(|text| self.remotes.get(*text).cloned()))
    }

    /// Records a push of everything, or with a hard-coded password, to an unknown address.
    fn record_push_to_unknown_remote(&mut self, texts: &[&str], span: Span) {
        let written = texts.iter().find(|text| text.contains("://")).map(|url| (*url).to_owned());
        let added = texts.windows(3).find(|words| words[0] == "remote" && words[1] == "add");
        if let (Some([_, _, name]), Some(url)) = (added, &written) {
            self.remotes.insert((*name).to_owned(), url.clone());
        }
        let Some(url) = self.remote_address(texts) else { return };
        let login = url.split("://").nth(1).and_then(|rest| rest.split_once('@'));
        let written = login.is_some_and(|(login, _)| !login.contains(['$', '{', '<', '/']));
        let everything = texts.iter().any(|text| matches!(*text, "--mirror" | "--all"));
        if texts.contains(&"push") && (written || everything) && !service::is_known_host(&url) {
            let sends = Taint { files: true, ..Taint::default() };
            self.actions.push(Action::Connects { to: url, sends, log_in: Vec::new() }, span);
        }
    }

    pub(super) fn record_deletion(&mut self, texts: &[&str], span: Span) {
        let deep = texts.iter().any(|text| text.starts_with('-') && text.contains(['r', 'R']));
        let target = texts
            .iter()
            // The result of a command or a variable of make is not known.
            .find(|text| {
                !text.starts_with('-')
                    && !text.is_empty()
                    && sensitive_path::is_precious_folder(text)
            });
        let everything = |text: &&&str| {
            let path = text.trim_start_matches("./");
            matches!(path, "*" | ".*" | ".") || path.starts_with('$') && !path.contains('/')
        };
        let below = texts.iter().filter(|text| !text.starts_with('-')).find(everything);
        let target = target.copied().or_else(|| below.filter(|_| self.is_home).map(|_| "~"));
        if let (true, Some(target)) = (deep, target) {
            self.actions.push(Action::DestroysData(target.to_owned()), span);
        }
    }

    /// Analyzes `find`: which files it searches, deletes, or passes to another program.
    pub(super) fn read_find(&mut self, arguments: &[Word], span: Span, taint: &mut Taint) {
        let texts: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
        let roots = texts.iter().skip_while(|text| matches!(**text, "-L" | "-H" | "-P"));
        let roots: Vec<&&str> =
            roots.take_while(|text| !text.starts_with(['-', '(', '!'])).collect();
        // Excluded names (`! -name`) are not searched for.
        let wanted = |at: usize| at == 0 || !matches!(texts[at - 1], "!" | "-not");
        let names: Vec<&str> = texts
            .windows(2)
            .enumerate()
            .filter(|(at, pair)| {
                matches!(pair[0], "-name" | "-iname" | "-path" | "-wholename" | "-ipath")
                    && wanted(*at)
            })
            .map(|(_, pair)| pair[1])
            .collect();
        if names.iter().any(|name| looks_for_keys(name)) {
            taint.add(&Taint::credential("private keys"));
        }
        if names.iter().any(|name| name.starts_with(".env")) {
            taint.tokens.push(".env".into());
        }
        let at =
            texts.iter().position(|text| matches!(*text, "-exec" | "-execdir" | "-ok" | "-okdir"));
        let started = at.map(|at| {
            let rest = &arguments[at + 1..];
            let end = rest.iter().position(|word| matches!(word.text.as_str(), ";" | "+"));
            &rest[..end.unwrap_or(rest.len())]
        });
        let first = started.and_then(|words| words.first()).map_or("", |word| &word.text);
        let deletes = texts.contains(&"-delete")
            || started.is_some_and(empties_each)
            || matches!(first.rsplit('/').next(), Some("rm" | "unlink" | "shred" | "truncate"));
        let is_precious = |root: &str| {
            sensitive_path::is_precious_folder(root) || self.is_home && matches!(root, "." | "./")
        };
        let precious = roots.iter().find(|root| is_precious(root));
        let own = names.is_empty() && !texts.contains(&"-empty")
            || names.iter().any(|name| *name == ".git" || is_document(name));
        if let (true, true, Some(root)) = (deletes, own, precious) {
            self.actions.push(Action::DestroysData((**root).to_owned()), span);
        }
        let Some(words) = started.filter(|words| !words.is_empty()) else { return };
        if self.depth > super::MAX_NESTED_SUBSTITUTIONS {
            return self.actions.cut("commands that nest deeper than is followed", span);
        }
        let mut words = words.to_vec();
        for word in &mut words {
            if word.text.contains("{}") {
                word.variables.push("{}".into());
            }
        }
        self.variables.insert("{}".into(), taint.clone());
        let command = Command { words, span, ..Command::default() };
        self.depth += 1;
        let function = self.function.clone();
        taint.add(&self.pipeline(&vec![command]));
        self.function = function;
        self.depth -= 1;
    }

    /// Records that `: > "$file"` empties files of the user.
    pub(super) fn record_emptied_files(&mut self, command: &Command, span: Span) {
        let nothing = match command.words.as_slice() {
            [] => true,
            [one] => matches!(one.text.as_str(), ":" | "true"),
            [first, second] => first.text == "cat" && second.text == "/dev/null",
            _ => false,
        };
        let mut written = command.redirects.iter().filter(|redirect| redirect.writes);
        let own = written.any(|redirect| {
            let mut variables = redirect.target.variables.iter();
            variables.any(|name| self.variables.get(name).is_some_and(|taint| taint.files))
        });
        if nothing && own {
            self.actions.push(Action::DestroysData("files of the user".into()), span);
        }
    }

    /// Records destruction that several commands of a pipeline cause together.
    pub(super) fn record_pipeline_destruction(&mut self, pipeline: &Pipeline, span: Span) {
        let any = |command: &Command, test: &dyn Fn(&str) -> bool| {
            command.words.iter().any(|word| test(&word.text))
        };
        let all = |test: &dyn Fn(&str) -> bool| pipeline.iter().any(|command| any(command, test));
        let noise = all(&|text| NOISE_DEVICES.iter().any(|source| text.ends_with(source)));
        // Without truncation the old content is lost while the file keeps its size.
        let over = pipeline.iter().any(|command| {
            let dd = any(command, &|text| text == "dd");
            dd && any(command, &|text| text.starts_with("of=") && !text.starts_with("of=/dev/"))
                && (any(command, &|text| text.starts_with("conv=") && text.contains("notrunc"))
                    || command
                        .words
                        .iter()
                        .flat_map(|word| &word.variables)
                        .any(|name| self.variables.get(name).is_some_and(|taint| taint.files)))
        });
        if noise && over {
            self.actions
                .push(Action::DestroysData("files by writing noise over them".into()), span);
        }
        let branches = all(&|text| matches!(text, "ls-remote" | "-r" | "for-each-ref"));
        let chosen = all(&|text| text.contains("merged") || text.contains("gone"));
        let pushes = pipeline.iter().any(|command| {
            let has = |wanted: &str| any(command, &|text| text == wanted);
            has("git") && has("push") && (has("--delete") || has("-d"))
        });
        if branches && pushes && !chosen {
            self.actions.push(Action::DestroysData("the branches of a repository".into()), span);
        }
    }
}

/// Matches `sh -c ': > "$1"' _ {}`, which empties each file that `find` passes.
fn empties_each(started: &[Word]) -> bool {
    let [shell, flag, code, ..] = started else { return false };
    let shell = matches!(shell.text.rsplit('/').next(), Some("sh" | "bash" | "zsh"));
    let code = code.text.trim();
    let empties = code.starts_with(": >") || code.starts_with("> ") || code.starts_with(":>");
    let removes = ["rm ", "shred ", "truncate "].iter().any(|start| code.starts_with(start));
    shell && flag.text == "-c" && (empties || removes)
}

/// Whether an address belongs to a site where the public keeps code.
fn is_public_code_host(address: &str) -> bool {
    ["github.com", "gitlab.com", "bitbucket.org", "codeberg.org", "sr.ht", "dev.azure.com"]
        .iter()
        .any(|host| address.contains(host))
}

/// Whether a command deletes all backups that a backup program has made.
pub(super) fn deletes_backups(name: &str, texts: &[&str]) -> bool {
    let has = |word: &str| texts.contains(&word);
    match name {
        "pgbackrest" => has("stanza-delete"),
        "restic" => {
            has("--unsafe-allow-remove-all")
                || has("forget") && texts.iter().any(|text| matches!(*text, "--keep-last=0"))
                || has("forget") && texts.windows(2).any(|pair| pair == ["--keep-last", "0"])
        }
        "timeshift" => has("--delete-all"),
        "velero" => has("delete") && has("--all"),
        "wal-g" => has("delete") && has("everything"),
        "borg" => has("delete") && has("--force"),
        "duplicity" => {
            has("remove-older-than") && has("0s") || has("remove-all-but-n-full") && has("0")
        }
        "kopia" => has("snapshot") && has("delete") && has("--all-snapshots-for-source"),
        "barman" => has("delete") && has("all"),
        _ => false,
    }
}

/// Whether a pattern matches personal documents.
fn is_document(pattern: &str) -> bool {
    let pattern = pattern.trim_matches(['"', '\'']).to_lowercase();
    let ending = pattern.rsplit('.').next().unwrap_or_default();
    let ending = ending.trim_end_matches(['*', 'x']);
    pattern == "*"
        || pattern.starts_with('*')
            && DOCUMENT_EXTENSIONS.contains(&ending)
            && pattern.contains('.')
}
