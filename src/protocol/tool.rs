//! Tools that a request offers, and how the model is told to choose among them.

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::value::RawValue;

use super::{
    hosted_tool::{ImageTool, McpTool, OpenApiTool, WebSearchTool},
    json::{Extra, Raw, null_is_default, read_nested, tag_of, tagged},
};

tagged! {
    /// A tool of a request. Echoed in the Response as it came, with its defaults.
    pub enum Tool {
        /// A function that the client runs.
        Function(FunctionTool) = "function",
        /// A tool of the client that takes free text.
        Custom(CustomTool) = "custom",
        /// Tools of the client under one name.
        Namespace(NamespaceTool) = "namespace",
        /// The client's shell (older form).
        LocalShell(ClientTool) = "local_shell",
        /// The client's shell.
        Shell(ClientTool) = "shell",
        /// Patches that the client applies.
        ApplyPatch(ClientTool) = "apply_patch",
        /// The client's screen.
        Computer(ClientTool) = "computer",
        /// The client's screen (older form).
        ComputerPreview(ClientTool) = "computer_use_preview",
        /// A search among deferred tools.
        ToolSearch(ToolSearchTool) = "tool_search",
        /// A server of tools that speaks MCP.
        Mcp(McpTool) = "mcp",
        /// A search on the web.
        WebSearch(WebSearchTool) = "web_search",
        /// The same, dated.
        WebSearchDated(WebSearchTool) = "web_search_2025_08_26",
        /// The same (older form).
        WebSearchPreview(WebSearchTool) = "web_search_preview",
        /// The older form, dated.
        WebSearchPreviewDated(WebSearchTool) = "web_search_preview_2025_03_11",
        /// Pictures that the server has made.
        ImageGeneration(ImageTool) = "image_generation",
        /// The clock of the server; an extension.
        Clock(ClientTool) = "antiphon:clock",
        /// Pages that the server opens; an extension.
        OpenUrl(ClientTool) = "antiphon:open_url",
        /// An HTTP API that an OpenAPI document describes; an extension.
        OpenApi(OpenApiTool) = "antiphon:openapi",
        /// What the server remembers about a user; an extension.
        Memory(ClientTool) = "antiphon:memory",
        /// Pages of a file that is too large for the context; an extension.
        ReadFile(ClientTool) = "antiphon:read_file",
    }
    untyped: untyped_tool
}

/// A tool without `type` is a function when it has a name.
fn untyped_tool(json: &str) -> &'static str {
    #[derive(Deserialize)]
    struct Shape<'a> {
        #[serde(borrow, default)]
        name: Option<&'a RawValue>,
    }
    match serde_json::from_str::<Shape<'_>>(json) {
        Ok(Shape { name: Some(_) }) => "function",
        _ => "",
    }
}

/// A function that the client runs.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct FunctionTool {
    /// Its name: at most 128 of `[a-zA-Z0-9_-]`.
    pub name: String,
    /// What it does, for the model.
    #[serde(default)]
    pub description: Option<String>,
    /// JSON schema of its arguments.
    #[serde(default)]
    pub parameters: Option<Raw>,
    /// Whether the arguments must fit the schema exactly.
    #[serde(default, deserialize_with = "null_is_default")]
    pub strict: bool,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A tool that takes free text.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct CustomTool {
    /// Its name.
    pub name: String,
    /// What it does, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `{type:"text"}` or a grammar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Raw>,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Tools under one name.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct NamespaceTool {
    /// The namespace, for example `crm`.
    pub name: String,
    /// What its tools are for, for the model.
    #[serde(default, deserialize_with = "null_is_default")]
    pub description: String,
    /// Functions and custom tools.
    pub tools: Vec<Tool>,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A search among deferred tools.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ToolSearchTool {
    /// `client` or `server`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<String>,
    /// What it does, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON schema of its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Raw>,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A tool that has nothing we read but its type; its fields are echoed.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ClientTool {
    /// Its fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Whether the model may, must or must not call a tool.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolMode {
    /// It must not.
    None,
    /// It may.
    #[default]
    Auto,
    /// It must.
    Required,
}

/// How the model is told to choose among the tools.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ToolChoice {
    /// Among all of them.
    Mode(ToolMode),
    /// This one, or only among these.
    Rule(ChoiceRule),
    /// One hosted tool, by its type and what else names it.
    Hosted(Raw),
}

/// A choice given as an object.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ChoiceRule {
    /// This function.
    Function {
        /// Its name.
        name: String,
        /// The namespace it belongs to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        namespace: Option<String>,
    },
    /// This custom tool.
    Custom {
        /// Its name.
        name: String,
    },
    /// Only among these.
    AllowedTools {
        /// Whether it must call one of them.
        #[serde(default)]
        mode: ToolMode,
        /// Which.
        tools: Vec<AllowedTool>,
    },
}

/// A tool named in `allowed_tools`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct AllowedTool {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its name, for types that have names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub extra: AllowedExtra,
}

/// The rest of an [`AllowedTool`], such as `server_label`.
pub type AllowedExtra = serde_json::Map<String, serde_json::Value>;

impl Default for ToolChoice {
    fn default() -> Self {
        Self::Mode(ToolMode::Auto)
    }
}

impl<'de> Deserialize<'de> for ToolChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        match (raw.get().as_bytes().first(), tag_of(raw).as_deref()) {
            (Some(b'"'), _) => read_nested(raw).map(Self::Mode),
            (Some(b'{'), Some("function" | "custom" | "allowed_tools")) => {
                read_nested(raw).map(Self::Rule)
            }
            (Some(b'{'), Some(_)) => Ok(Self::Hosted(raw.to_owned().into())),
            _ => Err(D::Error::custom(
                "expected `none`, `auto`, `required`, or an object with a `type`",
            )),
        }
    }
}
