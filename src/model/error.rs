//! What goes wrong with an upstream model, and what the client is told of it.

use std::time::Duration;

use crate::protocol::{ApiError, ErrorKind};

/// What went wrong with an upstream model.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{kind:?}: {message}")]
pub struct ModelError {
    /// Its class.
    pub kind: ModelErrorKind,
    /// What the backend said, or a sentence of ours. Never holds a key.
    pub message: String,
}

/// The classes of [`ModelError`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ModelErrorKind {
    /// The prompt does not fit the model's window.
    ContextOverflow,
    /// No such model.
    ModelNotFound,
    /// The backend will not do what was asked, and says so with a 400.
    Rejected,
    /// Too many requests; with the time to wait that the backend named.
    RateLimited(Option<Duration>),
    /// The account upstream is used up.
    QuotaExceeded,
    /// The backend is overloaded or starting; with the time to wait that it named.
    Unavailable(Option<Duration>),
    /// The backend refused our key.
    Unauthorized,
    /// It could not be reached.
    Unreachable,
    /// It took too long.
    Timeout,
    /// It broke off, or said what is no answer.
    BrokenStream,
    /// It failed on its side.
    Failed,
}

impl ModelError {
    /// An error of this class.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// Whether the backend could not read what its own model wrote, a call as a rule.
    pub(crate) fn is_misread_output(&self) -> bool {
        // By whom each is said.
        const SAYINGS: [&str; 9] = [
            // openai-harmony, in vLLM and SGLang.
            "in message header",
            "while expecting start token",
            "harmonyerror",
            "harmony error",
            // Ollama.
            "error parsing tool call",
            "xml syntax error",
            // llama.cpp.
            "failed to parse input at pos",
            // Several.
            "failed to parse tool call",
            "tool call parser",
        ];
        let by_the_backend = match self.kind {
            ModelErrorKind::Failed | ModelErrorKind::Rejected | ModelErrorKind::BrokenStream => {
                true
            }
            ModelErrorKind::ContextOverflow
            | ModelErrorKind::ModelNotFound
            | ModelErrorKind::RateLimited(_)
            | ModelErrorKind::QuotaExceeded
            | ModelErrorKind::Unavailable(_)
            | ModelErrorKind::Unauthorized
            | ModelErrorKind::Unreachable
            | ModelErrorKind::Timeout => false,
        };
        let message = self.message.to_ascii_lowercase();
        by_the_backend && SAYINGS.iter().any(|saying| message.contains(saying))
    }
}

impl From<ModelError> for ApiError {
    fn from(ModelError { kind, message }: ModelError) -> Self {
        match kind {
            ModelErrorKind::ContextOverflow => {
                Self::new(ErrorKind::InvalidRequest, message).code("context_length_exceeded").param("input")
            }
            ModelErrorKind::ModelNotFound => {
                Self::new(ErrorKind::InvalidRequest, message).code("model_not_found").param("model")
            }
            ModelErrorKind::Rejected => Self::new(ErrorKind::InvalidRequest, message),
            ModelErrorKind::RateLimited(after) => {
                let error = Self::new(ErrorKind::RateLimit, message).code("rate_limit_exceeded");
                error.retry_after(after.unwrap_or(Duration::from_secs(1)))
            }
            ModelErrorKind::QuotaExceeded => {
                Self::new(ErrorKind::RateLimit, message).code("insufficient_quota")
            }
            ModelErrorKind::Unavailable(after) => {
                let error = Self::new(ErrorKind::Unavailable, message).code("server_error");
                error.retry_after(after.unwrap_or(Duration::from_secs(1)))
            }
            ModelErrorKind::Unauthorized => Self::new(
                ErrorKind::BadGateway,
                "The upstream model refused the credentials of this server. Its operator has to check `api_key_env` of the upstream.",
            )
            .code("server_error"),
            ModelErrorKind::Unreachable | ModelErrorKind::BrokenStream | ModelErrorKind::Failed => {
                Self::new(ErrorKind::BadGateway, message).code("server_error")
            }
            ModelErrorKind::Timeout => Self::new(ErrorKind::Timeout, message).code("server_error"),
        }
    }
}
