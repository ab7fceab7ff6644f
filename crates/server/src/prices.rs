//! The prices of models, which administrators enter, and the costs that follow from them.

use std::collections::BTreeMap;

use savoir_store::{Database, RunEnd, StoreError};
use serde::{Deserialize, Serialize};

/// The setting that holds the prices as JSON.
const SETTING: &str = "models:prices";

/// The price of a model, in US dollars per million tokens, as entered by an administrator.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Price {
    pub(crate) input: Option<f64>,
    pub(crate) output: Option<f64>,
}

impl Price {
    /// The cost of some tokens; `None` if no price is known.
    fn cost(self, input_tokens: u64, output_tokens: u64) -> Option<f64> {
        if self.input.is_none() && self.output.is_none() {
            return None;
        }
        let cost = |tokens: u64, price: Option<f64>| as_real(tokens) * price.unwrap_or(0.0) / 1e6;
        Some(cost(input_tokens, self.input) + cost(output_tokens, self.output))
    }
}

#[expect(clippy::cast_precision_loss, reason = "costs are rounded anyway")]
fn as_real(tokens: u64) -> f64 {
    tokens as f64
}

/// Prices by model name, without the provider.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(transparent)]
pub(crate) struct Prices(BTreeMap<String, Price>);

impl Prices {
    pub(crate) async fn load(database: &Database) -> Result<Self, StoreError> {
        let text = database.settings().get(SETTING).await?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
    }

    pub(crate) async fn save(&self, database: &Database) -> Result<(), StoreError> {
        let text = serde_json::to_string(self).unwrap_or_default();
        database.settings().put(SETTING, &text).await
    }

    /// Stores the given prices, without models that have none.
    pub(crate) fn new(prices: impl IntoIterator<Item = (String, Price)>) -> Self {
        let priced = prices.into_iter().filter(|(_, price)| *price != Price::default());
        Self(priced.collect())
    }

    pub(crate) fn get(&self, model: &str) -> Option<Price> {
        self.0.get(model).copied()
    }

    pub(crate) fn models(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }

    /// The cost of some tokens in US dollars; `None` if the model has no price.
    pub(crate) fn cost(&self, model: &str, input_tokens: u64, output_tokens: u64) -> Option<f64> {
        self.get(model)?.cost(input_tokens, output_tokens)
    }

    /// The cost of a run in US dollars; `None` if the run used no model, or one without a price.
    pub(crate) fn cost_of_run(&self, end: &RunEnd) -> Option<f64> {
        let cost = |model: &str, input, output| {
            let model = model.split_once(':').map_or(model, |(_, model)| model);
            self.cost(model, input, output)
        };
        if end.model_tokens.is_empty() {
            // Runs of earlier versions have only their last model.
            return cost(end.model.as_deref()?, end.input_tokens, end.output_tokens);
        }
        let used = end.model_tokens.iter();
        used.map(|(model, [input, output])| cost(model, *input, *output)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_costs_the_sum_of_its_models() {
        let price = |input| Price { input: Some(input), output: Some(2.0 * input) };
        let prices = Prices::new([("a:7b".to_owned(), price(1.0)), ("b".to_owned(), price(10.0))]);
        let run = |tokens: &[(&str, u64)]| {
            let tokens = tokens.iter().map(|(model, n)| ((*model).to_owned(), [*n, *n]));
            RunEnd { model_tokens: tokens.collect(), ..RunEnd::running() }
        };
        let million = 1_000_000;
        assert_eq!(prices.cost_of_run(&run(&[("x:a:7b", million), ("y:b", million)])), Some(33.0));
        assert_eq!(prices.cost_of_run(&run(&[("x:a:7b", million), ("x:unknown", 1)])), None);
        assert_eq!(prices.cost_of_run(&run(&[])), None);
        let old =
            RunEnd { model: Some("y:b".to_owned()), input_tokens: million, ..RunEnd::running() };
        assert_eq!(prices.cost_of_run(&old), Some(10.0));
    }
}
