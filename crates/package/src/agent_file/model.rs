//! Checks a model against the requirements of an agent and its skills.

use std::fmt;

use savoir_skill::skill::Requirements;
use serde::Serialize;

use super::{AgentFile, Minimum};

/// What is known about the model that an agent runs on, and about its machine. `None` is unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    pub name: Option<String>,
    pub parameters: Option<u64>,
    /// The context size, in tokens.
    pub context: Option<u64>,
    /// The memory of the graphics processor, in bytes.
    pub gpu_memory: Option<u64>,
    /// Whether there is a neural processor.
    pub npu: Option<bool>,
}

impl Model {
    /// Creates a model from its name, which may contain the number of parameters.
    pub fn named(name: &str) -> Self {
        Self {
            name: Some(name.to_owned()),
            parameters: parameters_of_name(name),
            ..Self::default()
        }
    }
}

/// Returns the number of parameters in a name such as `Qwen3.5-35B` or `mixtral:8x7b`. In `30B-A3B`
/// the first number is the total, and the second one counts only active parameters.
fn parameters_of_name(name: &str) -> Option<u64> {
    let words = || name.split(['-', '_', ':', '/', ' ', '(', ')']);
    let of_unit = |unit: char| {
        let sized = words().filter(|word| word.to_ascii_uppercase().ends_with(unit));
        sized.filter_map(multiplied_size).find(|amount| *amount > 0)
    };
    of_unit('B').or_else(|| of_unit('M'))
}

/// Parses `7B`, and `8x7B` as eight times 7B.
fn multiplied_size(word: &str) -> Option<u64> {
    if !word.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let (count, size) = match word.split_once(['x', 'X']) {
        Some((count, size)) => (count.parse::<u64>().ok()?, size),
        None => (1, word),
    };
    Minimum::parameters(size).ok()?.amount.checked_mul(count)
}

/// The quantity that a requirement is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Parameters of the model.
    Parameters,
    /// Tokens of its context.
    Context,
    /// Memory of the graphics processor.
    GpuMemory,
    /// A neural processor.
    Npu,
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Parameters => "parameters",
            Self::Context => "context",
            Self::GpuMemory => "GPU memory",
            Self::Npu => "NPU",
        })
    }
}

/// Whether a requirement is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Met,
    Unmet,
    /// The value of the model or machine is not known.
    Unknown,
}

impl Status {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Unmet => "unmet",
            Self::Unknown => "unknown",
        }
    }
}

/// A requirement on the model or the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Constraint {
    /// The skill with the requirement; `None` for the agent itself.
    pub skill: Option<String>,
    pub quantity: Quantity,
    /// The required value, as written.
    pub demand: String,
    pub status: Status,
    /// The actual value as text, if it is known.
    pub against: Option<String>,
    /// The agent's own minimum, if it is lower than what the skill requires.
    pub low: Option<String>,
}

/// Checks requirements against a model.
pub(super) struct ModelChecker<'a> {
    pub(super) agent: &'a AgentFile,
    /// The name of the agent file.
    pub(super) file: &'a str,
    pub(super) model: &'a Model,
    pub(super) constraints: Vec<Constraint>,
    /// Requirements that cannot be parsed, with the skill and the reason.
    pub(super) unreadable: Vec<(String, String)>,
}

