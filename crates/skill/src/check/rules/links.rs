//! Checks the targets of links in the body.

use std::borrow::Cow;

use savoir_lint::{Diagnostic, Span};

use crate::{
    check::{Context, rule::rule},
    folder::{Folder, IGNORED_FOLDERS},
    limits::{MAX_FINDINGS_PER_RULE, MAX_FOLDER_FILES},
};

rule! {
    /// A link points to a file that the skill does not contain.
    ///
    /// ## Why
    ///
    /// The agent follows the link when it needs the file, finds nothing, and continues without it
    /// or invents the content.
    ///
    /// ## Bad
    ///
    /// ````markdown with=references/guide.md
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// Read [the guide](guide.md) first.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown with=references/guide.md
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// Read [the guide](references/guide.md) first.
    /// ````
    BROKEN_LINK = "broken-link", Warning, run links
}

rule! {
    /// A link leaves the folder of the skill.
    ///
    /// ## Why
    ///
    /// A skill is installed, packed and signed as one folder. Files outside the folder are missing
    /// on other machines, and a host may refuse to read them. Such links work in a repository
    /// whose skills are installed together, so only `--strict` reports them.
    ///
    /// ## Bad
    ///
    /// ````markdown strict
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// Read [the guide](../shared/guide.md) first.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown with=references/guide.md
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// Read [the guide](references/guide.md) first.
    /// ````
    LINK_OUTSIDE = "link-outside", Warning
}

rule! {
    /// A link starts at the root of the file system or in a home folder.
    ///
    /// ## Why
    ///
    /// The path exists on one machine only. Paths in a skill start at its own folder.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// Read [the guide](/home/ada/guide.md) first.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown with=references/guide.md
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// ---
    /// Read [the guide](references/guide.md) first.
    /// ````
    ABSOLUTE_LINK = "absolute-link", Warning
}

/// Most links that are looked up, so that many links into a large folder stay cheap.
const MAX_LINKS: usize = 2_000;

/// One walk over the links for all three rules.
fn links(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let document = &context.reading.document;
    let text = document.text();
    let links = document.outline().links(text, document.body_span());
    // A list of files that was cut short proves nothing.
    let folder = context.folder.filter(|folder| folder.files().len() < MAX_FOLDER_FILES);
    let before = found.len();
    for link in links.iter().take(MAX_LINKS) {
        if found.len() - before >= MAX_FINDINGS_PER_RULE {
            return;
        }
        let target = link.target.slice(text);
        match classify_target(target) {
            LinkTarget::Elsewhere => {}
            LinkTarget::Absolute => found.push(
                Diagnostic::warning(
                    ABSOLUTE_LINK.code,
                    link.target,
                    format!("`{target}` is not a path inside the skill"),
                )
                .help("link a file of the skill by its path from SKILL.md, or a page by its URL"),
            ),
            LinkTarget::Outside if !context.options.is_strict(LINK_OUTSIDE.code) => {}
            LinkTarget::Outside => found.push(
                Diagnostic::warning(
                    LINK_OUTSIDE.code,
                    link.target,
                    format!("`{target}` leaves the folder of the skill"),
                )
                .help("copy the file into the skill, or name the other skill in words"),
            ),
            LinkTarget::Inside(path) => {
                if let Some(folder) = folder.filter(|folder| is_missing(folder, &path)) {
                    found.push(broken(folder, link.target, &path));
                }
            }
        }
    }
}

/// Where a link target leads.
#[derive(Debug, PartialEq, Eq)]
enum LinkTarget {
    /// To a page, an anchor or a placeholder.
    Elsewhere,
    /// To a path that does not begin at the skill.
    Absolute,
    /// Above the skill.
    Outside,
    /// To a path below the skill, without dots.
    Inside(String),
}

fn classify_target(target: &str) -> LinkTarget {
    let path = target.split(['#', '?']).next().unwrap_or_default();
    if path.is_empty() || is_placeholder(path) || has_scheme(path) || path.starts_with("//") {
        return LinkTarget::Elsewhere;
    }
    if path.starts_with("~/") || is_absolute_path(path) {
        return LinkTarget::Absolute;
    }
    // Other paths from the root are pages of the site that the text is about.
    if path.starts_with('/') {
        return LinkTarget::Elsewhere;
    }
    let path = decode_path(path);
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if parts.pop().is_none() {
                    return LinkTarget::Outside;
                }
            }
            part => parts.push(part),
        }
    }
    let joined = parts.join("/");
    // A bare word is an example such as `[text](url)` more often than a file.
    let bare = !path.contains('/') && !joined.contains('.');
    if joined.is_empty() || bare { LinkTarget::Elsewhere } else { LinkTarget::Inside(joined) }
}

/// Whether a path begins with a folder that the file systems of people have.
fn is_absolute_path(path: &str) -> bool {
    const ROOTS: [&str; 10] =
        ["home", "Users", "root", "tmp", "var", "opt", "mnt", "usr", "etc", "private"];
    let first = path.strip_prefix('/').and_then(|rest| rest.split('/').next());
    first.is_some_and(|first| ROOTS.contains(&first))
}

