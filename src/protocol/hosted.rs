//! Items of tools that the server runs.

use serde::{Deserialize, Serialize};

use super::{
    content::Part,
    item::ItemStatus,
    json::{Extra, Raw, null_is_default, unknown_is_none},
};

/// How the model sees a call that antiphon answered, where the item for the client does not say it. It is stored beside the item and sealed for
/// clients that keep their own history; never shown.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ModelView {
    /// The tool's name, for items that do not tell it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// JSON, as the model wrote it, for items that do not tell it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub arguments: String,
    /// What it was told, for items that do not tell it or not all of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<Part>,
    /// What the backend wants back with the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Raw>,
    /// The Round of the call in its Response, from 1; approved calls run before the first.
    #[serde(default)]
    pub round: u32,
}

/// A call of a tool on an MCP server, or of a tool of ours that has no item type of its own (`server_label` is then `antiphon`).
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct McpCall {
    /// `mcp_…`
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub id: String,
    /// How far it is.
    #[serde(
        default,
        deserialize_with = "unknown_is_none",
        skip_serializing_if = "Option::is_none"
    )]
    pub status: Option<ItemStatus>,
    /// The request this call was approved by.
    #[serde(default)]
    pub approval_request_id: Option<String>,
    /// Which server.
    pub server_label: String,
    /// The tool's name on that server.
    pub name: String,
    /// JSON, as the model wrote it.
    #[serde(default, deserialize_with = "null_is_default")]
    pub arguments: String,
    /// What it returned, as text.
    #[serde(default)]
    pub output: Option<String>,
    /// Why it failed.
    #[serde(default)]
    pub error: Option<Raw>,
    /// How the model sees it.
    #[serde(skip)]
    pub view: Option<Box<ModelView>>,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The tools of an MCP server.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct McpListTools {
    /// `mcpl_…`
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub id: String,
    /// Which server.
    pub server_label: String,
    /// Its tools: `name`, `description`, `input_schema`, `annotations`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub tools: Vec<Raw>,
    /// Why they could not be listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Raw>,
    /// The definition they were listed for; stored beside the item, never shown.
    #[serde(skip)]
    pub definition: Option<String>,
}

/// A call that waits for the client's consent.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct McpApprovalRequest {
    /// `mcpr_…`
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub id: String,
    /// Which server.
    pub server_label: String,
    /// The tool's name on that server.
    pub name: String,
    /// JSON, as the model wrote it.
    #[serde(default, deserialize_with = "null_is_default")]
    pub arguments: String,
}

/// The client's consent or refusal.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct McpApprovalResponse {
    /// `mcpa_…`
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub id: String,
    /// What is answered.
    pub approval_request_id: String,
    /// Whether it may be run.
    pub approve: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A search in vector stores.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct FileSearchCall {
    /// `fs_…`
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub id: String,
    /// How far it is.
    #[serde(
        default,
        deserialize_with = "unknown_is_none",
        skip_serializing_if = "Option::is_none"
    )]
    pub status: Option<ItemStatus>,
    /// What was searched for.
    #[serde(default, deserialize_with = "null_is_default")]
    pub queries: Vec<String>,
    /// What was found; shown only with `include`.
    #[serde(default)]
    pub results: Option<Vec<Raw>>,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}
