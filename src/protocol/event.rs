//! Events: the things that happen to a Response, as a streaming client hears them.

use std::sync::Arc;

use serde::{Serialize, Serializer, ser::SerializeStruct as _};

use super::{
    content::{Annotation, Logprob, Part},
    item::SharedItem,
    response::Response,
};

/// Defines [`Event`] from one table, so that an event's wire name is written once: the SSE `event:` line and the JSON `type` both come
/// from here.
macro_rules! events {
    ($($(#[$doc:meta])* $name:ident = $wire:literal { $($field:ident: $ty:ty),* $(,)? })*) => {
        /// One thing that happens to a Response.
        #[derive(Clone, Debug, PartialEq)]
        #[expect(missing_docs, reason = "the fields are named as the public API names them")]
        pub enum Event {
            $($(#[$doc])* $name { $($field: $ty),* },)*
        }

        impl Event {
            /// The wire names, in the order of the table.
            pub const NAMES: &[&str] = &[$($wire),*];

            /// The event's `type`, which is also its SSE `event:` name.
            pub const fn name(&self) -> &'static str {
                match self { $(Self::$name { .. } => $wire,)* }
            }
        }

        impl Serialize for Numbered {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match &self.event {
                    $(Event::$name { $($field),* } => {
                        let mut out = serializer.serialize_struct($wire, 2)?;
                        out.serialize_field("type", $wire)?;
                        out.serialize_field("sequence_number", &self.sequence_number)?;
                        $(out.serialize_field(stringify!($field), $field)?;)*
                        out.end()
                    })*
                }
            }
        }
    };
}

events! {
    /// The Response exists.
    Created = "response.created" { response: Arc<Response> }
    /// It waits for a worker.
    Queued = "response.queued" { response: Arc<Response> }
    /// It is being written.
    InProgress = "response.in_progress" { response: Arc<Response> }
    /// It is whole.
    Completed = "response.completed" { response: Arc<Response> }
    /// It was cut short by a limit.
    Incomplete = "response.incomplete" { response: Arc<Response> }
    /// It went wrong.
    Failed = "response.failed" { response: Arc<Response> }
    /// What went wrong; `response.failed` follows. Flat and nested, because clients read one or the other.
    Error = "error" { code: String, message: String, param: Option<String>, error: ErrorDetail }
    /// An item begins, in its zero state.
    ItemAdded = "response.output_item.added" { output_index: usize, item: SharedItem }
    /// An item is final.
    ItemDone = "response.output_item.done" { output_index: usize, item: SharedItem }
    /// A part of an item's content begins.
    PartAdded = "response.content_part.added" { item_id: Arc<str>, output_index: usize, content_index: usize, part: Part }
    /// That part is final.
    PartDone = "response.content_part.done" { item_id: Arc<str>, output_index: usize, content_index: usize, part: Part }
    /// More text.
    TextDelta = "response.output_text.delta" { item_id: Arc<str>, output_index: usize, content_index: usize, delta: String, logprobs: Vec<Logprob> }
    /// The whole text.
    TextDone = "response.output_text.done" { item_id: Arc<str>, output_index: usize, content_index: usize, text: String, logprobs: Vec<Logprob> }
    /// A source of a place in the text so far.
    AnnotationAdded = "response.output_text.annotation.added" { item_id: Arc<str>, output_index: usize, content_index: usize, annotation_index: usize, annotation: Annotation }
    /// More of a refusal.
    RefusalDelta = "response.refusal.delta" { item_id: Arc<str>, output_index: usize, content_index: usize, delta: String }
    /// The whole refusal.
    RefusalDone = "response.refusal.done" { item_id: Arc<str>, output_index: usize, content_index: usize, refusal: String }
    /// More raw reasoning.
    ReasoningDelta = "response.reasoning_text.delta" { item_id: Arc<str>, output_index: usize, content_index: usize, delta: String }
    /// The whole raw reasoning.
    ReasoningDone = "response.reasoning_text.done" { item_id: Arc<str>, output_index: usize, content_index: usize, text: String }
    /// More raw reasoning, as Open Responses names it.
    OpenReasoningDelta = "response.reasoning.delta" { item_id: Arc<str>, output_index: usize, content_index: usize, delta: String }
    /// The whole raw reasoning, as Open Responses names it.
    OpenReasoningDone = "response.reasoning.done" { item_id: Arc<str>, output_index: usize, content_index: usize, text: String }
    /// A part of a reasoning summary begins.
    SummaryPartAdded = "response.reasoning_summary_part.added" { item_id: Arc<str>, output_index: usize, summary_index: usize, part: Part }
    /// That part is final.
    SummaryPartDone = "response.reasoning_summary_part.done" { item_id: Arc<str>, output_index: usize, summary_index: usize, part: Part }
    /// More of a reasoning summary.
    SummaryDelta = "response.reasoning_summary_text.delta" { item_id: Arc<str>, output_index: usize, summary_index: usize, delta: String }
    /// The whole part of a reasoning summary.
    SummaryDone = "response.reasoning_summary_text.done" { item_id: Arc<str>, output_index: usize, summary_index: usize, text: String }
    /// More of a function call's arguments.
    ArgumentsDelta = "response.function_call_arguments.delta" { item_id: Arc<str>, output_index: usize, delta: String }
    /// The whole arguments of a function call.
    ArgumentsDone = "response.function_call_arguments.done" { item_id: Arc<str>, output_index: usize, name: String, arguments: String }
    /// More of a custom tool call's text.
    InputDelta = "response.custom_tool_call_input.delta" { item_id: Arc<str>, output_index: usize, delta: String }
    /// The whole text of a custom tool call.
    InputDone = "response.custom_tool_call_input.done" { item_id: Arc<str>, output_index: usize, input: String }
    /// A call of an MCP tool begins.
    McpCallInProgress = "response.mcp_call.in_progress" { item_id: Arc<str>, output_index: usize }
    /// More of its arguments.
    McpArgumentsDelta = "response.mcp_call_arguments.delta" { item_id: Arc<str>, output_index: usize, delta: String }
    /// Its whole arguments.
    McpArgumentsDone = "response.mcp_call_arguments.done" { item_id: Arc<str>, output_index: usize, arguments: String }
    /// It went well.
    McpCallCompleted = "response.mcp_call.completed" { item_id: Arc<str>, output_index: usize }
    /// It went wrong.
    McpCallFailed = "response.mcp_call.failed" { item_id: Arc<str>, output_index: usize }
    /// The tools of an MCP server are asked for.
    McpListInProgress = "response.mcp_list_tools.in_progress" { item_id: Arc<str>, output_index: usize }
    /// They are there.
    McpListCompleted = "response.mcp_list_tools.completed" { item_id: Arc<str>, output_index: usize }
    /// They could not be listed.
    McpListFailed = "response.mcp_list_tools.failed" { item_id: Arc<str>, output_index: usize }
    /// A web search begins.
    WebSearchInProgress = "response.web_search_call.in_progress" { item_id: Arc<str>, output_index: usize }
    /// It runs.
    WebSearchSearching = "response.web_search_call.searching" { item_id: Arc<str>, output_index: usize }
    /// It is over.
    WebSearchCompleted = "response.web_search_call.completed" { item_id: Arc<str>, output_index: usize }
    /// A picture is asked for.
    ImageInProgress = "response.image_generation_call.in_progress" { item_id: Arc<str>, output_index: usize }
    /// It is being made.
    ImageGenerating = "response.image_generation_call.generating" { item_id: Arc<str>, output_index: usize }
    /// It is this far.
    ImagePartial = "response.image_generation_call.partial_image" { item_id: Arc<str>, output_index: usize, partial_image_index: u32, partial_image_b64: String }
    /// It is made.
    ImageCompleted = "response.image_generation_call.completed" { item_id: Arc<str>, output_index: usize }
}

/// What went wrong, as the `error` event nests it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ErrorDetail {
    /// The class, such as `server_error`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The code.
    pub code: String,
    /// A sentence.
    pub message: String,
    /// The wrong field.
    pub param: Option<String>,
}

/// An event and its place in the stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Numbered {
    /// Counts the events of one Response from 0.
    pub sequence_number: u64,
    /// The event.
    pub event: Event,
}

impl Event {
    /// The Response when this event ends it.
    pub fn terminal(&self) -> Option<&Arc<Response>> {
        match self {
            Self::Completed { response }
            | Self::Incomplete { response }
            | Self::Failed { response } => Some(response),
            _ => None,
        }
    }
}
