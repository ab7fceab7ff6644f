//! Finds placeholders that become part of program code, as in `bash -c "echo {{x}}"`.
//!
//! The value of such a placeholder would be executed as code.

mod languages;

use self::languages::{Effect, LANGUAGES, is_started, open_texts};
use super::{CommandTemplate, Fragment, Modifier, fragments};
use crate::skill::{Parameter, ParameterKind};

/// A placeholder inside code that is passed to an interpreter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramText {
    /// The interpreter that executes the code.
    pub program: String,
    /// The parameter whose value would be executed.
    pub parameter: String,
    /// The index of the word that contains the placeholder; 0 is the program.
    pub word: usize,
    /// Whether the code can start programs. Such a command is not run.
    pub executes: bool,
    /// How to pass the value as an argument instead.
    pub rewrite: String,
}

impl ProgramText {
    /// The error message.
    pub fn problem(&self) -> String {
        let Self { program, parameter, .. } = self;
        format!("`{{{{{parameter}}}}}` becomes a part of the program that `{program}` runs")
    }
}

/// An interpreter that accepts code as an argument.
struct Reader {
    names: &'static [&'static str],
    /// The options that precede the code. Empty if the code is the first word that is not an
    /// option.
    options: &'static [&'static str],
    rewrite: &'static str,
}

const READERS: [Reader; 12] = [
    Reader {
        names: &["bash", "sh", "dash", "zsh", "ksh", "ash"],
        options: &["c"],
        rewrite: "write `\"$1\"` in the text and put the placeholder behind it: bash -c 'echo \"$1\"' -- {{x}}",
    },
    Reader {
        names: &["fish"],
        options: &["c", "command"],
        rewrite: "write `$argv[1]` in the text and put the placeholder behind it: fish -c 'echo $argv[1]' {{x}}",
    },
    Reader {
        names: &["python", "python2", "python3", "pypy", "pypy3"],
        options: &["c"],
        rewrite: "write `sys.argv[1]` in the text and put the placeholder behind it: python3 -c 'import sys; print(sys.argv[1])' {{x}}",
    },
    Reader {
        names: &["node", "nodejs", "deno", "bun"],
        options: &["e", "p", "pe", "eval", "print"],
        rewrite: "write `process.argv[1]` in the text and put the placeholder behind it: node -e 'console.log(process.argv[1])' -- {{x}}",
    },
    Reader {
        names: &["perl"],
        options: &["e", "E", "ne", "pe", "le", "lne", "lpe", "nle", "ple"],
        rewrite: "write `$ARGV[0]` in the text and put the placeholder behind it: perl -e 'print $ARGV[0]' -- {{x}}",
    },
    Reader {
        names: &["ruby"],
        options: &["e", "ne", "pe"],
        rewrite: "write `ARGV[0]` in the text and put the placeholder behind it: ruby -e 'puts ARGV[0]' -- {{x}}",
    },
    Reader {
        names: &["php"],
        options: &["r"],
        rewrite: "write `$argv[1]` in the text and put the placeholder behind it: php -r 'echo $argv[1];' -- {{x}}",
    },
    Reader {
        names: &["lua", "luajit"],
        options: &["e"],
        rewrite: "put the text into a script of the skill, which finds the value in `arg[1]`: lua scripts/x.lua {{x}}",
    },
    Reader {
        names: &["Rscript", "julia"],
        options: &["e"],
        rewrite: "put the text into a script of the skill, which reads its arguments, and call it with {{x}}",
    },
    Reader {
        names: &["osascript"],
        options: &["e"],
        rewrite: "write `on run argv` in the text and put the placeholder behind it: osascript -e 'on run argv' -e 'return item 1 of argv' -e 'end run' {{x}}",
    },
    Reader {
        names: &["pwsh", "powershell"],
        options: &["c", "Command", "command"],
        rewrite: "write a script with parameters, put it into the skill, and call it with `-File`",
    },
    Reader {
        names: &["awk", "gawk", "mawk", "nawk"],
        options: &[],
        rewrite: "write a variable in the text and set it with -v: awk -v x={{x}} '{ print x }'",
    },
];

/// Options of awk whose value is the next word.
const AWK_VALUES: [&str; 3] = ["-v", "-F", "-f"];

impl CommandTemplate {
    /// Returns the placeholders that become part of program code, in order.
    pub fn program_texts(&self, parameters: &[Parameter]) -> Vec<ProgramText> {
        let args = self.args.iter().map(super::ArgTemplate::text);
        let words: Vec<&str> = std::iter::once(self.program.as_str()).chain(args).collect();
        let mut found = interpreter_texts(&words);
        found.extend(language_texts(&words, parameters));
        found.sort_by_key(|text| text.word);
        found.dedup_by_key(|text| text.word);
        found
    }
}

fn interpreter_texts(words: &[&str]) -> Vec<ProgramText> {
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let name = base_name(word);
        let Some(reader) = READERS.iter().find(|reader| reader.names.contains(&name)) else {
            continue;
        };
        for (offset, text) in texts(reader, &words[at + 1..]) {
            if let Some(parameter) = placeholder(text, &|_| false) {
                found.push(ProgramText {
                    program: name.to_owned(),
                    executes: true,
                    rewrite: rewrite(reader.rewrite, &parameter),
                    parameter,
                    word: at + 1 + offset,
                });
            }
        }
    }
    found
}

