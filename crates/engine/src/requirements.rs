//! Checks whether this machine meets the requirements of a skill.
//!
//! Environment variables, programs and the operating system decide whether a tool can run. Model,
//! context and hardware are advice: a known mismatch is a sentence for the user, and
//! an unknown value is not a mismatch.

use std::{ffi::OsStr, fs};

use savoir_lint::words::and;
use savoir_skill::skill::Requirements;
use serde_json::Value;
use thiserror::Error;

use crate::structured::{find_program, missing_programs};

/// Facts about the machine and the model; each may be unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineFacts {
    /// Parameters of the model.
    pub model_parameters: Option<u64>,
    /// Tokens of the context window.
    pub context_tokens: Option<u64>,
    /// Whether there is a neural processing unit.
    pub npu: Option<bool>,
    /// Bytes of memory of the graphics card.
    pub gpu_vram: Option<u64>,
}

impl MachineFacts {
    /// Detects the facts of this machine; those of the model stay unknown.
    pub fn detect() -> Self {
        let accelerators = fs::read_dir("/dev/accel").map(|mut entries| entries.next().is_some());
        Self { npu: Some(accelerators.unwrap_or(false)), gpu_vram: gpu_memory(), ..Self::default() }
    }
}

/// Memory of the largest graphics card that reports it; none if there is no card.
fn gpu_memory() -> Option<u64> {
    let cards = fs::read_dir("/sys/class/drm").ok()?.flatten();
    let sizes = cards.filter_map(|card| {
        let total = card.path().join("device/mem_info_vram_total");
        fs::read_to_string(total).ok()?.trim().parse::<u64>().ok()
    });
    sizes.max()
}

/// Why a tool cannot run here.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RequirementError {
    /// The names of the variables that are not set.
    #[error("{} not set: {}", variables(.0), .0.join(", "))]
    MissingVariables(Vec<String>),
    /// The names of the programs that are not on `PATH`.
    #[error("these programs are not on PATH: {}", .0.join(", "))]
    MissingPrograms(Vec<String>),
    /// Alternatives, none of which is on `PATH`.
    #[error("none of these programs is on PATH: {}", .0.join(", "))]
    NoneOfPrograms(Vec<String>),
    /// The skill supports only other systems.
    #[error("it works on {}, this is {here}", and(wanted))]
    OtherSystem {
        /// The systems that it works on.
        wanted: Vec<String>,
        here: String,
    },
}

fn variables(names: &[String]) -> &'static str {
    if names.len() == 1 {
        "this environment variable is"
    } else {
        "these environment variables are"
    }
}

impl RequirementError {
    /// The stable identifier of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::MissingVariables(_) => "missing-env-vars",
            Self::MissingPrograms(_) | Self::NoneOfPrograms(_) => "missing-tools",
            Self::OtherSystem { .. } => "unsupported-os",
        }
    }
}

/// Checks that every variable that the skill needs is set and not empty.
pub fn check_variables(
    requirements: &Requirements,
    is_set: impl Fn(&str) -> bool,
) -> Result<(), RequirementError> {
    let mut missing: Vec<String> = Vec::new();
    for name in &requirements.env_vars {
        if !missing.contains(name) && !is_set(name) {
            missing.push(name.clone());
        }
    }
    if missing.is_empty() { Ok(()) } else { Err(RequirementError::MissingVariables(missing)) }
}

/// Checks that the programs that a skill needs are on `path`: all required ones, and one of its
/// alternatives.
pub fn check_programs(requirements: &Requirements, path: &OsStr) -> Result<(), RequirementError> {
    let missing = missing_programs(&requirements.programs, path);
    if !missing.is_empty() {
        return Err(RequirementError::MissingPrograms(missing));
    }
    let any = &requirements.any_programs;
    if !any.is_empty() && !any.iter().any(|name| find_program(name, path).is_some()) {
        return Err(RequirementError::NoneOfPrograms(any.clone()));
    }
    Ok(())
}

/// Checks that the skill works on the operating system, named as Rust does (`linux`, `macos`).
pub fn check_system(requirements: &Requirements, here: &str) -> Result<(), RequirementError> {
    let wanted = &requirements.os;
    if wanted.is_empty() || wanted.iter().any(|system| system_name(system) == system_name(here)) {
        return Ok(());
    }
    Err(RequirementError::OtherSystem { wanted: wanted.clone(), here: here.to_owned() })
}

/// Returns one name for systems that have several.
fn system_name(word: &str) -> String {
    let word = word.trim().to_ascii_lowercase();
    match word.as_str() {
        "darwin" | "macos" | "mac" | "osx" => "macos".to_owned(),
        "win32" | "windows" | "win" => "windows".to_owned(),
        _ => word,
    }
}

