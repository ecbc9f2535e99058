//! The ids of items: their prefixes, and how an output item's id follows from its Response's.

use serde::Deserialize;

use super::{
    Raw,
    fields::Fields,
    item::{Item, ItemStatus},
};

/// The id of the output item at `output_index`: the Response's digits, the item's prefix and its place.
pub fn output_item_id(prefix: &str, response_id: &str, output_index: usize) -> String {
    let digits = response_id.split_once('_').map_or(response_id, |(_, digits)| digits);
    format!("{prefix}_{digits}{output_index:04x}")
}

/// Just the `id` of an object.
#[derive(Deserialize)]
struct IdOnly<'a> {
    #[serde(borrow, default)]
    id: Option<&'a str>,
}

impl Item {
    /// What ids of this type of item begin with, without the underscore.
    pub fn id_prefix(&self) -> &'static str {
        match self {
            Self::Message(_) => "msg",
            Self::Reasoning(_) => "rs",
            Self::FunctionCall(_) => "fc",
            Self::FunctionCallOutput(_) => "fco",
            Self::CustomToolCall(_) => "ctc",
            Self::CustomToolCallOutput(_) => "ctco",
            Self::McpCall(_) => "mcp",
            Self::McpListTools(_) => "mcpl",
            Self::McpApprovalRequest(_) => "mcpr",
            Self::McpApprovalResponse(_) => "mcpa",
            Self::FileSearchCall(_) => "fs",
            Self::WebSearchCall(_) => "ws",
            Self::CodeInterpreterCall(_) => "ci",
            Self::ImageGenerationCall(_) => "ig",
            Self::LocalShellCall(_) => "lsh",
            Self::LocalShellCallOutput(_) => "lsho",
            Self::ShellCall(_) => "sh",
            Self::ShellCallOutput(_) => "sho",
            Self::ApplyPatchCall(_) => "apc",
            Self::ApplyPatchCallOutput(_) => "apco",
            Self::ComputerCall(_) => "cu",
            Self::ComputerCallOutput(_) => "cuo",
            Self::ToolSearchCall(_) => "tsc",
            Self::ToolSearchOutput(_) => "tso",
            Self::Compaction(_) => "cmp",
            Self::ItemReference(_) | Self::Unknown(_) => "item",
        }
    }

    /// Its id; empty when its author gave none.
    pub fn id(&self) -> &str {
        match self {
            Self::Message(item) => &item.id,
            Self::Reasoning(item) => &item.id,
            Self::FunctionCall(item) => &item.id,
            Self::FunctionCallOutput(item) | Self::CustomToolCallOutput(item) => &item.id,
            Self::CustomToolCall(item) => &item.id,
            Self::McpCall(item) => &item.id,
            Self::McpListTools(item) => &item.id,
            Self::McpApprovalRequest(item) => &item.id,
            Self::McpApprovalResponse(item) => &item.id,
            Self::FileSearchCall(item) => &item.id,
            Self::WebSearchCall(item)
            | Self::CodeInterpreterCall(item)
            | Self::ImageGenerationCall(item)
            | Self::LocalShellCall(item)
            | Self::ShellCall(item)
            | Self::ApplyPatchCall(item)
            | Self::ComputerCall(item)
            | Self::ToolSearchCall(item) => &item.id,
            Self::LocalShellCallOutput(item)
            | Self::ShellCallOutput(item)
            | Self::ApplyPatchCallOutput(item)
            | Self::ComputerCallOutput(item)
            | Self::ToolSearchOutput(item) => &item.id,
            Self::Compaction(item) => &item.id,
            Self::ItemReference(item) => &item.id,
            Self::Unknown(raw) => {
                raw.to::<IdOnly<'_>>().ok().and_then(|only| only.id).unwrap_or("")
            }
        }
    }

    /// Gives it an id.
    pub fn set_id(&mut self, id: String) {
        match self {
            Self::Message(item) => item.id = id,
            Self::Reasoning(item) => item.id = id,
            Self::FunctionCall(item) => item.id = id,
            Self::FunctionCallOutput(item) | Self::CustomToolCallOutput(item) => item.id = id,
            Self::CustomToolCall(item) => item.id = id,
            Self::McpCall(item) => item.id = id,
            Self::McpListTools(item) => item.id = id,
            Self::McpApprovalRequest(item) => item.id = id,
            Self::McpApprovalResponse(item) => item.id = id,
            Self::FileSearchCall(item) => item.id = id,
            Self::WebSearchCall(item)
            | Self::CodeInterpreterCall(item)
            | Self::ImageGenerationCall(item)
            | Self::LocalShellCall(item)
            | Self::ShellCall(item)
            | Self::ApplyPatchCall(item)
            | Self::ComputerCall(item)
            | Self::ToolSearchCall(item) => item.id = id,
            Self::LocalShellCallOutput(item)
            | Self::ShellCallOutput(item)
            | Self::ApplyPatchCallOutput(item)
            | Self::ComputerCallOutput(item)
            | Self::ToolSearchOutput(item) => item.id = id,
            Self::Compaction(item) => item.id = id,
            Self::ItemReference(item) => item.id = id,
            Self::Unknown(raw) => {
                // The rest stays as it came.
                let named = raw
                    .to::<Fields<'_>>()
                    .and_then(|fields| Raw::parse(&fields.with_text("id", &id)));
                if let Ok(named) = named {
                    *raw = named;
                }
            }
        }
    }

    /// How far it is, for the types that say so.
    pub fn status(&self) -> Option<ItemStatus> {
        match self {
            Self::Message(item) => item.status,
            Self::Reasoning(item) => item.status,
            Self::FunctionCall(item) => item.status,
            Self::FunctionCallOutput(item) | Self::CustomToolCallOutput(item) => item.status,
            Self::CustomToolCall(item) => item.status,
            Self::McpCall(item) => item.status,
            Self::FileSearchCall(item) => item.status,
            Self::WebSearchCall(item)
            | Self::CodeInterpreterCall(item)
            | Self::ImageGenerationCall(item)
            | Self::LocalShellCall(item)
            | Self::ShellCall(item)
            | Self::ApplyPatchCall(item)
            | Self::ComputerCall(item)
            | Self::ToolSearchCall(item) => item.status,
            Self::LocalShellCallOutput(item)
            | Self::ShellCallOutput(item)
            | Self::ApplyPatchCallOutput(item)
            | Self::ComputerCallOutput(item)
            | Self::ToolSearchOutput(item) => item.status,
            Self::McpListTools(_)
            | Self::McpApprovalRequest(_)
            | Self::McpApprovalResponse(_)
            | Self::Compaction(_)
            | Self::ItemReference(_)
            | Self::Unknown(_) => None,
        }
    }

    /// Where its status stands, for the types that have one.
    pub fn status_mut(&mut self) -> Option<&mut Option<ItemStatus>> {
        match self {
            Self::Message(item) => Some(&mut item.status),
            Self::Reasoning(item) => Some(&mut item.status),
            Self::FunctionCall(item) => Some(&mut item.status),
            Self::FunctionCallOutput(item) | Self::CustomToolCallOutput(item) => {
                Some(&mut item.status)
            }
            Self::CustomToolCall(item) => Some(&mut item.status),
            Self::McpCall(item) => Some(&mut item.status),
            Self::FileSearchCall(item) => Some(&mut item.status),
            Self::WebSearchCall(item)
            | Self::CodeInterpreterCall(item)
            | Self::ImageGenerationCall(item)
            | Self::LocalShellCall(item)
            | Self::ShellCall(item)
            | Self::ApplyPatchCall(item)
            | Self::ComputerCall(item)
            | Self::ToolSearchCall(item) => Some(&mut item.status),
            Self::LocalShellCallOutput(item)
            | Self::ShellCallOutput(item)
            | Self::ApplyPatchCallOutput(item)
            | Self::ComputerCallOutput(item)
            | Self::ToolSearchOutput(item) => Some(&mut item.status),
            Self::McpListTools(_)
            | Self::McpApprovalRequest(_)
            | Self::McpApprovalResponse(_)
            | Self::Compaction(_)
            | Self::ItemReference(_)
            | Self::Unknown(_) => None,
        }
    }

    /// Whether it stands finished in a history: an item the writer was cut off in does not.
    pub fn is_incomplete(&self) -> bool {
        self.status() == Some(ItemStatus::Incomplete)
    }
}
