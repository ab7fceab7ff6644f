//! Finds out which sandbox features this machine supports, by running a small program with each.

use std::path::{Path, PathBuf};

use super::{group, launch::Sandbox, sys};
use crate::{
    closure::{TRUSTED_PATH, find},
    outcome::{End, Outcome},
    policy::{HostGrant, Methods, Network, PathGrant, Policy, Watch},
    support::{Part, Support},
};

/// Tries each feature once.
pub(crate) fn examine() -> Support {
    let landlock = sys::landlock_version().ok();
    let folders: Vec<PathBuf> = TRUSTED_PATH.iter().map(PathBuf::from).collect();
    let Some(program) = find("true", &folders) else {
        let absent = Part::absent("there is no program `true` to try with", "install coreutils");
        return Support {
            sandbox: absent.clone(),
            landlock,
            proxy: absent.clone(),
            watch: absent,
            groups: false,
        };
    };
    Support {
        sandbox: attempt(&program, Network::None, Watch::Off),
        landlock,
        proxy: attempt(&program, Network::Hosts(hosts()), Watch::Off),
        watch: attempt(&program, Network::None, Watch::On),
        groups: group::Group::new(&crate::policy::Limits::default()).is_some(),
    }
}

fn hosts() -> Vec<HostGrant> {
    let host = "savoir.invalid".parse().ok();
    let grant = |host| HostGrant {
        host,
        scheme: None,
        port: None,
        path: String::new(),
        methods: Methods::Read,
        private: false,
    };
    host.into_iter().map(grant).collect()
}

fn attempt(program: &Path, network: Network, watch: Watch) -> Part {
    let policy = Policy {
        paths: vec![PathGrant::private("/tmp")],
        programs: vec![program.to_owned()],
        directory: "/tmp".into(),
        network,
        watch,
        ..Policy::default()
    };
    let outcome = Sandbox::new(policy)
        .and_then(|sandbox| sandbox.start(program, &[]))
        .map(|process| process.drive(&[], |_, _| {}));
    match outcome {
        Ok(Outcome { end: End::Exited(0), .. }) => Part::Held,
        Ok(outcome) => Part::absent(format!("a trial ended with {:?}", outcome.end), ""),
        Err(error) => Part::absent(error.to_string(), ""),
    }
}
