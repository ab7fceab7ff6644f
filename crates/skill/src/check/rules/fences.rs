//! Rules about the fences `---` of the frontmatter and the text before them.

use crate::check::rule::rule;

rule! {
    /// There are blank lines before the frontmatter.
    ///
    /// ## Why
    ///
    /// The frontmatter must start on the first line. The reference validator rejects the file, and
    /// other readers treat all of it as the body.
    ///
    /// ## Bad
    ///
    /// ````markdown
    ///
    /// ---
    /// name: git-history
    /// description: Explains who changed a line. Use when someone asks why code is as it is.
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
    /// ---
    /// # Git history
    ///
    /// Run `git blame` on the file.
    /// ````
    BLANK_BEFORE_FRONTMATTER = "blank-before-frontmatter", Error, fix Safe
}

rule! {
    /// The whole file is inside a code block.
    ///
    /// ## Why
    ///
    /// Chat answers wrap files this way, and the wrapping was copied with the file. No reader
    /// finds the frontmatter inside it.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ```markdown
    /// ---
    /// name: invoices
    /// description: Lists open invoices. Use when someone asks what is due.
    /// ---
    /// # Invoices
    ///
    /// Open the ledger and list what is not paid.
    /// ```
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: invoices
    /// description: Lists open invoices. Use when someone asks what is due.
    /// ---
    /// # Invoices
    ///
    /// Open the ledger and list what is not paid.
    /// ````
    CODE_FENCED = "code-fenced", Error, fix Safe
}

rule! {
    /// There are spaces after `---` on the line of a fence.
    ///
    /// ## Why
    ///
    /// Not every reader accepts such a line as a fence: skillrt never does, and the `npx skills`
    /// installer skips the skill without a warning.
    ///
    /// ## Bad
    ///
    /// ````markdown escaped
    /// ---\u{20}
    /// name: weather
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
    FENCE_TRAILING_BLANK = "fence-trailing-blank", Warning, fix Safe
}

rule! {
    /// The text between the fences is not a map of fields.
    ///
    /// ## Why
    ///
    /// A reader looks fields up by their names. A list or a sentence has no names, and every
    /// dialect rejects it.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// - name
    /// - description
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
    FRONTMATTER_NOT_MAP = "frontmatter-not-map", Error
}

rule! {
    /// The frontmatter has more than 64 KiB.
    ///
    /// ## Why
    ///
    /// Larger frontmatter is not read, because parsing it could take too long. Real frontmatter
    /// stays below 8 KiB. Long text belongs in the body, data in a file of the skill.
    FRONTMATTER_TOO_LARGE = "frontmatter-too-large", Error
}

rule! {
    /// The file starts with fields, but they are not enclosed in fences.
    ///
    /// ## Why
    ///
    /// Without the lines `---` the fields are plain text. The reference validator rejects the
    /// file; systems that accept prose read it as a skill without a name and a description.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// name: git-history
    /// description: Explains who changed a line. Use when someone asks why code is as it is.
    ///
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
    /// ---
    ///
    /// # Git history
    ///
    /// Run `git blame` on the file.
    /// ````
    MISSING_FENCE = "missing-fence", Error, fix Safe
}

rule! {
    /// The file has no frontmatter, but its dialect requires one.
    ///
    /// ## Why
    ///
    /// Agents choose a skill by its description. A client of the base format skips a skill without
    /// one, while skillrt and Personal Agent accept a file without frontmatter.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=agentskills
    /// # Weather
    ///
    /// Ask for the place, then look up its forecast.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown dialect=agentskills
    /// ---
    /// name: weather
    /// description: Looks up the weather. Use when someone asks about rain or sun.
    /// ---
    /// # Weather
    ///
    /// Ask for the place, then look up its forecast.
    /// ````
    MISSING_FRONTMATTER = "missing-frontmatter", Error
}

rule! {
    /// The frontmatter has no closing `---`.
    ///
    /// ## Why
    ///
    /// Readers disagree: the base format, GAIA, gibb.eri.sh and skillrt reject the file, while
    /// Agent Flow Lite and Personal Agent treat all of it as the body.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: invoices
    /// description: Lists open invoices. Use when someone asks what is due.
    ///
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
    /// ---
    ///
    /// # Invoices
    ///
    /// Open the ledger and list what is not paid.
    /// ````
    UNCLOSED_FRONTMATTER = "unclosed-frontmatter", Error, fix Safe
}
