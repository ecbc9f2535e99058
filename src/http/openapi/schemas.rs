//! The schemas of the main objects: what every client of this server can rely on. Those of tools and their items are in [`super::tools`].

use serde_json::{Value, json};

use super::{reference, tools};

/// Every schema, by its name.
pub(super) fn all() -> Value {
    let mut schemas = json!({
        "Error": {
            "type": "object",
            "required": ["error"],
            "properties": { "error": {
                "type": "object",
                "required": ["message", "type", "param", "code"],
                "properties": {
                    "message": text(),
                    "type": text(),
                    "param": or_null("string"),
                    "code": or_null("string"),
                },
            } },
        },
        "CreateResponse": create_response(),
        "Response": response(),
        "Metadata": {
            "type": "object",
            "maxProperties": 16,
            "propertyNames": { "maxLength": 64 },
            "additionalProperties": { "type": "string", "maxLength": 512 },
        },
        "Usage": {
            "type": "object",
            "required": ["input_tokens", "input_tokens_details", "output_tokens", "output_tokens_details", "total_tokens"],
            "properties": {
                "input_tokens": { "type": "integer" },
                "input_tokens_details": { "type": "object", "properties": { "cached_tokens": { "type": "integer" } } },
                "output_tokens": { "type": "integer" },
                "output_tokens_details": { "type": "object", "properties": { "reasoning_tokens": { "type": "integer" } } },
                "total_tokens": { "type": "integer" },
            },
        },
        "InputTokens": {
            "type": "object",
            "required": ["object", "input_tokens"],
            "properties": {
                "object": { "const": "response.input_tokens" },
                "input_tokens": { "type": "integer" },
            },
        },
        "Conversation": {
            "type": "object",
            "required": ["id", "object", "created_at", "metadata"],
            "properties": {
                "id": text(),
                "object": { "const": "conversation" },
                "created_at": { "type": "integer" },
                "metadata": reference("Metadata"),
            },
        },
        "CreateConversation": {
            "type": "object",
            "properties": { "metadata": reference("Metadata"), "items": items(0) },
        },
        "UpdateConversation": {
            "type": "object",
            "required": ["metadata"],
            "properties": { "metadata": reference("Metadata") },
        },
        "CreateItems": {
            "type": "object",
            "required": ["items"],
            "properties": { "items": items(1) },
        },
        "Connector": {
            "type": "object",
            "required": ["id", "object", "created_at", "server_label", "server_url", "server_description", "allowed_tools", "require_approval", "has_authorization", "headers"],
            "properties": {
                "id": text(),
                "object": { "const": "connector" },
                "created_at": { "type": "integer" },
                "server_label": text(),
                "server_url": text(),
                "server_description": or_null("string"),
                "allowed_tools": {},
                "require_approval": {},
                "has_authorization": { "type": "boolean" },
                "headers": { "type": "array", "items": text(), "description": "Names only." },
            },
        },
        "CreateConnector": connector_fields(&["server_label", "server_url"]),
        "UpdateConnector": connector_fields(&[]),
        "Deleted": {
            "type": "object",
            "required": ["id", "object", "deleted"],
            "properties": { "id": text(), "object": text(), "deleted": { "const": true } },
        },
        "AllDeleted": {
            "type": "object",
            "required": ["object", "deleted", "count"],
            "properties": { "object": text(), "deleted": { "const": true }, "count": { "type": "integer" } },
        },
        "Memory": {
            "type": "object",
            "required": ["id", "object", "text", "created_at", "updated_at"],
            "properties": {
                "id": text(),
                "object": { "const": "memory" },
                "text": text(),
                "created_at": { "type": "integer" },
                "updated_at": { "type": "integer" },
            },
        },
        "Readiness": {
            "type": "object",
            "required": ["ready"],
            "properties": { "ready": { "type": "boolean" } },
            "additionalProperties": true,
        },
        "Model": {
            "type": "object",
            "required": ["id", "object", "created", "owned_by"],
            "properties": {
                "id": text(),
                "object": { "const": "model" },
                "created": { "type": "integer" },
                "owned_by": text(),
            },
        },
        "ModelList": {
            "type": "object",
            "required": ["object", "data"],
            "properties": {
                "object": { "const": "list" },
                "data": { "type": "array", "items": reference("Model") },
            },
        },
        "Document": { "type": "object" },
        "ResponseList": list("Response"),
        "ConversationList": list("Conversation"),
        "ItemList": list("Item"),
        "ConnectorList": list("Connector"),
        "MemoryList": list("Memory"),
    });
    for (name, schema) in tools::all() {
        schemas[name] = schema;
    }
    schemas
}

