//! Programs whose arguments are written in a small language of their own: sed, git, ssh, jq and
//! clients of databases. Unlike those of an interpreter, these texts often contain a number.

use super::placeholder;
use crate::command::{Fragment, fragments};

/// What the text of a program can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// It can start programs.
    Executes,
    /// It can start programs, unless this option is given.
    ExecutesUnless(&'static str),
    /// It only computes an answer.
    Computes,
}

/// A program that reads a text in a language of its own.
pub(super) struct Language {
    pub(super) names: &'static [&'static str],
    /// Returns the indexes of the texts among the words after the program.
    pub(super) texts: fn(&[&str]) -> Vec<usize>,
    pub(super) effect: Effect,
    pub(super) rewrite: &'static str,
}

pub(super) const LANGUAGES: [Language; 9] = [
    Language {
        names: &["sed", "gsed"],
        texts: sed,
        effect: Effect::ExecutesUnless("--sandbox"),
        rewrite: "write `sed --sandbox`, which starts no programs, or pass the value to awk: awk -v x={{x}} '{ sub(/a/, x) } 1'",
    },
    Language {
        names: &["git"],
        texts: git,
        effect: Effect::Executes,
        rewrite: "write a fixed text there; of the settings after -c, only user.name, user.email and the like can have the value {{x}}",
    },
    Language {
        names: &["ssh"],
        texts: ssh,
        effect: Effect::Executes,
        rewrite: "put the line into a script of the skill, which quotes its argument, as in ssh host \"ls $(printf %q \"$1\")\", and call it: bash scripts/remote.sh {{x}}",
    },
    Language {
        names: &["jq", "gojq", "jaq"],
        texts: jq,
        effect: Effect::Computes,
        rewrite: "if it is a text, write `$x` there and set it with --arg: jq --arg x {{x}} '.[$x]'",
    },
    Language {
        names: &["sqlite3", "duckdb"],
        texts: sqlite,
        effect: Effect::ExecutesUnless("-safe"),
        rewrite: "put the query into a script of the skill, which binds the value: python3 scripts/query.py {{x}}; if the parameter is the whole query, write `sqlite3 -safe`",
    },
    Language {
        names: &["psql"],
        texts: |words| values(words, &["-c", "--command"]),
        effect: Effect::Executes,
        rewrite: "put the query into a file of the skill, write `:'x'` there and set it with -v: psql -v x={{x}} -f scripts/query.sql",
    },
    Language {
        names: &["mysql", "mariadb"],
        texts: |words| values(words, &["-e", "--execute"]),
        effect: Effect::Executes,
        rewrite: "put the query into a script of the skill, which binds the value, and call it with {{x}}",
    },
    Language {
        names: &["rsync"],
        texts: |words| values(words, &["-e", "--rsh", "--rsync-path"]),
        effect: Effect::Executes,
        rewrite: "write a fixed command there, and put it into a script of the skill if it needs {{x}}",
    },
    Language {
        names: &["env"],
        texts: env,
        effect: Effect::Executes,
        rewrite: "write the words behind env without -S, and {{x}} as a word of its own",
    },
];

/// Programs that start the program in their arguments.
const STARTERS: [&str; 12] = [
    "busybox", "doas", "env", "flock", "ionice", "nice", "nohup", "setsid", "stdbuf", "sudo",
    "timeout", "xargs",
];

/// Whether a word is the program, or a program that another one starts. Elsewhere, the name of a
/// program is only a text, as in `which sed`.
pub(super) fn is_started(words: &[&str], at: usize) -> bool {
    let is_starter = |word: &&str| STARTERS.contains(&super::base_name(word));
    let is_action = |word: &str| matches!(word, "-exec" | "-execdir" | "-ok" | "-okdir");
    at == 0 || words.first().is_some_and(is_starter) || is_action(words[at - 1])
}

