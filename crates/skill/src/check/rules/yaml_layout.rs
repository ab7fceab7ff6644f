//! Rules about YAML errors caused by indentation and line breaks.

use crate::check::rule::rule;

rule! {
    /// There is text on the same line as `>` or `|`, or the text below is not indented.
    ///
    /// ## Why
    ///
    /// After these characters, the text must start on the next line, with every line indented. Tools that rewrite
    /// frontmatter line by line produce this error; one registry lost thousands of descriptions to
    /// it.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: invoices
    /// description: > Lists open invoices.
    ///   Use when someone asks what is due.
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
    /// description: >
    ///   Lists open invoices.
    ///   Use when someone asks what is due.
    /// ---
    /// # Invoices
    ///
    /// Open the ledger and list what is not paid.
    /// ````
    BLOCK_SCALAR_TEXT = "block-scalar-text", Error, fix Safe
}

rule! {
    /// The frontmatter contains `&nbsp;`.
    ///
    /// ## Why
    ///
    /// It comes from text that was copied from a web page. Some YAML readers reject it, others
    /// read it as an anchor and lose the text.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: weather
    /// description: Looks up the weather. Use when someone asks about rain or sun.
    /// metadata:
    /// &nbsp; language: en
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
    /// description: Looks up the weather. Use when someone asks about rain or sun.
    /// metadata:
    ///   language: en
    /// ---
    /// # Weather
    ///
    /// Ask for the place, then look up its forecast.
    /// ````
    HTML_SPACE = "html-space", Error, fix Unsafe
}

rule! {
    /// The frontmatter is not valid YAML and cannot be repaired automatically.
    ///
    /// ## Why
    ///
    /// The reference validator rejects the file. Codex and OpenClaw try to read single lines,
    /// Claude Code does not list the skill, and several installers skip it without a warning.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: invoices
    /// description: Lists open invoices. Use when someone asks what is due.
    /// metadata: {author: [ana}
    ///   version: 1
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
    /// description: Lists open invoices. Use when someone asks what is due.
    /// metadata:
    ///   author: ana
    ///   version: "1"
    /// ---
    /// # Invoices
    ///
    /// Open the ledger and list what is not paid.
    /// ````
    INVALID_YAML = "invalid-yaml", Error
}

rule! {
    /// A list starts on the same line as its key.
    ///
    /// ## Why
    ///
    /// `key: - item` is not valid YAML: the dash must be on a new line. Every reader rejects it.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: git-history
    /// description: Explains who changed a line. Use when someone asks why code is as it is.
    /// allowed-tools: - Read
    ///   - Grep
    /// ---
    /// # Git history
    ///
    /// Run `git blame` on the file.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: git-history
    /// description: Explains who changed a line. Use when someone asks why code is as it is.
    /// allowed-tools:
    ///   - Read
    ///   - Grep
    /// ---
    /// # Git history
    ///
    /// Run `git blame` on the file.
    /// ````
    LIST_ON_KEY_LINE = "list-on-key-line", Error, fix Safe
}

rule! {
    /// The items of a list start in different columns.
    ///
    /// ## Why
    ///
    /// Indentation tells YAML which items belong together. An item in another column ends the
    /// list, and no reader can parse the file.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: git-history
    /// description: Explains who changed a line. Use when someone asks why code is as it is.
    /// allowed-tools:
    ///     - Read
    ///   - Grep
    /// ---
    /// # Git history
    ///
    /// Run `git blame` on the file.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: git-history
    /// description: Explains who changed a line. Use when someone asks why code is as it is.
    /// allowed-tools:
    ///     - Read
    ///     - Grep
    /// ---
    /// # Git history
    ///
    /// Run `git blame` on the file.
    /// ````
    MISALIGNED_LIST = "misaligned-list", Error, fix Safe
}

rule! {
    /// There is no space after the colon of a key.
    ///
    /// ## Why
    ///
    /// `name:weather` is one word for YAML, so the field does not exist and the lines around it
    /// break. Every YAML reader rejects the file.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name:weather
    /// description: Looks up the weather. Use when someone asks about rain or sun.
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
    /// description: Looks up the weather. Use when someone asks about rain or sun.
    /// ---
    /// # Weather
    ///
    /// Ask for the place, then look up its forecast.
    /// ````
    MISSING_BLANK = "missing-blank", Error, fix Safe
}

rule! {
    /// A line of the frontmatter is indented with a tab.
    ///
    /// ## Why
    ///
    /// YAML forbids tabs in the indentation. Every reader rejects the file, and most editors do
    /// not show the tab.
    ///
    /// ## Bad
    ///
    /// ````markdown escaped
    /// ---
    /// name: invoices
    /// description: Lists open invoices. Use when someone asks what is due.
    /// metadata:
    /// \tauthor: ana
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
    /// description: Lists open invoices. Use when someone asks what is due.
    /// metadata:
    ///   author: ana
    /// ---
    /// # Invoices
    ///
    /// Open the ledger and list what is not paid.
    /// ````
    TAB_INDENTATION = "tab-indentation", Error, fix Safe
}

rule! {
    /// A bracket is opened and never closed.
    ///
    /// ## Why
    ///
    /// The list or map then continues into the next fields, and every YAML reader rejects the
    /// file. The fix closes the bracket at the end of its line, which is a guess.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: git-history
    /// description: Explains who changed a line. Use when someone asks why code is as it is.
    /// allowed-tools: [Read, Grep
    /// ---
    /// # Git history
    ///
    /// Run `git blame` on the file.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: git-history
    /// description: Explains who changed a line. Use when someone asks why code is as it is.
    /// allowed-tools: [Read, Grep]
    /// ---
    /// # Git history
    ///
    /// Run `git blame` on the file.
    /// ````
    UNCLOSED_BRACKET = "unclosed-bracket", Error, fix Unsafe
}
