//! Parses the sources that users type.

use std::path::{Path, PathBuf};

use savoir_skill::{
    folder::is_skill_file,
    name::{NameGrammar, is_kebab_case},
    version::{SkillRef, VersionRange},
};
use url::Url;

use super::{GitSource, GitUrl, Source, SourceError, http, layout::is_markdown, pinned::decode};

/// Prefixes for hosts of repositories, such as `github:`.
pub(crate) const HOSTS: [(&str, &str); 4] = [
    ("github", "github.com"),
    ("gitlab", "gitlab.com"),
    ("codeberg", "codeberg.org"),
    ("bitbucket", "bitbucket.org"),
];

/// Prefixes that state the kind of a source explicitly.
const PREFIXES: [&str; 5] = ["path+", "git+", "url+", "well-known+", "registry:"];

/// Hosts on which every address `/owner/name` is a repository.
const REPOSITORY_HOSTS: [&str; 7] = [
    "github.com", "gitlab.com", "codeberg.org", "bitbucket.org", "git.sr.ht", "gitea.com",
    "git.savannah.gnu.org",
];

/// File endings of archives.
const ARCHIVES: [&str; 5] = [".zip", ".skill", ".tar.gz", ".tgz", ".tar"];

impl Source {
    /// Parses text that the user typed in the folder `here`. Checks which local paths exist, but
    /// sends no request.
    pub fn parse(text: &str, here: &Path) -> Result<Self, SourceError> {
        let text = text.trim();
        if text.is_empty() || text.starts_with('-') || text.chars().any(char::is_control) {
            let why = "write a folder, a file, an address, `owner/repo` or the name of a skill";
            return Err(SourceError::text(text, why));
        }
        if is_plain_path(text) {
            return parse_local(&absolute_path(text, here));
        }
        if let Some(rest) = text.strip_prefix("path+") {
            return parse_local(&absolute_path(rest, here));
        }
        if let Some(rest) = text.strip_prefix("git+") {
            return parse_git(rest).map(Self::Git);
        }
        if let Some(rest) = text.strip_prefix("url+") {
            return parse_file_address(rest);
        }
        if let Some(rest) = text.strip_prefix("well-known+") {
            return Ok(Self::WellKnown(parse_url(rest)?));
        }
        if let Some(rest) = text.strip_prefix("registry:") {
            return parse_registry(text, rest);
        }
        if let Some((word, rest)) = text.split_once(':')
            && let Some((_, host)) = HOSTS.iter().find(|(known, _)| *known == word)
        {
            return on_host(host, rest, text).map(Self::Git);
        }
        if text.contains("://") {
            return parse_address(text);
        }
        if is_scp(text) {
            return parse_git(text).map(Self::Git);
        }
        parse_shorthand(text, here)
    }
}

/// Whether the text can only be a path.
fn is_plain_path(text: &str) -> bool {
    // No host and no repository owner starts with a dot, so `.claude/skills/pdf` is a path.
    text == "~" || [".", "/", "~/"].iter().any(|start| text.starts_with(start))
}

/// The path of a missing file without `..`, if the folder that it would be in exists.
fn simplify(path: &Path) -> PathBuf {
    let parts = path.parent().and_then(|folder| folder.canonicalize().ok()).zip(path.file_name());
    parts.map_or_else(|| path.to_owned(), |(folder, name)| folder.join(name))
}

fn absolute_path(text: &str, here: &Path) -> PathBuf {
    let home = || std::env::home_dir();
    let path = match text.strip_prefix('~') {
        Some("") => home(),
        Some(rest) => rest.strip_prefix('/').and_then(|rest| Some(home()?.join(rest))),
        None => None,
    };
    // Collecting the components drops every `.`.
    path.unwrap_or_else(|| here.join(text)).components().collect()
}

fn parse_local(path: &Path) -> Result<Source, SourceError> {
    if is_bare_repository(path)
        && let Ok(url) = Url::from_file_path(path.canonicalize().as_deref().unwrap_or(path))
    {
        let url = GitUrl::parse(url.as_str())?;
        return Ok(Source::Git(GitSource { url, reference: None, path: None }));
    }
    if path.is_dir() {
        return Ok(Source::Folder(path.to_owned()));
    }
    if path.exists() {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        return Ok(match path.parent() {
            Some(folder) if is_skill_file(&name) && is_for(folder, path) => {
                Source::Folder(folder.to_owned())
            }
            _ => Source::File(path.to_owned()),
        });
    }
    match in_bare_repository(path) {
        Some(source) => source.map(Source::Git),
        None => Err(SourceError::NoPath(simplify(path))),
    }
}