/// As [`interpreter_texts`], for [`LANGUAGES`]. A number or a boolean cannot contain code.
fn language_texts(words: &[&str], parameters: &[Parameter]) -> Vec<ProgramText> {
    let is_number = |name: &str| {
        let is_plain = |kind| matches!(kind, ParameterKind::Integer | ParameterKind::Boolean);
        parameters.iter().any(|parameter| parameter.name == name && is_plain(parameter.kind))
    };
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate().filter(|(at, _)| is_started(words, *at)) {
        let name = base_name(word);
        let Some(language) = LANGUAGES.iter().find(|language| language.names.contains(&name))
        else {
            continue;
        };
        let rest = &words[at + 1..];
        let executes = match language.effect {
            Effect::Executes => true,
            Effect::ExecutesUnless(option) => !rest.contains(&option),
            Effect::Computes => false,
        };
        let texts = open_texts(language, rest, &is_number).into_iter();
        found.extend(texts.map(|(offset, parameter)| ProgramText {
            program: name.to_owned(),
            executes,
            rewrite: rewrite(language.rewrite, &parameter),
            parameter,
            word: at + 1 + offset,
        }));
    }
    found
}

fn base_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or_default()
}

fn rewrite(text: &str, parameter: &str) -> String {
    text.replace("{{x}}", &format!("{{{{{parameter}}}}}"))
}

/// Returns the code among the words after an interpreter, with the index of each word.
fn texts<'a>(reader: &Reader, words: &[&'a str]) -> Vec<(usize, &'a str)> {
    if reader.options.is_empty() {
        return awk_text(words).into_iter().collect();
    }
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at).filter(|word| word.starts_with('-')) {
        if takes_text(word, reader) {
            found.extend(words.get(at + 1).map(|text| (at + 1, *text)));
            at += 1;
        } else if is_joined(word, reader) {
            found.push((at, *word));
        }
        at += 1;
    }
    found
}

/// Returns the first word that is neither an option nor the value of one. With `-f` the code is in
/// a file, so there is none.
fn awk_text<'a>(words: &[&'a str]) -> Option<(usize, &'a str)> {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        match *word {
            "-f" => return None,
            "--" => return words.get(at + 1).map(|text| (at + 1, *text)),
            option if AWK_VALUES.contains(&option) => at += 2,
            option if option.starts_with('-') => at += 1,
            text => return Some((at, text)),
        }
    }
    None
}

/// Whether the next word is code: after `-c`, and for a shell also after `-lc` and `-ec`.
fn takes_text(word: &str, reader: &Reader) -> bool {
    let Some(option) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else {
        return false;
    };
    let together = reader.names.contains(&"sh")
        && option.ends_with('c')
        && option.chars().all(|c| c.is_ascii_lowercase())
        && option.len() <= 4;
    reader.options.contains(&option) || together
}

/// Whether a word contains both the option and the code: `-eprint`, `--eval=…`.
fn is_joined(word: &str, reader: &Reader) -> bool {
    let long = word.strip_prefix("--").and_then(|rest| rest.split_once('='));
    if let Some((option, _)) = long {
        return reader.options.contains(&option);
    }
    let short = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    short.is_some_and(|rest| {
        let mut options = reader.options.iter().filter(|option| option.len() == 1);
        options.any(|option| rest.starts_with(option))
    })
}

/// Returns the first placeholder whose value the caller chooses. A flag is text of the author and
/// does not count.
fn placeholder(text: &str, is_harmless: &dyn Fn(&str) -> bool) -> Option<String> {
    fragments(text).into_iter().find_map(|part| match part {
        Fragment::Variable { modifier: Some(Modifier::Flag(_)), .. } | Fragment::Literal(_) => None,
        Fragment::Variable { name, .. } => Some(name).filter(|name| !is_harmless(name)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(command: &str) -> Vec<(String, usize)> {
        let texts = CommandTemplate::parse(command).unwrap().program_texts(&[]);
        texts.into_iter().map(|text| (text.parameter, text.word)).collect()
    }

    #[test]
    fn placeholders_in_programs_are_found() {
        for (command, word) in [
            ("bash -c \"echo {{x}}\"", 2),
            ("sh -ec 'echo {{x}}'", 2),
            ("/bin/sh -e -c {{x}}", 3),
            ("python3 -I -c 'print({{x}})'", 3),
            ("node -e 'f({{x}})'", 2),
            ("node --eval='f({{x}})'", 1),
            ("perl -ne 'print if /{{x}}/' file", 2),
            ("perl -e'print {{x}}'", 1),
            ("env FOO=1 bash -c 'ls {{x}}'", 4),
            ("find . -exec sh -c 'echo {{x}}' ';'", 5),
            ("awk '/{{x}}/ { print }' file", 1),
            ("awk -F, -v a=1 '{ print ${{x}} }' file", 4),
            ("gawk -- '{{x}}'", 2),
        ] {
            assert_eq!(found(command), [("x".to_owned(), word)], "{command}");
        }
        let bash = CommandTemplate::parse("bash -c \"echo {{name}}\"").unwrap();
        let bash = bash.program_texts(&[]);
        assert!(bash[0].rewrite.ends_with("bash -c 'echo \"$1\"' -- {{name}}"), "{bash:?}");
    }

    #[test]
    fn placeholders_in_arguments_are_fine() {
        for command in [
            "bash -c 'echo \"$1\"' -- {{x}}",
            "bash scripts/x.sh -c {{x}}",
            "python3 -c 'import sys; print(sys.argv[1])' {{x}}",
            "python3 scripts/x.py {{x}}",
            "awk -v x={{x}} '{ print x }' file",
            "awk -f prog.awk {{x}}",
            "awk '{ print }' {{x}}",
            "bash -c 'ls {{all:-a}}'",
            "grep -e {{x}} file",
            "node scripts/x.js -e {{x}}",
        ] {
            assert_eq!(found(command), [], "{command}");
        }
    }
}
