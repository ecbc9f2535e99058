//! The settings, typed and checked once at start: `antiphon.toml`, then environment variables, then command-line options.
//!
//! Invariants:
//! - Nothing else reads the environment. It comes in as an [`Environment`], so a test never touches the process.
//! - A key that nothing understands is an error that names the key, where it was set and what it was probably meant to be.
//! - Secrets are [`Secret`]: they are named by a variable (`*_env`), resolved here, and can be neither serialised nor printed.
//! - It knows nothing of the other modules: whether a dialect or a model exists is their answer.
//!
//! Every key is listed with its default in `config/default.toml`, which a test holds to [`Config::default`].

mod access;
mod check;
mod dialect;
mod effective;
mod engine;
mod environment;
mod error;
mod extensions;
mod images;
mod load;
mod mcp;
mod offered;
mod openapi;
mod overlay;
mod secret;
mod server;
mod unused;
mod upstreams;
mod value;
mod web;

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use serde::Deserialize;

pub use self::{
    access::{Auth, Oidc, Share, Tenancy},
    dialect::{
        CallGrammar, CallIdForm, DialectOverrides, ReasoningParam, Rescue, SystemPolicy, ThinkTags,
        TokenLimitParam, ToolChoiceForm,
    },
    effective::effective,
    engine::{Engine, GetCurrentTime, History, Tools},
    environment::{Environment, Places},
    error::{ConfigError, Origin, Problem},
    extensions::{Memory, ReadFile},
    images::ImageGeneration,
    load::{Loaded, Sources},
    mcp::{Mcp, McpConnector, McpTransport},
    offered::{Offered, offered},
    openapi::{ApiCredential, CredentialHost, CredentialKind, OpenApi},
    secret::Secret,
    server::{
        Database, Http, Log, LogFormat, Net, NetPolicy, Retention, Shutdown, Telemetry, WebSocket,
    },
    unused::unused,
    upstreams::{ModelOverride, Models, Upstream, Wire},
    value::Glob,
    web::{OpenUrl, PageApi, SearchApi, WebSearch},
};

/// Every key with its default, as a file that says what each is for.
pub const DEFAULT_TOML: &str = include_str!("../../config/default.toml");

/// All settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Address and port of the HTTP server.
    #[serde(deserialize_with = "value::listen")]
    pub listen: SocketAddr,
    /// Where the private Postgres and file bytes live. `None`: the place that suits the user we run as.
    #[serde(deserialize_with = "value::filled")]
    pub data_dir: Option<PathBuf>,
    /// An external Postgres, also from `DATABASE_URL`. `None`: a private one is started. Secret, for it may hold a password.
    #[serde(deserialize_with = "value::filled")]
    pub database_url: Option<Secret>,
    /// Whose event names are spoken where the two specifications differ.
    pub profile: Profile,
    /// `[database]`
    pub database: Database,
    /// `[auth]`
    pub auth: Auth,
    /// `[tenancy]`
    pub tenancy: Tenancy,
    /// `[[upstreams]]`, in the order they are asked. Empty: the usual local ports are tried.
    pub upstreams: Vec<Upstream>,
    /// `[models]`
    pub models: Models,
    /// `[net]`
    pub net: Net,
    /// `[engine]`
    pub engine: Engine,
    /// `[history]`
    pub history: History,
    /// `[http]`
    pub http: Http,
    /// `[websocket]`
    pub websocket: WebSocket,
    /// `[tools]`
    pub tools: Tools,
    /// `[mcp]`
    pub mcp: Mcp,
    /// `[retention]`
    pub retention: Retention,
    /// `[shutdown]`
    pub shutdown: Shutdown,
    /// `[log]`
    pub log: Log,
    /// `[telemetry]`
    pub telemetry: Telemetry,
    /// `ANTIPHON_BOOTSTRAP_KEY`: an API key that is valid from the first start.
    #[serde(skip)]
    pub bootstrap_key: Option<Secret>,
    /// `ANTIPHON_SEAL_KEYS`, separated by commas, newest first. Their form is checked by `seal`.
    #[serde(skip)]
    pub seal_keys: Vec<Secret>,
    /// Directories that the environment names.
    #[serde(skip)]
    pub places: Places,
}

/// Which specification's event names are sent where the two differ.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// As OpenAI's own server.
    #[default]
    Openai,
    /// As the Open Responses specification.
    OpenResponses,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8090)),
            data_dir: None,
            database_url: None,
            profile: Profile::default(),
            database: Database::default(),
            auth: Auth::default(),
            tenancy: Tenancy::default(),
            upstreams: Vec::new(),
            models: Models::default(),
            net: Net::default(),
            engine: Engine::default(),
            history: History::default(),
            http: Http::default(),
            websocket: WebSocket::default(),
            tools: Tools::default(),
            mcp: Mcp::default(),
            retention: Retention::default(),
            shutdown: Shutdown::default(),
            log: Log::default(),
            telemetry: Telemetry::default(),
            bootstrap_key: None,
            seal_keys: Vec::new(),
            places: Places::default(),
        }
    }
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
