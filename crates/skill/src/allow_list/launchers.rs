//! Decides which calls of launchers a pattern such as `Bash(git:*)` covers without approval. A
//! launcher is a program that can run other programs.
//!
//! A pattern covers a program, but not everything that the program can start. So `find . -name x`
//! matches `Bash(find:*)`, `find . -exec rm` is in doubt, and `Bash(xargs rm:*)` names the inner
//! program and covers `xargs rm x`. A command in doubt is never allowed silently: the user decides.
//!
//! The [table] lists all launchers. A program that is not in it is covered by the pattern that names
//! it, unless its arguments look like a command that it runs: `--exec rm`, `-- sh -c 'rm x'`.

mod doubt;
mod startup_files;
// The table is not formatted, so that each program is one entry with its options on a few lines.
#[rustfmt::skip]
mod table;
#[cfg(test)]
mod tests;
mod text;

pub(super) use doubt::find_doubt;

/// A program that can run others, and the meaning of its options.
#[derive(Clone, Copy, Debug)]
struct Launcher {
    /// Program names without folder and version: `python3.12` is `python`.
    names: &'static [&'static str],
    /// Options whose value is executed or selects the code to execute. A pattern must contain the
    /// option and its value.
    executes: &'static [&'static str],
    /// Options that execute or write something without a value. A pattern must contain them.
    acts: &'static [&'static str],
    /// Options that are known to be harmless.
    understood: KnownOptions,
    /// Options whose value is the next word.
    takes: &'static [&'static str],
    /// Options with a value in the same word, if they have one: `-i.bak`.
    attached: &'static [&'static str],
    /// Options whose value is code in the language of the program.
    texts: &'static [&'static str],
    /// The syntax of options.
    style: Style,
    /// The meaning of the words that are not options.
    words: Words,
    /// Substrings of such words that make the program do something else.
    risky_parts: &'static [&'static str],
    /// Substrings of any word, or of two words with a blank between them, that make the program load
    /// or run other code. For options with an attached value, and options after `--`.
    runs_if: &'static [&'static str],
}

#[derive(Clone, Copy, Debug)]
enum KnownOptions {
    /// All options except those that execute something, plus these, which look like an abbreviation
    /// of one.
    AllAnd(&'static [&'static str]),
    /// Only these options.
    Only(&'static [&'static str]),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    /// `-xzf`, `--long=value`; long ones may be abbreviated.
    Clustered,
    /// `-exec`: one word is one option.
    Whole,
}

#[derive(Clone, Copy, Debug)]
enum Words {
    /// Files, patterns or numbers.
    Plain,
    /// Like `Plain`, but the first word may be options without a dash: `tar xzf`.
    Letters,
    /// A command after this many other words.
    Command { after: usize, how: CommandPassing },
    /// A script file and its arguments. After the options in `ends`, all words are arguments.
    Script { ends: &'static [&'static str] },
    /// Code in the language of the program, then files.
    Text(fn(&str) -> Result<(), &'static str>),
    /// The name of a subcommand.
    Subcommand(Subcommands),
    /// Tasks that a file of the project defines. Without a task, the program runs the default one,
    /// except with these options.
    Tasks(&'static [&'static str]),
    /// Every word can make the program run something.
    Opaque,
}

/// How a launcher receives the inner command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommandPassing {
    /// As separate words.
    Words,
    /// As separate words, to which the launcher appends words that are not visible here.
    Growing,
    /// Joined to a text for a shell.
    Shell,
}

#[derive(Clone, Copy, Debug)]
struct Subcommands {
    /// Subcommands that run nothing.
    plain: &'static [&'static str],
    /// Subcommands that run something configured elsewhere; `remote update` is two words. A pattern
    /// must contain them. Unknown subcommands are treated like these.
    acts: &'static [&'static str],
    /// Subcommands that run the words after them. A pattern must contain those words as well.
    executes: &'static [&'static str],
    /// Options of all subcommands whose value is executed.
    options: &'static [&'static str],
    /// Options of single subcommands that execute something or whose value is executed.
    own: &'static [(&'static str, &'static [&'static str])],
    /// Subcommands whose words are addresses, in which [`Launcher::risky_parts`] matter.
    addressed: &'static [&'static str],
    /// Subcommands that hand the words after `--` to another program as options.
    forwards: &'static [&'static str],
}
