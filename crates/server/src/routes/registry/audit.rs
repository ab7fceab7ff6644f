//! Reads the scan report that a publisher sends. It can only make the verdict stricter.

use axum::http::StatusCode;
use savoir_package::submission::Submission;
use savoir_skill::digest::sha256_hex;
use savoir_store::registry::{ScanResult, ScanVerdict};
use semver::Version;
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::{RegistryApiError, RegistryResult};

/// Maximum findings of a report that are stored.
const MAX_FINDINGS: usize = 200;

/// The fields of the report that are read.
#[derive(Debug, Deserialize)]
pub(super) struct PublisherScanReport {
    verdict: String,
    engine: Option<String>,
    skill: Option<String>,
    version: Option<String>,
    manifest_digest: Option<String>,
    #[serde(default)]
    findings: Vec<Value>,
}

impl PublisherScanReport {
    pub(super) fn read(text: &[u8], of: &Submission, version: &Version) -> RegistryResult<Self> {
        let refused =
            |code, message: String| RegistryApiError::new(StatusCode::BAD_REQUEST, code, message);
        let report: Self = serde_json::from_slice(text).map_err(|error| {
            refused("invalid_audit_report", format!("the audit report cannot be read: {error}"))
        })?;
        if report.verdict().is_none() {
            let message = "the verdict of an audit report is ALLOW, REVIEW or BLOCK".to_owned();
            return Err(refused("invalid_audit_report", message));
        }
        let other_skill = report
            .skill
            .as_ref()
            .is_some_and(|skill| *skill != of.name.to_string() && *skill != of.name.last());
        let number = version.to_string();
        if other_skill || report.version.as_ref().is_some_and(|version| *version != number) {
            let message = format!("the audit report is not about {} {number}", of.name);
            return Err(refused("audit_skill_mismatch", message));
        }
        if report.manifest_digest.as_ref().is_some_and(|digest| *digest != manifest_digest(of)) {
            let message = "the audit report is about another SKILL.md; scan it again".to_owned();
            return Err(refused("audit_digest_mismatch", message));
        }
        Ok(report)
    }

    fn verdict(&self) -> Option<ScanVerdict> {
        let all = [ScanVerdict::Allow, ScanVerdict::Review, ScanVerdict::Block];
        all.into_iter().find(|verdict| verdict.as_str().eq_ignore_ascii_case(&self.verdict))
    }

    /// Sets the worse of both verdicts, and adds the reported findings to the scan result.
    pub(super) fn make_stricter(mut self, scan: &mut ScanResult) {
        let rank = |verdict: ScanVerdict| match verdict {
            ScanVerdict::Allow => 0,
            ScanVerdict::Review => 1,
            ScanVerdict::Block => 2,
        };
        if let Some(verdict) = self.verdict().filter(|one| rank(*one) > rank(scan.verdict)) {
            scan.verdict = verdict;
        }
        self.findings.truncate(MAX_FINDINGS);
        scan.report["reported"] = json!({
            "verdict": self.verdict, "engine": self.engine, "findings": self.findings,
        });
    }
}

/// SHA-256 of SKILL.md with LF line ends.
fn manifest_digest(of: &Submission) -> String {
    let text = String::from_utf8_lossy(&of.skill_md).replace("\r\n", "\n").replace('\r', "\n");
    format!("sha256:{}", sha256_hex(text.as_bytes()))
}
