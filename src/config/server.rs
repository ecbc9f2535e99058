use std::{
    num::{NonZeroU32, NonZeroUsize},
    time::Duration,
};

use serde::Deserialize;
use url::Url;

use super::value;

/// `[database]`: the pool of connections.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Database {
    /// Connections at most.
    pub max_connections: NonZeroU32,
    /// How long a request waits for a free connection before it is answered 503. Key `acquire_seconds`.
    #[serde(rename = "acquire_seconds", deserialize_with = "value::seconds")]
    pub acquire: Duration,
}

impl Default for Database {
    fn default() -> Self {
        Self {
            max_connections: NonZeroU32::MIN.saturating_add(15),
            acquire: Duration::from_secs(10),
        }
    }
}

/// `[http]`: the door.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Http {
    /// A stream that says nothing for so long gets a comment, so that no proxy closes it. Key `ping_seconds`.
    #[serde(rename = "ping_seconds", deserialize_with = "value::seconds")]
    pub ping: Duration,
    /// Largest request body, in MiB.
    pub body_limit_mib: NonZeroUsize,
    /// Origins whose pages may call the API, such as `https://chat.example`; `*` is any. Empty: none.
    pub cors: Vec<String>,
}

impl Http {
    /// Largest request body, in bytes.
    pub fn body_limit(&self) -> usize {
        self.body_limit_mib.get().saturating_mul(1024 * 1024)
    }
}

impl Default for Http {
    fn default() -> Self {
        Self {
            ping: Duration::from_secs(15),
            body_limit_mib: NonZeroUsize::MIN.saturating_add(63),
            cors: Vec::new(),
        }
    }
}

/// `[websocket]`: Responses over one socket.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebSocket {
    /// A socket is closed after so long. Key `max_minutes`.
    #[serde(rename = "max_minutes", deserialize_with = "value::minutes")]
    pub max: Duration,
}

impl Default for WebSocket {
    fn default() -> Self {
        Self { max: Duration::from_hours(1) }
    }
}

/// `[shutdown]`
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Shutdown {
    /// What is running when a stop is asked for may go on for so long. Key `grace_seconds`.
    #[serde(rename = "grace_seconds", deserialize_with = "value::seconds")]
    pub grace: Duration,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self { grace: Duration::from_secs(30) }
    }
}

/// `[retention]`: how long what was stored is kept.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Retention {
    /// Age at which a stored Response is deleted. Key `responses_days`.
    #[serde(rename = "responses_days", deserialize_with = "value::days")]
    pub responses: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        Self { responses: Duration::from_hours(720) }
    }
}

/// `[net]`: which addresses may be reached on behalf of a request. The hosts that the operator names in this file may be reached anyway.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Net {
    /// Which addresses are open.
    pub policy: NetPolicy,
    /// Hosts, `host:port` or networks (`10.1.0.0/16`) that are open in spite of the policy.
    pub allow: Vec<String>,
}

/// Which addresses may be reached on behalf of a request.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum NetPolicy {
    /// Only those of the public internet.
    #[default]
    Public,
    /// Private networks too, for what a person or a request names (MCP servers, OpenAPI tools), never for what a model chooses.
    Private,
    /// Private networks and this machine; private networks also for what a model chooses. For a machine that serves only people who
    /// may reach its network anyway.
    Off,
}

/// `[log]`: what is written to the standard error output.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Log {
    /// Which lines: `error`, `warn`, `info`, `debug`, `trace`, or directives such as `info,antiphon::model=debug`. Also from `RUST_LOG`.
    pub filter: String,
    /// How a line looks.
    pub format: LogFormat,
}

impl Default for Log {
    fn default() -> Self {
        Self { filter: "info".to_owned(), format: LogFormat::default() }
    }
}

/// How a line of the log looks.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object per line, for programs.
    Json,
}

/// `[telemetry]`: traces for a collector.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Telemetry {
    /// Base address of an OTLP/HTTP collector, such as `http://127.0.0.1:4318`; also from `OTEL_EXPORTER_OTLP_ENDPOINT`. `None`: no traces.
    #[serde(deserialize_with = "value::filled_http_url")]
    pub otlp_endpoint: Option<Url>,
}
