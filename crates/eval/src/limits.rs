//! Limits of evaluations, each with its reason.

/// Deepest nesting of an evaluation file. JSON Schemas in it nest about ten levels.
pub const MAX_JSON_DEPTH: usize = 64;
/// Maximum number of cases of one skill. Real sets have three to fifty.
pub const MAX_CASES: usize = 1_000;
/// Maximum number of assertions of one case. Real cases have two to twenty.
pub const MAX_ASSERTIONS: usize = 200;
/// Maximum size of a file that a case brings.
pub const MAX_CASE_FILE_BYTES: usize = 16 << 20;
/// Maximum size of a prompt: it must fit into the context of a model, with room for an answer.
pub const MAX_PROMPT_BYTES: usize = 256 * 1024;
/// Maximum number of trials of one case.
pub const MAX_TRIALS: u32 = 1_000;
/// Maximum number of files that are recorded after a trial.
pub const MAX_RECORDED_FILES: usize = 500;
/// Maximum size of a file that is recorded. A larger one is listed without its content.
pub const MAX_RECORDED_FILE_BYTES: u64 = 1 << 20;
/// Maximum size of all files that are recorded after one trial.
pub const MAX_RECORDED_BYTES: u64 = 16 << 20;
/// Maximum bytes of files and answers that a judge reads: about 12,000 tokens.
pub const MAX_JUDGED_BYTES: usize = 48 * 1024;
/// Maximum size of a recorded trial that is read back.
pub const MAX_TRACE_BYTES: u64 = 64 << 20;
/// Maximum size of the results file that is read back.
pub const MAX_RESULTS_BYTES: u64 = 256 << 20;
/// Maximum size of a compiled regular expression.
pub const MAX_REGEX_BYTES: usize = 1 << 20;
/// Longest time of one trial in seconds, unless the user names another.
pub const TRIAL_SECONDS: u64 = 600;
/// Longest time of a grader command, in seconds.
pub const COMMAND_SECONDS: u64 = 60;
