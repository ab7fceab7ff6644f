//! Writes a policy as a profile of macOS's sandbox. A profile is a list of rules, of which the last
//! matching one applies. What no rule allows is denied.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    path::{Path, PathBuf},
};

use crate::{
    error::SandboxError,
    policy::{Access, ExtraPrograms, Policy},
};

/// Rules that every program needs to start: libraries, random numbers, its own processes.
const START: &str = r#"(version 1)
(deny default)
(import "system.sb")
(allow process-fork)
(allow process-info* (target same-sandbox))
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow file-read* (subpath "/usr/lib") (subpath "/usr/share") (subpath "/System"))
(allow file-read* (literal "/") (literal "/private/etc/localtime") (literal "/private/etc/hosts"))
(allow file-read* file-write-data (literal "/dev/null") (literal "/dev/tty"))
(allow file-read* (literal "/dev/random") (literal "/dev/urandom") (literal "/dev/zero"))
(allow file-ioctl (literal "/dev/tty"))
"#;

/// Folders with the programs of the system and of its common package managers.
const SYSTEM_PROGRAMS: [&str; 7] = [
    "/bin",
    "/sbin",
    "/usr",
    "/System",
    "/Library/Developer/CommandLineTools",
    "/Library/Frameworks",
    "/opt/homebrew",
];

/// What a profile needs besides the policy.
#[derive(Debug, Default)]
pub(super) struct RunFolders {
    /// The folders that take the place of the policy's scratch folders.
    pub(super) scratch: BTreeMap<PathBuf, PathBuf>,
    /// A folder with the certificate and the script for the proxy; the program can read it.
    pub(super) proxy_files: Option<PathBuf>,
    /// The port of the proxy on the loopback address.
    pub(super) proxy_port: Option<u16>,
}

/// Returns the profile of a policy.
pub(super) fn write_profile(policy: &Policy, run: &RunFolders) -> Result<String, SandboxError> {
    let mut profile = Profile { text: START.to_owned(), parents: BTreeSet::new() };
    let can_execute = policy.extra_programs == ExtraPrograms::System;
    if can_execute {
        for folder in SYSTEM_PROGRAMS {
            profile.rule("allow file-read* process-exec*", "subpath", Path::new(folder))?;
        }
    }
    let mut grants: Vec<_> = policy.paths.iter().collect();
    // The most specific grant decides, as in `Policy::access_to`.
    grants.sort_by_key(|grant| (grant.path.components().count(), grant.access));
    for grant in grants {
        profile.add_grant(&grant.path, grant.access, can_execute)?;
    }
    for folder in run.scratch.values() {
        profile.add_grant(folder, Access::Write, can_execute)?;
    }
    if let Some(folder) = &run.proxy_files {
        profile.add_grant(folder, Access::Read, false)?;
    }
    // After the grants, because a listed program may be in a folder whose other files must not be
    // executable.
    for program in &policy.programs {
        profile.rule("allow file-read* process-exec*", "literal", program)?;
    }
    if let Some(port) = run.proxy_port {
        let _ = writeln!(profile.text, "(allow network-outbound (remote ip \"localhost:{port}\"))");
    }
    profile.add_parents()?;
    Ok(profile.text)
}

struct Profile {
    text: String,
    /// The folders above granted paths. Programs look up their attributes to resolve a path.
    parents: BTreeSet<PathBuf>,
}

impl Profile {
    fn add_grant(
        &mut self,
        path: &Path,
        access: Access,
        can_execute: bool,
    ) -> Result<(), SandboxError> {
        let rules: &[&str] = match access {
            Access::Read | Access::CreateGranted if can_execute => {
                &["allow file-read* process-exec*", "deny file-write*"]
            }
            Access::Read | Access::CreateGranted => {
                &["allow file-read*", "deny file-write* process-exec*"]
            }
            Access::Execute => &["allow file-read* process-exec*", "deny file-write*"],
            Access::Write if can_execute => &["allow file-read* file-write* process-exec*"],
            Access::Write => &["allow file-read* file-write*", "deny process-exec*"],
            Access::Protected => &["deny file-write*"],
            Access::Scratch | Access::Hidden => &["deny file-read* file-write* process-exec*"],
        };
        rules.iter().try_for_each(|rule| self.rule(rule, "subpath", path))
    }

    fn rule(&mut self, rule: &str, matcher: &str, path: &Path) -> Result<(), SandboxError> {
        let _ = writeln!(self.text, "({rule} ({matcher} {}))", quote(path)?);
        if rule.starts_with("allow") {
            self.parents.extend(path.ancestors().skip(1).map(Path::to_owned));
        }
        Ok(())
    }

    fn add_parents(&mut self) -> Result<(), SandboxError> {
        for parent in std::mem::take(&mut self.parents) {
            let _ = writeln!(self.text, "(allow file-read-metadata (literal {}))", quote(&parent)?);
        }
        Ok(())
    }
}