/// The words that are values of these options, and those that contain option and value:
/// `--option=value`, `-ovalue`.
fn values(words: &[&str], options: &[&str]) -> Vec<usize> {
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate().take_while(|(_, word)| **word != "--") {
        let joined = |option: &&&str| match word.strip_prefix(**option) {
            Some(rest) if option.starts_with("--") => rest.starts_with('='),
            Some(rest) => !rest.is_empty() && !word.starts_with("--"),
            None => false,
        };
        if options.contains(word) && at + 1 < words.len() {
            found.push(at + 1);
        } else if options.iter().any(|option| joined(&option)) {
            found.push(at);
        }
    }
    found
}

/// The scripts of sed: after `-e`, else the first word that is not an option.
fn sed(words: &[&str]) -> Vec<usize> {
    let (mut found, mut first, mut has_script) = (Vec::new(), None, false);
    let mut at = 0;
    while let Some(word) = words.get(at) {
        if *word == "--" {
            first = first.or(Some(at + 1));
            break;
        }
        if let Some(long) = word.strip_prefix("--") {
            let (name, is_joined) = long.split_once('=').map_or((long, false), |it| (it.0, true));
            has_script |= matches!(name, "expression" | "file");
            if name == "expression" {
                found.push(at + usize::from(!is_joined));
            }
            let takes_word = matches!(name, "expression" | "file" | "line-length");
            at += usize::from(takes_word && !is_joined);
        } else if let Some(short) = word.strip_prefix('-').filter(|short| !short.is_empty()) {
            // What follows `i` is the ending of a backup file.
            let option = short.find(['e', 'f', 'l', 'i']).map(|start| short.split_at(start));
            if let Some((_, option)) = option {
                let is_last = option.len() == 1;
                has_script |= option.starts_with(['e', 'f']);
                if option.starts_with('e') {
                    found.push(at + usize::from(is_last));
                }
                at += usize::from(is_last && !option.starts_with('i'));
            }
        } else {
            first = first.or(Some(at));
        }
        at += 1;
    }
    if !has_script {
        found.extend(first.filter(|at| *at < words.len()));
    }
    found
}

/// Settings of git that are only texts. Many others name a program that git starts.
const TEXT_SETTINGS: [&str; 9] = [
    "author.email", "author.name", "color.ui", "committer.email", "committer.name", "core.abbrev",
    "init.defaultbranch", "user.email", "user.name",
];

/// Settings that git gets by `-c`, and options whose value git starts.
fn git(words: &[&str]) -> Vec<usize> {
    const WITH_VALUE: [&str; 5] = ["-C", "--git-dir", "--work-tree", "--namespace", "--config-env"];
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at).filter(|word| word.starts_with('-')) {
        if *word == "-c" {
            found.extend(words.get(at + 1).filter(|text| sets_program(text)).map(|_| at + 1));
            at += 1;
        } else if word.starts_with("--exec-path=") {
            found.push(at);
        } else if WITH_VALUE.contains(word) {
            at += 1;
        }
        at += 1;
    }
    let Some(command) = words.get(at) else { return found };
    let rest = &words[at + 1..];
    let after = |word: &str| {
        let start = rest.iter().position(|it| *it == word).map_or(rest.len(), |start| start + 1);
        (start..rest.len()).collect()
    };
    let started: Vec<usize> = match *command {
        "clone" => {
            let settings = values(rest, &["-c", "--config"]).into_iter();
            let settings = settings.filter(|at| sets_program(setting(rest[*at])));
            settings.chain(values(rest, &["-u", "--upload-pack"])).collect()
        }
        "rebase" => values(rest, &["-x", "--exec"]),
        "difftool" => values(rest, &["-x", "--extcmd"]),
        "grep" => values(rest, &["-O", "--open-files-in-pager"]),
        "fetch" | "pull" | "push" | "ls-remote" | "archive" => {
            values(rest, &["--upload-pack", "--receive-pack", "--exec"])
        }
        "submodule" => after("foreach"),
        "bisect" => after("run"),
        _ => Vec::new(),
    };
    found.extend(started.into_iter().map(|offset| at + 1 + offset));
    found
}

