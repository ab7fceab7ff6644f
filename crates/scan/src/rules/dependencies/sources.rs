//! Where packages come from: indexes in settings, addresses in lock files and in headers of scripts.

use std::collections::HashMap;

use savoir_skill::Span;

use crate::{
    Confidence, Severity,
    context::{Context, FindingDraft},
    fragment::{Language, TextFragment},
    host::{self, HostReputation, reputation},
};

/// Maximum number of findings of one rule.
const MAX_FINDINGS: usize = 20;

/// Default package hosts, and hosts of private company indexes.
const DEFAULT_SOURCE_HOSTS: &[&str] = &[
    "pypi.org", "pythonhosted.org", "npmjs.org", "npmjs.com", "yarnpkg.com", "jsr.io", "crates.io",
    "rubygems.org", "golang.org", "packagist.org", "maven.org", "nuget.org", "anaconda.org",
    "conda.io", "tsinghua.edu.cn", "aliyun.com", "npmmirror.com", "taobao.org", "douban.com",
    "ustc.edu.cn", "github.com", "githubusercontent.com", "gitlab.com", "bitbucket.org",
    "pytorch.org", "pkg.dev", "nvidia.com", "pkgs.dev.azure.com", "visualstudio.com",
    "amazonaws.com", "jfrog.io", "cloudsmith.io", "deno.land", "huggingface.co",
];

/// Parts of the names of package manager settings files.
const SETTINGS_FILE_NAMES: &[&str] = &[
    "pyproject.toml", "setup.cfg", "pipfile", "npmrc", "pip.conf", "pip.ini", "package.json",
    "yarnrc", "bunfig.toml", "uv.toml", "poetry.toml", "gemfile", "nuget.config",
    "pnpm-workspace.yaml",
];

/// Lock files, and the line prefixes before the address of a package.
const LOCK_FILE_FORMATS: &[(&str, &[&str])] = &[
    ("package-lock.json", &["\"resolved\":"]),
    ("npm-shrinkwrap.json", &["\"resolved\":"]),
    ("yarn.lock", &["resolved "]),
    ("pnpm-lock.yaml", &["tarball:", "resolution:"]),
    ("uv.lock", &["source =", "{ url =", "sdist ="]),
    ("poetry.lock", &["url ="]),
    ("pdm.lock", &["url ="]),
    ("pipfile.lock", &["\"url\":"]),
    ("cargo.lock", &["source ="]),
    ("gemfile.lock", &["remote:"]),
    ("composer.lock", &["\"url\":"]),
];

/// Lines that set an index, whatever the file is called.
const INDEX_KEYS: &[&str] = &[
    "registry=", "registry =", "index-url=", "index-url =", "extra-index-url=",
    "extra-index-url =", "--index-url", "--extra-index-url", "npmRegistryServer:",
];

/// Whether a URL is a default source of packages.
pub(super) fn is_default_source(url: &str) -> bool {
    let Some(host) = host::host_of_url(url) else { return false };
    let known = DEFAULT_SOURCE_HOSTS.iter().any(|known| {
        host.strip_suffix(known).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    });
    known || matches!(host.as_str(), "registry.npmmirror.com" | "goproxy.cn" | "goproxy.io")
}

/// The frontmatter of SKILL.md in lower case.
pub(super) fn lowercase_frontmatter(context: &Context<'_>) -> String {
    let instructions = context.fragments.iter().find(|analyzed| {
        analyzed.fragment.depth == 0 && analyzed.fragment.path.eq_ignore_ascii_case("skill.md")
    });
    let text = instructions.map_or("", |analyzed| analyzed.fragment.file_text());
    let head = text.strip_prefix("---").and_then(|rest| rest.split_once("\n---"));
    head.map_or(String::new(), |(head, _)| head.to_lowercase())
}

/// Whether a host belongs to the service that the skill is frontmatter, over HTTPS.
pub(super) fn is_topic_host(url: &str, frontmatter: &str) -> bool {
    // `git+https://` as well, but not `http://a.example/?next=https://…`.
    if !url.split_once("://").is_some_and(|(scheme, _)| scheme.ends_with("https")) {
        return false;
    }
    let Some(host) = host::host_of_url(url) else { return false };
    let label = host.rsplit('.').nth(1).unwrap_or_default();
    let words = || frontmatter.split(|c: char| !c.is_alphanumeric());
    label.len() > 3 && words().any(|word| word == label)
}