/// Parses `repository.git[/path][@reference]` where the repository is a bare one on this machine.
fn in_bare_repository(path: &Path) -> Option<Result<GitSource, SourceError>> {
    let text = path.to_str()?;
    let (before, reference) = split_reference(text);
    let readings = [(before, reference), (text, None)];
    readings.into_iter().find_map(|(place, reference)| {
        let place = Path::new(place);
        let repository = place.ancestors().find(|folder| is_bare_repository(folder))?;
        let inside = place.strip_prefix(repository).ok()?.to_str()?;
        let url = Url::from_file_path(repository.canonicalize().ok()?).ok()?;
        let url = GitUrl::parse(url.as_str());
        Some(url.and_then(|url| source(url, reference.map(str::to_owned), inside, text)))
    })
}

/// Splits `file:///repository/path`, if the repository is on this machine: its name need not end in
/// `.git`.
fn split_local_repository(git: GitSource) -> GitSource {
    let split = || {
        let place = Url::parse(git.url.as_str()).ok()?.to_file_path().ok()?;
        let is_repository = |path: &&Path| is_bare_repository(path) || path.join(".git").exists();
        let repository = place.ancestors().find(is_repository)?;
        let inside = place.strip_prefix(repository).ok()?.to_str()?;
        let url = Url::from_file_path(repository).ok()?;
        let path = [inside, git.path.as_deref().unwrap_or_default()].join("/");
        source(GitUrl::parse(url.as_str()).ok()?, git.reference.clone(), &path, "").ok()
    };
    split().unwrap_or(git)
}

/// Whether the text is the path of a bare repository on this machine, or of a skill in one.
pub fn is_in_local_bare_repository(text: &str, here: &Path) -> bool {
    let path = absolute_path(text, here);
    let is_below = || text.contains('/') && !path.exists() && in_bare_repository(&path).is_some();
    is_bare_repository(&path) || is_below()
}

/// Whether a folder belongs to the SKILL.md in it, so that its other files may be part of the
/// skill: the folder has the skill's name, or has a `tools.py`. A download folder has neither.
fn is_for(folder: &Path, skill: &Path) -> bool {
    let bytes = std::fs::read(skill).unwrap_or_default();
    let Ok(source) = savoir_skill::Source::from_bytes(bytes) else { return false };
    let name = savoir_skill::read(source, None).skill.name;
    folder.file_name().is_some_and(|folder| *folder == *name) || folder.join("tools.py").is_file()
}

/// Whether a folder is a bare repository, which has no work tree, so that only git objects can be
/// read.
pub(super) fn is_bare_repository(path: &Path) -> bool {
    path.join("HEAD").is_file() && path.join("objects").is_dir() && path.join("refs").is_dir()
}

/// Whether the text looks like the SSH form `git@host:path`.
fn is_scp(text: &str) -> bool {
    let Some((user, rest)) = text.split_once('@') else { return false };
    !user.contains('/') && rest.split_once(':').is_some_and(|(host, _)| !host.contains('/'))
}

/// Parses text without prefix and scheme: a local path, or the name of something published.
fn parse_shorthand(text: &str, here: &Path) -> Result<Source, SourceError> {
    let path = absolute_path(text, here);
    let there = parse_local(&path).ok();
    let is_file = is_file(text);
    match there {
        Some(source) if is_file && path.is_file() => return Ok(source),
        // Only shells complete a folder with a trailing slash, so a folder is meant.
        Some(source @ (Source::Folder(_) | Source::Git(_))) if text.ends_with('/') => {
            return Ok(source);
        }
        None if is_file && text.matches('/').count() < 3 => {
            return Err(SourceError::NoPath(simplify(&path)));
        }
        _ => {}
    }
    match (parse_published(text), there) {
        (found, None) | (found @ Err(SourceError::Ambiguous { .. }), _) => found,
        (Err(_), Some(source)) => Ok(source),
        (Ok(source), Some(_)) => Err(SourceError::Ambiguous {
            text: text.to_owned(),
            first: format!("./{text}"),
            second: explicit_spelling(text, &source),
        }),
    }
}

