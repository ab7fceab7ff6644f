//! Rules about files that are empty, too large or unreadable.

use crate::check::rule::rule;

rule! {
    /// The file has no text.
    ///
    /// ## Why
    ///
    /// There is nothing to read and nothing to run. Agents skip such a skill, most of them without
    /// a warning.
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
    /// Savoir reads at most 1 MiB, and Agent Flow Lite accepts 50 KiB. The whole skill is added to
    /// the context of a model, and the base format advises fewer than 500 lines. Move reference
    /// text into files of the skill and link them.
    FILE_TOO_LARGE = "file-too-large", Error
}

rule! {
    /// The bytes of the file are not UTF-8.
    ///
    /// ## Why
    ///
    /// Every dialect uses UTF-8. Most systems reject a file in another encoding; the others read
    /// it with wrong letters. Save the file as UTF-8; the message names the first bad byte and
    /// says when the file looks like UTF-16.
    NOT_UTF8 = "not-utf8", Error
}

rule! {
    /// The file cannot be opened.
    ///
    /// ## Why
    ///
    /// It is a broken link, a folder with the name of a file, or a file without read permission.
    /// Agents do not list the skill. A link that was checked out of git as text is a common cause:
    /// replace it by the file.
    UNREADABLE_FILE = "unreadable-file", Error
}

rule! {
    /// The fixed text cannot be written back.
    ///
    /// ## Why
    ///
    /// The file or its folder is read-only, or the disk is full. The file is unchanged: a fix is
    /// written to a temporary file that replaces it in one step, or not at all.
    UNWRITABLE_FILE = "unwritable-file", Error
}
