//! Rules about missing and broken quotes in YAML values.

use crate::check::rule::rule;

rule! {
    /// A backslash in double quotes does not start a valid escape.
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
    /// A quoted value continues on a line that is not indented.
    ///
    /// ## Why
    ///
    /// In YAML, every line of a value must be indented more than its key. Several parsers for
    /// JavaScript and C accept it, stricter ones reject the file.
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
    /// There is text after the closing quote of a value.
    ///
    /// ## Why
    ///
    /// The quote ends the value, and text after it is an error for every YAML reader. Quotes must
    /// enclose the whole value, and a quote inside them needs a backslash.
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
    /// The value then continues to the end of the frontmatter and includes the fields after it.
    /// Every YAML reader rejects the file.
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
    /// An unquoted value contains a colon and a space.
    ///
    /// ## Why
    ///
    /// In YAML, a colon and a space start another field, so the line is an error. This is the most
    /// frequent error in frontmatter. The reference validator rejects the file, Codex repairs it,
    /// the `npx skills` installer skips the skill without a warning, and Claude Code does not list
    /// it.
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
    /// An unquoted value starts with a character that has a special meaning in YAML.
    ///
    /// ## Why
    ///
    /// `@`, a backtick, `%`, `&`, `*`, `!`, `[` and `{` cannot start plain text. Strict readers
    /// reject the file; Codex quotes the value and parses it again.
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
