//! Cloud commands that switch off protections or destroy data.

use crate::action::{CLOUD_AUDIT_LOG, CLOUD_BACKUPS, CLOUD_KEYS, CLOUD_MONITORING};

/// AWS commands that switch off monitoring of an account.
const AWS_MONITORING_COMMANDS: [&str; 13] = [
    "delete-detector",
    "stop-monitoring-members",
    "disassociate-from-master-account",
    "stop-configuration-recorder",
    "delete-configuration-recorder",
    "delete-delivery-channel",
    "disable-security-hub",
    "disable-macie",
    "delete-alarms",
    "disable-alarm-actions",
    "delete-analyzer",
    "delete-web-acl",
    "delete-account-password-policy",
];

/// Returns the protection that a command removes from a cloud account or a cluster.
pub(super) fn removed_cloud_protection(name: &str, texts: &[&str]) -> Option<&'static str> {
    let has = |word: &str| texts.contains(&word);
    let any = |part: &str| texts.iter().any(|text| text.contains(part));
    let after =
        |flag: &str| {
            texts.windows(2).find(|pair| pair[0] == flag).map(|pair| pair[1]).or_else(|| {
                texts.iter().find_map(|text| text.strip_prefix(flag)?.strip_prefix('='))
            })
        };
    let deletes = has("delete") || has("disable") || has("destroy") || has("purge");
    // A command without the name of what is deleted is only mentioned.
    let verb = texts.iter().position(|text| matches!(*text, "delete" | "disable" | "purge"));
    let is_mentioned = verb.is_some_and(|at| at + 1 == texts.len());
    match name {
        "gcloud" | "az" if is_mentioned => None,
        "aws" if has("stop-logging") || has("delete-trail") || has("delete-flow-logs") => {
            Some(CLOUD_AUDIT_LOG)
        }
        "aws" if has("delete-log-group") || has("put-event-selectors") => Some(CLOUD_AUDIT_LOG),
        "aws" if AWS_MONITORING_COMMANDS.iter().any(|verb| has(verb)) => Some(CLOUD_MONITORING),
        "aws" if has("inspector2") && has("disable") => Some(CLOUD_MONITORING),
        "aws"
            if after("--backup-retention-period") == Some("0")
                || has("--bypass-governance-retention")
                || any("Status=Suspended")
                || [
                    "delete-recovery-point", "delete-backup-vault", "delete-backup-plan",
                    "delete-db-snapshot", "delete-db-cluster-snapshot", "delete-snapshot",
                    "delete-backup",
                ]
                .iter()
                .any(|verb| has(verb)) =>
        {
            Some(CLOUD_BACKUPS)
        }
        "aws" if has("schedule-key-deletion") || has("disable-key") => Some(CLOUD_KEYS),
        "gcloud"
            if deletes && has("logging") && (has("sinks") || has("logs") || has("buckets")) =>
        {
            Some(CLOUD_AUDIT_LOG)
        }
        "gcloud" if deletes && (any("securitycenter") || has("monitoring") || has("scc")) => {
            Some(CLOUD_MONITORING)
        }
        "gcloud" if deletes && (has("snapshots") || has("backups") || has("--no-backup")) => {
            Some(CLOUD_BACKUPS)
        }
        "gcloud" if has("kms") && deletes => Some(CLOUD_KEYS),
        "az" if deletes
            && (has("diagnostic-settings") || has("log-profiles") || has("activity-log")) =>
        {
            Some(CLOUD_AUDIT_LOG)
        }
        "az" if deletes && (has("lock") || has("alert") || has("policy")) => Some(CLOUD_MONITORING),
        "az" if has("security") && has("pricing") && any("ree") => Some(CLOUD_MONITORING),
        "az" if deletes && (has("backup") || has("snapshot") || has("recovery-point")) => {
            Some(CLOUD_BACKUPS)
        }
        "az" if deletes && has("keyvault") => Some(CLOUD_KEYS),
        "velero" if has("delete") && (has("--all") || has("backup")) => Some(CLOUD_BACKUPS),
        "kubectl" | "oc"
            if has("delete")
                && (any("webhookconfiguration") || any("falco") || any("gatekeeper")) =>
        {
            Some(CLOUD_MONITORING)
        }
        "kubectl" | "oc" if has("delete") && has("--all") && any("volumesnapshot") => {
            Some(CLOUD_BACKUPS)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_cloud_protections_are_found() {
        let what = |command: &str| {
            let words: Vec<&str> = command.split(' ').collect();
            removed_cloud_protection(words[0], &words[1..])
        };
        assert_eq!(what("aws cloudtrail stop-logging --name x"), Some(CLOUD_AUDIT_LOG));
        assert_eq!(
            what("aws rds modify-db-instance --backup-retention-period 0"),
            Some(CLOUD_BACKUPS)
        );
        assert_eq!(what("gcloud logging sinks delete all"), Some(CLOUD_AUDIT_LOG));
        assert_eq!(
            what("az backup protection disable --delete-backup-data true"),
            Some(CLOUD_BACKUPS)
        );
        assert_eq!(what("aws rds modify-db-instance --backup-retention-period 7"), None);
        assert_eq!(what("aws logs tail x"), None);
        assert_eq!(what("kubectl delete pod x"), None);
    }
}
