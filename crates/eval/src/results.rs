//! The results of an evaluation, as they are stored, compared, signed and shown.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    gate::Gate,
    grade::Grading,
    stats::{Interval, PowerPrediction, SignTest, Summary, Verdict},
    trace::{Arm, HostRecord, TokenUsage},
    trigger::TriggerResult,
};

/// The format of stored results.
pub const RESULTS_FORMAT: u32 = 1;

/// The results of an evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    pub format: u32,
    /// The program that measured, with its version.
    pub harness: String,
    /// When the evaluation ended, in UTC.
    pub finished: String,
    pub skill: SkillRecord,
    /// The version that the skill is compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<SkillRecord>,
    /// The names of the other skills in the catalog of the arm with decoys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decoys: Vec<String>,
    pub eval_set: EvalSetRecord,
    pub host: HostRecord,
    /// The model that judged, as `provider:model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<JudgeRecord>,
    pub sandbox: SandboxRecord,
    /// Trials of each case and arm.
    pub trials: u32,
    pub cases: Vec<CaseResult>,
    /// The comparison with the agent without the skill comes first.
    pub comparisons: Vec<Comparison>,
    pub conclusion: Conclusion,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<TriggerResult>,
    pub spent: Spent,
}

/// A skill and the digest of its files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillRecord {
    pub name: String,
    pub version: Option<String>,
    /// The digest of all files, as `savoir verify` shows it.
    pub integrity: String,
    /// What a model reads to decide whether to use it.
    #[serde(default)]
    pub description: String,
}

/// The evaluation files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvalSetRecord {
    /// The SHA-256 over the cases, triggers and files.
    pub digest: String,
    pub cases: usize,
    pub triggers: usize,
}

/// The judge, and the text of its question.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgeRecord {
    pub model: String,
    pub prompt: String,
}

/// The limits of the workspaces in which the agent and grader commands ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxRecord {
    /// The operating system and the processor.
    pub platform: String,
    pub network: String,
    pub writable: String,
}

/// All trials of a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseResult {
    pub id: String,
    pub prompt: String,
    pub expected: Option<String>,
    pub arms: BTreeMap<Arm, Vec<TrialResult>>,
}

/// The result of one trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialResult {
    pub trial: u32,
    pub outcome: TrialOutcome,
    /// The weighted share of assertions that passed; `None` if the trial is invalid.
    pub score: Option<f64>,
    /// Why the trial is invalid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub grading: Grading,
    pub usage: TokenUsage,
    pub duration_ms: u64,
    /// Requests to the model.
    pub steps: u32,
    /// Whether the agent loaded the skill.
    pub used_skill: bool,
    /// Whether the trial was taken from the cache.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
}

/// How a trial ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrialOutcome {
    /// All assertions passed.
    Passed,
    Failed,
    /// It counts neither as passed nor as failed.
    Invalid,
}

/// Two arms, compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    pub arm: Arm,
    pub baseline: Arm,
    /// The difference of the pass rates in percentage points.
    pub uplift: Option<Interval>,
    pub sign_test: SignTest,
    pub tokens: Difference,
    pub seconds: Difference,
    pub steps: Difference,
    /// In dollars, if prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Difference>,
    /// Cases that are worse, and it is not chance.
    pub regressions: Vec<String>,
    /// Cases that look worse with too few trials to be sure.
    pub suspected_regressions: Vec<String>,
    /// Cases whose trials do not count, with the reason.
    pub left_out: Vec<LeftOut>,
}

/// A case that does not count in a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    pub case: String,
    pub reason: String,
}

/// A number of two arms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    pub arm: Summary,
    pub baseline: Summary,
    pub delta: f64,
}

/// A case with different results on identical input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlakyCase {
    pub case: String,
    pub arm: Arm,
    pub passed: u32,
    pub trials: u32,
}

/// The verdict, and what it is based on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Conclusion {
    pub verdict: Verdict,
    /// The condition that was checked: `uplift>0` if none was given.
    pub gate: Gate,
    /// Sentences that explain the verdict.
    pub reasons: Vec<String>,
    /// The number of trials that would decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed: Option<PowerPrediction>,
    pub flaky: Vec<FlakyCase>,
    pub invalid_trials: usize,
    pub all_trials: usize,
}

/// What the evaluation used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// Tokens of all trials, with those that were taken from the cache.
    pub trials: TokenUsage,
    /// Tokens of the judge.
    pub judge: TokenUsage,
    /// Tokens that this run paid for.
    pub paid: TokenUsage,
    /// Dollars that this run paid, if prices are known.
    pub cost: Option<f64>,
    pub seconds: f64,
}

impl Results {
    /// The main comparison: with the skill, and without it.
    pub fn main(&self) -> Option<&Comparison> {
        self.comparisons.first()
    }

    /// The arms that were run.
    pub fn arms(&self) -> Vec<Arm> {
        let has = |arm: &Arm| self.cases.iter().any(|case| case.arms.contains_key(arm));
        Arm::ALL.into_iter().filter(|arm| has(arm)).collect()
    }

    /// All valid scores of an arm.
    pub fn scores(&self, arm: Arm) -> Vec<f64> {
        let trials = self.cases.iter().filter_map(|case| case.arms.get(&arm)).flatten();
        trials.filter_map(|trial| trial.score).collect()
    }
}