/// A setting without the option in front of it.
fn setting(word: &str) -> &str {
    word.strip_prefix("--config=").or(word.strip_prefix("-c")).unwrap_or(word)
}

/// Whether a parameter may choose a program by this setting, `NAME=VALUE`.
fn sets_program(setting: &str) -> bool {
    let name = setting.split('=').next().unwrap_or_default();
    !TEXT_SETTINGS.contains(&name.to_ascii_lowercase().as_str())
}

/// The words after the host, which the shell of the other machine runs, and options of ssh that
/// name a program.
fn ssh(words: &[&str]) -> Vec<usize> {
    const WITH_VALUE: &str = "BbcDEeFIiJLlmOopQRSWw";
    let (mut found, mut has_host) = (Vec::new(), false);
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let Some(option) = word.strip_prefix('-').filter(|option| !option.is_empty()) else {
            if has_host {
                found.extend(at..words.len());
                break;
            }
            has_host = true;
            at += 1;
            continue;
        };
        // Options without a value can stand before one that has one: `-tp 22`.
        let start = option.find(|c| WITH_VALUE.contains(c));
        if let Some((start, name)) = start.zip(start.and_then(|at| option[at..].chars().next())) {
            let joined = &option[start + 1..];
            let value = if joined.is_empty() { at + 1 } else { at };
            let text = if joined.is_empty() { words.get(at + 1) } else { Some(&joined) };
            if name == 'o' && text.is_some_and(|text| is_program_option(text)) {
                found.push(value);
            }
            at = value;
        }
        at += 1;
    }
    found
}

/// Whether an option of ssh, `NAME=VALUE`, may name a program.
fn is_program_option(text: &str) -> bool {
    let name = text.split(['=', ' ']).next().unwrap_or_default().to_ascii_lowercase();
    let is_open = fragments(&name).iter().any(|part| matches!(part, Fragment::Variable { .. }));
    is_open || name.ends_with("command")
}

/// The text that env splits into words. What follows the first word that is not an option belongs
/// to the program that env starts.
fn env(words: &[&str]) -> Vec<usize> {
    let options = words.iter().take_while(|word| word.starts_with('-')).count();
    values(&words[..words.len().min(options + 1)], &["-S", "--split-string"])
}

/// The filter of jq: the first word that is neither an option nor the value of one.
fn jq(words: &[&str]) -> Vec<usize> {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        match *word {
            "-f" | "--from-file" => return Vec::new(),
            "--arg" | "--argjson" | "--slurpfile" | "--rawfile" => at += 3,
            "--indent" | "-L" => at += 2,
            option if option.starts_with('-') => at += 1,
            _ => return vec![at],
        }
    }
    Vec::new()
}

/// The statements of sqlite3: all words after the file of the database, and the value of `-cmd`.
fn sqlite(words: &[&str]) -> Vec<usize> {
    const WITH_VALUE: [&str; 9] =
        ["init", "separator", "newline", "nullvalue", "maxsize", "mmap", "vfs", "heap", "key"];
    let (mut found, mut has_file) = (Vec::new(), false);
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let option = word.strip_prefix("--").or(word.strip_prefix('-'));
        match option.filter(|option| !option.is_empty()) {
            Some("cmd" | "c" | "s") => {
                found.push(at + 1);
                at += 1;
            }
            Some(option) if WITH_VALUE.contains(&option) => at += 1,
            Some(_) => {}
            None if has_file => found.push(at),
            None => has_file = true,
        }
        at += 1;
    }
    found.retain(|at| *at < words.len());
    found
}

/// The texts of a language that contain a placeholder, by their index, with the parameter.
pub(super) fn open_texts(
    language: &Language,
    words: &[&str],
    is_number: &dyn Fn(&str) -> bool,
) -> Vec<(usize, String)> {
    let texts = (language.texts)(words).into_iter();
    texts.filter_map(|at| Some((at, placeholder(words.get(at)?, is_number)?))).collect()
}

#[cfg(test)]
mod tests {
    use crate::{
        command::CommandTemplate,
        skill::{Parameter, ParameterKind},
    };