fn is_foreign_source(url: &str, frontmatter: &str) -> bool {
    !is_default_source(url)
        && !is_topic_host(url, frontmatter)
        && matches!(reputation(url), HostReputation::Suspicious | HostReputation::OwnDomain)
}

fn foreign_source_draft(severity: Severity, url: &str) -> FindingDraft {
    FindingDraft::new(severity, Confidence::High, format!("packages come from {url}"))
}

/// Finds foreign indexes and archives in files of package managers.
pub(super) fn find_foreign_sources(
    fragment: &TextFragment<'_>,
    frontmatter: &str,
) -> Vec<(Span, FindingDraft)> {
    let mut found = find_all_foreign_sources(fragment, frontmatter);
    // Reports are limited per rule, and every finding is located in its file again.
    found.sort_by_key(|(span, draft)| (std::cmp::Reverse(draft.severity), span.start));
    found.truncate(MAX_FINDINGS);
    found
}

fn find_all_foreign_sources(
    fragment: &TextFragment<'_>,
    frontmatter: &str,
) -> Vec<(Span, FindingDraft)> {
    if fragment.depth > 0 {
        return Vec::new();
    }
    let name = fragment.path.rsplit(['/', '!']).next().unwrap_or_default().to_lowercase();
    if let Some((_, starts)) = LOCK_FILE_FORMATS.iter().find(|(lock, _)| *lock == name) {
        return check_lock_file(&fragment.text, starts, frontmatter);
    }
    let cargo = fragment.path.contains(".cargo/") && name.starts_with("config");
    let requirements = name.contains("requirements") && crate::collect::extension(&name) == "txt"
        || matches!(name.as_str(), "constraints.txt");
    if cargo || requirements || SETTINGS_FILE_NAMES.iter().any(|known| name.contains(known)) {
        return check_settings_lines(&fragment.text, 0, frontmatter);
    }
    match fragment.language {
        Language::Python => check_script_header(&fragment.text, frontmatter),
        Language::Other => check_index_settings(&fragment.text, frontmatter),
        _ => Vec::new(),
    }
}

/// Checks the lines of a settings file that starts at offset `at`.
fn check_settings_lines(text: &str, mut at: usize, frontmatter: &str) -> Vec<(Span, FindingDraft)> {
    const NON_SOURCE_KEYS: [&str; 8] = [
        "homepage", "\"url\"", "repository", "bugs", "Homepage", "Repository", "Documentation",
        "Issues",
    ];
    let mut found = Vec::new();
    let mut section = "";
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim_start_matches(['#', ' ', '\t']).trim_end();
        if trimmed.starts_with('[') && trimmed.ends_with(']') {
            section = trimmed;
        }
        let has_index_setting =
            ["index", "registry", "find-links", " @ http", "\"http", "source ", "server"]
                .iter()
                .any(|mark| line.contains(mark));
        // Skip links that no package manager follows, such as the homepage.
        let is_reader_link =
            section.contains("urls") || NON_SOURCE_KEYS.iter().any(|mark| line.contains(mark));
        for (start, url) in
            host::find_urls(line).into_iter().filter(|_| has_index_setting && !is_reader_link)
        {
            if is_foreign_source(url.trim_start_matches("sparse+"), frontmatter) {
                let span = Span::new(at + start, at + start + url.len());
                found.push((span, foreign_source_draft(Severity::High, url)));
            }
        }
        at += line.len();
    }
    found
}

/// Checks the inline metadata `# /// script` of a Python script.
fn check_script_header(text: &str, frontmatter: &str) -> Vec<(Span, FindingDraft)> {
    let Some(start) = text.find("# /// script") else { return Vec::new() };
    let rest = &text[start..];
    let end = rest[12..].find("\n# ///").map_or(rest.len(), |end| end + 12);
    check_settings_lines(&rest[..end], start, frontmatter)
}

/// Checks index settings in files with other names, which a user copies later.
fn check_index_settings(text: &str, frontmatter: &str) -> Vec<(Span, FindingDraft)> {
    let mut found = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim_start();
        // `@scope:registry=…`
        let trimmed = match trimmed.split_once(':') {
            Some((scope, rest)) if scope.starts_with('@') => rest,
            _ => trimmed,
        };
        if INDEX_KEYS.iter().any(|key| trimmed.starts_with(key)) {
            for (start, url) in host::find_urls(line) {
                if is_foreign_source(url, frontmatter) {
                    let span = Span::new(at + start, at + start + url.len());
                    found.push((span, foreign_source_draft(Severity::High, url)));
                }
            }
        }
        at += line.len();
    }
    found
}

