//! Which tools of ours a Response may use.

use std::sync::Arc;

use crate::{
    protocol::{ApiError, Tool as ToolParam},
    turn::{HostedRef, HostedTool},
};

use super::Tool;

/// The label under which antiphon's own tools appear in `mcp_call` items.
pub const OWN_LABEL: &str = "antiphon";

/// The tools that this server can run.
#[derive(Clone, Default)]
pub struct Registry {
    tools: Vec<Arc<dyn Tool>>,
}

/// Types of tools that OpenAI runs on its servers, and that need a provider here.
const HOSTED: &[&str] = &[
    "file_search",
    "web_search",
    "code_interpreter",
    "image_generation",
    "mcp",
    "programmatic_tool_calling",
];

impl Registry {
    /// A registry of these tools.
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        Self { tools }
    }

    /// The tool of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.name() == name)
    }

    /// The tools of ours that a request asks for. One that nothing is configured for is a 400: it is never ignored in silence.
    pub fn hosted(&self, asked: &[ToolParam]) -> Result<Vec<HostedTool>, ApiError> {
        let mut hosted = Vec::new();
        for (at, tool) in asked.iter().enumerate() {
            match tool {
                ToolParam::Clock(_) => hosted.push(self.offer("get_current_time", at, tool)?),
                ToolParam::Unknown(_) => return Err(refusal(at, &tool.kind())),
                ToolParam::Function(_)
                | ToolParam::Custom(_)
                | ToolParam::Namespace(_)
                | ToolParam::LocalShell(_)
                | ToolParam::Shell(_)
                | ToolParam::ApplyPatch(_)
                | ToolParam::Computer(_)
                | ToolParam::ComputerPreview(_)
                | ToolParam::ToolSearch(_) => (),
            }
        }
        Ok(hosted)
    }

    fn offer(&self, name: &str, at: usize, asked: &ToolParam) -> Result<HostedTool, ApiError> {
        let tool = self.get(name).ok_or_else(|| {
            ApiError::invalid(
                format!("tools[{at}].type"),
                format!("The tool type `{}` is switched off on this server.", asked.kind()),
            )
            .code("unsupported_value")
        })?;
        Ok(HostedTool {
            tool: HostedRef { label: OWN_LABEL.to_owned(), name: tool.name().to_owned() },
            description: tool.description().to_owned(),
            parameters: tool.parameters(),
        })
    }
}

fn refusal(at: usize, kind: &str) -> ApiError {
    let param = format!("tools[{at}].type");
    if kind.is_empty() {
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
    ApiError::invalid(param, message).code("unsupported_value")
}
