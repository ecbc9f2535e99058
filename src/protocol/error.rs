//! Errors that a client sees: what they are called, which HTTP status they have, and their one JSON envelope.

use std::time::Duration;

use serde::Serialize;

/// The class of an [`ApiError`]: gives the HTTP status and the `type` on the wire.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ErrorKind {
    /// 400: the request is wrong; repeating it will not help.
    InvalidRequest,
    /// 401: no key, or one that is not valid.
    Authentication,
    /// 403: a valid key that may not do this.
    Permission,
    /// 404: no such thing, or not yours.
    NotFound,
    /// 405: the path exists, the method does not.
    MethodNotAllowed,
    /// 409: the same thing is being done already.
    Conflict,
    /// 413: the body is over the limit.
    TooLarge,
    /// 415: the body's content type is not one we read.
    UnsupportedMediaType,
    /// 429: slow down.
    RateLimit,
    /// 500: our fault.
    Server,
    /// 502: the upstream model's fault, or of how we are set up for it.
    BadGateway,
    /// 503: cannot be served now; try again.
    Unavailable,
    /// 504: the upstream model took too long.
    Timeout,
}

impl ErrorKind {
    /// The HTTP status code.
    pub const fn status(self) -> u16 {
        match self {
            Self::InvalidRequest => 400,
            Self::Authentication => 401,
            Self::Permission => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::Conflict => 409,
            Self::TooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::RateLimit => 429,
            Self::Server => 500,
            Self::BadGateway => 502,
            Self::Unavailable => 503,
            Self::Timeout => 504,
        }
    }

    /// The `type` on the wire.
    pub const fn wire(self) -> &'static str {
        match self {
            Self::InvalidRequest
            | Self::NotFound
            | Self::MethodNotAllowed
            | Self::Conflict
            | Self::TooLarge
            | Self::UnsupportedMediaType => "invalid_request_error",
            Self::Authentication => "authentication_error",
            Self::Permission => "permission_error",
            Self::RateLimit => "rate_limit_error",
            Self::Server | Self::BadGateway | Self::Unavailable | Self::Timeout => "server_error",
        }
    }
}

/// An error as the client is told it. The message is a sentence that says what to do; it never holds a secret or an inner detail.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// Its class.
    pub kind: ErrorKind,
    /// The code that programs test, for example `context_length_exceeded`.
    pub code: Option<&'static str>,
    /// A sentence for the person who reads it.
    pub message: String,
    /// The path of the field that is wrong, for example `input[2].content[0].image_url`.
    pub param: Option<String>,
    /// When to try again.
    pub retry_after: Option<Duration>,
}

impl ApiError {
    /// An error of this kind, without code or param.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, code: None, message: message.into(), param: None, retry_after: None }
    }

    /// 400 that names the wrong field.
    pub fn invalid(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidRequest, message).code("invalid_value").param(param)
    }

    /// 404.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// 500 whose cause is in the log, not here.
    pub fn server() -> Self {
        Self::new(
            ErrorKind::Server,
            "The server had an error while processing your request. The log has the details under this request's id.",
        )
        .code("server_error")
    }

    /// 503: the database does not answer.
    pub fn database_unavailable() -> Self {
        Self::new(
            ErrorKind::Unavailable,
            "The database cannot be reached at the moment. Please try again shortly.",
        )
        .code("server_error")
        .retry_after(Duration::from_secs(2))
    }

    /// Sets the code.
    #[must_use]
    pub fn code(mut self, code: &'static str) -> Self {
        self.code = Some(code);
        self
    }

    /// Names the wrong field.
    #[must_use]
    pub fn param(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }

    /// Says when to try again.
    #[must_use]
    pub fn retry_after(mut self, after: Duration) -> Self {
        self.retry_after = Some(after);
        self
    }

    /// The JSON envelope `{"error":{message,type,param,code}}`, all four keys always there.
    pub fn body(&self) -> ErrorBody<'_> {
        ErrorBody {
            error: ErrorFields {
                message: &self.message,
                kind: self.kind.wire(),
                param: self.param.as_deref(),
                code: self.code,
            },
        }
    }

    /// What the `error` of a failed Response says: its codes are a closed set, `server_error` stands for what has none.
    pub fn response_code(&self) -> &'static str {
        match self.code {
            Some(code) => code,
            None if self.kind == ErrorKind::RateLimit => "rate_limit_exceeded",
            None if self.kind == ErrorKind::InvalidRequest => "invalid_prompt",
            None => "server_error",
        }
    }
}

/// The envelope of [`ApiError::body`].
#[derive(Debug, Serialize)]
pub struct ErrorBody<'a> {
    error: ErrorFields<'a>,
}

#[derive(Debug, Serialize)]
struct ErrorFields<'a> {
    message: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    param: Option<&'a str>,
    code: Option<&'a str>,
}
