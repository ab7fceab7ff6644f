//! Records packages that package managers install, and the index that they come from.

use savoir_skill::Span;

use super::ShellReader;
use crate::action::{Action, CodeOrigin};

/// Whether an address belongs to a host where projects publish their builds.
fn is_release_host(url: &str) -> bool {
    let hosts = ["github.com/", "gitlab.com/", "files.pythonhosted.org/", "download.pytorch.org/"];
    hosts.iter().any(|host| url.contains(&format!("https://{host}")))
}

impl ShellReader {
    pub(super) fn record_installs(&mut self, name: &str, texts: &[&str], span: Span) {
        let (manager, verbs): (&'static str, &[&str]) = match name {
            "pip" | "pip3" | "pipx" | "uv" => ("pip", &["install", "add"]),
            "npm" | "pnpm" | "yarn" => ("npm", &["install", "i", "add"]),
            "npx" | "bunx" | "pnpx" => ("npm", &[]),
            "deno" if texts.first() == Some(&"run") => ("npm", &["run"]),
            "uvx" => ("pip", &[]),
            "gem" => ("gem", &["install"]),
            "python" | "python3" if texts.windows(2).any(|pair| pair == ["-m", "pip"]) => {
                ("pip", &["install"])
            }
            _ => return,
        };
        let Some(from) =
            texts.iter().position(|text| verbs.contains(text)).or(verbs.is_empty().then_some(0))
        else {
            return;
        };
        let mut skip = false;
        for text in texts.get(from..).unwrap_or_default() {
            let takes = matches!(
                *text,
                "-r" | "--requirement" | "-e" | "-c" | "--python" | "-p" | "--prefix" | "-t"
            );
            if let Some(index) = text
                .strip_prefix("--index-url=")
                .or_else(|| text.strip_prefix("--extra-index-url="))
                .or_else(|| text.strip_prefix("--registry="))
            {
                self.actions.push(Action::UsesPackageIndex(index.to_owned()), span);
            }
            if std::mem::replace(&mut skip, takes) || text.starts_with('-') || verbs.contains(text)
            {
                continue;
            }
            // pip accepts `name @ https://…`.
            let text = &text.split_once(" @ ").map_or(*text, |(_, address)| address.trim());
            let web = text.starts_with("http://") || text.starts_with("https://");
            if web && !is_release_host(text) {
                self.actions
                    .push(Action::ExecutesCode(CodeOrigin::Fetched((*text).to_owned())), span);
            }
            // Installing a downloaded file is equivalent to installing from its address.
            let from = self.written_file_taint(text).fetched;
            if let Some(from) = from.filter(|from| !is_release_host(from)) {
                self.actions.push(Action::ExecutesCode(CodeOrigin::Fetched(from)), span);
            }
            self.actions
                .push(Action::InstallsPackage { manager, package: (*text).to_owned() }, span);
            if verbs.is_empty() {
                break;
            }
        }
        for flag in ["--index-url", "--extra-index-url", "--registry", "-i"] {
            let at = texts.iter().position(|text| *text == flag);
            if let Some(index) =
                at.and_then(|at| texts.get(at + 1)).filter(|index| index.contains("://"))
            {
                self.actions.push(Action::UsesPackageIndex((*index).to_owned()), span);
            }
        }
    }
}
