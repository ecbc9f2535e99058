//! The tools of a server, from its configuration.

use std::sync::Arc;

use crate::{
    clock::{Clock, Ids},
    config::Config,
    mcp::Pool,
    net::{self, GuardedSettings},
    seal::Sealer,
    tasks::Tasks,
    tools::{
        Connectors, Tool, Toolbox, clock_tool::ClockTool, openapi::Documents, openapi_server::Apis,
    },
};

use super::{Base, policies, web};

/// The tools, and the MCP servers that were set up before.
pub(super) struct Tools {
    pub(super) toolbox: Toolbox,
    pub(super) connectors: Connectors,
    pub(super) sessions: Pool,
}

impl Tools {
    pub(super) fn new(
        config: &Config,
        base: &Base,
        sealer: Arc<Sealer>,
        clock: &Clock,
        ids: &Ids,
        tasks: &Tasks,
    ) -> anyhow::Result<Self> {
        let policies = policies(config)?;
        let connectors = Connectors::new(
            &config.mcp,
            policies.named.clone(),
            base.pool.clone(),
            sealer,
            clock.clone(),
            ids.clone(),
        )?;
        let sessions = Pool::new(
            policies.named.clone(),
            Connectors::places(&config.mcp),
            clock.clone(),
            tasks.clone(),
            (&config.mcp).into(),
        )?;
        let apis = Apis {
            client: net::guarded(GuardedSettings {
                read_timeout: config.tools.openapi.timeout,
                ..GuardedSettings::new(policies.named.clone())
            })?,
            documents: Documents::new(&config.tools.openapi, tasks.clone()),
            settings: Arc::new(config.tools.openapi.clone()),
        };
        let web = web(config, &policies, clock, ids)?;
        let telling_time =
            config.tools.get_current_time.enabled.then(|| ClockTool::new(clock.clone()));
        let toolbox = Toolbox {
            clock: telling_time.map(|clock| Arc::new(clock) as Arc<dyn Tool>),
            web: Some(web),
            mcp: Some((sessions.clone(), connectors.clone())),
            apis: Some(apis),
        };
        Ok(Self { toolbox, connectors, sessions })
    }
}
