//! Items: the units a Response is made of, and what a request's input and a conversation hold.
//!
//! To add one: a struct here, its line in [`Item`], its arms in the matches the compiler points at, a transcript test.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{
    content::Part,
    hosted::{
        FileSearchCall, McpApprovalRequest, McpApprovalResponse, McpCall, McpListTools, ModelView,
    },
    json::{Extra, Raw, null_is_default, tagged, unknown_is_none},
};

/// An item that many hold: the Response, its events, the history of later ones.
pub type SharedItem = Arc<Item>;

tagged! {
    /// One entry of a Response's `output`, of a request's `input`, and of a stored conversation.
    pub enum Item {
        /// Something said.
        Message(Message) = "message",
        /// The model's thinking.
        Reasoning(Reasoning) = "reasoning",
        /// A call of a function that the client runs.
        FunctionCall(FunctionCall) = "function_call",
        /// What that function returned.
        FunctionCallOutput(CallOutput) = "function_call_output",
        /// A call of a tool that takes free text.
        CustomToolCall(CustomToolCall) = "custom_tool_call",
        /// What that tool returned.
        CustomToolCallOutput(CallOutput) = "custom_tool_call_output",
        /// A call of a tool on an MCP server, or of a tool of ours that has no item type of its own.
        McpCall(McpCall) = "mcp_call",
        /// The tools of an MCP server.
        McpListTools(McpListTools) = "mcp_list_tools",
        /// A call that waits for the client's consent.
        McpApprovalRequest(McpApprovalRequest) = "mcp_approval_request",
        /// The client's consent or refusal.
        McpApprovalResponse(McpApprovalResponse) = "mcp_approval_response",
        /// A search in vector stores.
        FileSearchCall(FileSearchCall) = "file_search_call",
        /// A search on the web, or a page that was opened.
        WebSearchCall(ClientCall) = "web_search_call",
        /// Code that was run.
        CodeInterpreterCall(ClientCall) = "code_interpreter_call",
        /// A picture that was made.
        ImageGenerationCall(ClientCall) = "image_generation_call",
        /// A command for the client's shell (older form).
        LocalShellCall(ClientCall) = "local_shell_call",
        /// What it printed.
        LocalShellCallOutput(ClientOutput) = "local_shell_call_output",
        /// Commands for the client's shell.
        ShellCall(ClientCall) = "shell_call",
        /// What they printed.
        ShellCallOutput(ClientOutput) = "shell_call_output",
        /// A patch for the client to apply.
        ApplyPatchCall(ClientCall) = "apply_patch_call",
        /// How that went.
        ApplyPatchCallOutput(ClientOutput) = "apply_patch_call_output",
        /// An action on the client's screen.
        ComputerCall(ClientCall) = "computer_call",
        /// A picture of the screen after it.
        ComputerCallOutput(ClientOutput) = "computer_call_output",
        /// A search among deferred tools.
        ToolSearchCall(ClientCall) = "tool_search_call",
        /// The tools it found.
        ToolSearchOutput(ClientOutput) = "tool_search_output",
        /// History that was folded into a sealed summary.
        Compaction(Compaction) = "compaction" | "compaction_summary",
        /// An item of the store, by id.
        ItemReference(ItemReference) = "item_reference",
    }
    untyped: untyped_item
}

/// What an input item without `type` is: a message when it has a role, else a reference when it is nothing but an id.
fn untyped_item(json: &str) -> &'static str {
    #[derive(Deserialize)]
    struct Shape<'a> {
        #[serde(borrow, default)]
        role: Option<&'a RawValue>,
        #[serde(borrow, default)]
        id: Option<&'a RawValue>,
    }
    match serde_json::from_str::<Shape<'_>>(json) {
        Ok(Shape { role: Some(_), .. }) => "message",
        Ok(Shape { id: Some(_), .. }) => "item_reference",
        _ => "",
    }
}

/// How far an item is. Each type uses some of these.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemStatus {
    /// Being written.
    #[default]
    InProgress,
    /// Whole.
    Completed,
    /// Cut short.
    Incomplete,
    /// It went wrong.
    Failed,
    /// A search runs.
    Searching,
    /// Code runs.
    Interpreting,
    /// A picture is being made.
    Generating,
    /// A tool runs.
    Calling,
}

/// Who said it.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The person who asks.
    #[default]
    User,
    /// The model.
    Assistant,
    /// The operator.
    System,
    /// The operator, in newer words.
    Developer,
}