/// Returns a path as a string of the profile's language.
fn quote(path: &Path) -> Result<String, SandboxError> {
    let bad_path = || SandboxError::BadPath { path: path.to_owned() };
    let text = path.to_str().ok_or_else(bad_path)?;
    let is_plain = path.is_absolute() && !text.contains("/../") && !text.ends_with("/..");
    if !is_plain || text.contains(char::is_control) {
        return Err(bad_path());
    }
    Ok(format!("\"{}\"", text.replace('\\', r"\\").replace('"', "\\\"")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::PathGrant;

    fn profile(policy: &Policy) -> String {
        write_profile(policy, &RunFolders::default()).unwrap()
    }

    fn position(profile: &str, rule: &str) -> usize {
        profile.find(rule).unwrap_or_else(|| panic!("no rule {rule} in\n{profile}"))
    }

    #[test]
    fn empty_policy_denies_by_default_and_has_no_network() {
        let profile = profile(&Policy::default());
        assert!(profile.starts_with("(version 1)\n(deny default)\n"));
        assert!(!profile.contains("network"));
        assert!(!profile.contains("process-exec"));
        assert!(!profile.contains("(allow file-read* file-write*"));
    }

    #[test]
    fn more_specific_grant_comes_later() {
        let policy = Policy {
            paths: vec![
                PathGrant::hidden("/Users/ann/work/.env"),
                PathGrant::write("/Users/ann/work"),
                PathGrant::protected("/Users/ann/work/.git"),
                PathGrant::read("/Users/ann"),
            ],
            ..Policy::default()
        };
        let profile = profile(&policy);
        let rules = [
            r#"(allow file-read* (subpath "/Users/ann"))"#,
            r#"(allow file-read* file-write* (subpath "/Users/ann/work"))"#,
            r#"(deny file-write* (subpath "/Users/ann/work/.git"))"#,
            r#"(deny file-read* file-write* process-exec* (subpath "/Users/ann/work/.env"))"#,
        ];
        let positions = rules.map(|rule| position(&profile, rule));
        assert!(positions[0] < positions[1], "{profile}");
        assert!(positions[1] < positions[2], "{profile}");
        assert!(positions[1] < positions[3], "{profile}");
    }

    #[test]
    fn read_grant_below_a_write_grant_cannot_be_written() {
        let paths = vec![PathGrant::write("/w"), PathGrant::read("/w/skill")];
        let profile = profile(&Policy { paths, ..Policy::default() });
        let allowed = position(&profile, r#"(allow file-read* file-write* (subpath "/w"))"#);
        let denied = position(&profile, r#"(deny file-write* process-exec* (subpath "/w/skill"))"#);
        assert!(allowed < denied);
    }

    #[test]
    fn listed_programs_are_the_only_ones() {
        let policy = Policy { programs: vec!["/usr/bin/jq".into()], ..Policy::default() };
        let profile = profile(&policy);
        position(&profile, r#"(allow file-read* process-exec* (literal "/usr/bin/jq"))"#);
        assert_eq!(profile.matches("allow file-read* process-exec*").count(), 1);
    }

    #[test]
    fn system_programs_can_be_executed_if_granted() {
        let policy = Policy { extra_programs: ExtraPrograms::System, ..Policy::default() };
        let profile = profile(&policy);
        position(&profile, r#"(allow file-read* process-exec* (subpath "/bin"))"#);
        position(&profile, r#"(allow file-read* process-exec* (subpath "/opt/homebrew"))"#);
    }

    #[test]
    fn network_is_the_port_of_the_proxy_alone() {
        let run = RunFolders { proxy_port: Some(4711), ..RunFolders::default() };
        let profile = write_profile(&Policy::default(), &run).unwrap();
        assert_eq!(profile.matches("network").count(), 1);
        position(&profile, r#"(allow network-outbound (remote ip "localhost:4711"))"#);
    }

    #[test]
    fn scratch_folder_is_replaced_and_its_own_path_is_denied() {
        let policy = Policy { paths: vec![PathGrant::scratch("/tmp")], ..Policy::default() };
        let scratch = [("/tmp".into(), "/private/var/run/s0".into())].into();
        let run = RunFolders { scratch, ..RunFolders::default() };
        let profile = write_profile(&policy, &run).unwrap();
        position(&profile, r#"(deny file-read* file-write* process-exec* (subpath "/tmp"))"#);
        position(&profile, r#"(allow file-read* file-write* (subpath "/private/var/run/s0"))"#);
    }

    #[test]
    fn folders_above_a_grant_show_only_their_attributes() {
        let policy = Policy { paths: vec![PathGrant::read("/Users/ann/w")], ..Policy::default() };
        let profile = profile(&policy);
        position(&profile, r#"(allow file-read-metadata (literal "/Users/ann"))"#);
        assert!(!profile.contains(r#"(subpath "/Users/ann"))"#));
    }

    #[test]
    fn path_cannot_add_a_rule() {
        for path in ["/a\")) (allow default) ((\"", "/a\\\")", "/a\"b\\"] {
            let paths = vec![PathGrant::read(path)];
            let profile = profile(&Policy { paths, ..Policy::default() });
            for line in profile.lines().filter(|line| line.contains("/a")) {
                // Without escaped characters, a rule has exactly the two quotes of its path.
                let rest = line.replace(r"\\", "").replace("\\\"", "");
                assert_eq!(rest.matches('"').count(), 2, "{line}");
            }
        }
    }

    #[test]
    fn unusual_paths_are_refused() {
        for path in ["relative", "/a/../b", "/a/..", "/a\nb", "/a\u{0}b"] {
            let policy = Policy { paths: vec![PathGrant::read(path)], ..Policy::default() };
            let refused = write_profile(&policy, &RunFolders::default());
            assert!(matches!(refused, Err(SandboxError::BadPath { .. })), "{path:?}");
        }
    }
}
