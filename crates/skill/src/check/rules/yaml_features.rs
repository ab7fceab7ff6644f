//! Rules about YAML features that readers treat differently or that are too large.

use crate::check::rule::rule;

rule! {
    /// A field appears twice.
    ///
    /// ## Why
    ///
    /// YAML forbids it, but some readers silently use the last value. A second list of permissions
    /// could replace the first one unnoticed. When both values are the same, the fix removes the
    /// second.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: weather
    /// description: Looks up the weather. Use when someone asks about rain or sun.
    /// license: MIT
    /// name: weather
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
    /// license: MIT
    /// ---
    /// # Weather
    ///
    /// Ask for the place, then look up its forecast.
    /// ````
    DUPLICATE_KEY = "duplicate-key", Error, fix Safe
}

rule! {
    /// The frontmatter uses an anchor `&name` or an alias `*name`.
    ///
    /// ## Why
    ///
    /// The reference validator rejects both, and readers that work line by line see the alias
    /// instead of the value. An alias without its anchor, or inside it, is an error everywhere.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: invoices
    /// description: Lists open invoices. Use when someone asks what is due.
    /// metadata:
    ///   author: &owner ana
    ///   maintainer: *owner
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
    ///   maintainer: ana
    /// ---
    /// # Invoices
    ///
    /// Open the ledger and list what is not paid.
    /// ````
    YAML_ALIAS = "yaml-alias", Warning
}

rule! {
    /// A key of the frontmatter is a list, a map or empty.
    ///
    /// ## Why
    ///
    /// Most readers allow only words as keys. The usual cause is a template that was not filled
    /// in: YAML reads `{{name}}` as a map whose key is a map.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: {{skill_name}}
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
    YAML_KEY = "yaml-key", Error
}

rule! {
    /// The frontmatter uses the merge key `<<`.
    ///
    /// ## Why
    ///
    /// YAML 1.2 removed it. Some readers still merge, others read a field named `<<`, and the
    /// reference validator rejects the alias that it needs.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: invoices
    /// description: Lists open invoices. Use when someone asks what is due.
    /// metadata:
    ///   <<: {author: ana}
    ///   version: "1.0"
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
    ///   version: "1.0"
    /// ---
    /// # Invoices
    ///
    /// Open the ledger and list what is not paid.
    /// ````
    YAML_MERGE_KEY = "yaml-merge-key", Warning
}

rule! {
    /// A value has a YAML tag such as `!!str`.
    ///
    /// ## Why
    ///
    /// The reference validator rejects tags, and other readers fail on unknown tags. Use quotes
    /// instead: every reader understands them.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: git-history
    /// description: Explains who changed a line. Use when someone asks why code is as it is.
    /// metadata:
    ///   version: !!str 1.0
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
    /// metadata:
    ///   version: "1.0"
    /// ---
    /// # Git history
    ///
    /// Run `git blame` on the file.
    /// ````
    YAML_TAG = "yaml-tag", Warning
}

rule! {
    /// Lists and maps are nested deeper than 32 levels.
    ///
    /// ## Why
    ///
    /// Real frontmatter nests six levels deep; more is an accident or an attack on the reader.
    /// Deeper frontmatter is not read.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: weather
    /// description: Looks up the weather. Use when someone asks about rain or sun.
    /// metadata:
    ///   places: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[Lisbon]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]
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
    ///   places: Lisbon
    /// ---
    /// # Weather
    ///
    /// Ask for the place, then look up its forecast.
    /// ````
    YAML_TOO_DEEP = "yaml-too-deep", Error
}

rule! {
    /// The frontmatter has more than 10,000 values after its aliases are expanded.
    ///
    /// ## Why
    ///
    /// A few lines of aliases can expand to millions of values and exhaust a reader without a
    /// limit. Larger frontmatter is not read. Put data into a file of the skill.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: invoices
    /// description: Lists open invoices. Use when someone asks what is due.
    /// metadata:
    ///   a: &a [0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    ///   b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]
    ///   c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]
    ///   d: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]
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
    ///   ledger: data/ledger.csv
    /// ---
    /// # Invoices
    ///
    /// Open the ledger and list what is not paid.
    /// ````
    YAML_TOO_LARGE = "yaml-too-large", Error
}
