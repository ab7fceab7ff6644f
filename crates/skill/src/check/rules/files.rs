//! Files that cannot be loaded, or hold nothing.

use crate::check::rule::rule;

rule! {
    /// The file has no text.
    ///
    /// ## Why
    ///
    /// There is nothing to read and nothing to run. Agents skip such a skill, most of them without
    /// a word.
    ///
    /// ## Bad
    ///
    /// ````markdown
    ///
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
    EMPTY_FILE = "empty-file", Error
}

rule! {
    /// The file is larger than its readers accept.
    ///
    /// ## Why
    ///
    /// Savoir reads at most 1 MiB, and Agent Flow Lite takes 50 KiB. A skill goes into the context
    /// of a model as a whole, and the base format advises fewer than 500 lines. Move reference text
    /// into files of the skill and link them.
    FILE_TOO_LARGE = "file-too-large", Error
}

rule! {
    /// The bytes of the file are not UTF-8.
    ///
    /// ## Why
    ///
    /// Every dialect is UTF-8. A file in another encoding is refused by all of them, or read with
    /// wrong letters where a system trusts its locale. Save the file as UTF-8; the message names
    /// the first bad byte and says when the file looks like UTF-16.
    NOT_UTF8 = "not-utf8", Error
}

rule! {
    /// The file cannot be opened.
    ///
    /// ## Why
    ///
    /// It is a link to nothing, a folder with the name of a file, or its rights forbid reading.
    /// Agents that scan for skills leave it out. A link that was checked out of git as text is a
    /// common cause: replace it by the file.
    UNREADABLE_FILE = "unreadable-file", Error
}

rule! {
    /// The fixed text cannot be written back.
    ///
    /// ## Why
    ///
    /// The file or its folder is read-only, or no space is left. The file is unchanged: a fix is
    /// written to a temporary file that replaces it in one step, or not at all.
    UNWRITABLE_FILE = "unwritable-file", Error
}