/// Parses text without prefix and scheme that is not a local path.
fn parse_published(text: &str) -> Result<Source, SourceError> {
    if !text.contains('/') {
        return parse_registry(text, text);
    }
    if let Some((first, rest)) = text.split_once('/')
        && first.contains('.')
    {
        return match parse_address(&format!("https://{text}"))? {
            // An address without a scheme is only a file to download if its name ends like one.
            Source::Url { .. } if !is_file(text) => on_host(first, rest, text).map(Source::Git),
            source => Ok(source),
        };
    }
    let (path, reference) = split_reference(text);
    if let Some(reference) = reference
        && path.matches('/').count() == 1
        && is_range(reference)
    {
        // git references cannot have these characters, so it is a version range.
        if reference.contains(['^', '~', '*', '<', '>', '=', '!', ',']) {
            return parse_registry(text, text);
        }
        return Err(SourceError::Ambiguous {
            text: text.to_owned(),
            first: format!("registry:{text}"),
            second: format!("github:{text}"),
        });
    }
    on_host("github.com", text, text).map(Source::Git)
}

/// Whether the text would be parsed as a repository on GitHub without naming GitHub.
pub fn is_shorthand(text: &str) -> bool {
    let text = text.trim();
    let Some((first, _)) = text.split_once('/') else { return false };
    let is_host =
        |(word, _): &(&str, &str)| text.split_once(':').is_some_and(|(it, _)| it == *word);
    let is_explicit =
        PREFIXES.iter().any(|prefix| text.starts_with(prefix)) || HOSTS.iter().any(is_host);
    let means_a_file = is_file(text) && text.matches('/').count() < 3;
    let is_elsewhere = is_plain_path(text) || text.contains("://") || is_scp(text) || means_a_file;
    !is_explicit && !is_elsewhere && !first.contains('.')
}

/// Whether the text explicitly names a remote source: an address, a repository on a host or at an
/// SSH address, or a prefix of a lock other than `path+`.
pub fn is_remote(text: &str) -> bool {
    let is_host = |(word, _): &(&str, &str)| {
        text.split_once(':').is_some_and(|(it, rest)| it == *word && !rest.is_empty())
    };
    let is_prefixed =
        || PREFIXES.iter().any(|prefix| *prefix != "path+" && text.starts_with(prefix));
    !is_plain_path(text)
        && (text.contains("://") || HOSTS.iter().any(is_host) || is_prefixed() || is_scp(text))
}

/// Whether the text after `@` is a version range. Seven or more hexadecimal digits count as a
/// commit.
pub fn is_range(text: &str) -> bool {
    let is_commit = text.len() >= 7 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let begins = text.starts_with(|c: char| c.is_ascii_digit() || "^~*<>=!".contains(c));
    begins && !is_commit && VersionRange::parse(text).is_ok()
}

/// Returns the unambiguous spelling of a source.
fn explicit_spelling(text: &str, source: &Source) -> String {
    match source {
        Source::Registry { .. } => format!("registry:{text}"),
        Source::Git(git) if git.url.as_str().starts_with("https://github.com/") => {
            format!("github:{text}")
        }
        _ => format!("https://{text}"),
    }
}

fn parse_registry(text: &str, rest: &str) -> Result<Source, SourceError> {
    let wrong = |why: &str| {
        SourceError::text(text, format!("{why}; if it is a folder or a file, write ./{text}"))
    };
    // `@acme/pdf`, as npm writes it, is the same as `acme/pdf`.
    let rest = rest.strip_prefix('@').unwrap_or(rest);
    let reference = SkillRef::parse(rest).map_err(|error| wrong(&error.to_string()))?;
    let (namespace, name) = match reference.name.split_once('/') {
        Some((namespace, name)) => (Some(namespace.to_owned()), name.to_owned()),
        None => (None, reference.name),
    };
    if namespace.as_deref().is_some_and(|namespace| !is_kebab_case(namespace)) {
        return Err(wrong("a namespace has lower-case letters, digits and hyphens"));
    }
    NameGrammar::Published.check(&name).map_err(|problem| wrong(&problem.to_string()))?;
    Ok(Source::Registry { namespace, name, range: reference.range })
}

/// Parses `owner/repo[/path][@reference]` on a host.
fn on_host(host: &str, rest: &str, text: &str) -> Result<GitSource, SourceError> {
    let (rest, reference) = split_reference(rest.trim_matches('/'));
    let (repository, path) = split_repository(rest);
    if repository.split('/').filter(|part| !part.is_empty()).count() < 2 {
        let why = format!("a repository on {host} is written `owner/repo`");
        return Err(SourceError::text(text, why));
    }
    let url = GitUrl::parse(&format!("https://{host}/{repository}"))?;
    source(url, reference.map(str::to_owned), path.unwrap_or_default(), text)
}