    /// The words with a placeholder, and whether they can start programs.
    fn found(command: &str) -> Vec<(usize, bool)> {
        let parameter = |name: &str, kind| Parameter {
            name: name.to_owned(),
            kind,
            required: true,
            description: String::new(),
            default: None,
        };
        let parameters =
            [parameter("x", ParameterKind::String), parameter("n", ParameterKind::Integer)];
        let template = CommandTemplate::parse(command).unwrap();
        let texts = template.program_texts(&parameters);
        texts.into_iter().map(|text| (text.word, text.executes)).collect()
    }

    #[test]
    fn texts_that_can_start_programs_are_found() {
        for (command, word) in [
            ("sed -n -e '{{x}}' a.txt", 3),
            ("sed 's/a/{{x}}/' a.txt", 1),
            ("sed -ne '{{x}}p' a.txt", 2),
            ("sed -i.bak '{{x}}d' a.txt", 2),
            ("sed -E --expression='{{x}}' a.txt", 2),
            ("sed -l 5 -- '{{x}}'", 4),
            ("timeout 5 sed '{{x}}'", 3),
            ("find . -name a -exec sed -i '{{x}}' a ';'", 7),
            ("git -c 'alias.z=!{{x}}' z", 2),
            ("git -C d -c {{x}} log", 4),
            ("git -c 'core.pager={{x}}' log", 2),
            ("git --exec-path={{x}} log", 1),
            ("git clone -c 'core.sshCommand={{x}}' url", 3),
            ("git rebase --exec={{x}} main", 2),
            ("git rebase -x {{x}} main", 3),
            ("git submodule foreach '{{x}}'", 3),
            ("git fetch --upload-pack {{x}} origin", 3),
            ("ssh host 'echo {{x}}'", 2),
            ("ssh -p 22 -tt ada@host -- echo {{x}}", 7),
            ("ssh -oProxyCommand={{x}} host", 1),
            ("ssh -o {{x}} host", 2),
            ("sqlite3 a.db 'select {{x}}'", 2),
            ("sqlite3 -csv -separator ';' -cmd {{x}} a.db", 5),
            ("psql -h localhost -c 'select {{x}}'", 4),
            ("mysql --execute='select {{x}}'", 1),
            ("rsync -e 'ssh {{x}}' a b", 2),
            ("env -S '{{x}}'", 2),
        ] {
            assert_eq!(found(command), [(word, true)], "{command}");
        }
    }

    #[test]
    fn texts_that_only_compute_are_told_apart() {
        for (command, word) in [
            ("jq -r --arg y 1 '.{{x}}' a.json", 5),
            ("sed --sandbox 's/a/{{x}}/' a.txt", 2),
            ("sqlite3 -safe a.db {{x}}", 3),
        ] {
            assert_eq!(found(command), [(word, false)], "{command}");
        }
    }

    #[test]
    fn values_that_stay_arguments_are_fine() {
        for command in [
            "sed -n '{{n}},{{n}}p' {{x}}",
            "sed -e s/a/b/ {{x}}",
            "sed -f prog.sed {{x}}",
            "sed -i s/a/b/ {{x}}",
            "git -c user.name={{x}} commit -m {{x}}",
            "git -C {{x}} log",
            "git commit -c {{x}}",
            "git switch -c {{x}}",
            "git log --grep={{x}} -- {{x}}",
            "git clone -c user.email={{x}} {{x}}",
            "ssh -i {{x}} -p {{n}} {{x}} uptime",
            "ssh -o ConnectTimeout={{x}} host",
            "ssh host 'head -n {{n}} log'",
            "jq --arg x {{x}} '.[$x]' {{x}}",
            "jq -f a.jq {{x}}",
            "sqlite3 {{x}} 'select 1'",
            "psql -v x={{x}} -f a.sql",
            "which sed {{x}}",
            "brew install jq {{x}}",
            "env A=1 ls {{x}}",
        ] {
            assert_eq!(found(command), [], "{command}");
        }
    }
}
