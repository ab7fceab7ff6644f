//! A hint for a script that failed because a package is not installed.

use std::path::Path;

use savoir_skill::{Dialect, Skill};

/// Python modules whose package has another name.
const PACKAGES: [(&str, &str); 13] = [
    ("Crypto", "pycryptodome"),
    ("PIL", "Pillow"),
    ("bs4", "beautifulsoup4"),
    ("cv2", "opencv-python"),
    ("dateutil", "python-dateutil"),
    ("docx", "python-docx"),
    ("dotenv", "python-dotenv"),
    ("fitz", "PyMuPDF"),
    ("jwt", "PyJWT"),
    ("pptx", "python-pptx"),
    ("serial", "pyserial"),
    ("sklearn", "scikit-learn"),
    ("yaml", "PyYAML"),
];

/// A hint for the missing package that the output of a skill's code mentions. Files of the skill are
/// not packages.
pub(crate) fn hint(printed: &str, skill: &Skill) -> Option<String> {
    if let Some(module) = python_module(printed).filter(|module| !is_own(module, &skill.resources))
    {
        let known = PACKAGES.iter().find(|(known, _)| *known == module);
        let package =
            known.map_or_else(|| format!("of `{module}`"), |(_, name)| format!("`{name}`"));
        let list = package_list(skill.dialect);
        return Some(format!(
            "Python module `{module}` is not installed: add the package {package} to {list}, and \
             Savoir installs it"
        ));
    }
    let package = node_package(printed)?;
    Some(format!(
        "Node package `{package}` is not installed: add it to the `dependencies` of a package.json \
         beside SKILL.md, and Savoir installs it"
    ))
}

/// The place where a skill lists its Python packages. Functions of `tools.py` get only the packages
/// of SKILL.md.
fn package_list(dialect: Dialect) -> &'static str {
    if dialect == Dialect::GAIA {
        "`dependencies` under `requirements` in SKILL.md"
    } else if dialect == Dialect::OPENCLAW {
        "`pip_requires` in SKILL.md, to a requirements.txt beside it, or to the `# /// script` block \
         of the script"
    } else {
        "a requirements.txt beside SKILL.md, or to the `# /// script` block of the script"
    }
}

/// The first part of the name of the missing Python module.
fn python_module(printed: &str) -> Option<&str> {
    let (_, rest) = printed.rsplit_once("No module named ")?;
    let name = rest.trim_start_matches('\'');
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    Some(&name[..end]).filter(|name| !name.is_empty())
}

/// The missing Node package; `None` if it is a file.
fn node_package(printed: &str) -> Option<&str> {
    let after = |start: &str| printed.rsplit_once(start).map(|(_, rest)| rest);
    let name = after("Cannot find package '").or_else(|| after("Cannot find module '"))?;
    let name = name.split('\'').next()?;
    let is_file = name.starts_with(['.', '/']) || name.starts_with("node:") || name.is_empty();
    let parts = if name.starts_with('@') { 2 } else { 1 };
    let end = name.match_indices('/').nth(parts - 1).map_or(name.len(), |(at, _)| at);
    (!is_file).then_some(&name[..end])
}

fn is_own(module: &str, files: &[String]) -> bool {
    let is_it =
        |file: &String| Path::new(file).with_extension("").iter().any(|part| part == module);
    files.iter().any(is_it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_out_of_messages() {
        for (printed, module) in [
            ("ModuleNotFoundError: No module named 'requests'\n", Some("requests")),
            ("ModuleNotFoundError: No module named 'google.cloud'", Some("google")),
            ("/usr/bin/python3: No module named pytest\n", Some("pytest")),
            ("ModuleNotFoundError: No module named 'a'; 'a' is not a package", Some("a")),
            ("No module named ", None),
            ("fine", None),
        ] {
            assert_eq!(python_module(printed), module, "{printed}");
        }
        for (printed, package) in [
            ("Error: Cannot find module 'left-pad'\nRequire stack:", Some("left-pad")),
            ("Error: Cannot find module 'lodash/fp'", Some("lodash")),
            ("Cannot find package '@a/b' imported from /x/y.mjs", Some("@a/b")),
            ("Cannot find package '@a/b/c/d' imported", Some("@a/b")),
            ("Error: Cannot find module './own'", None),
            ("Error: Cannot find module '/x/own.js'", None),
        ] {
            assert_eq!(node_package(printed), package, "{printed}");
        }
    }

    #[test]
    fn file_of_the_skill_is_not_a_package() {
        let files = ["lib/helper.py".to_owned(), "ours/__init__.py".to_owned()];
        assert!(is_own("helper", &files) && is_own("ours", &files) && !is_own("requests", &files));
    }
}
