//! What passes between a Turn and those who run its tools.

use std::sync::Arc;

use crate::protocol::{Extra, Part, Raw};

use super::{HostedRef, HostedTarget};

/// A call for antiphon to run.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// Its place among the calls of the Round that antiphon answers.
    pub slot: usize,
    /// The tool.
    pub tool: HostedRef,
    /// JSON text, as the model wrote it.
    pub arguments: String,
    /// The id of its item, by which logs refer to it.
    pub item_id: Arc<str>,
}

/// What became of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOutcome {
    /// The call's place, from [`ToolCall::slot`].
    pub slot: usize,
    /// Its output, or why there is none.
    pub output: Result<ToolOutput, ToolFailure>,
}

/// What a tool returned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutput {
    /// For the model.
    pub told: Vec<Part>,
    /// Fields of the item, for the client and the store.
    pub fields: Extra,
}

/// Why a tool returned nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolFailure {
    /// A sentence for the model.
    pub told: String,
    /// What the client is told of an `mcp_call`; otherwise that sentence, as an error of the tool.
    pub error: Option<Raw>,
    /// Fields of the item, for the client and the store.
    pub fields: Extra,
}

/// A call that the client approved, to be run before the model is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct ApprovedCall {
    /// The id of the item that asked.
    pub request_id: String,
    /// The tool.
    pub target: HostedTarget,
    /// JSON text, as it was approved.
    pub arguments: String,
}

impl ToolOutput {
    /// Just text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { told: vec![Part::input_text(text.into())], fields: Extra::new() }
    }
}

impl ToolFailure {
    /// Why the tool failed, for model and client.
    pub fn new(told: impl Into<String>) -> Self {
        Self { told: told.into(), error: None, fields: Extra::new() }
    }
}
