//! Reads the configuration files of a local embedding model.

use std::{
    fmt::Display,
    fs::{self, File},
    io::{self, Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use serde::{Deserialize, de::DeserializeOwned};

use crate::{ModelError, limits};

const SUPPORTED: &str = "supported are models of the BERT class, such as all-MiniLM-L6-v2, in the \
                         layout of sentence-transformers: config.json, tokenizer.json and \
                         model.safetensors";

/// How the token states of a text are combined into one vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pooling {
    /// The mean of all token states.
    Mean,
    /// The state of the first token.
    First,
}

/// Dimensions of a BERT model, from `config.json`.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct BertConfig {
    #[serde(default = "gelu")]
    hidden_act: String,
    #[serde(default = "absolute")]
    position_embedding_type: String,
    pub(super) hidden_size: usize,
    pub(super) num_hidden_layers: usize,
    pub(super) num_attention_heads: usize,
    pub(super) intermediate_size: usize,
    pub(super) max_position_embeddings: usize,
    pub(super) vocab_size: usize,
    pub(super) type_vocab_size: usize,
    pub(super) layer_norm_eps: f32,
}

fn gelu() -> String {
    "gelu".to_owned()
}

fn absolute() -> String {
    "absolute".to_owned()
}

#[derive(Default, Deserialize)]
struct SentenceBertConfig {
    max_seq_length: Option<usize>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PoolingConfig {
    pooling_mode_cls_token: bool,
    pooling_mode_mean_tokens: bool,
}

/// The folder of a local model.
#[derive(Debug)]
pub(super) struct ModelFolder {
    path: PathBuf,
    config: BertConfig,
    pooling: Pooling,
    max_tokens: usize,
}

impl ModelFolder {
    /// Reads the configuration of a model, which may be in the subfolder `model`.
    pub(super) fn open(path: &Path) -> Result<Self, ModelError> {
        let below = path.join("model");
        let path = if below.join("config.json").is_file() { &below } else { path };
        for name in ["config.json", "tokenizer.json", "model.safetensors"] {
            if !path.join(name).is_file() {
                let path = path.display();
                let message = format!("there is no embedding model in {path}: {name} is missing");
                return Err(ModelError::Setting(format!("{message}; {SUPPORTED}")));
            }
        }
        let config = read_bert_config(path)?;
        let sentences: SentenceBertConfig = read_optional_json(path, "sentence_bert_config.json")?;
        let max_tokens = sentences.max_seq_length.unwrap_or(config.max_position_embeddings);
        let max_tokens = max_tokens.min(config.max_position_embeddings);
        Ok(Self { pooling: read_pooling(path)?, path: path.to_owned(), config, max_tokens })
    }

    pub(super) fn config(&self) -> &BertConfig {
        &self.config
    }

    pub(super) fn pooling(&self) -> Pooling {
        self.pooling
    }

    pub(super) fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    pub(super) fn tokenizer(&self) -> Result<Vec<u8>, ModelError> {
        self.read_file("tokenizer.json", limits::MAX_DESCRIPTION_FILE_BYTES)
    }

    pub(super) fn weights(&self) -> Result<Vec<u8>, ModelError> {
        self.read_file("model.safetensors", limits::MAX_WEIGHTS_BYTES)
    }

    fn read_file(&self, name: &str, limit: u64) -> Result<Vec<u8>, ModelError> {
        read_limited(&self.path.join(name), limit).map_err(|error| self.read_error(name, &error))
    }

    pub(super) fn read_error(&self, name: &str, error: &dyn Display) -> ModelError {
        read_error(&self.path.join(name), error)
    }

    /// Identifies the model by its folder name and a fingerprint of its weights, so that vectors of
    /// another model in a folder with the same name are not mixed up.
    pub(super) fn identity(&self) -> Result<String, ModelError> {
        let weights = self.path.join("model.safetensors");
        let print = fingerprint(&weights).map_err(|error| read_error(&weights, &error))?;
        let whole = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let names = whole.iter().rev().filter_map(|name| name.to_str());
        let name = names.into_iter().find(|name| *name != "model").unwrap_or("model");
        Ok(format!("local:{name}-{print:016x}"))
    }
}

fn read_bert_config(path: &Path) -> Result<BertConfig, ModelError> {
    let file = path.join("config.json");
    let kind: serde_json::Value = read_json(&file)?;
    let kind = kind.get("model_type").and_then(|kind| kind.as_str()).unwrap_or("unknown");
    if kind != "bert" {
        return Err(read_error(&file, &format!("a model of the type `{kind}`; {SUPPORTED}")));
    }
    let config: BertConfig = read_json(&file)?;
    let heads = config.num_attention_heads;
    let reason = if config.hidden_act != "gelu" {
        format!("the activation `{}` is not supported, only `gelu`", config.hidden_act)
    } else if config.position_embedding_type != "absolute" {
        format!("positions of the type `{}` are not supported", config.position_embedding_type)
    } else if heads == 0 || !config.hidden_size.is_multiple_of(heads) {
        format!("{} numbers cannot be shared by {heads} heads", config.hidden_size)
    } else {
        return Ok(config);
    };
    Err(read_error(&file, &format!("{reason}; {SUPPORTED}")))
}

fn read_pooling(path: &Path) -> Result<Pooling, ModelError> {
    let file = "1_Pooling/config.json";
    if !path.join(file).exists() {
        return Ok(Pooling::Mean);
    }
    let config: PoolingConfig = read_optional_json(path, file)?;
    match (config.pooling_mode_mean_tokens, config.pooling_mode_cls_token) {
        (true, false) => Ok(Pooling::Mean),
        (false, true) => Ok(Pooling::First),
        _ => Err(read_error(&path.join(file), &"only the mean or the first token can be taken")),
    }
}

fn read_optional_json<T: Default + DeserializeOwned>(
    path: &Path,
    name: &str,
) -> Result<T, ModelError> {
    let file = path.join(name);
    if file.is_file() { read_json(&file) } else { Ok(T::default()) }
}

fn read_json<T: DeserializeOwned>(file: &Path) -> Result<T, ModelError> {
    let bytes = read_limited(file, limits::MAX_DESCRIPTION_FILE_BYTES)
        .map_err(|error| read_error(file, &error))?;
    serde_json::from_slice(&bytes).map_err(|error| read_error(file, &error))
}

fn read_limited(file: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = File::open(file)?;
    let length = file.metadata()?.len();
    if length > limit {
        return Err(io::Error::other(format!("{length} bytes are more than {limit}")));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn read_error(file: &Path, error: &dyn Display) -> ModelError {
    ModelError::Setting(format!("the embedding model cannot be read: {}: {error}", file.display()))
}

/// Computes FNV-1a over the length of a file and 64 pieces of it, because reading the whole file
/// would take too long.
fn fingerprint(path: &Path) -> io::Result<u64> {
    const PIECES: u64 = 64;
    const PIECE: u64 = 4096;
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut bytes = length.to_le_bytes().to_vec();
    for piece in 0..PIECES {
        file.seek(SeekFrom::Start(length / PIECES * piece))?;
        file.by_ref().take(PIECE).read_to_end(&mut bytes)?;
    }
    Ok(bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    }))
}
