//! Decides which calls of programs that run other programs a pattern such as `Bash(git:*)` covers
//! without approval.
//!
//! A pattern covers a program, and not everything that the program can be made to start. So `find .
//! -name x` fits `Bash(find:*)`, `find . -exec rm` is in doubt, and `Bash(xargs rm:*)` names the
//! inner program and covers `xargs rm x`. A doubtful command is never allowed silently: the user
//! decides.
//!
//! Everything that is known of a program is in the [table]. A program that is not in it runs nothing.

mod doubt;
// One program is one entry, and its options stay on a few lines.
#[rustfmt::skip]
mod table;
#[cfg(test)]
mod tests;
mod text;

pub(super) use doubt::find_doubt;

/// What is known of a program.
#[derive(Clone, Copy, Debug)]
struct Launcher {
    /// Without folder and version: `python3.12` is `python`.
    names: &'static [&'static str],
    /// Options whose value is run, or says what is run. A pattern must name the option and its value.
    executes: &'static [&'static str],
    /// Options that run or write something by themselves. A pattern must name them.
    acts: &'static [&'static str],
    /// Options that are understood.
    understood: KnownOptions,
    /// Options whose value is the next word.
    takes: &'static [&'static str],
    /// Options with a value in the same word, if they have one: `-i.bak`.
    attached: &'static [&'static str],
    /// Options whose value is text in the language of the program.
    texts: &'static [&'static str],
    /// How options are written.
    style: Style,
    /// What the words are that are not options.
    words: Words,
    /// Parts of such words that make a program do something else.
    risky_parts: &'static [&'static str],
}

#[derive(Clone, Copy, Debug)]
enum KnownOptions {
    /// All that are not said to execute, and these although they look like the beginning of one.
    AllAnd(&'static [&'static str]),
    /// These alone.
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
    /// Files, patterns, numbers.
    Plain,
    /// The same, but the first may be options without a dash: `tar xzf`.
    Letters,
    /// A command behind so many other words.
    Command { after: usize, how: CommandPassing },
    /// A file that is run, and its arguments. They are arguments behind these options, too.
    Script { ends: &'static [&'static str] },
    /// Text in a language of its own, then files.
    Text(fn(&str) -> Result<(), &'static str>),
    /// The name of what is to be done.
    Subcommand(Subcommands),
    /// Whatever stands there can make it run something.
    Opaque,
}

/// How a command is handed to another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommandPassing {
    /// Word by word.
    Words,
    /// Word by word, and more words follow that nobody sees here.
    Growing,
    /// Joined to a text for a shell.
    Shell,
}

#[derive(Clone, Copy, Debug)]
struct Subcommands {
    /// Those that run nothing by themselves.
    plain: &'static [&'static str],
    /// Those that run something that is settled elsewhere; `remote update` is two words. A pattern must
    /// name them. Those that nobody knows count among them.
    acts: &'static [&'static str],
    /// Those that run what stands behind them. A pattern must name that as well.
    executes: &'static [&'static str],
    /// Options of all of them whose value is run.
    options: &'static [&'static str],
    /// Options of some of them whose value is run, or that run something.
    own: &'static [(&'static str, &'static [&'static str])],
    /// Those whose words are addresses, in which [`Launcher::risky_parts`] parts matter.
    addressed: &'static [&'static str],
}