/// Whether the target, or a part of it, is a placeholder.
fn is_placeholder(path: &str) -> bool {
    path.contains(['{', '}', '$', '<', '>', '*', '|', '[', ']', '"', ',', '=', '…'])
        || path.contains("...")
        || path.contains("path/to/")
}

/// `scheme:`, as in `https:` and `mailto:`.
fn has_scheme(path: &str) -> bool {
    let Some((scheme, _)) = path.split_once(':') else { return false };
    let mut bytes = scheme.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}

/// The path without percent escapes and without backslashes before punctuation.
fn decode_path(path: &str) -> Cow<'_, str> {
    if !path.contains(['%', '\\']) {
        return Cow::Borrowed(path);
    }
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let [first, after @ ..] = rest {
        let hex = |byte: &u8| char::from(*byte).to_digit(16);
        rest = match (first, after) {
            (b'%', [high, low, after @ ..]) if hex(high).is_some() && hex(low).is_some() => {
                let code = hex(high).unwrap_or_default() * 16 + hex(low).unwrap_or_default();
                bytes.push(code as u8);
                after
            }
            (b'\\', [mark, ..]) if mark.is_ascii_punctuation() => after,
            (b'\\', _) => {
                bytes.push(b'/');
                after
            }
            (byte, _) => {
                bytes.push(*byte);
                after
            }
        };
    }
    String::from_utf8(bytes).map_or(Cow::Borrowed(path), Cow::Owned)
}

fn is_missing(folder: &Folder, path: &str) -> bool {
    let unlisted = path.split('/').any(|part| IGNORED_FOLDERS.contains(&part));
    !unlisted && !folder.has(path) && !folder.has_folder(path)
}

fn broken(folder: &Folder, span: Span, path: &str) -> Diagnostic {
    let problem = Diagnostic::warning(
        BROKEN_LINK.code,
        span,
        format!("the skill does not contain the file `{path}`"),
    );
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_lowercase();
    let wanted = name(path);
    let files = folder.files().iter();
    match files.map(|file| &file.path).find(|other| name(other) == wanted) {
        Some(near) => problem.help(format!("did you mean `{near}`?")),
        None => problem.help("add the file, or remove the link"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::rules::testing::{find, find_in, folder, skill};

    #[test]
    fn targets_are_classified() {
        use LinkTarget::{Absolute, Elsewhere, Outside};
        let inside = |path: &str| LinkTarget::Inside(path.to_owned());
        for (target, expected) in [
            ("references/a.md", inside("references/a.md")),
            ("./a%20b.md#part", inside("a b.md")),
            ("x/../a\\_b.md?raw=1", inside("a_b.md")),
            ("scripts/", inside("scripts")),
            ("docs\\x.md", inside("docs/x.md")),
            ("a%zz.md", inside("a%zz.md")),
            ("größe.md", inside("größe.md")),
            ("../a.md", Outside),
            ("a/../../b.md", Outside),
            ("/etc/hosts", Absolute),
            ("~/x.md", Absolute),
            ("#anchor", Elsewhere),
            ("https://example.com/a.md", Elsewhere),
            ("mailto:a@example.com", Elsewhere),
            ("//example.com/x", Elsewhere),
            ("url", Elsewhere),
            ("./", Elsewhere),
            ("path/to/file.md", Elsewhere),
            ("{baseDir}/a.md", Elsewhere),
            ("${X}/a.md", Elsewhere),
            ("refs/*.md", Elsewhere),
            ("...", Elsewhere),
            ("", Elsewhere),
        ] {
            assert_eq!(classify_target(target), expected, "{target}");
        }
    }

    #[test]
    fn missing_files_need_a_known_folder() {
        let text =
            skill("[a](a.md) [b](refs/b.md) [dir](refs) ![c](c.png) [n](node_modules/x.md)\n");
        assert!(find(BROKEN_LINK.code, &text).is_empty());
        let found = find_in(BROKEN_LINK.code, &text, &folder("demo", &["refs/b.md", "refs/A.md"]));
        let places: Vec<_> = found.iter().map(|found| found.span.slice(&text)).collect();
        assert_eq!(places, ["a.md", "c.png"]);
        assert_eq!(found[0].help.as_deref(), Some("did you mean `refs/A.md`?"));
    }

    #[test]
    fn links_in_code_are_ignored() {
        let text = skill("`[a](../a.md)`\n```\n[b](/b.md)\n```\n<!-- [c](../c.md) -->\n");
        assert!(find(LINK_OUTSIDE.code, &text).is_empty());
        assert!(find(ABSOLUTE_LINK.code, &text).is_empty());
        assert_eq!(find(LINK_OUTSIDE.code, &skill("[a](../a.md)\n")).len(), 1);
    }
}