fn connector_fields(required: &[&str]) -> Value {
    json!({
        "type": "object",
        "required": required,
        "properties": {
            "server_label": text(),
            "server_url": text(),
            "server_description": or_null("string"),
            "authorization": or_null("string"),
            "headers": { "type": ["object", "null"], "additionalProperties": text() },
            "allowed_tools": { "description": "Names, or an object with `tool_names` and `read_only`. Absent: all." },
            "require_approval": { "description": "`always` (the default), `never`, or an object with the filters `always` and `never`." },
        },
        "additionalProperties": false,
    })
}

fn create_response() -> Value {
    json!({
        "type": "object",
        "description": "Unknown fields are accepted and not used.",
        "properties": {
            "model": text(),
            "input": { "anyOf": [text(), { "type": "array", "items": reference("Item") }] },
            "instructions": text(),
            "previous_response_id": text(),
            "conversation": { "anyOf": [text(), { "type": "object", "required": ["id"], "properties": { "id": text() } }] },
            "store": { "type": "boolean", "default": true },
            "stream": { "type": "boolean", "default": false },
            "include": { "type": "array", "items": text() },
            "tools": { "type": "array", "items": reference("Tool") },
            "tool_choice": { "type": ["string", "object"], "default": "auto" },
            "parallel_tool_calls": { "type": "boolean", "default": true },
            "max_tool_calls": { "type": "integer", "minimum": 1 },
            "max_output_tokens": { "type": "integer", "minimum": 1 },
            "temperature": { "type": "number", "minimum": 0, "maximum": 2 },
            "top_p": { "type": "number", "minimum": 0, "maximum": 1 },
            "presence_penalty": { "type": "number", "minimum": -2, "maximum": 2 },
            "frequency_penalty": { "type": "number", "minimum": -2, "maximum": 2 },
            "top_logprobs": { "type": "integer", "minimum": 0, "maximum": 20 },
            "text": { "type": "object" },
            "reasoning": { "type": "object" },
            "truncation": { "type": "string", "enum": ["disabled"] },
            "metadata": reference("Metadata"),
            "safety_identifier": text(),
            "prompt_cache_key": text(),
            "user": text(),
        },
        "additionalProperties": true,
    })
}

fn response() -> Value {
    json!({
        "type": "object",
        "required": ["id", "object", "created_at", "status", "output", "model", "tools", "tool_choice", "metadata", "usage", "error", "incomplete_details"],
        "properties": {
            "id": text(),
            "object": { "const": "response" },
            "created_at": { "type": "integer" },
            "completed_at": or_null("integer"),
            "status": { "type": "string", "enum": ["queued", "in_progress", "completed", "failed", "incomplete", "cancelled"] },
            "error": or_null("object"),
            "incomplete_details": or_null("object"),
            "output": { "type": "array", "items": reference("Item") },
            "usage": { "anyOf": [reference("Usage"), { "type": "null" }] },
            "model": text(),
            "previous_response_id": or_null("string"),
            "conversation": or_null("object"),
            "instructions": or_null("string"),
            "tools": { "type": "array", "items": reference("Tool") },
            "tool_choice": { "type": ["string", "object"] },
            "metadata": reference("Metadata"),
        },
        "additionalProperties": true,
    })
}

fn list(of: &str) -> Value {
    json!({
        "type": "object",
        "required": ["object", "data", "first_id", "last_id", "has_more"],
        "properties": {
            "object": { "const": "list" },
            "data": { "type": "array", "items": reference(of) },
            "first_id": or_null("string"),
            "last_id": or_null("string"),
            "has_more": { "type": "boolean" },
        },
    })
}

fn items(fewest: u32) -> Value {
    json!({ "type": "array", "minItems": fewest, "maxItems": 20, "items": reference("Item") })
}

pub(super) fn text() -> Value {
    json!({ "type": "string" })
}

pub(super) fn or_null(kind: &str) -> Value {
    json!({ "type": [kind, "null"] })
}