/// Checks the reference and the path, and creates the source with a normalized path.
fn source(
    url: GitUrl,
    reference: Option<String>,
    path: &str,
    text: &str,
) -> Result<GitSource, SourceError> {
    let wrong = |why: &str| Err(SourceError::text(text, why));
    if let Some(reference) = &reference {
        let odd = |c: char| c.is_control() || " ^~:?*[\\".contains(c);
        if reference.is_empty() || reference.starts_with('-') || reference.contains(odd) {
            return wrong("what follows `@` is not a tag, branch or commit");
        }
    }
    let parts = path.split('/').filter(|part| !part.is_empty() && *part != ".");
    let mut parts: Vec<&str> = parts.collect();
    if parts.contains(&"..") {
        return wrong("a path in a repository has no `..`");
    }
    if parts.last().is_some_and(|name| is_skill_file(name)) {
        parts.pop();
    }
    let path = Some(parts.join("/")).filter(|path| !path.is_empty());
    Ok(GitSource { url, reference, path })
}

/// Splits at the last `@`, unless that starts a path component.
fn split_reference(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once('@') {
        Some((path, reference)) if !path.is_empty() && !path.ends_with('/') => {
            (path, Some(reference))
        }
        _ => (text, None),
    }
}

/// Splits the repository from the path in it. A repository has two components, or ends in `.git`.
fn split_repository(path: &str) -> (&str, Option<&str>) {
    if let Some((repository, inside)) = path.split_once(".git/") {
        return (&path[..repository.len() + 4], Some(inside));
    }
    match path.match_indices('/').nth(1) {
        Some((end, _)) if !has_ending(path, &[".git"]) => (&path[..end], Some(&path[end + 1..])),
        _ => (path, None),
    }
}

/// Parses the address of a repository, optionally followed by `#reference` or `@reference`.
fn parse_git(text: &str) -> Result<GitSource, SourceError> {
    let (address, fragment) = text.split_once('#').map_or((text, None), |(a, b)| (a, Some(b)));
    let path_start = match address.find("://") {
        Some(at) => address[at + 3..].find('/').map(|end| at + 3 + end),
        None => address.find(':'),
    };
    let (start, path) = address.split_at(path_start.unwrap_or(address.len()));
    let (path, reference) = split_reference(path);
    let (repository, inside) = match path.split_once(".git/") {
        Some((repository, inside)) => (&path[..repository.len() + 4], inside),
        None => (path, ""),
    };
    let url = GitUrl::parse(&format!("{start}{repository}"))?;
    let reference = fragment.or(reference).map(str::to_owned);
    source(url, reference, &decode(inside), text)
}

/// Parses an address with a scheme.
fn parse_address(text: &str) -> Result<Source, SourceError> {
    let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
    match scheme {
        "https" | "http" => parse_web_address(text),
        "file" if is_file(rest) => {
            let url =
                Url::parse(text).map_err(|error| SourceError::text(text, error.to_string()))?;
            let path = url.to_file_path();
            parse_local(
                &path.map_err(|()| SourceError::text(text, "it is not a path of this system"))?,
            )
        }
        "file" => parse_git(text).map(|git| Source::Git(split_local_repository(git))),
        "ssh" => parse_git(text).map(Source::Git),
        _ => Err(SourceError::text(
            text,
            format!("`{}` is not spoken; write `https://` or `ssh://`", scheme.escape_debug()),
        )),
    }
}

fn parse_web_address(text: &str) -> Result<Source, SourceError> {
    let plain = text.split('#').next().unwrap_or(text);
    let mut url = parse_url(plain)?;
    if let Some(host) = url.host_str().and_then(|host| host.strip_prefix("www."))
        && REPOSITORY_HOSTS.contains(&host)
    {
        let host = host.to_owned();
        // Cannot fail: the rest of a valid host name is valid without `www.`.
        let _ = url.set_host(Some(&host));
    }
    let host = url.host_str().unwrap_or_default();
    let parts: Vec<&str> = url.path().split('/').filter(|part| !part.is_empty()).collect();
    if parts.contains(&".well-known") && !is_file(url.path()) {
        return Ok(Source::WellKnown(url));
    }
    if let Some(source) = page_of_folder(&url, &parts, text) {
        return source.map(Source::Git);
    }
    let repository = without_page(&url, text);
    if parts.iter().any(|part| has_ending(part, &[".git"]) || part.contains(".git@")) {
        return parse_git(&repository).map(Source::Git);
    }
    if is_file(url.path()) {
        return parse_file_address(text);
    }
    let is_known = REPOSITORY_HOSTS.contains(&host);
    match parts.len() {
        2.. if is_known && host != "gitlab.com" => {
            repository_page(&url, &repository).map(Source::Git)
        }
        2 => parse_git(&repository).map(Source::Git),
        3.. if is_known => parse_git(&repository).map(Source::Git),
        3.. => parse_file_address(text),
        _ => Ok(Source::WellKnown(url)),
    }
}