/// Returns a sentence for each advice of the skill that this machine or model does not meet.
pub fn find_mismatches(requirements: &Requirements, facts: &MachineFacts) -> Vec<String> {
    let mut said = Vec::new();
    if let (Some(text), Some(has)) = (&requirements.model, facts.model_parameters)
        && !Minimum::parse(text).is_none_or(|least| least.is_met_by(has))
    {
        said.push(format!("the skill asks for a model of {text} parameters, this one is smaller"));
    }
    if let (Some(text), Some(has)) = (&requirements.context, facts.context_tokens)
        && !Minimum::parse(text).is_none_or(|least| least.is_met_by(has))
    {
        said.push(format!("the skill asks for a context of {text} tokens, this one has {has}"));
    }
    let hardware = |key: &str| requirements.hardware.as_ref()?.get(key).and_then(Value::as_str);
    if hardware("npu") == Some("required") && facts.npu == Some(false) {
        said.push("the skill asks for an NPU, there is none".to_owned());
    }
    if let (Some(text), Some(has)) = (hardware("gpu_vram"), facts.gpu_vram)
        && !Minimum::parse(text).is_none_or(|least| least.is_met_by(has))
    {
        said.push(format!("the skill asks for {text} of GPU memory, there is less"));
    }
    said
}

/// A lower limit such as `>=7B`, `8K` or `> 1.5GB`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Minimum {
    amount: f64,
    or_equal: bool,
}

impl Minimum {
    /// Parses a minimum; `None` if the text cannot be parsed.
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (or_equal, rest) = match (text.strip_prefix(">="), text.strip_prefix('>')) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => (true, text),
        };
        let rest = rest.trim();
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, unit) = rest.split_at(digits);
        // The smaller of the two sizes of a unit (thousands instead of 1024), so that a difference
        // of 24 tokens causes no warning.
        let factor = match unit.trim().to_ascii_uppercase().as_str() {
            "" => 1.0,
            "K" | "KB" => 1e3,
            "M" | "MB" => 1e6,
            "B" | "G" | "GB" => 1e9,
            "T" | "TB" => 1e12,
            "KIB" => 1024.0,
            "MIB" => 1_048_576.0,
            "GIB" => 1_073_741_824.0,
            _ => return None,
        };
        let number: f64 = number.parse().ok()?;
        Some(Self { amount: number * factor, or_equal })
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "nobody counts parameters or bytes that exactly"
    )]
    fn is_met_by(self, has: u64) -> bool {
        let has = has as f64;
        if self.or_equal { has >= self.amount } else { has > self.amount }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn needs() -> Requirements {
        Requirements {
            env_vars: vec!["A_KEY".into(), "B_KEY".into(), "HOME".into()],
            os: vec!["darwin".into(), "linux".into()],
            model: Some(">=7B".into()),
            context: Some(">=8K".into()),
            hardware: Some(json!({"npu": "required", "gpu_vram": ">=4GB"})),
            ..Requirements::default()
        }
    }

    #[test]
    fn all_missing_variables_in_one_error() {
        let error = check_variables(&needs(), |name| name == "HOME").unwrap_err();
        assert_eq!(error.to_string(), "these environment variables are not set: A_KEY, B_KEY");
        assert_eq!(error.code(), "missing-env-vars");
        let error = check_variables(&needs(), |name| name != "A_KEY").unwrap_err();
        assert_eq!(error.to_string(), "this environment variable is not set: A_KEY");
        assert_eq!(check_variables(&needs(), |_| true), Ok(()));
    }

    #[test]
    fn systems_have_several_names() {
        assert_eq!(check_system(&needs(), "macos"), Ok(()));
        assert_eq!(check_system(&needs(), "linux"), Ok(()));
        let error = check_system(&needs(), "windows").unwrap_err();
        assert_eq!(error.to_string(), "it works on darwin and linux, this is windows");
        assert_eq!(check_system(&Requirements::default(), "haiku"), Ok(()));
    }

    #[test]
    fn one_program_of_several_is_enough() {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut needs = Requirements {
            any_programs: vec!["no-such-program".into(), "sh".into()],
            ..Requirements::default()
        };
        assert_eq!(check_programs(&needs, &path), Ok(()));
        needs.any_programs.pop();
        assert_eq!(check_programs(&needs, &path).unwrap_err().code(), "missing-tools");
    }

    #[test]
    fn mismatches_need_known_facts() {
        assert_eq!(find_mismatches(&needs(), &MachineFacts::default()), [""; 0]);
        let small = MachineFacts {
            model_parameters: Some(3_000_000_000),
            context_tokens: Some(4096),
            npu: Some(false),
            gpu_vram: Some(2 << 30),
        };
        assert_eq!(
            find_mismatches(&needs(), &small),
            [
                "the skill asks for a model of >=7B parameters, this one is smaller",
                "the skill asks for a context of >=8K tokens, this one has 4096",
                "the skill asks for an NPU, there is none",
                "the skill asks for >=4GB of GPU memory, there is less",
            ]
        );
        let large = MachineFacts {
            model_parameters: Some(7_000_000_000),
            context_tokens: Some(8192),
            npu: Some(true),
            gpu_vram: Some(4 << 30),
        };
        assert_eq!(find_mismatches(&needs(), &large), [""; 0]);
    }

    #[test]
    fn limits_in_several_spellings() {
        for (text, amount, or_equal) in [
            (">=7B", 7e9, true),
            ("> 500M", 5e8, false),
            ("8K", 8e3, true),
            (" >= 0GB ", 0.0, true),
        ] {
            assert_eq!(Minimum::parse(text), Some(Minimum { amount, or_equal }), "{text}");
        }
        for text in ["big", "7Q", ">=", "1.2.3B"] {
            assert_eq!(Minimum::parse(text), None, "{text}");
        }
    }
}
