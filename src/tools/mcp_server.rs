//! MCP servers as servers of tools.

use std::{sync::Arc, time::Duration};

use aws_lc_rs::digest;
use futures::future::{BoxFuture, FutureExt as _, ready};

use crate::{
    mcp::{
        Call as McpCall, CallResult, Endpoint, McpError, Pool, Scope, ToolInfo, call_digest,
        connectors::Server,
    },
    protocol::{ApiError, Extra, Part, Raw, content::InputImage, hosted_tool::McpTool as McpParam},
    turn::{ToolFailure, ToolOutput},
};

use super::{
    Call, OWN_LABEL, Spec, Tool, ToolError,
    server::{Listed, ToolServer, terms},
};

/// How much longer a call is waited for than its server may take: so the sentence says whose limit it was.
const GRACE: Duration = Duration::from_secs(1);

/// An MCP server in one Response.
pub(super) struct McpServer {
    inner: Arc<Inner>,
    definition: String,
}

struct Inner {
    server: Server,
    pool: Pool,
    scope: Scope,
}

/// A tool of it.
struct McpTool {
    spec: Spec,
    inner: Arc<Inner>,
}

impl McpServer {
    /// The server in one Chain. `asked` is what the request says of it.
    pub(super) fn new(server: Server, pool: Pool, scope: Scope, asked: &McpParam) -> Self {
        let definition = definition(&server.endpoint, asked);
        Self { inner: Arc::new(Inner { server, pool, scope }), definition }
    }

    fn tools<'a>(
        &'a self,
        infos: impl Iterator<Item = &'a ToolInfo> + 'a,
    ) -> impl Iterator<Item = (&'a ToolInfo, Arc<dyn Tool>)> {
        let allowed = &self.inner.server.allowed;
        infos.filter(|info| allowed.allows(info)).map(|info| {
            let spec = spec(info, &self.inner.server, self.inner.pool.call_limit() + GRACE);
            let tool: Arc<dyn Tool> = Arc::new(McpTool { spec, inner: Arc::clone(&self.inner) });
            (info, tool)
        })
    }
}

impl ToolServer for McpServer {
    fn label(&self) -> &str {
        &self.inner.server.label
    }

    fn digest(&self, tool: &str, arguments: &str) -> [u8; 32] {
        call_digest(&self.inner.server.endpoint, tool, arguments)
    }

    fn definition(&self) -> &str {
        &self.definition
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Listed>, String>> {
        Box::pin(async move {
            let Inner { server, pool, scope } = &*self.inner;
            let list = pool
                .list_tools(&server.endpoint, scope)
                .await
                .map_err(|error| capitalised(&error))?;
            let listed = self.tools(list.tools.iter());
            Ok(listed.map(|(info, tool)| Listed { shown: Raw::of(info), tool }).collect())
        })
    }

    fn recall<'a>(&'a self, listed: &'a [Raw]) -> BoxFuture<'a, Option<Vec<Arc<dyn Tool>>>> {
        let infos: Option<Vec<ToolInfo>> = listed.iter().map(|raw| raw.to().ok()).collect();
        let tools = infos.map(|infos| self.tools(infos.iter()).map(|(_, tool)| tool).collect());
        ready(tools).boxed()
    }
}

impl Tool for McpTool {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let Inner { server, pool, scope } = &*self.inner;
            let arguments = Raw::of(call.arguments);
            let asked = McpCall { name: &self.spec.name, arguments: &arguments, limit: None };
            match pool.call_tool(&server.endpoint, scope, asked).await {
                Ok(result) if result.is_error => Err(ToolError::ForModel(ToolFailure {
                    told: result.text(),
                    error: result.item_error(),
                    fields: Extra::new(),
                })),
                Ok(result) => Ok(output(&result)),
                Err(error) => Err(ToolError::ForModel(ToolFailure {
                    told: capitalised(&error),
                    error: Some(error.item_error()),
                    fields: Extra::new(),
                })),
            }
        })
    }
}

/// Says of a tool of a request what is wrong with it before anybody is asked.
pub(super) fn check(asked: &McpParam, at: usize) -> Result<(), ApiError> {
    if asked.server_label == OWN_LABEL {
        return Err(ApiError::invalid(
            format!("tools[{at}].server_label"),
            format!(
                "The label `{OWN_LABEL}` stands for the tools of this server itself. Choose another one."
            ),
        ));
    }
    Ok(())
}

/// The tool object as the client wrote it, with what is never shown.
pub(super) fn exposed(asked: &McpParam) -> Raw {
    let mut fields: serde_json::Map<String, serde_json::Value> =
        Raw::of(asked).to().unwrap_or_default();
    let token = asked.authorization.expose();
    fields.insert("authorization".to_owned(), token.clone().into());
    fields.insert("headers".to_owned(), serde_json::json!(asked.headers.expose()));
    Raw::of(&fields)
}

fn spec(info: &ToolInfo, server: &Server, time_limit: Duration) -> Spec {
    let described = info.description.clone().unwrap_or_default();
    let description = match &server.description {
        Some(of_server) if !of_server.is_empty() => format!("[{of_server}] {described}"),
        _ => described,
    };
    Spec {
        label: server.label.clone(),
        name: info.name.clone(),
        title: info.title.clone().unwrap_or_else(|| info.name.clone()),
        description,
        parameters: info.input_schema.clone(),
        needs_approval: server.approval.is_needed(info),
        is_repeatable: info.read_only(),
        time_limit,
        ..Spec::own(&info.name, "", "", &serde_json::Value::Null)
    }
}

/// The terms under which tools are listed: which server, and which of its tools the request lets in.
fn definition(endpoint: &Endpoint, asked: &McpParam) -> String {
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(&call_digest(endpoint, "", ""));
    context.update(asked.allowed_tools.as_ref().map_or("", Raw::json).as_bytes());
    terms(context.finish().as_ref())
}

/// The texts, then the pictures.
fn output(result: &CallResult) -> ToolOutput {
    let mut told = vec![Part::input_text(result.text())];
    told.extend(result.images().filter_map(|image| image.data_url()).map(|url| {
        Part::InputImage(InputImage {
            image_url: Some(url),
            detail: "auto".to_owned(),
            ..InputImage::default()
        })
    }));
    ToolOutput { told, fields: Extra::new() }
}

fn capitalised(error: &McpError) -> String {
    let text = error.to_string();
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", chars.as_str())
}
