//! The tools of a server, from its configuration.

use std::sync::Arc;

use anyhow::Context as _;

use crate::{
    clock::{Clock, Ids},
    config::Config,
    documents::{Limits, Parser},
    mcp::Pool,
    net::Policies,
    seal::Sealer,
    tasks::Tasks,
    tools::{
        Connectors, Tool, Toolbox,
        clock_tool::ClockTool,
        image::ImageApi,
        memory::{Memory, MemoryParts},
        read_file::FileReader,
    },
    web,
};

use super::{Base, Models};

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
        models: &Models,
        sealer: Arc<Sealer>,
        clock: &Clock,
        ids: &Ids,
        tasks: &Tasks,
    ) -> anyhow::Result<Self> {
        let policies = Policies::new(&config.net).context("`net.allow`")?;
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
        let images = ImageApi::from_config(&config.tools.image_generation, &policies)?;
        let parts = web::Parts {
            policies,
            clock: clock.clone(),
            ids: ids.clone(),
            program: std::env::current_exe().context("cannot find our own program")?,
        };
        let files = config.tools.read_file.enabled.then(|| {
            let parser = Parser::new(parts.program.clone(), Limits::default());
            FileReader::new(parser, config.tools.read_file.preview_characters.get())
        });
        let memory = config.tools.memory.enabled.then(|| {
            Memory::new(MemoryParts {
                pool: base.pool.clone(),
                clock: clock.clone(),
                ids: ids.clone(),
                model: models.source.clone(),
                utility: config.models.utility.clone(),
                default_model: config.models.default.clone(),
                most: config.tools.memory.max_per_user.get(),
            })
        });
        let web = web::from_config(&config.tools, &parts)?;
        let telling_time =
            config.tools.get_current_time.enabled.then(|| ClockTool::new(clock.clone()));
        let toolbox = Toolbox {
            clock: telling_time.map(|clock| Arc::new(clock) as Arc<dyn Tool>),
            web: Some(web),
            images,
            memory,
            files,
            mcp: Some((sessions.clone(), connectors.clone())),
        };
        Ok(Self { toolbox, connectors, sessions })
    }
}
