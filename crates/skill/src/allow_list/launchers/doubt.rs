//! Decides whether a command may run more than its pattern names.

use super::{
    CommandPassing, KnownOptions, Launcher, Style, Subcommands, Words, startup_files,
    table::{BASE, TABLE},
};

/// Returns why a command may run more than its first `named` words, which the pattern contains;
/// `None` if it does not.
pub(crate) fn find_doubt(words: &[String], named: usize) -> Option<String> {
    let doubt = match find(words.first()?) {
        Some(launcher) => Command { launcher, words, named }.find_reason().err(),
        None => find_handed_over_command(words, named),
    };
    doubt.or_else(|| startup_files::find_written(words, named))
}

/// Options by which many programs execute their value.
const EXECUTING_OPTIONS: [&str; 15] = [
    "--exec", "--execute", "--eval", "--command", "--cmd", "--shell", "--pager", "--editor",
    "--rsh", "--hook", "--plugin", "--preload", "--rcfile", "--to-command", "--init-command",
];

/// Endings of such options: `--ssh-command`, `--diff-program`.
const EXECUTING_OPTION_ENDINGS: [&str; 5] = ["-command", "-cmd", "-program", "-exec", "-hook"];

/// Returns why a program that is not in the table may run others: an option says so, or a shell or
/// an interpreter with code is among its arguments. Its other arguments are its own.
fn find_handed_over_command(words: &[String], named: usize) -> Option<String> {
    let program = words.first()?;
    for (at, word) in words.iter().enumerate().skip(1) {
        let (name, value) = word.split_once('=').map_or((&**word, None), |(a, b)| (a, Some(b)));
        let executes = EXECUTING_OPTIONS.contains(&name)
            || name.starts_with("--")
                && EXECUTING_OPTION_ENDINGS.iter().any(|end| name.ends_with(end));
        let last = at + usize::from(value.is_none() && at + 1 < words.len());
        if executes && last >= named {
            return Some(format!("`{program} {name}` may run another program"));
        }
        let has_code = find(word).is_some_and(|inner| {
            matches!(inner.words, Words::Script { .. })
                && words.get(at + 1).is_some_and(|next| inner.executes.contains(&&**next))
        });
        if has_code && at + 2 >= named {
            return Some(format!("`{program}` may run the code that it hands to `{word}`"));
        }
    }
    None
}

/// Returns the table entry of a program, if it can run others.
fn find(word: &str) -> Option<&'static Launcher> {
    let name = word.rsplit('/').next().unwrap_or(word);
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    let of = |name: &str| TABLE.iter().find(|launcher| launcher.names.contains(&name));
    // `x86_64-linux-gnu-gcc`
    let cross = || bare.rsplit('-').next().filter(|end| CROSS_TOOLS.contains(end));
    of(name).or_else(|| of(bare)).or_else(|| cross().and_then(of))
}

/// Programs whose name can have the target system in front.
const CROSS_TOOLS: [&str; 8] = ["gcc", "g++", "cc", "c++", "cpp", "clang", "ld", "gfortran"];

#[derive(Clone, Copy)]
struct Command<'a> {
    launcher: &'static Launcher,
    words: &'a [String],
    /// The number of words that the pattern contains.
    named: usize,
}

impl<'a> Command<'a> {
    fn find_reason(self) -> Result<(), String> {
        if let Some(word) = self.find_word_that_runs() {
            return Err(self.runs(word));
        }
        let (mut at, mut plain, mut only_words) = (1, 0, false);
        while let Some(word) = self.words.get(at) {
            if !only_words && word == "--" {
                only_words = true;
            } else if !only_words && self.is_number(word) {
                // No program in the table gives a number a special meaning.
            } else if !only_words && is_option(word) {
                // If an option contains the code, all plain words are files.
                plain = plain.max(usize::from(self.is_program_option(word)));
                at += self.option(at)?;
                if self.ends_with(word) {
                    return Ok(());
                }
            } else {
                if let Some(end) = self.word(at, plain) {
                    return end;
                }
                plain += 1;
            }
            at += 1;
        }
        match self.launcher.words {
            // A pattern with more than the program names what it runs, such as another folder.
            Words::Tasks(informs) if plain == 0 && self.named <= 1 && !self.has_any(informs) => {
                Err(self.text("without the name of a task it runs the default one of the project"))
            }
            _ => Ok(()),
        }
    }

