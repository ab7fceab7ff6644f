//! What a run was kept from, for a person who wonders why it failed.

use std::path::Path;

use savoir_sandbox::{Refusal, Verdict};

use super::Finished;
use crate::contract::is_of_the_system;

/// Hosts and paths that are named; the record has them all.
const NAMED: usize = 3;

/// What shells end with when a program is not there.
const NOT_FOUND: i32 = 127;

impl Finished {
    /// What a failed run was kept from, and how it can be granted, in sentences. Whether that is
    /// why it failed, and whether it should be granted, a person has to judge.
    pub fn denials(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        if self.envelope.success {
            return sentences;
        }
        if self.envelope.exit_code == Some(NOT_FOUND) {
            sentences.push(
                "it may have missed a program: --allow-program NAME grants one that is installed"
                    .to_owned(),
            );
        }
        for (option, hosts) in [
            ("--allow-host", self.refused_hosts(is_not_granted)),
            ("--allow-private-host", self.refused_hosts(|why| why == Refusal::PrivateAddress)),
        ] {
            sentences.extend(sentence("talking to", hosts, option));
        }
        let denied = self.outcome.files.denied.iter();
        let paths = denied.filter(|path| is_of_interest(path)).map(|path| shown(path));
        sentences.extend(sentence("opening", paths.collect(), "--allow-read or --allow-write"));
        if !sentences.is_empty() {
            sentences.push("the same call with --record finds out what it needs".to_owned());
        }
        sentences
    }

    fn refused_hosts(&self, matches: impl Fn(Refusal) -> bool) -> Vec<String> {
        let refused = self.outcome.hosts.iter().filter(
            |event| matches!(event.verdict, Verdict::Refused { reason } if matches(reason)),
        );
        let mut hosts: Vec<String> = refused.map(|event| event.host.clone()).collect();
        hosts.sort();
        hosts.dedup();
        hosts
    }
}

fn is_not_granted(why: Refusal) -> bool {
    matches!(
        why,
        Refusal::HostNotGranted
            | Refusal::SchemeNotGranted
            | Refusal::PortNotGranted
            | Refusal::PathNotGranted
            | Refusal::MethodNotGranted
    )
}

/// Whether a person may want to grant it. What is in `/tmp` was put there by somebody.
fn is_of_interest(path: &Path) -> bool {
    path.starts_with("/tmp") || !is_of_the_system(path)
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn sentence(doing: &str, mut things: Vec<String>, option: &str) -> Option<String> {
    let more = things.len().saturating_sub(NAMED);
    things.truncate(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!things.is_empty()).then(|| {
        format!("it was kept from {doing} {}{more}: {option} grants it", things.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_names_a_few() {
        let things = |count: usize| (0..count).map(|n| format!("h{n}")).collect::<Vec<_>>();
        let said = |count| sentence("talking to", things(count), "--allow-host");
        assert_eq!(said(0), None);
        assert_eq!(said(1).unwrap(), "it was kept from talking to h0: --allow-host grants it");
        let many = said(5).unwrap();
        assert_eq!(
            many,
            "it was kept from talking to h0, h1, h2 and 2 more: --allow-host grants it"
        );
    }
}