/// Checks the sources of packages in a lock file.
fn check_lock_file(text: &str, starts: &[&str], frontmatter: &str) -> Vec<(Span, FindingDraft)> {
    let mut total = 0_usize;
    let mut foreign_hosts: HashMap<String, (usize, Span, &str)> = HashMap::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim_start();
        if starts.iter().any(|start| trimmed.starts_with(start)) {
            for (start, url) in host::find_urls(line) {
                total += 1;
                let Some(host) =
                    host::host_of_url(url).filter(|_| is_foreign_source(url, frontmatter))
                else {
                    continue;
                };
                let span = Span::new(at + start, at + start + url.len());
                foreign_hosts.entry(host).or_insert((0, span, url)).0 += 1;
            }
        }
        at += line.len();
    }
    let to_finding = |(count, span, url): (usize, Span, &str)| {
        // A company mirror serves most packages of a lock file. An attacker who adds one package
        // serves only that one.
        let mirror = count * 2 > total && total > 3 && reputation(url) == HostReputation::OwnDomain;
        (span, foreign_source_draft(if mirror { Severity::Medium } else { Severity::High }, url))
    };
    foreign_hosts.into_values().map(to_finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_reported(path: &str, text: &str) -> bool {
        let fragment = TextFragment::file(path, text);
        find_foreign_sources(&fragment, "name: acme-deploy")
            .iter()
            .any(|(_, draft)| draft.severity == Severity::High)
    }

    #[test]
    fn packages_from_unknown_hosts_are_reported() {
        for (path, text) in [
            ("package-lock.json", "{\n \"resolved\": \"http://203.0.113.9/a.tgz\"\n}"),
            (
                "yarn.lock",
                "a:\n  resolved \"https://registry.yarnpkg.com/a.tgz\"\nb:\n  resolved \"https://pkgs.fast.example/b.tgz\"\n",
            ),
            ("uv.lock", "source = { registry = \"https://pkgs.fast.example/simple\" }\n"),
            ("Cargo.lock", "source = \"registry+https://crates.fast.example/index\"\n"),
            ("Gemfile.lock", "GEM\n  remote: https://gems.fast.example/\n"),
            ("assets/npmrc.txt", "registry=https://npm.fast.example/\n"),
            ("templates/settings", "@types:registry=http://npm.fast.example/\n"),
            (
                "a.py",
                "# /// script\n# dependencies = [\"a @ https://x.fast.example/a.whl\"]\n# ///\n",
            ),
            (
                "b.py",
                "# /// script\n# [tool.uv]\n# index-url = \"https://x.fast.example/\"\n# ///\n",
            ),
            (
                "pyproject.toml",
                "[tool.uv.sources]\na = { url = \"https://x.fast.example/a.whl\" }\n",
            ),
            (".cargo/config.toml", "[source.x]\nregistry = \"sparse+https://x.fast.example/\"\n"),
            ("pip.conf", "[global]\nindex-url = http://pypi.acme.io/simple\n"),
        ] {
            assert!(is_reported(path, text), "{path}");
        }
    }

    #[test]
    fn packages_from_default_hosts_are_not_reported() {
        let mirror = "  resolved \"https://npm.corp.example/a.tgz\"\n".repeat(9);
        for (path, text) in [
            (
                "package-lock.json",
                "{\n \"resolved\": \"https://registry.npmjs.org/a/-/a-1.tgz\"\n}",
            ),
            ("yarn.lock", mirror.as_str()),
            ("uv.lock", "sdist = { url = \"https://files.pythonhosted.org/a.tar.gz\" }\n"),
            ("Cargo.lock", "source = \"registry+https://github.com/rust-lang/crates.io-index\"\n"),
            ("pyproject.toml", "[project.urls]\nChangelog = \"https://docs.fast.example/x\"\n"),
            ("pip.conf", "[global]\nindex-url = https://pypi.acme.io/simple\n"),
            ("a.py", "# see https://x.fast.example\nprint(1)\n"),
            ("notes.txt", "The registry is at https://npm.fast.example/\n"),
        ] {
            assert!(!is_reported(path, text), "{path}");
        }
    }
}