/// Removes the parts of a repository address that only a browser needs: a query such as
/// `?tab=readme-ov-file`, and the anchor of a heading.
fn without_page(url: &Url, text: &str) -> String {
    let mut address = url.clone();
    address.set_query(None);
    let fragment = text.split_once('#').map_or("", |(_, fragment)| fragment);
    let is_anchor = url.query().is_some() || is_page_fragment(fragment);
    if is_anchor { address.to_string() } else { format!("{address}#{fragment}") }
}

/// Whether a fragment is the anchor of a heading, such as `#installation`, and not a reference.
fn is_page_fragment(fragment: &str) -> bool {
    const BRANCHES: [&str; 8] =
        ["HEAD", "main", "master", "develop", "dev", "trunk", "stable", "next"];
    let is_word = |c: char| c.is_ascii_alphabetic() || c == '-';
    fragment.chars().all(is_word) && !BRANCHES.contains(&fragment)
}

/// Parses the address of a repository as a browser shows it, or of something below it.
fn repository_page(url: &Url, text: &str) -> Result<GitSource, SourceError> {
    let host = url.host_str().unwrap_or_default();
    let mut found = on_host(host, &decode(url.path()), text)?;
    if let Some((_, reference)) = text.split_once('#') {
        found =
            source(found.url, Some(reference.to_owned()), &found.path.unwrap_or_default(), text)?;
    }
    Ok(found)
}

/// Parses the address of a page that a host shows for a folder or a file of a repository.
fn page_of_folder(url: &Url, parts: &[&str], text: &str) -> Option<Result<GitSource, SourceError>> {
    let dash = parts.iter().position(|part| *part == "-").unwrap_or(parts.len());
    let is_raw_github = url.host_str() == Some("raw.githubusercontent.com");
    let is_archive = has_ending(url.path(), &ARCHIVES);
    let (repository, rest) = match parts {
        // An archive is a file to download, even if it is in a repository.
        _ if is_archive && (is_raw_github || parts.contains(&"raw")) => return None,
        [_, _, "refs", "heads" | "tags", rest @ ..] | [_, _, rest @ ..]
            if is_raw_github && rest.len() > 1 =>
        {
            (&parts[..2], rest)
        }
        // GitLab, with nested groups.
        _ if let Some(["-", "tree" | "blob" | "raw", rest @ ..]) = parts.get(dash..)
            && !rest.is_empty() =>
        {
            (&parts[..dash], rest)
        }
        [_, _, "raw", "refs", "heads" | "tags", rest @ ..]
        | [_, _, "raw" | "src", "branch" | "tag" | "commit", rest @ ..]
        | [_, _, "tree" | "blob" | "raw" | "blame" | "edit", rest @ ..]
            if !rest.is_empty() =>
        {
            (&parts[..2], rest)
        }
        // Bitbucket does not state the kind of the reference; Gitea and Forgejo do.
        [_, _, "src", rest @ ..] if !rest.is_empty() && url.host_str() == Some("bitbucket.org") => {
            (&parts[..2], rest)
        }
        _ => return None,
    };
    let mut address = url.clone();
    address.set_query(None);
    if is_raw_github {
        // Cannot fail: both are host names.
        let _ = address.set_host(Some("github.com"));
    }
    address.set_path(&repository.join("/"));
    let found = GitUrl::parse(address.as_str());
    let reference = rest.first().map(|part| decode(part));
    let path = decode(&rest[1..].join("/"));
    Some(found.and_then(|found| source(found, reference, &path, text)))
}

/// Parses the address of a file, optionally followed by `#sha256:…`.
fn parse_file_address(text: &str) -> Result<Source, SourceError> {
    let (address, digest) = text.split_once('#').map_or((text, None), |(a, b)| (a, Some(b)));
    let digest = digest.map(str::parse).transpose();
    let digest =
        digest.map_err(|error: super::DigestError| SourceError::text(text, error.to_string()))?;
    Ok(Source::Url { url: parse_url(address)?, digest })
}

/// Parses an address, and checks that requests to it are allowed.
fn parse_url(text: &str) -> Result<Url, SourceError> {
    let url = Url::parse(text).map_err(|error| SourceError::text(text, error.to_string()))?;
    http::check(&url)?;
    Ok(url)
}

