//! The tools of a server, and which of them a Response may use.

use std::{borrow::Cow, collections::HashSet, sync::Arc};

use crate::{
    mcp::{self, Connectors, Pool, Scope},
    protocol::{
        ApiError, CreateResponse, Principal, Tool as ToolParam, hosted_tool::WebSearchTool,
    },
    store::Viewer,
    web::Web,
};

use super::{
    Registry, Tool,
    image::{GenerateImage, ImageApi},
    mcp_server::{self, McpServer},
    memory::Memory,
    open_url::{OpenUrl, Snippets},
    openapi_server::{Apis, OpenApiServer},
    read_file::{FileReader, Files, ReadFile},
    server::ToolServer,
    web_search::WebSearch,
};

/// Everything that can be a tool here.
#[derive(Clone, Default)]
pub struct Toolbox {
    /// Tells the time.
    pub clock: Option<Arc<dyn Tool>>,
    /// Searches the web and opens pages.
    pub web: Option<Web>,
    /// Makes pictures.
    pub images: Option<ImageApi>,
    /// Remembers facts about users.
    pub memory: Option<Memory>,
    /// Reads files of the input.
    pub files: Option<FileReader>,
    /// MCP servers: the sessions with them, and those that were set up before.
    pub mcp: Option<(Pool, Connectors)>,
    /// HTTP APIs.
    pub apis: Option<Apis>,
}

/// What a request names.
#[derive(Clone, Default)]
pub struct Assembly {
    /// The tools that are there.
    pub registry: Registry,
    /// Those whose tools must be asked for.
    pub servers: Vec<Arc<dyn ToolServer>>,
    /// What the model is told besides, after the instructions.
    pub told: Option<String>,
    /// The files of the input, when the model may page through them.
    pub files: Option<Arc<Files>>,
}

/// Whose tools are put together.
#[derive(Clone, Copy, Debug)]
pub struct Asker<'a> {
    /// Who asks.
    pub principal: &'a Principal,
    /// Through whose eyes connectors are looked up.
    pub viewer: Viewer<'a>,
    /// What state of tools is kept apart by.
    pub chain_id: &'a str,
}

/// Types of tools that OpenAI runs on its servers, and that this version does not have.
const HOSTED: &[&str] = &["file_search", "code_interpreter", "programmatic_tool_calling"];

impl Assembly {
    /// The server of this label.
    pub fn server(&self, label: &str) -> Option<&dyn ToolServer> {
        self.servers.iter().map(|server| &**server).find(|server| server.label() == label)
    }

    /// The instructions of a request, and what the model is told besides.
    pub fn instructions<'a>(&'a self, own: Option<&'a str>) -> Option<Cow<'a, str>> {
        match (own, self.told.as_deref()) {
            (Some(own), Some(told)) => Some(format!("{own}\n\n{told}").into()),
            (own, told) => own.or(told).map(Cow::Borrowed),
        }
    }
}

