//! The default filter of log messages.

/// Our own crates; others log only warnings.
const OWN_CRATES: [&str; 17] = [
    "savoir", "savoir_agent", "savoir_engine", "savoir_eval", "savoir_flow", "savoir_knowledge",
    "savoir_lint", "savoir_lsp", "savoir_model", "savoir_package", "savoir_python",
    "savoir_registry", "savoir_sandbox", "savoir_scan", "savoir_server", "savoir_skill",
    "savoir_store",
];

/// A filter that logs messages of our crates from this level on.
pub(crate) fn from(level: &str) -> String {
    let ours = OWN_CRATES.map(|name| format!("{name}={level}")).join(",");
    format!("warn,{ours}")
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    #[test]
    fn every_crate_of_ours_is_there() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut found: Vec<String> = fs::read_dir(crates)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .map(|name| if name == "savoir" { name } else { format!("savoir_{name}") })
            .collect();
        found.sort();
        assert_eq!(found, OWN_CRATES);
        assert!(from("info").starts_with("warn,savoir=info,savoir_agent=info,"));
    }
}
