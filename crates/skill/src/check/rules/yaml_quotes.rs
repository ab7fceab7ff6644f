//! Values that lack quotes, or whose quotes are broken.

use crate::check::rule::rule;

rule! {
    /// A backslash in double quotes begins no escape.
    ///
    /// ## Why
    ///
    /// In double quotes YAML reads `\n`, `\"` and a few more; any other letter after a backslash is
    /// an error for every YAML reader. Double the backslash, or use single quotes.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: ticket-links
    /// description: "Links tickets that match \d+ to the tracker. Use when a text names tickets."
    /// ---
    /// # Ticket links
    ///
    /// Replace each number by a link.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: ticket-links
    /// description: "Links tickets that match \\d+ to the tracker. Use when a text names tickets."
    /// ---
    /// # Ticket links
    ///
    /// Replace each number by a link.
    /// ````
    INVALID_ESCAPE = "invalid-escape", Error, fix Safe
}

rule! {
    /// A quoted value goes on at the margin instead of being indented.
    ///
    /// ## Why
    ///
    /// YAML wants every line of a value further to the right than its key. The parsers of several
    /// JavaScript and C based systems let it pass, stricter ones refuse the file.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: invoices
    /// description: "Lists open invoices.
    /// Use when someone asks what is due."
    /// ---
    /// # Invoices
    ///
    /// Open the ledger and list what is not paid.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: invoices
    /// description: "Lists open invoices.
    ///   Use when someone asks what is due."
    /// ---
    /// # Invoices
    ///
    /// Open the ledger and list what is not paid.
    /// ````
    QUOTED_INDENTATION = "quoted-indentation", Error, fix Safe
}

rule! {
    /// Text follows the quote that closes a value.
    ///
    /// ## Why
    ///
    /// The quote ends the value, and what comes after it is an error for every YAML reader. Quotes
    /// must enclose the whole value, and a quote inside them needs a backslash.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: quick-review
    /// description: "Quick" review of a change. Use before merging.
    /// ---
    /// # Quick review
    ///
    /// Read the diff and name the three largest risks.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: quick-review
    /// description: '"Quick" review of a change. Use before merging.'
    /// ---
    /// # Quick review
    ///
    /// Read the diff and name the three largest risks.
    /// ````
    TEXT_AFTER_QUOTE = "text-after-quote", Error, fix Safe
}

rule! {
    /// A quote is opened and never closed.
    ///
    /// ## Why
    ///
    /// The value then runs on to the end of the frontmatter and swallows the fields after it. Every
    /// YAML reader refuses the file.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: weather
    /// description: "Looks up the weather. Use when someone asks about rain or sun.
    /// ---
    /// # Weather
    ///
    /// Ask for the place, then look up its forecast.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: weather
    /// description: "Looks up the weather. Use when someone asks about rain or sun."
    /// ---
    /// # Weather
    ///
    /// Ask for the place, then look up its forecast.
    /// ````
    UNCLOSED_QUOTE = "unclosed-quote", Error, fix Safe
}

rule! {
    /// A value without quotes contains a colon and a blank.
    ///
    /// ## Why
    ///
    /// For YAML a colon and a blank begin another field, so the line is an error. This is the most
    /// frequent breakage of all. The reference validator refuses the file, Codex repairs it, the
    /// `npx skills` installer drops the skill without a word, and Claude Code leaves it out of its
    /// list.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: invoices
    /// description: Lists open invoices. Use for: reminders, monthly reports.
    /// ---
    /// # Invoices
    ///
    /// Open the ledger and list what is not paid.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: invoices
    /// description: "Lists open invoices. Use for: reminders, monthly reports."
    /// ---
    /// # Invoices
    ///
    /// Open the ledger and list what is not paid.
    /// ````
    UNQUOTED_COLON = "unquoted-colon", Error, fix Safe
}

rule! {
    /// A value without quotes begins with a character that means something else in YAML.
    ///
    /// ## Why
    ///
    /// `@`, a backtick, `%`, `&`, `*`, `!`, `[` and `{` cannot begin plain text. Strict readers
    /// refuse the file; Codex quotes the value and reads again.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: changelog
    /// description: @mentions who wrote each change. Use when a release is prepared.
    /// ---
    /// # Changelog
    ///
    /// Read the log since the last tag.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: changelog
    /// description: "@mentions who wrote each change. Use when a release is prepared."
    /// ---
    /// # Changelog
    ///
    /// Read the log since the last tag.
    /// ````
    UNQUOTED_SPECIAL = "unquoted-special", Error, fix Safe
}