    fn has_any(self, options: &[&str]) -> bool {
        self.words.iter().any(|word| options.contains(&word.as_str()))
    }

    /// Returns the first word with one of [`Launcher::runs_if`] that the pattern does not contain.
    fn find_word_that_runs(self) -> Option<&'a str> {
        let runs = |text: &str| self.launcher.runs_if.iter().any(|part| text.contains(part));
        let mut pairs = self.words.windows(2).skip(self.named.saturating_sub(1));
        let pair = pairs.find(|pair| runs(&pair[1]) || runs(&pair.join(" ")))?;
        Some(&pair[1])
    }

    /// Whether a word is a number: `-7`, and `-10k` where letters are not options.
    fn is_number(self, word: &str) -> bool {
        let units: &[char] = match self.launcher.style {
            Style::Whole => &['c', 'k', 'w', 'M', 'G'],
            Style::Clustered => &[],
        };
        let digits = word.strip_prefix('-').map(|rest| rest.trim_end_matches(units));
        digits.is_some_and(|it| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit()))
    }

    fn is_named(self, at: usize) -> bool {
        at < self.named
    }

    /// Whether all words after an option belong to the script that it runs.
    fn ends_with(self, word: &str) -> bool {
        matches!(self.launcher.words, Words::Script { ends } if ends.contains(&word))
    }

    fn is_program_option(self, word: &str) -> bool {
        let Launcher { takes, attached, texts, .. } = self.launcher;
        if word.starts_with("--") {
            return texts.contains(&word.split('=').next().unwrap_or(word));
        }
        let mut options = word.chars().skip(1).map(|letter| format!("-{letter}"));
        let ends =
            |option: &String| [takes, attached, texts].iter().any(|of| of.contains(&&**option));
        options.find(ends).is_some_and(|option| texts.contains(&&*option))
    }

    /// Checks code in the language of the program.
    fn read(self, text: Option<&str>, at: usize) -> Result<(), String> {
        match (self.launcher.words, text) {
            (Words::Text(read), Some(text)) if !self.is_named(at) => {
                read(text).map_err(|why| self.text(why))
            }
            _ => Ok(()),
        }
    }

    /// Checks an option; returns the number of words that belong to it.
    fn option(self, at: usize) -> Result<usize, String> {
        let word = self.words[at].as_str();
        if matches!(self.launcher.words, Words::Opaque) && !self.is_named(at) {
            return Err(self.runs(word));
        }
        if self.launcher.style == Style::Whole || word.starts_with("--") {
            self.long_option(at, word, self.launcher.executes)
        } else {
            self.short_options(at, word, self.launcher.executes)
        }
    }

    fn long_option(self, at: usize, word: &str, executes: &[&str]) -> Result<usize, String> {
        let Launcher { acts, understood, takes, texts, style, .. } = self.launcher;
        let (name, value) = word.split_once('=').map_or((word, None), |(a, b)| (a, Some(b)));
        let takes_next = usize::from(value.is_none() && takes.contains(&name));
        let next = self.words.get(at + 1).map(String::as_str);
        if texts.contains(&name) {
            self.read(value.or(next), if value.is_some() { at } else { at + 1 })?;
            return Ok(usize::from(value.is_none()));
        }
        let is_known = match understood {
            KnownOptions::AllAnd(known) | KnownOptions::Only(known) => known.contains(&name),
        };
        if is_known {
            return Ok(takes_next);
        }
        if means(executes, name, *style) {
            let is_named = self.is_named(at) && (value.is_some() || self.is_named(at + 1));
            if !is_named {
                return Err(self.runs(name));
            }
            return match style {
                Style::Whole => self.inner_until_end(at + 1),
                Style::Clustered => Ok(usize::from(value.is_none())),
            };
        }
        if means(acts, name, *style) && !self.is_named(at) {
            return Err(self.runs(name));
        }
        match understood {
            KnownOptions::Only(_) if !self.is_named(at) => Err(self.unknown(name)),
            _ => Ok(takes_next),
        }
    }

    /// Checks clustered options such as `-xzf`, letter by letter.
    fn short_options(self, at: usize, word: &str, executes: &[&str]) -> Result<usize, String> {
        let Launcher { acts, understood, takes, attached, texts, .. } = self.launcher;
        let letters = word.strip_prefix('-').unwrap_or(word);
        for (place, letter) in letters.char_indices() {
            let option = format!("-{letter}");
            let option = option.as_str();
            let is_last = place + letter.len_utf8() == letters.len();
            if executes.contains(&option) {
                let is_named = self.is_named(at) && (!is_last || self.is_named(at + 1));
                return if is_named { Ok(usize::from(is_last)) } else { Err(self.runs(option)) };
            }
            if acts.contains(&option) && !self.is_named(at) {
                return Err(self.runs(option));
            }
            if texts.contains(&option) {
                let rest = letters.get(place + letter.len_utf8()..).filter(|_| !is_last);
                let next = self.words.get(at + 1).map(String::as_str);
                self.read(rest.or(next), at + usize::from(is_last))?;
                return Ok(usize::from(is_last));
            }
            if attached.contains(&option) {
                return Ok(0);
            }
            if takes.contains(&option) {
                let rest = letters.get(place + letter.len_utf8()..).filter(|_| !is_last);
                let next = self.words.get(at + 1).map(String::as_str);
                self.value(at + usize::from(is_last), rest.or(next).unwrap_or_default())?;
                return Ok(usize::from(is_last));
            }
            let is_known = match understood {
                KnownOptions::AllAnd(_) => true,
                KnownOptions::Only(known) => known.contains(&option),
            };
            if !is_known && !self.is_named(at) {
                return Err(self.unknown(option));
            }
        }
        Ok(0)
    }

    /// Checks a value or a plain word for risky parts.
    fn value(self, at: usize, value: &str) -> Result<(), String> {
        let is_odd = self.launcher.risky_parts.iter().any(|part| value.contains(part));
        if is_odd && !self.is_named(at) { Err(self.unknown(value)) } else { Ok(()) }
    }

    /// Checks a word that is not an option. Returns `Some` if the check ends here: with an error,
    /// or with a result that covers all following words.
    fn word(self, at: usize, place: usize) -> Option<Result<(), String>> {
        let word = self.words[at].as_str();
        if let Err(reason) = self.value(at, word) {
            return Some(Err(reason));
        }
        match self.launcher.words {
            Words::Letters if at == 1 && !self.is_named(at) => {
                // Each letter is an option, also after one that takes a value.
                let letter = word.chars().map(|letter| format!("-{letter}"));
                let mut found = letter.filter(|one| self.launcher.executes.contains(&&**one));
                found.next().map(|option| Err(self.runs(&option)))
            }
            Words::Plain | Words::Letters => None,
            Words::Command { after, .. } if place < after => None,
            Words::Command { how: CommandPassing::Words, .. } if is_assignment(word) => None,
            Words::Command { how, .. } => Some(self.inner(at, how)),
            Words::Script { .. } => Some(Ok(())),
            Words::Text(_) if place > 0 => None,
            Words::Text(_) => self.read(Some(word), at).err().map(Err),
            Words::Subcommand(known) => Some(self.subcommand(at, &known)),
            Words::Opaque | Words::Tasks(_) if self.is_named(at) => None,
            Words::Opaque | Words::Tasks(_) => Some(Err(self.runs(word))),
        }
    }

    /// Checks a command inside a command.
    fn inner(self, at: usize, how: CommandPassing) -> Result<(), String> {
        let inner = &self.words[at..];
        let first = inner.first().map(String::as_str).unwrap_or_default();
        if !self.is_named(at) {
            return Err(self.runs(first));
        }
        let is_simple = |word: &String| {
            word.chars().all(|c| c.is_ascii_alphanumeric() || "_./:=@%+,-".contains(c))
        };
        match how {
            CommandPassing::Shell if !inner.iter().all(is_simple) => {
                Err(self.text("it hands the words to a shell"))
            }
            CommandPassing::Growing if find(first).is_some() => {
                Err(self.text("it adds arguments to a program that can run others"))
            }
            _ => find_doubt(inner, self.named - at).map_or(Ok(()), Err),
        }
    }

    /// Checks an inner command that ends with `;` or `+`; returns its number of words.
    fn inner_until_end(self, at: usize) -> Result<usize, String> {
        let rest = self.words.get(at..).unwrap_or_default();
        let end = rest.iter().position(|word| word == ";" || word == "+").unwrap_or(rest.len());
        match find_doubt(&rest[..end], self.named - at) {
            Some(why) => Err(why),
            None => Ok(end),
        }
    }

    fn subcommand(self, at: usize, known: &Subcommands) -> Result<(), String> {
        let name = self.words[at].as_str();
        let rest = &self.words[at + 1..];
        let is_meant = |entry: &&&str| match entry.split_once(' ') {
            None => **entry == name,
            Some((first, second)) => first == name && rest.iter().any(|word| word == second),
        };
        // The index of the last word that the pattern must contain.
        let last = |entry: &str| match entry.split_once(' ') {
            None => at,
            Some((_, second)) => {
                let found = rest.iter().position(|word| word == second);
                found.map_or(at, |found| at + 1 + found)
            }
        };
        let next = rest.first().map(String::as_str);
        let is_plain = next.is_some_and(|next| {
            known.plain.iter().any(|entry| entry.split_once(' ') == Some((name, next)))
        });
        if let Some(entry) = known.executes.iter().find(is_meant) {
            let last = last(entry);
            if !self.is_named(last) || (last + 1 < self.words.len() && !self.is_named(last + 1)) {
                return Err(self.runs(entry));
            }
        } else if !is_plain {
            if let Some(entry) = known.acts.iter().find(is_meant) {
                if !self.is_named(last(entry)) {
                    return Err(self.runs(entry));
                }
            } else if !known.plain.contains(&name) && !self.is_named(at) {
                return Err(self.unknown(name));
            }
        }
        self.check_subcommand_options(at, known)
    }

    /// Checks the options of a subcommand.
    fn check_subcommand_options(self, at: usize, known: &Subcommands) -> Result<(), String> {
        let name = self.words[at].as_str();
        let own = known.own.iter().find(|(of, _)| *of == name).map_or(&[][..], |(_, own)| own);
        let executes: Vec<&str> = known.options.iter().chain(own).copied().collect();
        let mut at = at + 1;
        let mut only_words = false;
        while let Some(word) = self.words.get(at) {
            if known.addressed.contains(&name) {
                self.value(at, word)?;
            }
            if word == "--" {
                let has_more = at + 1 < self.words.len();
                if known.forwards.contains(&name) && has_more && !self.is_named(at + 1) {
                    return Err(self.runs(&format!("{name} --")));
                }
                only_words = true;
            } else if !only_words && is_option(word) && !self.is_number(word) {
                // It is unknown which options take a value, so no word is skipped.
                let is_whole = self.launcher.style == Style::Whole;
                let launcher =
                    if is_whole { &SUBCOMMAND_WHOLE_OPTIONS } else { &SUBCOMMAND_OPTIONS };
                let behind = Self { launcher, ..self };
                let judged = if is_whole || word.starts_with("--") {
                    behind.long_option(at, word, &executes)
                } else {
                    behind.short_options(at, word, &executes)
                };
                judged.map_err(|_| self.runs(&format!("{name} {word}")))?;
            }
            at += 1;
        }
        Ok(())
    }

    /// The name by which the program is called.
    fn program(self) -> &'a str {
        self.words.first().and_then(|word| word.rsplit('/').next()).unwrap_or_default()
    }

    fn runs(self, what: &str) -> String {
        let program = self.program();
        format!(
            "`{program} {what}` runs another program or writes files, which the list does not allow"
        )
    }

    fn unknown(self, what: &str) -> String {
        let program = self.program();
        format!("`{program}` can run other programs, and the effect of `{what}` is unknown")
    }

    fn text(self, why: &str) -> String {
        format!("`{}` can run other programs: {why}", self.program())
    }
}

/// Options of subcommands: only those that execute something are known.
static SUBCOMMAND_OPTIONS: Launcher =
    Launcher { understood: KnownOptions::AllAnd(&["--text", "--filter"]), ..BASE };
static SUBCOMMAND_WHOLE_OPTIONS: Launcher = Launcher { style: Style::Whole, ..BASE };

fn is_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

/// Whether a word is `NAME=value` before a command.
fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}

/// Whether an option is in a list. Long options may be abbreviated as long as they are unambiguous.
fn means(list: &[&str], name: &str, style: Style) -> bool {
    list.iter().any(|known| match style {
        Style::Whole => known.trim_start_matches('-') == name.trim_start_matches('-'),
        Style::Clustered => known.starts_with("--") && known.starts_with(name) && name.len() > 2,
    })
}
