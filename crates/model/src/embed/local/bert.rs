//! Runs a BERT encoder on one text at a time.

#![expect(clippy::cast_precision_loss, reason = "widths are a few thousand")]

use ndarray::{Array1, Array2, ArrayView1, Axis, Slice, Zip};

use super::{folder::BertConfig, weights::Weights};

#[derive(Debug)]
pub(super) struct Bert {
    word_embeddings: Array2<f32>,
    position_embeddings: Array2<f32>,
    token_type: Array1<f32>,
    norm: Norm,
    layers: Vec<Layer>,
}

#[derive(Debug)]
struct Layer {
    query: Linear,
    key: Linear,
    value: Linear,
    attention_output: Linear,
    attention_norm: Norm,
    inner: Linear,
    outer: Linear,
    outer_norm: Norm,
    heads: usize,
}

#[derive(Debug)]
struct Linear {
    weight: Array2<f32>,
    bias: Array1<f32>,
}

#[derive(Debug)]
struct Norm {
    weight: Array1<f32>,
    bias: Array1<f32>,
    epsilon: f32,
}

impl Bert {
    pub(super) fn load(config: &BertConfig, bytes: &[u8]) -> Result<Self, String> {
        let weights = &Weights::read(bytes)?;
        let width = config.hidden_size;
        let table = |name: &str, rows| {
            weights.matrix(&format!("embeddings.{name}_embeddings.weight"), rows, width)
        };
        let token_types = table("token_type", config.type_vocab_size)?;
        Ok(Self {
            word_embeddings: table("word", config.vocab_size)?,
            position_embeddings: table("position", config.max_position_embeddings)?,
            // All tokens of a text have the first token type.
            token_type: token_types
                .outer_iter()
                .next()
                .ok_or("there are no token types")?
                .to_owned(),
            norm: Norm::load(weights, "embeddings.LayerNorm", config)?,
            layers: (0..config.num_hidden_layers)
                .map(|number| Layer::load(weights, number, config))
                .collect::<Result<_, _>>()?,
        })
    }

    /// Returns one row of states per token.
    pub(super) fn forward(&self, tokens: &[u32]) -> Result<Array2<f32>, String> {
        let mut states = Array2::zeros((tokens.len(), self.word_embeddings.ncols()));
        if tokens.len() > self.position_embeddings.nrows() {
            return Err(format!("{} tokens are too many", tokens.len()));
        }
        for ((token, position), mut row) in
            tokens.iter().zip(self.position_embeddings.outer_iter()).zip(states.outer_iter_mut())
        {
            let word = self.word_embedding(*token)?;
            row += &word;
            row += &position;
            row += &self.token_type;
        }
        self.norm.apply(&mut states);
        Ok(self.layers.iter().fold(states, |states, layer| layer.forward(&states)))
    }

    fn word_embedding(&self, token: u32) -> Result<ArrayView1<'_, f32>, String> {
        let row = token as usize;
        if row >= self.word_embeddings.nrows() {
            return Err(format!("token {token} is not in the vocabulary of the weights"));
        }
        Ok(self.word_embeddings.row(row))
    }
}

impl Layer {
    fn load(weights: &Weights<'_>, number: usize, config: &BertConfig) -> Result<Self, String> {
        let (width, inner_width) = (config.hidden_size, config.intermediate_size);
        let linear = |name: &str, input, output| {
            Linear::load(weights, &format!("encoder.layer.{number}.{name}"), input, output)
        };
        let norm = |name: &str| {
            Norm::load(weights, &format!("encoder.layer.{number}.{name}.LayerNorm"), config)
        };
        Ok(Self {
            query: linear("attention.self.query", width, width)?,
            key: linear("attention.self.key", width, width)?,
            value: linear("attention.self.value", width, width)?,
            attention_output: linear("attention.output.dense", width, width)?,
            attention_norm: norm("attention.output")?,
            inner: linear("intermediate.dense", width, inner_width)?,
            outer: linear("output.dense", inner_width, width)?,
            outer_norm: norm("output")?,
            heads: config.num_attention_heads,
        })
    }

    fn forward(&self, states: &Array2<f32>) -> Array2<f32> {
        let mut attention_output = self.attention_output.apply(&self.attention(states));
        attention_output += states;
        self.attention_norm.apply(&mut attention_output);
        let mut inner = self.inner.apply(&attention_output);
        inner.mapv_inplace(gelu);
        let mut outer = self.outer.apply(&inner);
        outer += &attention_output;
        self.outer_norm.apply(&mut outer);
        outer
    }

    fn attention(&self, states: &Array2<f32>) -> Array2<f32> {
        let (query, key) = (self.query.apply(states), self.key.apply(states));
        let value = self.value.apply(states);
        let width = states.ncols() / self.heads;
        let scale = (width as f32).sqrt().recip();
        let mut attention_output = Array2::zeros(states.dim());
        for head in 0..self.heads {
            let part = Slice::from(head * width..(head + 1) * width);
            let mut scores =
                query.slice_axis(Axis(1), part).dot(&key.slice_axis(Axis(1), part).t());
            scores *= scale;
            softmax(&mut scores);
            let seen = scores.dot(&value.slice_axis(Axis(1), part));
            attention_output.slice_axis_mut(Axis(1), part).assign(&seen);
        }
        attention_output
    }
}

impl Linear {
    fn load(
        weights: &Weights<'_>,
        name: &str,
        input: usize,
        output: usize,
    ) -> Result<Self, String> {
        let weight = weights.matrix(&format!("{name}.weight"), output, input)?;
        Ok(Self { weight, bias: weights.vector(&format!("{name}.bias"), output)? })
    }

    fn apply(&self, states: &Array2<f32>) -> Array2<f32> {
        let mut result = states.dot(&self.weight.t());
        result += &self.bias;
        result
    }
}

impl Norm {
    fn load(weights: &Weights<'_>, name: &str, config: &BertConfig) -> Result<Self, String> {
        Ok(Self {
            weight: weights.vector(&format!("{name}.weight"), config.hidden_size)?,
            bias: weights.vector(&format!("{name}.bias"), config.hidden_size)?,
            epsilon: config.layer_norm_eps,
        })
    }

    fn apply(&self, states: &mut Array2<f32>) {
        for mut row in states.axis_iter_mut(Axis(0)) {
            let length = row.len() as f32;
            let mean = row.sum() / length;
            row -= mean;
            let variance = row.fold(0.0, |sum, x| sum + x * x) / length;
            let scale = (variance + self.epsilon).sqrt().recip();
            Zip::from(&mut row)
                .and(&self.weight)
                .and(&self.bias)
                .for_each(|x, weight, bias| *x = *x * scale * weight + bias);
        }
    }
}

fn softmax(scores: &mut Array2<f32>) {
    for mut row in scores.axis_iter_mut(Axis(0)) {
        let max = row.fold(f32::NEG_INFINITY, |max, x| max.max(*x));
        row.mapv_inplace(|x| (x - max).exp());
        let sum = row.sum();
        row /= sum;
    }
}

fn gelu(x: f32) -> f32 {
    x * 0.5 * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2))
}

/// Approximates the error function (Abramowitz and Stegun 7.1.26); the error is below one part in a
/// million.
fn erf(x: f32) -> f32 {
    const FACTORS: [f32; 5] = [1.061_405_4, -1.453_152, 1.421_413_7, -0.284_496_74, 0.254_829_6];
    let t = (1.0 + 0.327_591_1 * x.abs()).recip();
    let series = FACTORS.iter().fold(0.0, |sum, factor| (sum + factor) * t);
    (1.0 - series * (-x * x).exp()).copysign(x)
}
