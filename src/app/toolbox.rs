//! The tools of a server, from its configuration.

use std::sync::Arc;

use crate::{
    clock::{Clock, Ids},
    config::{Config, ReadFile},
    documents::{Limits, Parser},
    mcp::Pool,
    net::{self, GuardedSettings},
    seal::Sealer,
    tasks::Tasks,
    tools::{
        Connectors, Tool, Toolbox,
        clock_tool::ClockTool,
        image::ImageApi,
        memory::{Memory, MemoryParts},
        openapi::Documents,
        openapi_server::Apis,
        read_file::FileReader,
    },
};

use super::{Base, Models, policies, web, web::program};

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
        let images = ImageApi::from_config(&config.tools.image_generation, &policies)?;
        let read_file = &config.tools.read_file;
        let files = read_file.enabled.then(|| file_reader(read_file)).transpose()?;
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
            images,
            memory,
            files,
            mcp: Some((sessions.clone(), connectors.clone())),
            apis: Some(apis),
        };
        Ok(Self { toolbox, connectors, sessions })
    }
}

fn file_reader(config: &ReadFile) -> anyhow::Result<FileReader> {
    let parser = Parser::new(program()?, Limits::default());
    Ok(FileReader::new(parser, config.preview_characters.get()))
}
