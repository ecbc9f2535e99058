use std::{
    collections::BTreeMap,
    num::{NonZeroU32, NonZeroUsize},
    time::Duration,
};

use serde::Deserialize;
use serde_json::Value;
use url::Url;

use super::{Secret, value};

/// `[mcp]`: MCP servers.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mcp {
    /// How long connecting may take. Key `connect_seconds`.
    #[serde(rename = "connect_seconds", deserialize_with = "value::seconds")]
    pub connect: Duration,
    /// How long a handshake, or a page of a list of tools, may take. Key `answer_seconds`.
    #[serde(rename = "answer_seconds", deserialize_with = "value::seconds")]
    pub answer: Duration,
    /// How long one call may take. Key `call_seconds`.
    #[serde(rename = "call_seconds", deserialize_with = "value::seconds")]
    pub call: Duration,
    /// A session that nobody used for so long is closed. Key `idle_seconds`.
    #[serde(rename = "idle_seconds", deserialize_with = "value::seconds")]
    pub idle: Duration,
    /// Largest answer of a server, in MiB.
    pub answer_limit_mib: NonZeroU32,
    /// Most tools of one server.
    pub max_tools: NonZeroUsize,
    /// Calls to one server that run at the same time for one tenant; more wait.
    pub max_parallel: NonZeroUsize,
    /// Sessions that are open at the same time; more close the one that is idle for longest.
    pub max_sessions: NonZeroUsize,
    /// `[mcp.connectors.NAME]`: servers that requests name instead of an address.
    pub connectors: BTreeMap<String, McpConnector>,
}

impl Mcp {
    /// The largest answer, in bytes.
    pub fn answer_limit(&self) -> usize {
        usize::try_from(self.answer_limit_mib.get())
            .map_or(usize::MAX, |mib| mib.saturating_mul(1 << 20))
    }
}

impl Default for Mcp {
    fn default() -> Self {
        const fn more(than_one: usize) -> NonZeroUsize {
            NonZeroUsize::MIN.saturating_add(than_one)
        }
        Self {
            connect: Duration::from_secs(10),
            answer: Duration::from_secs(30),
            call: Duration::from_mins(5),
            idle: Duration::from_mins(5),
            answer_limit_mib: NonZeroU32::MIN.saturating_add(15),
            max_tools: more(999),
            max_parallel: more(15),
            max_sessions: more(999),
            connectors: BTreeMap::new(),
        }
    }
}

/// `[mcp.connectors.NAME]`: a server at an address, or a program.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct McpConnector {
    /// Where it is. Either this or `command`.
    #[serde(deserialize_with = "value::filled_http_url")]
    pub url: Option<Url>,
    /// How it speaks.
    pub transport: McpTransport,
    /// The program that is started. It speaks on its standard input and output.
    #[serde(deserialize_with = "value::filled")]
    pub command: Option<String>,
    /// The program's arguments.
    pub args: Vec<String>,
    /// Variables of the program, besides `PATH`, `HOME`, `LANG` and `TMPDIR`. Their values are secrets, for they often hold keys.
    pub env: BTreeMap<String, Secret>,
    /// Variables of ours that the program gets too.
    pub pass_env: Vec<String>,
    /// The environment variable that holds the token for the server. `None`: it wants none.
    #[serde(deserialize_with = "value::filled")]
    pub authorization_env: Option<String>,
    /// The token that `authorization_env` names.
    #[serde(skip)]
    pub authorization: Option<Secret>,
    /// Headers for the server. Their values are secrets.
    pub headers: BTreeMap<String, Secret>,
    /// Headers for the server whose values are in environment variables: header = variable.
    pub headers_env: BTreeMap<String, String>,
    /// What the server is for, for the model.
    #[serde(deserialize_with = "value::filled")]
    pub description: Option<String>,
    /// Which tools may be used, as in a request: a list of names, or a filter. `None`: all. Read by `mcp`.
    pub allowed_tools: Option<Value>,
    /// Which calls need approval, as in a request. `None`: all. Read by `mcp`.
    pub require_approval: Option<Value>,
    /// Other labels under which requests may name it.
    pub aliases: Vec<String>,
}

/// How an MCP server at an address speaks.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum McpTransport {
    /// Found out by trying.
    #[default]
    Auto,
    /// Streamable HTTP.
    Streamable,
    /// The older HTTP with SSE.
    Sse,
}
