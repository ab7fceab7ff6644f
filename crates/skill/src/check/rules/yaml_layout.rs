//! YAML that is broken by where its text stands.

use crate::check::rule::rule;

rule! {
    /// Text stands on the line of `>` or `|`.
    ///
    /// ## Why
    ///
    /// These marks say that the text begins on the next line. Tools that rewrite a frontmatter line
    /// by line produce this breakage; one registry lost thousands of descriptions by it.
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
    /// It came along with text that was copied from a web page. Some YAML readers refuse it, others
    /// take it for an anchor and lose the text.
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
    /// The frontmatter is not YAML, and no known repair helps.
    ///
    /// ## Why
    ///
    /// The reference validator refuses the file. Codex and OpenClaw try to save single lines,
    /// Claude Code leaves the skill out of its list, and several installers drop it without a word.
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
    /// A list begins on the line of its key.
    ///
    /// ## Why
    ///
    /// `key: - item` is not valid YAML: the dash must begin a line of its own. Every reader refuses
    /// it.
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
    /// The items of a list begin in different columns.
    ///
    /// ## Why
    ///
    /// Indentation tells YAML which items belong together. An item that slipped ends the list, and
    /// the file no longer reads anywhere.
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
    /// A key has no blank after its colon.
    ///
    /// ## Why
    ///
    /// `name:weather` is one word for YAML, so the field does not exist and the lines around it
    /// break. Every YAML reader refuses the file.
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
    /// A tab indents a line of the frontmatter.
    ///
    /// ## Why
    ///
    /// YAML counts columns in blanks and forbids tabs in the indentation. Every reader refuses the
    /// file, and the tab cannot be seen in most editors.
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
    /// The list or map then runs on into the next fields, and every YAML reader refuses the file.
    /// The fix closes the bracket at the end of its line, which is a guess.
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