/// Something said.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(from = "MessageWire")]
pub struct Message {
    /// `msg_…`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// How far it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ItemStatus>,
    /// Who said it.
    pub role: Role,
    /// What was said.
    pub content: Vec<Part>,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A message as clients write it: its content may be a string, and `null` stands for absent.
#[derive(Deserialize)]
struct MessageWire {
    #[serde(default, deserialize_with = "null_is_default")]
    id: String,
    #[serde(default, deserialize_with = "unknown_is_none")]
    status: Option<ItemStatus>,
    role: Role,
    #[serde(default, deserialize_with = "null_is_default")]
    content: TextOrParts,
    #[serde(flatten)]
    extra: Extra,
}

impl From<MessageWire> for Message {
    fn from(wire: MessageWire) -> Self {
        let content = match (wire.content, wire.role) {
            (TextOrParts::Parts(parts), _) => parts,
            (TextOrParts::Text(text), Role::Assistant) => vec![Part::output_text(text)],
            (TextOrParts::Text(text), Role::User | Role::System | Role::Developer) => {
                vec![Part::input_text(text)]
            }
        };
        let mut extra = wire.extra;
        if extra.get("phase").is_none() {
            // Open Responses wants it absent rather than null.
            extra.remove("phase");
        }
        Self { id: wire.id, status: wire.status, role: wire.role, content, extra }
    }
}

/// A string, or a list of parts: the two forms of message content and of tool outputs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum TextOrParts {
    /// Plain text.
    Text(String),
    /// Parts.
    Parts(Vec<Part>),
}

impl Default for TextOrParts {
    fn default() -> Self {
        Self::Parts(Vec::new())
    }
}

impl<'de> Deserialize<'de> for TextOrParts {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        match raw.get().as_bytes().first() {
            Some(b'"') => super::json::read_nested(raw).map(Self::Text),
            Some(b'[') => super::json::read_nested(raw).map(Self::Parts),
            _ => Err(serde::de::Error::custom("expected a string or a list of content parts")),
        }
    }
}

/// The model's thinking.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Reasoning {
    /// `rs_…`
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
    /// Parts of type `summary_text`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub summary: Vec<Part>,
    /// Parts of type `reasoning_text`.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<Part>,
    /// The thinking, sealed, for clients that keep their own history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypted_content: Option<String>,
    /// What the backend wants back with this, opaque to us; stored beside the item, never shown.
    #[serde(skip)]
    pub data: Option<Raw>,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A call of a function that the client runs.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct FunctionCall {
    /// `fc_…`
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
    /// Pairs the call with its output.
    pub call_id: String,
    /// The function's name.
    pub name: String,
    /// JSON, as the model wrote it. It need not be valid.
    #[serde(default, deserialize_with = "null_is_default")]
    pub arguments: String,
    /// The namespace tool that the function belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// What the backend wants back with this, opaque to us; stored beside the item, never shown.
    #[serde(skip)]
    pub data: Option<Raw>,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What a function or custom tool returned.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct CallOutput {
    /// `fco_…` or `ctco_…`
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
    /// The call this answers.
    #[serde(default, deserialize_with = "null_is_default")]
    pub call_id: String,
    /// What the model gets to read.
    #[serde(default, deserialize_with = "null_is_default")]
    pub output: TextOrParts,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A call of a tool that takes free text.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct CustomToolCall {
    /// `ctc_…`
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
    /// Pairs the call with its output.
    pub call_id: String,
    /// The tool's name.
    pub name: String,
    /// The text.
    #[serde(default, deserialize_with = "null_is_default")]
    pub input: String,
    /// The namespace tool that the tool belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// What the backend wants back with this, opaque to us; stored beside the item, never shown.
    #[serde(skip)]
    pub data: Option<Raw>,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A call whose particulars (`action`, `operation`, `arguments`, …) stand in `body` as they came.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ClientCall {
    /// Its id.
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
    /// Pairs the call with its output; hosted tools have none.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub call_id: String,
    /// How the model sees a call that antiphon answered.
    #[serde(skip)]
    pub view: Option<Box<ModelView>>,
    /// The particulars.
    #[serde(flatten)]
    pub body: Extra,
}

/// What such a call returned; the particulars stand in `body` as they came.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ClientOutput {
    /// Its id.
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
    /// The call this answers; the older form puts it in `id`.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub call_id: String,
    /// The particulars.
    #[serde(flatten)]
    pub body: Extra,
}

/// History that was folded into a sealed summary.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Compaction {
    /// `cmp_…`
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub id: String,
    /// The summary, sealed.
    #[serde(default, deserialize_with = "null_is_default")]
    pub encrypted_content: String,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// An item of the store, by id.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ItemReference {
    /// The item's id.
    pub id: String,
}
