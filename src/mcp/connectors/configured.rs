//! Servers of the configuration.

use std::collections::BTreeMap;

use url::Url;

use crate::{
    config::{McpConnector, McpTransport, Secret},
    protocol::Raw,
};

use super::{
    super::{Allowed, Approval, Command, Endpoint, McpTool, Transport, Wrong, headers::Given},
    Server, merged, narrowed,
};

/// A server of the configuration.
pub(super) struct Configured {
    /// Under which it is asked for.
    pub(super) names: Vec<String>,
    access: Reached,
    headers: Vec<Given>,
    authorization: Option<Secret>,
    description: Option<String>,
    allowed: Option<Allowed>,
    approval: Approval,
}

enum Reached {
    Http(Url, Transport),
    Command(Command),
}

impl Configured {
    pub(super) fn new(name: &str, connector: &McpConnector) -> Result<Self, Wrong> {
        let rule = |value: &serde_json::Value| Raw::of(value);
        let allowed = connector
            .allowed_tools
            .as_ref()
            .map(|value| Allowed::parse(&rule(value), "allowed_tools"))
            .transpose()?;
        let approval = connector
            .require_approval
            .as_ref()
            .map(|value| Approval::parse(&rule(value), "require_approval"))
            .transpose()?;
        let transport = match connector.transport {
            McpTransport::Auto => Transport::Auto,
            McpTransport::Streamable => Transport::Streamable,
            McpTransport::Sse => Transport::Sse,
        };
        let access = match (&connector.url, &connector.command) {
            (Some(url), _) => Reached::Http(url.clone(), transport),
            (None, Some(program)) => Reached::Command(Command {
                program: program.clone(),
                args: connector.args.clone(),
                env: connector.env.clone(),
                dir: None,
            }),
            (None, None) => return Err(Wrong::at("url", "`url` or `command` is needed")),
        };
        let names = std::iter::once(name.to_owned()).chain(connector.aliases.iter().cloned());
        Ok(Self {
            names: names.collect(),
            access,
            headers: pairs(&connector.headers),
            authorization: connector.authorization.clone(),
            description: connector.description.clone(),
            allowed,
            approval: approval.unwrap_or_default(),
        })
    }

    /// As this tool of a request uses it.
    pub(super) fn server(&self, tool: McpTool) -> Server {
        let endpoint = match &self.access {
            Reached::Http(url, transport) => {
                let headers = merged(&tool, &self.headers, self.authorization.as_ref());
                Endpoint::http(url.clone(), *transport, headers).of_operator()
            }
            Reached::Command(command) => Endpoint::command(command.clone()),
        };
        let allowed = self.allowed.clone().unwrap_or_default();
        narrowed(tool, endpoint, self.description.clone(), allowed, self.approval.clone())
    }
}

fn pairs(headers: &BTreeMap<String, Secret>) -> Vec<Given> {
    headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
}