/// Whether a name ends like an archive or a Markdown file.
fn is_file(text: &str) -> bool {
    has_ending(text, &ARCHIVES) || is_markdown(text)
}

fn has_ending(text: &str, endings: &[&str]) -> bool {
    let text = text.to_ascii_lowercase();
    endings.iter().any(|ending| text.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn parsed(text: &str) -> Result<Source, SourceError> {
        Source::parse(text, Path::new("/nowhere"))
    }

    /// Formats a repository as `url`, `url @ reference`, `url : path` or both.
    fn shown(text: &str) -> String {
        match parsed(text) {
            Ok(Source::Git(git)) => {
                let reference = git.reference.map(|name| format!(" @ {name}")).unwrap_or_default();
                let path = git.path.map(|path| format!(" : {path}")).unwrap_or_default();
                format!("{}{reference}{path}", git.url)
            }
            Ok(Source::Url { url, digest }) => {
                format!("file {url}{}", digest.map(|_| " with digest").unwrap_or_default())
            }
            Ok(Source::WellKnown(url)) => format!("site {url}"),
            Ok(Source::Registry { namespace, name, range }) => {
                format!("registry {} {name} {range}", namespace.unwrap_or_default())
            }
            Ok(other) => format!("{other:?}"),
            Err(error) => error.code().to_owned(),
        }
    }

    #[test]
    fn repositories() {
        for (text, expected) in [
            ("o/r", "https://github.com/o/r"),
            ("o/r@v1", "https://github.com/o/r @ v1"),
            ("o/r@feature/x", "https://github.com/o/r @ feature/x"),
            ("o/r/a/b@v1.2", "https://github.com/o/r @ v1.2 : a/b"),
            ("o/r/@scope/x", "https://github.com/o/r : @scope/x"),
            ("o/r/a/SKILL.md", "https://github.com/o/r : a"),
            ("o/r@1234567", "https://github.com/o/r @ 1234567"),
            ("github:o/r@1.2.3", "https://github.com/o/r @ 1.2.3"),
            ("gitlab:o/r/a", "https://gitlab.com/o/r : a"),
            ("gitlab:g/s/r.git/a@v1", "https://gitlab.com/g/s/r.git @ v1 : a"),
            ("codeberg.org/o/r/a@main", "https://codeberg.org/o/r @ main : a"),
            ("git.x.example/o/r/a/b@v1", "https://git.x.example/o/r @ v1 : a/b"),
            ("github.com/o/r/tree/main/a", "https://github.com/o/r @ main : a"),
            ("https://github.com/o/r?tab=readme", "https://github.com/o/r"),
            ("https://github.com/o/r", "https://github.com/o/r"),
            ("https://github.com/o/r/", "https://github.com/o/r"),
            ("https://github.com/o/r.git@v1", "https://github.com/o/r.git @ v1"),
            ("https://github.com/o/r#v1", "https://github.com/o/r @ v1"),
            ("https://github.com/o/r/tree/main/a%20b/c", "https://github.com/o/r @ main : a b/c"),
            ("https://github.com/o/r/blob/v1/a/SKILL.md", "https://github.com/o/r @ v1 : a"),
            ("https://gitlab.com/g/s/r", "https://gitlab.com/g/s/r"),
            ("https://gitlab.com/g/s/r/-/tree/main/a", "https://gitlab.com/g/s/r @ main : a"),
            ("https://git.x.example/g/r/-/blob/v1/a.md", "https://git.x.example/g/r @ v1 : a.md"),
            ("https://codeberg.org/o/r/src/branch/main/a", "https://codeberg.org/o/r @ main : a"),
            ("https://bitbucket.org/o/r/src/main/a", "https://bitbucket.org/o/r @ main : a"),
            ("https://git.x.example/o/r", "https://git.x.example/o/r"),
            ("https://git.x.example/a/b/c.git/d@v1", "https://git.x.example/a/b/c.git @ v1 : d"),
            ("git+https://x.example/a/b/c#v1", "https://x.example/a/b/c @ v1"),
            ("https://www.github.com/o/r", "https://github.com/o/r"),
            ("https://github.com/o/r#installation", "https://github.com/o/r"),
            ("https://github.com/o/r#main", "https://github.com/o/r @ main"),
            ("https://github.com/o/r?tab=readme-ov-file#v1", "https://github.com/o/r"),
            ("https://github.com/o/r.git/", "https://github.com/o/r.git"),
            ("https://git.x.example/o/r?x=y", "https://git.x.example/o/r"),
            (
                "https://github.com/o/r/tree/main/skills/x/",
                "https://github.com/o/r @ main : skills/x",
            ),
            ("https://github.com/o/r/tree/main/a?x=y#L3", "https://github.com/o/r @ main : a"),
            ("https://github.com/o/r/raw/main/a/SKILL.md", "https://github.com/o/r @ main : a"),
            (
                "https://raw.githubusercontent.com/o/r/main/a/SKILL.md",
                "https://github.com/o/r @ main : a",
            ),
            (
                "https://raw.githubusercontent.com/o/r/refs/heads/main/a/SKILL.md",
                "https://github.com/o/r @ main : a",
            ),
            ("https://codeberg.org/o/r/raw/tag/v1/a.md", "https://codeberg.org/o/r @ v1 : a.md"),
            ("git@github.com:o/r.git", "git@github.com:o/r.git"),
            ("git@github.com:o/r.git/a@v1", "git@github.com:o/r.git @ v1 : a"),
            ("ssh://git@host.example:2222/o/r@v1", "ssh://git@host.example:2222/o/r @ v1"),
            ("file:///srv/r.git@v1", "file:///srv/r.git @ v1"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn is_remote_recognizes_urls() {
        for text in [
            "github:o/r/skill", "gitlab:o/r", "https://github.com/o/r", "file:///srv/r.git",
            "git@github.com:o/r.git", "git+https://x.example/r", "registry:acme/pdf",
        ] {
            assert!(is_remote(text), "{text}");
        }
        for text in
            ["pdf", "pdf@1.2", "o/r/skill", "./github:x", "path+../x", "github:", "a@b/c", "x:y"]
        {
            assert!(!is_remote(text), "{text}");
        }
    }

    #[test]
    fn files_sites_and_registries() {
        let digest = "ab".repeat(32);
        for (text, expected) in [
            ("https://x.example/a/b.zip", "file https://x.example/a/b.zip"),
            (
                "https://github.com/o/r/archive/refs/heads/main.tar.gz",
                "file https://github.com/o/r/archive/refs/heads/main.tar.gz",
            ),
            ("https://x.example/notes.md", "file https://x.example/notes.md"),
            (
                "https://raw.githubusercontent.com/o/r/main/a.zip",
                "file https://raw.githubusercontent.com/o/r/main/a.zip",
            ),
            ("https://x.example/a/b/c?d=e", "file https://x.example/a/b/c?d=e"),
            ("url+https://x.example/a", "file https://x.example/a"),
            (
                &format!("https://x.example/a.zip#sha256:{digest}"),
                "file https://x.example/a.zip with digest",
            ),
            ("http://127.0.0.1:8000/a.zip", "file http://127.0.0.1:8000/a.zip"),
            ("https://x.example", "site https://x.example/"),
            ("https://x.example/docs", "site https://x.example/docs"),
            ("x.example/docs", "site https://x.example/docs"),
            (
                "https://x.example/a/.well-known/skills/index.json",
                "site https://x.example/a/.well-known/skills/index.json",
            ),
            (
                "https://x.example/.well-known/skills/a/SKILL.md",
                "file https://x.example/.well-known/skills/a/SKILL.md",
            ),
            ("well-known+https://x.example/a/b", "site https://x.example/a/b"),
            ("pdf", "registry  pdf *"),
            ("pdf@^1.2", "registry  pdf ^1.2"),
            ("pdf@1.2.3", "registry  pdf 1.2.3"),
            ("acme/pdf@>=1,<2", "registry acme pdf >=1,<2"),
            ("registry:acme/pdf", "registry acme pdf *"),
            ("registry:@acme/pdf@1.2.3", "registry acme pdf 1.2.3"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn invalid_sources_are_rejected() {
        for text in [
            "",
            "--upload-pack=x",
            "a\nb",
            "PDF Tools",
            "o/r@--upload-pack=x",
            "o/r@-x",
            "o/r@a b",
            "o/r/../../x",
            "github:o",
            "ext::sh -c id",
            "git+ext::sh -c id",
            "git://host.example/o/r",
            "git@-oProxyCommand=id:o/r",
            "ssh://-oProxyCommand=id/o/r",
            "ssh://git:secret@host.example/o/r",
            "ftp://host.example/a.zip",
            "https://x.example/a.zip#sha1:ab",
            "registry:a/b/c",
        ] {
            assert_eq!(parsed(text).map_err(|e| e.code()), Err("source_text"), "{text}");
        }
        for text in ["http://x.example/a.zip", "https://me:secret@x.example/a.zip"] {
            assert_eq!(parsed(text).map_err(|e| e.code()), Err("address_refused"), "{text}");
        }
        for text in ["./none", "none.zip", "a/none.md", "~/none/at/all"] {
            assert_eq!(parsed(text).map_err(|e| e.code()), Err("no_path"), "{text}");
        }
    }

    #[test]
    fn bare_repository_is_a_repository() {
        let here = tempfile::tempdir().unwrap();
        let bare = here.path().join("a b@c.git");
        for folder in ["objects", "refs"] {
            fs::create_dir_all(bare.join(folder)).unwrap();
        }
        let parse = |text: &str| Source::parse(text, here.path()).unwrap();
        assert!(matches!(parse("./a b@c.git"), Source::Folder(_)));
        fs::write(bare.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        assert!(is_in_local_bare_repository("a b@c.git", here.path()));
        assert!(is_in_local_bare_repository("./a b@c.git/skills/x", here.path()));
        assert!(!is_in_local_bare_repository("./a b@c.git/objects", here.path()));
        let below = format!("file://{}/r/skills/x@v1", here.path().display());
        let split = |text: &str| match parse(text) {
            Source::Git(git) => (git.url.to_string().ends_with("/r"), git.path, git.reference),
            other => panic!("{other:?}"),
        };
        assert_eq!(split(&below), (false, None, Some("v1".to_owned())));
        fs::create_dir_all(here.path().join("r/.git")).unwrap();
        let path = Some("skills/x".to_owned());
        assert_eq!(split(&below), (true, path, Some("v1".to_owned())));
        for text in ["./a b@c.git", "path+a b@c.git"] {
            let Source::Git(git) = parse(text) else { panic!("{text}") };
            assert!(git.url.as_str().starts_with("file:///"), "{}", git.url);
            assert!(git.url.as_str().ends_with("/a%20b@c.git"), "{}", git.url);
            assert_eq!((git.reference, git.path), (None, None));
        }
    }

    #[test]
    fn ambiguous_sources_are_errors() {
        let here = tempfile::tempdir().unwrap();
        fs::create_dir_all(here.path().join("o/r")).unwrap();
        fs::create_dir(here.path().join("pdf")).unwrap();
        fs::write(here.path().join("a.zip"), "").unwrap();
        let parse = |text: &str| Source::parse(text, here.path());
        let message = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(message("pdf"), "`pdf` can mean two things; write `./pdf` or `registry:pdf`");
        assert_eq!(message("o/r"), "`o/r` can mean two things; write `./o/r` or `github:o/r`");
        assert_eq!(
            message("acme/pdf@1.2.3"),
            "`acme/pdf@1.2.3` can mean two things; write `registry:acme/pdf@1.2.3` or \
             `github:acme/pdf@1.2.3`"
        );
        assert_eq!(parse("./pdf").unwrap(), Source::Folder(here.path().join("pdf")));
        assert_eq!(parse("path+pdf").unwrap(), Source::Folder(here.path().join("pdf")));
        assert_eq!(parse("a.zip").unwrap(), Source::File(here.path().join("a.zip")));
        for folder in ["o/r/", "pdf/"] {
            assert_eq!(parse(folder).unwrap(), Source::Folder(here.path().join(folder)));
        }
        fs::create_dir(here.path().join("My Skill")).unwrap();
        assert_eq!(parse("My Skill").unwrap(), Source::Folder(here.path().join("My Skill")));
        assert!(matches!(parse("registry:pdf").unwrap(), Source::Registry { .. }));
        assert!(matches!(parse("github:o/r").unwrap(), Source::Git(_)));
        assert!(matches!(parse("pdf@1").unwrap(), Source::Registry { .. }));
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_text_does_not_panic(text in ".{0,40}", odd in "[-a-z0-9@:/.#?%+~^ ]{0,40}") {
            for text in [text, odd] {
                // Only checks that parsing does not panic.
                let _ = parsed(&text);
                let _ = parsed(&format!("https://x.example/{text}"));
                let _ = parsed(&format!("git+ssh://git@x.example/{text}"));
            }
        }
    }

    #[test]
    fn missing_files_are_named_without_dots() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().canonicalize().unwrap();
        std::fs::create_dir(folder.join("inside")).unwrap();
        let missing = Source::parse("../gone.git/", &folder.join("inside"));
        assert!(
            matches!(missing, Err(SourceError::NoPath(path)) if path == folder.join("gone.git"))
        );
    }
}