impl Toolbox {
    /// The tools of ours that a request asks for. One that nothing is configured for is a 400: it is never ignored in silence.
    pub async fn assemble(
        &self,
        request: &CreateResponse,
        asker: Asker<'_>,
    ) -> Result<Assembly, ApiError> {
        let mut assembly = Assembly::default();
        let snippets = Arc::new(Snippets::default());
        let mut labels = HashSet::new();
        for (at, asked) in request.tools.iter().enumerate() {
            match asked {
                ToolParam::Clock(_) => {
                    let off = || not_set_up(at, asked, "tools.get_current_time.enabled = true");
                    assembly.registry.add(self.clock.clone().ok_or_else(off)?);
                }
                ToolParam::WebSearch(tool)
                | ToolParam::WebSearchDated(tool)
                | ToolParam::WebSearchPreview(tool)
                | ToolParam::WebSearchPreviewDated(tool) => {
                    let web = self.web.as_ref().filter(|web| web.search.is_some());
                    let off = || not_set_up(at, asked, "tools.web_search.provider");
                    let web = web.ok_or_else(off)?;
                    add_web(&mut assembly.registry, web, tool, &snippets, at)?;
                }
                ToolParam::OpenUrl(_) => {
                    let pages = self.web.as_ref().and_then(|web| web.pages.clone());
                    let off = || not_set_up(at, asked, "tools.open_url.enabled = true");
                    let tool = OpenUrl::new(pages.ok_or_else(off)?, Arc::clone(&snippets));
                    assembly.registry.add(Arc::new(tool));
                }
                ToolParam::ImageGeneration(tool) => {
                    let off = || not_set_up(at, asked, "tools.image_generation.base_url");
                    let api = self.images.clone().ok_or_else(off)?;
                    let tool = GenerateImage::new(api, tool).map_err(|(field, why)| {
                        ApiError::invalid(format!("tools[{at}].{field}"), why)
                    })?;
                    assembly.registry.add(Arc::new(tool));
                }
                ToolParam::Mcp(tool) => {
                    if !labels.insert(&*tool.server_label) {
                        return Err(twice(at, &tool.server_label));
                    }
                    mcp_server::check(tool, at)?;
                    let off = || not_set_up(at, asked, "mcp");
                    let (pool, connectors) = self.mcp.as_ref().ok_or_else(off)?;
                    let place = format!("tools[{at}]");
                    let parsed = mcp::McpTool::parse(&mcp_server::exposed(tool))
                        .map_err(|wrong| wrong.into_error(&place))?;
                    let server = connectors.resolve(asker.viewer, parsed, &place).await?;
                    let scope = scope(asker);
                    let server = McpServer::new(server, pool.clone(), scope, tool);
                    assembly.servers.push(Arc::new(server));
                }
                ToolParam::OpenApi(tool) => {
                    if !labels.insert(&*tool.server_label) {
                        return Err(twice(at, &tool.server_label));
                    }
                    let off = || not_set_up(at, asked, "tools.openapi");
                    let apis = self.apis.as_ref().ok_or_else(off)?;
                    let place = format!("tools[{at}]");
                    let server = OpenApiServer::new(tool, apis, &place).await?;
                    assembly.servers.push(Arc::new(server));
                }
                ToolParam::Function(_)
                | ToolParam::Custom(_)
                | ToolParam::Namespace(_)
                | ToolParam::LocalShell(_)
                | ToolParam::Shell(_)
                | ToolParam::ApplyPatch(_)
                | ToolParam::Computer(_)
                | ToolParam::ComputerPreview(_)
                | ToolParam::ToolSearch(_) => (),
                ToolParam::Memory(_) => {
                    let off = || not_set_up(at, asked, "tools.memory.enabled = true");
                    let memory = self.memory.as_ref().ok_or_else(off)?;
                    assembly.told = memory.told(asker.principal).await?;
                    assembly.registry.add(Arc::new(memory.tool(request.model.as_deref())));
                }
                ToolParam::ReadFile(_) => {
                    let off = || not_set_up(at, asked, "tools.read_file.enabled = true");
                    let reader = self.files.clone().ok_or_else(off)?;
                    let files = assembly.files.get_or_insert_with(|| Arc::new(Files::new(reader)));
                    assembly.registry.add(Arc::new(ReadFile::new(Arc::clone(files))));
                }
                ToolParam::Unknown(_) => return Err(refusal(at, &asked.kind())),
            }
        }
        Ok(assembly)
    }
}

/// The search, and the pages it leads to unless the request keeps the model from opening them.
fn add_web(
    registry: &mut Registry,
    web: &Web,
    asked: &WebSearchTool,
    snippets: &Arc<Snippets>,
    at: usize,
) -> Result<(), ApiError> {
    let search = WebSearch::new(web.clone(), asked, Arc::clone(snippets))
        .map_err(|(field, why)| ApiError::invalid(format!("tools[{at}].{field}"), why))?;
    registry.add(Arc::new(search));
    if asked.external_web_access != Some(false)
        && let Some(pages) = &web.pages
    {
        registry.add(Arc::new(OpenUrl::new(pages.clone(), Arc::clone(snippets))));
    }
    Ok(())
}

fn scope(asker: Asker<'_>) -> Scope {
    Scope {
        tenant: asker.principal.tenant_id.clone(),
        user: asker.principal.user_id.clone(),
        chain: asker.chain_id.to_owned(),
    }
}

/// A tool that the operator has switched off, or has not set up.
fn not_set_up(at: usize, asked: &ToolParam, key: &str) -> ApiError {
    ApiError::invalid(
        format!("tools[{at}]"),
        format!(
            "The tool `{}` is not set up on this server. Leave it out, or ask its operator to set `{key}`.",
            asked.kind()
        ),
    )
    .code("unsupported_value")
}

fn twice(at: usize, label: &str) -> ApiError {
    ApiError::invalid(
        format!("tools[{at}].server_label"),
        format!("Two servers have the label `{label}`. Give each its own."),
    )
}

fn refusal(at: usize, kind: &str) -> ApiError {
    if kind.is_empty() {
        let param = format!("tools[{at}].type");
        return ApiError::invalid(
            &*param,
            format!("Missing required parameter: `{param}`. A function has the type `function`."),
        )
        .code("missing_required_parameter");
    }
    let message = if HOSTED.iter().any(|hosted| kind.starts_with(hosted)) {
        format!(
            "The hosted tool `{kind}` has no provider on this server. Leave it out, or offer a function of your own for it."
        )
    } else {
        format!("`{kind}` is not a tool type that this server knows. Offer a `function` for it.")
    };
    ApiError::invalid(format!("tools[{at}]"), message).code("unsupported_value")
}
