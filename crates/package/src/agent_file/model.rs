//! Checks a model against the requirements of an agent and its skills.

use std::fmt;

use savoir_skill::skill::Requirements;
use serde::Serialize;

use super::{AgentFile, Minimum};

/// What is known of the model that an agent is to run on, and of its machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    /// Its name.
    pub name: Option<String>,
    /// How many parameters it has.
    pub parameters: Option<u64>,
    /// How many tokens its context has.
    pub context: Option<u64>,
    /// The memory of the graphics processor, in bytes.
    pub gpu_memory: Option<u64>,
    /// Whether there is a neural processor.
    pub npu: Option<bool>,
}

impl Model {
    /// A model by its name, which may tell how many parameters it has.
    pub fn named(name: &str) -> Self {
        Self {
            name: Some(name.to_owned()),
            parameters: parameters_of_name(name),
            ..Self::default()
        }
    }
}

/// The parameters that a name such as `Qwen3.5-35B` or `mixtral:8x7b` tells of. Of `30B-A3B` the
/// second one tells how many are active at a time, and the first one counts.
fn parameters_of_name(name: &str) -> Option<u64> {
    let words = || name.split(['-', '_', ':', '/', ' ', '(', ')']);
    let of_unit = |unit: char| {
        let sized = words().filter(|word| word.to_ascii_uppercase().ends_with(unit));
        sized.filter_map(multiplied_size).find(|amount| *amount > 0)
    };
    of_unit('B').or_else(|| of_unit('M'))
}

/// `7B`, and `8x7B` as eight times as much.
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

/// What is demanded.
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

/// Whether a demand is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It is.
    Met,
    /// It is not.
    Unmet,
    /// Nobody said enough to tell.
    Unknown,
}

impl Status {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Unmet => "unmet",
            Self::Unknown => "unknown",
        }
    }
}

/// One demand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Constraint {
    /// The skill that makes it; the agent itself if none.
    pub skill: Option<String>,
    /// What is demanded.
    pub quantity: Quantity,
    /// How much, as it is written.
    pub demand: String,
    /// Whether it is met.
    pub status: Status,
    /// What it was held against, in words.
    pub against: Option<String>,
    /// The agent's own minimum, if it admits models that would not do.
    pub low: Option<String>,
}

/// Holds demands against a model.
pub(super) struct ModelChecker<'a> {
    pub(super) agent: &'a AgentFile,
    /// The name of the agent's file.
    pub(super) file: &'a str,
    pub(super) model: &'a Model,
    pub(super) constraints: Vec<Constraint>,
    /// Demands that cannot be read, with the skill and the reason.
    pub(super) unreadable: Vec<(String, String)>,
}

impl ModelChecker<'_> {
    /// What the agent itself demands.
    pub(super) fn agent(&mut self) {
        let wish = &self.agent.model;
        for (quantity, least) in
            [(Quantity::Parameters, &wish.minimum), (Quantity::Context, &wish.context)]
        {
            if let Some(least) = least {
                self.check_minimum(None, quantity, least);
            }
        }
    }

    /// What a skill demands.
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

    /// What is known counts. Where nothing is, a skill has what the agent demands anyway.
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
    /// An amount as people write it.
    pub fn amount(self, amount: u64) -> String {
        let units: &[(u64, &str)] = match self {
            Self::Parameters => &[(1_000_000_000, "B"), (1_000_000, "M")],
            Self::Context => &[(1_000_000, "M"), (1_000, "K")],
            Self::GpuMemory => &[(1_000_000_000, "GB"), (1_000_000, "MB")],
            Self::Npu => &[],
        };
        for (size, unit) in units {
            // Tenths are as fine as these numbers get.
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
