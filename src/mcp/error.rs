//! Why a server gave no answer.

use serde::Serialize;

use crate::{
    net::{Denied, NetError},
    protocol::Raw,
};

/// Why a server gave no answer. Each is a sentence that client and model may read.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum McpError {
    /// It may not be reached.
    #[error("the MCP server may not be reached: {0}")]
    Denied(#[from] Denied),
    /// There is no connection.
    #[error("the MCP server at `{0}` could not be reached")]
    Unreachable(String),
    /// HTTP 401 or 403.
    #[error(
        "the MCP server refuses the credentials (HTTP {0}); check `authorization` or `headers` of the tool"
    )]
    Auth(u16),
    /// Another HTTP status than success.
    #[error("the MCP server answered with HTTP status {0}")]
    Http(u16),
    /// It took too long.
    #[error("the MCP server did not answer within {0} seconds")]
    Timeout(u64),
    /// An answer over the limit.
    #[error("the MCP server's answer is larger than {0} bytes")]
    TooLarge(usize),
    /// A list over the limit.
    #[error("the MCP server lists too many tools; {0} are the most that are taken")]
    TooManyTools(usize),
    /// Something that is no MCP.
    #[error("the MCP server's answer is not valid: {0}")]
    Invalid(String),
    /// A JSON-RPC error.
    #[error("the MCP server answered with error {code}: {message}")]
    Rpc {
        /// Its code.
        code: i64,
        /// Its message, cut.
        message: String,
    },
    /// The connection ended, or the process.
    #[error("the connection to the MCP server broke before it answered")]
    Ended,
    /// It does not know the session any more: HTTP 404. The pool renews it once.
    #[error("the MCP server dropped the session")]
    Expired,
    /// It dropped the renewed session too.
    #[error("the MCP server dropped the session, and a new one right after it")]
    SessionLost,
    /// Too many sessions are open, and all of them are in use.
    #[error("too many MCP sessions are in use; try again later")]
    Busy,
    /// The session was closed meanwhile: its Chain is gone, or this server stops.
    #[error("the session with the MCP server was closed")]
    Closed,
    /// A program that cannot be started. The reason is in the log.
    #[error("the program of the MCP server could not be started")]
    NotStarted,
}

impl McpError {
    /// As the `error` of an item.
    pub fn item_error(&self) -> Raw {
        #[derive(Serialize)]
        struct ItemError<'a> {
            #[serde(rename = "type")]
            kind: &'a str,
            code: i64,
            message: String,
        }
        let (kind, code) = match self {
            Self::Auth(status) | Self::Http(status) => ("http_error", i64::from(*status)),
            Self::Expired | Self::SessionLost => ("http_error", 404),
            Self::Unreachable(_) | Self::Ended | Self::Denied(_) => ("http_error", 502),
            Self::Timeout(_) => ("http_error", 504),
            Self::Busy | Self::Closed | Self::NotStarted => ("http_error", 503),
            Self::Rpc { code, .. } => ("mcp_protocol_error", *code),
            // JSON-RPC's code for what cannot be read.
            Self::TooLarge(_) | Self::TooManyTools(_) | Self::Invalid(_) => {
                ("mcp_protocol_error", -32700)
            }
        };
        Raw::of(&ItemError { kind, code, message: self.to_string() })
    }

    /// An answer that is no MCP.
    pub(super) fn invalid(what: impl Into<String>) -> Self {
        Self::Invalid(what.into())
    }
}

impl From<NetError> for McpError {
    fn from(error: NetError) -> Self {
        match error {
            NetError::Denied(denied) => Self::Denied(denied),
            NetError::Timeout(host) => Self::Unreachable(host),
            NetError::TooLarge { limit } => Self::TooLarge(limit),
            NetError::Failed { host, source } => {
                tracing::debug!(%host, error = %source, "MCP server failed");
                if source.is_connect() { Self::Unreachable(host) } else { Self::Ended }
            }
        }
    }
}

impl From<reqwest::Error> for McpError {
    fn from(error: reqwest::Error) -> Self {
        NetError::from(error).into()
    }
}