impl ModelChecker<'_> {
    /// Checks the requirements of the agent.
    pub(super) fn agent(&mut self) {
        let requested = &self.agent.model;
        for (quantity, least) in
            [(Quantity::Parameters, &requested.minimum), (Quantity::Context, &requested.context)]
        {
            if let Some(least) = least {
                self.check_minimum(None, quantity, least);
            }
        }
    }

    /// Checks the requirements of a skill.
    pub(super) fn skill(&mut self, name: &str, needs: &Requirements) {
        if let Some(text) = &needs.model {
            self.check_parsed(name, Quantity::Parameters, Minimum::parameters(text));
        }
        if let Some(text) = &needs.context {
            self.check_parsed(name, Quantity::Context, Minimum::tokens(text));
        }
        let hardware = |key: &str| needs.hardware.as_ref()?.get(key)?.as_str();
        if let Some(text) = hardware("gpu_vram") {
            self.check_parsed(name, Quantity::GpuMemory, Minimum::bytes(text));
        }
        if hardware("npu") == Some("required") {
            let (status, against) = match self.model.npu {
                Some(true) => (Status::Met, Some("there is one".to_owned())),
                Some(false) => (Status::Unmet, Some("there is none".to_owned())),
                None => (Status::Unknown, None),
            };
            let (skill, demand) = (Some(name.to_owned()), "required".to_owned());
            let quantity = Quantity::Npu;
            self.constraints.push(Constraint {
                skill,
                quantity,
                demand,
                status,
                against,
                low: None,
            });
        }
    }

    fn check_parsed(
        &mut self,
        name: &str,
        quantity: Quantity,
        least: Result<Minimum, impl fmt::Display>,
    ) {
        match least {
            Ok(least) if least.amount == 0 => {}
            Ok(least) => self.check_minimum(Some(name), quantity, &least),
            Err(error) => self.unreadable.push((name.to_owned(), error.to_string())),
        }
    }

    /// Compares with the model if its value is known, otherwise with the minimum of the agent.
    fn check_minimum(&mut self, skill: Option<&str>, quantity: Quantity, least: &Minimum) {
        let (actual, stated) = match quantity {
            Quantity::Parameters => (self.model.parameters, self.agent.model.minimum.as_ref()),
            Quantity::Context => (self.model.context, self.agent.model.context.as_ref()),
            Quantity::GpuMemory => (self.model.gpu_memory, None),
            Quantity::Npu => (None, None),
        };
        let stated = stated.filter(|_| skill.is_some());
        let low = stated.filter(|stated| stated.amount < least.amount);
        let status = |met: bool| if met { Status::Met } else { Status::Unmet };
        let (status, against) = match (actual, stated) {
            (Some(actual), _) => {
                (status(least.is_met_by(actual)), Some(self.actual_amount(quantity, actual)))
            }
            (None, Some(stated)) => {
                let against = format!("{} asks for {stated}", self.file);
                (status(low.is_none()), Some(against))
            }
            (None, None) => (Status::Unknown, None),
        };
        self.constraints.push(Constraint {
            skill: skill.map(str::to_owned),
            quantity,
            demand: least.to_string(),
            status,
            against,
            low: low.map(ToString::to_string),
        });
    }

    fn actual_amount(&self, quantity: Quantity, amount: u64) -> String {
        let amount = quantity.amount(amount);
        match (quantity, &self.model.name) {
            (Quantity::Parameters | Quantity::Context, Some(name)) => {
                format!("{name} has {amount}")
            }
            _ => format!("there is {amount}"),
        }
    }
}

impl Quantity {
    /// Formats an amount with its unit.
    pub fn amount(self, amount: u64) -> String {
        let units: &[(u64, &str)] = match self {
            Self::Parameters => &[(1_000_000_000, "B"), (1_000_000, "M")],
            Self::Context => &[(1_000_000, "M"), (1_000, "K")],
            Self::GpuMemory => &[(1_000_000_000, "GB"), (1_000_000, "MB")],
            Self::Npu => &[],
        };
        for (size, unit) in units {
            // Amounts are shown with at most one decimal.
            let tenth = size / 10;
            if amount >= *size && amount.is_multiple_of(tenth) {
                let (whole, tenth) = (amount / size, amount / tenth % 10);
                let tenth = if tenth == 0 { String::new() } else { format!(".{tenth}") };
                return format!("{whole}{tenth}{unit}");
            }
        }
        amount.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_size_is_read_from_name() {
        for (name, expected) in [
            ("Qwen3.5-35B", Some(35_000_000_000)),
            ("Qwen3-30B-A3B", Some(30_000_000_000)),
            ("llama3.2:1b", Some(1_000_000_000)),
            ("mistralai/Mixtral-8x7B-Instruct", Some(56_000_000_000)),
            ("smollm2:360m", Some(360_000_000)),
            ("phi-1.5B", Some(1_500_000_000)),
            ("13B", Some(13_000_000_000)),
            ("gemma3n:e4b", None),
            ("claude-sonnet", None),
            ("B", None),
            ("0B", None),
            ("", None),
            ("99999999999999x99999999B", None),
        ] {
            assert_eq!(parameters_of_name(name), expected, "{name}");
        }
    }

    #[test]
    fn amounts_are_abbreviated() {
        assert_eq!(Quantity::Parameters.amount(1_500_000_000), "1.5B");
        assert_eq!(Quantity::Parameters.amount(360_000_000), "360M");
        assert_eq!(Quantity::Context.amount(32_000), "32K");
        assert_eq!(Quantity::Context.amount(32_768), "32768");
        assert_eq!(Quantity::Context.amount(u64::MAX), u64::MAX.to_string());
        assert_eq!(Quantity::GpuMemory.amount(8_000_000_000), "8GB");
    }
}
