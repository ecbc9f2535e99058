//! One operation of an API as a tool.

use reqwest::{Method, header::HeaderValue};
use serde_json::{Value, json};
use url::Url;

use crate::{mcp::ToolInfo, protocol::Raw};

use super::parameter::Parameter;

/// The argument that holds the body.
pub(super) const BODY: &str = "requestBody";

/// One operation: what the model is told of it, and how a call of it becomes a request.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The name of the tool: unique among the operations, and fit for a model.
    pub name: String,
    /// The operation's id as the document writes it.
    pub operation_id: Option<String>,
    /// What it does, for the model.
    pub description: String,
    /// JSON schema of the arguments: an object.
    pub parameters: Value,
    /// With which method it is called.
    pub method: Method,
    /// Its path, with `{variables}`.
    pub template: String,
    /// What the path is appended to. A credential must be allowed to go there.
    pub base: Url,
    /// What of the document does not apply here, and why: sentences for the client's log.
    pub notes: Vec<String>,
    pub(super) inputs: Vec<Parameter>,
    pub(super) body: Option<Body>,
}

/// The body of an operation's requests: JSON.
#[derive(Clone, Debug)]
pub(super) struct Body {
    pub(super) required: bool,
    /// `application/json`, or one of its relatives.
    pub(super) content_type: HeaderValue,
}

impl Operation {
    /// Whether it only reads, as HTTP promises of its method.
    pub fn reads_only(&self) -> bool {
        matches!(self.method, Method::GET | Method::HEAD)
    }

    /// The operation as lists of tools show it.
    pub fn listed(&self) -> ToolInfo {
        ToolInfo {
            name: self.name.clone(),
            title: None,
            description: Some(self.description.clone()),
            input_schema: Raw::of(&self.parameters),
            annotations: Some(Raw::of(&json!({"readOnlyHint": self.reads_only()}))),
        }
    }

    /// Whether a list of names means this operation: by its id, or by the name of the tool.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.operation_id.as_deref() == Some(name)
    }
}
