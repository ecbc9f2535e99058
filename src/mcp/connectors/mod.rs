//! Servers that were set up before: those of the configuration, and those that a tenant keeps.
//!
//! A request that names one may narrow what it allows, never widen it. Labels of the configuration come first; a tenant cannot take one.
//! Token and headers of a tenant's connector are sealed in the database and never shown again.

mod configured;
mod kept;

use std::{fmt, sync::Arc};

use sqlx::PgPool;
use url::Url;

use crate::{
    clock::{Clock, Ids},
    config::{Mcp, Secret},
    net::{Allow, Policy},
    protocol::ApiError,
    seal::Sealer,
    store::{self, Viewer},
};

use self::configured::Configured;
use super::{
    Allowed, Approval, Endpoint, McpTool, Transport, Wrong,
    headers::{self, Given},
};

pub use kept::Shown;

/// A server as a request may use it.
#[derive(Clone, Debug)]
pub struct Server {
    /// What the request calls it.
    pub label: String,
    /// Where and how it is asked.
    pub endpoint: Endpoint,
    /// What it is for, for the model.
    pub description: Option<String>,
    /// Which tools may be used.
    pub allowed: Allowed,
    /// Which calls need approval.
    pub approval: Approval,
}

/// Something wrong with a connector of the configuration.
#[derive(Debug, thiserror::Error)]
#[error("`mcp.connectors.{name}.{}`: {}", .wrong.path, .wrong.message)]
pub struct ConfigFault {
    name: String,
    wrong: Wrong,
}

/// All connectors. Cheap to clone.
#[derive(Clone)]
pub struct Connectors {
    inner: Arc<Parts>,
}

struct Parts {
    configured: Vec<Configured>,
    policy: Policy,
    pool: PgPool,
    sealer: Arc<Sealer>,
    clock: Clock,
    ids: Ids,
}

impl Connectors {
    /// Those of this configuration, and those in this database. `policy` judges the addresses of tenants and requests; where the operator's
    /// are may be reached anyway.
    pub fn new(
        config: &Mcp,
        policy: Policy,
        pool: PgPool,
        sealer: Arc<Sealer>,
        clock: Clock,
        ids: Ids,
    ) -> Result<Self, ConfigFault> {
        let configured = config
            .connectors
            .iter()
            .map(|(name, connector)| {
                Configured::new(name, connector)
                    .map_err(|wrong| ConfigFault { name: name.clone(), wrong })
            })
            .collect::<Result<_, _>>()?;
        let parts = Parts { configured, policy, pool, sealer, clock, ids };
        Ok(Self { inner: Arc::new(parts) })
    }

    /// Where the servers of the configuration are: for [`Pool::new`](super::Pool::new).
    pub fn places(config: &Mcp) -> Vec<Allow> {
        let urls = config.connectors.values().filter_map(|connector| connector.url.as_ref());
        let place = |url: &Url| {
            let (host, port) = (url.host_str()?, url.port_or_known_default()?);
            // An address that no entry may open stays closed.
            format!("{host}:{port}").parse().ok()
        };
        urls.filter_map(place).collect()
    }

    /// The server that the tool at `place` (such as `tools[2]`) means, for whoever looks through `viewer`.
    pub async fn resolve(
        &self,
        viewer: Viewer<'_>,
        tool: McpTool,
        place: &str,
    ) -> Result<Server, ApiError> {
        if let Some(url) = &tool.server_url {
            self.check_url(url, &tool.server_label, "server_url")
                .map_err(|wrong| wrong.into_error(place))?;
            let headers = merged(&tool, &[], None);
            return Ok(Server {
                endpoint: Endpoint::http(url.clone(), Transport::Auto, headers),
                label: tool.server_label,
                description: tool.server_description,
                allowed: tool.allowed_tools.unwrap_or_default(),
                approval: tool.require_approval.unwrap_or_default(),
            });
        }
        let name = tool.connector_id.as_ref().unwrap_or(&tool.server_label);
        if let Some(configured) = self.configured(name) {
            return Ok(configured.server(tool));
        }
        let pool = &self.inner.pool;
        let found = match store::connectors::find(pool, viewer, name).await? {
            Some(found) => Some(found),
            None => store::connectors::find_by_label(pool, viewer, name).await?,
        };
        let Some(found) = found else {
            let (field, message) = if tool.connector_id.is_some() {
                (
                    "connector_id",
                    format!("there is no connector `{name}`; `GET /v1/connectors` lists yours"),
                )
            } else {
                (
                    "server_url",
                    format!(
                        "it is missing, and no connector is called `{name}`; give the server's address, or set up a connector of that label"
                    ),
                )
            };
            return Err(Wrong::at(field, message).into_error(place));
        };
        self.server(viewer.tenant_id, &found, tool, place)
    }

    fn configured(&self, name: &str) -> Option<&Configured> {
        self.inner.configured.iter().find(|one| one.names.iter().any(|known| known == name))
    }

    fn check_url(&self, url: &Url, label: &str, field: &str) -> Result<(), Wrong> {
        let judged = self.inner.policy.check_url(url);
        judged.map_err(|denied| Wrong::at(field, format!("{denied} (MCP server `{label}`)")))
    }
}

/// The server of a connector as this request narrows it.
fn narrowed(
    tool: McpTool,
    endpoint: Endpoint,
    description: Option<String>,
    allowed: Allowed,
    approval: Approval,
) -> Server {
    Server {
        label: tool.server_label,
        endpoint,
        description: tool.server_description.or(description),
        allowed: allowed.and(tool.allowed_tools.unwrap_or_default()),
        approval: match tool.require_approval {
            Some(asked) => approval.narrowed_by(asked),
            None => approval,
        },
    }
}

/// The headers for this tool. A token that the request brings takes the place of the connector's.
fn merged(tool: &McpTool, connector: &[Given], token: Option<&Secret>) -> super::Headers {
    let merged = headers::merge(&tool.headers, connector, tool.authorization.as_ref().or(token));
    for name in merged.refused {
        tracing::warn!(label = %tool.server_label, header = %name, "header for an MCP server not sent: it is the transport's");
    }
    merged.headers
}

impl fmt::Debug for Connectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.inner.configured.iter().flat_map(|one| &one.names);
        f.debug_set().entries(names).finish()
    }
}
