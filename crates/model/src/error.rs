//! Defines [`ModelError`], the errors of language models and embedders.

use thiserror::Error;

/// An error of a language model or embedder.
#[derive(Debug, Error)]
pub enum ModelError {
    /// No provider is configured.
    #[error("no language model is configured")]
    NoProvider,
    /// No provider of this name is configured.
    #[error("there is no provider `{name}`; configured: {}", join_or_none(known))]
    UnknownProvider { name: String, known: Vec<String> },
    /// A setting is invalid.
    #[error("{0}")]
    Setting(String),
    /// The provider could not be reached.
    #[error("{} cannot be reached at {url}: {message}", name_of(provider))]
    Unreachable { provider: String, url: String, message: String },
    /// The provider answered with an error status.
    #[error("{} answered {status}: {message}", name_of(provider))]
    Refused { provider: String, status: u16, message: String },
    /// The provider sent nothing for too long.
    #[error("{} did not answer within {seconds} s", name_of(provider))]
    TimedOut { provider: String, seconds: u64 },
    /// The provider sent a response that cannot be parsed.
    #[error("{} sent an invalid response: {message}", name_of(provider))]
    InvalidResponse { provider: String, message: String },
    /// The answer has more tool calls than the limit.
    #[error(
        "{} sent too many tool calls in one answer: at most {max} are accepted",
        name_of(provider)
    )]
    TooManyCalls { provider: String, max: usize },
    /// The local model failed.
    #[error("the local model failed: {0}")]
    Local(String),
}

impl ModelError {
    /// Returns the message without the provider's address and response, for users who may not see
    /// them.
    pub fn public_message(&self) -> String {
        match self {
            Self::Unreachable { provider, .. } => {
                format!("{} cannot be reached", name_of(provider))
            }
            Self::Refused { provider, .. } if self.is_context_overflow() => {
                format!(
                    "the input has more tokens than the model of {} can read",
                    name_of(provider)
                )
            }
            Self::Refused { provider, status, .. } => {
                format!("{} answered {status}", name_of(provider))
            }
            Self::InvalidResponse { provider, .. } => {
                format!("{} sent an invalid response", name_of(provider))
            }
            Self::TimedOut { .. } | Self::TooManyCalls { .. } | Self::NoProvider => {
                self.to_string()
            }
            Self::UnknownProvider { name, .. } => format!("there is no provider `{name}`"),
            Self::Setting(_) => "the model is not set up".to_owned(),
            Self::Local(_) => "the local model failed".to_owned(),
        }
    }

    /// Whether the provider refused the request because its input is too long.
    pub fn is_context_overflow(&self) -> bool {
        let Self::Refused { status: 400 | 413 | 422, message, .. } = self else { return false };
        let message = message.to_ascii_lowercase();
        CONTEXT_OVERFLOW_PHRASES.iter().any(|phrase| message.contains(phrase))
    }

    /// Returns a hint how to solve the problem.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::NoProvider => Some(
                "set an environment variable: OPENAI_API_KEY=…, ANTHROPIC_API_KEY=… or \
                 OLLAMA_HOST=http://127.0.0.1:11434"
                    .to_owned(),
            ),
            Self::UnknownProvider { name, .. } => Some(match name.as_str() {
                "openai" => "set OPENAI_API_KEY, or OPENAI_BASE_URL for your own server".to_owned(),
                "anthropic" => "set ANTHROPIC_API_KEY".to_owned(),
                "ollama" => "set OLLAMA_HOST=http://127.0.0.1:11434".to_owned(),
                _ => format!("add a table [models.{name}] to the settings"),
            }),
            Self::Unreachable { url, .. } => Some(if url.contains(":11434") {
                "start it with `ollama serve`, or correct OLLAMA_HOST".to_owned()
            } else {
                "check that the server is running and that its address is right".to_owned()
            }),
            Self::Refused { .. } if self.is_context_overflow() => {
                Some("shorten the input, or choose a model with a larger context".to_owned())
            }
            Self::Refused { status, provider, .. } => hint_for_status(*status, provider),
            Self::TimedOut { provider, .. } => Some(format!(
                "try again, or raise `first-byte-timeout` and `idle-timeout` of [models.{provider}]"
            )),
            Self::InvalidResponse { .. } => {
                Some("check that the address belongs to a server of this kind".to_owned())
            }
            Self::TooManyCalls { .. } => {
                Some("ask for fewer actions in one message, or use another model".to_owned())
            }
            Self::Setting(_) | Self::Local(_) => None,
        }
    }
}

/// Words with which providers say that an input is too long.
const CONTEXT_OVERFLOW_PHRASES: [&str; 6] = [
    "context length", "context_length", "context window", "context size", "prompt is too long",
    "too many tokens",
];

/// The provider that administrators add as "OpenAI-compatible server" has an id that no user knows.
fn name_of(provider: &str) -> &str {
    if provider == "compatible" { "the OpenAI-compatible server" } else { provider }
}

fn join_or_none(known: &[String]) -> String {
    if known.is_empty() { "none".to_owned() } else { known.join(", ") }
}

fn hint_for_status(status: u16, provider: &str) -> Option<String> {
    match status {
        401 | 403 => {
            let name = name_of(provider);
            Some(format!("check that the key of {name} is right and not expired"))
        }
        404 => Some("check the model's name and the server's address".to_owned()),
        413 => Some("send less".to_owned()),
        429 => Some("wait a while, or check the rate limits of the account".to_owned()),
        500.. => Some("the provider has a problem; try again later".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_long_input_is_recognized() {
        let refused = |status, message: &str| ModelError::Refused {
            provider: "openai".to_owned(),
            status,
            message: message.to_owned(),
        };
        let error = refused(400, "This model's maximum context length is 8192 tokens");
        assert!(error.is_context_overflow());
        assert!(error.public_message().contains("more tokens than the model"));
        assert!(error.help().is_some_and(|help| help.starts_with("shorten the input")));
        assert!(!refused(400, "temperature is too high").is_context_overflow());
        assert!(!refused(500, "context length").is_context_overflow());
    }
}
