//! Why a model did not answer.

use thiserror::Error;

/// Why a model did not answer.
#[derive(Debug, Error)]
pub enum ModelError {
    /// Nobody can be asked.
    #[error("no language model is configured")]
    NoProvider,
    /// There is no such provider.
    #[error("there is no provider `{name}`; configured: {}", listed(known))]
    UnknownProvider {
        /// The name that was asked for.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// A setting cannot be used.
    #[error("{0}")]
    Setting(String),
    /// The provider could not be reached.
    #[error("{provider} cannot be reached at {url}: {message}")]
    Unreachable {
        /// Its name.
        provider: String,
        /// Where it was looked for.
        url: String,
        /// Why not.
        message: String,
    },
    /// The provider said no.
    #[error("{provider} answered {status}: {message}")]
    Refused {
        /// Its name.
        provider: String,
        /// The HTTP status.
        status: u16,
        /// What it said, cut short.
        message: String,
    },
    /// The provider did not say anything for too long.
    #[error("{provider} did not answer within {seconds} s")]
    TimedOut {
        /// Its name.
        provider: String,
        /// How long was waited.
        seconds: u64,
    },
    /// The provider sent something that is not an answer.
    #[error("{provider} sent what cannot be read: {message}")]
    Garbled {
        /// Its name.
        provider: String,
        /// What was wrong.
        message: String,
    },
    /// The model wants more done at once than is carried out.
    #[error("{provider} sent too many tool calls in one answer: at most {most} are taken")]
    TooManyCalls {
        /// Its name.
        provider: String,
        /// How many there may be.
        most: usize,
    },
    /// The local model failed.
    #[error("the local model failed: {0}")]
    Local(String),
}

impl ModelError {
    /// What happened, for those who may not know where the provider is and what it said.
    pub fn in_short(&self) -> String {
        match self {
            Self::Unreachable { provider, .. } => format!("{provider} cannot be reached"),
            Self::Refused { provider, status, .. } => format!("{provider} answered {status}"),
            Self::Garbled { provider, .. } => format!("{provider} sent what cannot be read"),
            Self::TimedOut { .. } | Self::TooManyCalls { .. } | Self::NoProvider => {
                self.to_string()
            }
            Self::UnknownProvider { name, .. } => format!("there is no provider `{name}`"),
            Self::Setting(_) => "the model is not set up".to_owned(),
            Self::Local(_) => "the local model failed".to_owned(),
        }
    }

    /// A sentence that shows the way out, if there is one.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::NoProvider => Some(
                "set one in a line: OPENAI_API_KEY=… or ANTHROPIC_API_KEY=… or \
                 OLLAMA_HOST=http://127.0.0.1:11434"
                    .to_owned(),
            ),
            Self::UnknownProvider { name, .. } => Some(match name.as_str() {
                "openai" => {
                    "set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own".to_owned()
                }
                "anthropic" => "set ANTHROPIC_API_KEY".to_owned(),
                "ollama" => "set OLLAMA_HOST=http://127.0.0.1:11434".to_owned(),
                _ => format!("add a table [models.{name}] to the settings"),
            }),
            Self::Unreachable { url, .. } => Some(if url.contains(":11434") {
                "start it with `ollama serve`, or correct OLLAMA_HOST".to_owned()
            } else {
                "see whether the server runs and its address is right".to_owned()
            }),
            Self::Refused { status, provider, .. } => refused(*status, provider),
            Self::TimedOut { provider, .. } => Some(format!(
                "try again, or raise `first-byte-timeout` and `idle-timeout` of [models.{provider}]"
            )),
            Self::Garbled { .. } => {
                Some("see whether the address is that of a server of this kind".to_owned())
            }
            Self::TooManyCalls { .. } => {
                Some("ask for less at once, or take another model".to_owned())
            }
            Self::Setting(_) | Self::Local(_) => None,
        }
    }
}

fn listed(known: &[String]) -> String {
    if known.is_empty() { "none".to_owned() } else { known.join(", ") }
}

fn refused(status: u16, provider: &str) -> Option<String> {
    match status {
        401 | 403 => Some(format!("see whether the key of {provider} is right and not expired")),
        404 => Some("see whether the model's name and the server's address are right".to_owned()),
        413 => Some("send less".to_owned()),
        429 => Some("wait a while, or look at the limits of the account".to_owned()),
        500.. => Some("the trouble is on the other side; try again later".to_owned()),
        _ => None,
    }
}
