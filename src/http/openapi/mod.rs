//! `GET /openapi.json`: what is served, as OpenAPI 3.1. One table of operations; a test holds it against the router.

mod schemas;
mod tools;

use axum::Json;
use serde_json::{Map, Value, json};

use super::passthrough;

/// One thing that can be asked.
struct Operation {
    method: &'static str,
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    query: &'static [QueryParameter],
    /// The schema of the body, and whether there must be one.
    body: Option<(&'static str, bool)>,
    answer: Answer,
}

/// What is answered when all is well.
enum Answer {
    /// JSON of this schema.
    Json(&'static str),
    /// JSON of this schema, or the same as a stream of events when the request says `stream: true`.
    JsonOrEvents(&'static str),
    /// JSON of this schema, or a socket when the client asks for an upgrade.
    JsonOrSocket(&'static str),
    /// Text of this type.
    Text(&'static str),
}

/// A parameter in the query.
struct QueryParameter {
    name: &'static str,
    kind: Kind,
    about: &'static str,
}

enum Kind {
    Text,
    Order,
    Limit,
    Flag,
    Texts,
}

const fn parameter(name: &'static str, kind: Kind, about: &'static str) -> QueryParameter {
    QueryParameter { name, kind, about }
}

const PAGE: &[QueryParameter] = &[
    parameter("limit", Kind::Limit, "How many at most."),
    parameter("order", Kind::Order, "Newest or oldest first."),
    parameter("after", Kind::Text, "Only what comes after the one with this id."),
];
const ITEM_PAGE: &[QueryParameter] = &[
    parameter("limit", Kind::Limit, "How many at most."),
    parameter("order", Kind::Order, "Newest or oldest first."),
    parameter("after", Kind::Text, "Only what comes after the one with this id."),
    INCLUDE,
];
const INCLUDE: QueryParameter = parameter("include[]", Kind::Texts, "What is shown besides.");

/// Everything that is served, in the order of the router.
const OPERATIONS: &[Operation] = &[
    Operation {
        method: "post",
        path: "/v1/responses",
        id: "createResponse",
        summary: "Create a Response",
        query: &[],
        body: Some(("CreateResponse", true)),
        answer: Answer::JsonOrEvents("Response"),
    },
    Operation {
        method: "get",
        path: "/v1/responses",
        id: "listResponses",
        summary: "List Responses, without their output; with `Upgrade: websocket`, create them over a socket",
        query: PAGE,
        body: None,
        answer: Answer::JsonOrSocket("ResponseList"),
    },
    Operation {
        method: "post",
        path: "/v1/responses/input_tokens",
        id: "countInputTokens",
        summary: "Count the tokens of a request",
        query: &[],
        body: Some(("CreateResponse", true)),
        answer: Answer::Json("InputTokens"),
    },
    Operation {
        method: "get",
        path: "/v1/responses/{id}",
        id: "getResponse",
        summary: "Fetch a Response",
        query: &[INCLUDE],
        body: None,
        answer: Answer::Json("Response"),
    },
    Operation {
        method: "delete",
        path: "/v1/responses/{id}",
        id: "deleteResponse",
        summary: "Delete a Response",
        query: &[parameter(
            "cascade",
            Kind::Flag,
            "Whether what was gone on from it is deleted too.",
        )],
        body: None,
        answer: Answer::Json("Deleted"),
    },
    Operation {
        method: "post",
        path: "/v1/responses/{id}/cancel",
        id: "cancelResponse",
        summary: "Cancel a background Response",
        query: &[],
        body: None,
        answer: Answer::Json("Response"),
    },
    Operation {
        method: "get",
        path: "/v1/responses/{id}/input_items",
        id: "listInputItems",
        summary: "List what a Response was made from",
        query: ITEM_PAGE,
        body: None,
        answer: Answer::Json("ItemList"),
    },
    Operation {
        method: "post",
        path: "/v1/conversations",
        id: "createConversation",
        summary: "Create a conversation",
        query: &[],
        body: Some(("CreateConversation", false)),
        answer: Answer::Json("Conversation"),
    },
    Operation {
        method: "get",
        path: "/v1/conversations",
        id: "listConversations",
        summary: "List conversations",
        query: PAGE,
        body: None,
        answer: Answer::Json("ConversationList"),
    },
    Operation {
        method: "get",
        path: "/v1/conversations/{id}",
        id: "getConversation",
        summary: "Fetch a conversation",
        query: &[],
        body: None,
        answer: Answer::Json("Conversation"),
    },
    Operation {
        method: "post",
        path: "/v1/conversations/{id}",
        id: "updateConversation",
        summary: "Replace the metadata of a conversation",
        query: &[],
        body: Some(("UpdateConversation", true)),
        answer: Answer::Json("Conversation"),
    },
    Operation {
        method: "delete",
        path: "/v1/conversations/{id}",
        id: "deleteConversation",
        summary: "Delete a conversation; items of Responses stay with them",
        query: &[],
        body: None,
        answer: Answer::Json("Deleted"),
    },
    Operation {
        method: "post",
        path: "/v1/conversations/{id}/items",
        id: "createConversationItems",
        summary: "Add items to a conversation that no Response is writing into",
        query: &[INCLUDE],
        body: Some(("CreateItems", true)),
        answer: Answer::Json("ItemList"),
    },
    Operation {
        method: "get",
        path: "/v1/conversations/{id}/items",
        id: "listConversationItems",
        summary: "List the items of a conversation",
        query: ITEM_PAGE,
        body: None,
        answer: Answer::Json("ItemList"),
    },
    Operation {
        method: "get",
        path: "/v1/conversations/{id}/items/{item_id}",
        id: "getConversationItem",
        summary: "Fetch an item of a conversation",
        query: &[INCLUDE],
        body: None,
        answer: Answer::Json("Item"),
    },
    Operation {
        method: "delete",
        path: "/v1/conversations/{id}/items/{item_id}",
        id: "deleteConversationItem",
        summary: "Take an item out of a conversation",
        query: &[],
        body: None,
        answer: Answer::Json("Conversation"),
    },
    Operation {
        method: "post",
        path: "/v1/connectors",
        id: "createConnector",
        summary: "Set up an MCP server that requests can name by its label",
        query: &[],
        body: Some(("CreateConnector", true)),
        answer: Answer::Json("Connector"),
    },
    Operation {
        method: "get",
        path: "/v1/connectors",
        id: "listConnectors",
        summary: "List connectors",
        query: PAGE,
        body: None,
        answer: Answer::Json("ConnectorList"),
    },
    Operation {
        method: "get",
        path: "/v1/connectors/{id}",
        id: "getConnector",
        summary: "Fetch a connector, without its credentials",
        query: &[],
        body: None,
        answer: Answer::Json("Connector"),
    },
    Operation {
        method: "post",
        path: "/v1/connectors/{id}",
        id: "updateConnector",
        summary: "Change what the body names; credentials that it does not name stay",
        query: &[],
        body: Some(("UpdateConnector", true)),
        answer: Answer::Json("Connector"),
    },
    Operation {
        method: "delete",
        path: "/v1/connectors/{id}",
        id: "deleteConnector",
        summary: "Delete a connector",
        query: &[],
        body: None,
        answer: Answer::Json("Deleted"),
    },
    Operation {
        method: "get",
        path: "/v1/memories",
        id: "listMemories",
        summary: "List what is remembered about the user who asks",
        query: PAGE,
        body: None,
        answer: Answer::Json("MemoryList"),
    },
    Operation {
        method: "delete",
        path: "/v1/memories",
        id: "clearMemories",
        summary: "Forget all that is remembered about the user who asks",
        query: &[],
        body: None,
        answer: Answer::Json("AllDeleted"),
    },
    Operation {
        method: "delete",
        path: "/v1/memories/{id}",
        id: "deleteMemory",
        summary: "Forget a memory of the user who asks",
        query: &[],
        body: None,
        answer: Answer::Json("Deleted"),
    },
    Operation {
        method: "get",
        path: "/v1/models",
        id: "listModels",
        summary: "List the models that can be asked for",
        query: &[],
        body: None,
        answer: Answer::Json("ModelList"),
    },
    Operation {
        method: "get",
        path: "/v1/models/{id}",
        id: "getModel",
        summary: "Fetch a model; its id may hold slashes",
        query: &[],
        body: None,
        answer: Answer::Json("Model"),
    },
    Operation {
        method: "get",
        path: "/healthz",
        id: "health",
        summary: "Whether the process lives",
        query: &[],
        body: None,
        answer: Answer::Text("text/plain"),
    },
    Operation {
        method: "get",
        path: "/readyz",
        id: "readiness",
        summary: "Whether requests can be served",
        query: &[],
        body: None,
        answer: Answer::Json("Readiness"),
    },
    Operation {
        method: "get",
        path: "/metrics",
        id: "metrics",
        summary: "Counters, as OpenMetrics",
        query: &[],
        body: None,
        answer: Answer::Text("application/openmetrics-text"),
    },
    Operation {
        method: "get",
        path: "/openapi.json",
        id: "openapi",
        summary: "This document",
        query: &[],
        body: None,
        answer: Answer::Json("Document"),
    },
];

/// `GET /openapi.json`
pub async fn document() -> Json<Value> {
    Json(build())
}

fn build() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for operation in OPERATIONS {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method] = operation.json();
    }
    for path in passthrough::PATHS {
        paths.insert(format!("/v1/{path}"), json!({ "post": handed_on(path) }));
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "antiphon",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The Responses API in front of any chat model.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "security": [{ "key": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "key": { "type": "http", "scheme": "bearer" } },
            "schemas": schemas::all(),
        },
    })
}

/// What the upstream answers is the upstream's to describe.
fn handed_on(path: &str) -> Value {
    let anything = json!({ "*/*": { "schema": {} } });
    json!({
        "operationId": format!("forward_{}", path.replace('/', "_")),
        "summary": "Handed to the upstream of the model as it is",
        "requestBody": { "required": true, "content": anything },
        "responses": {
            "200": { "description": "What the upstream answered.", "content": anything },
            "default": went_wrong(),
        },
    })
}

fn went_wrong() -> Value {
    json!({
        "description": "It went wrong.",
        "content": { "application/json": { "schema": reference("Error") } },
    })
}

impl Operation {
    fn json(&self) -> Value {
        let mut operation = json!({
            "operationId": self.id,
            "summary": self.summary,
            "responses": self.answers(),
        });
        let parameters: Vec<Value> = path_parameters(self.path)
            .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
            .chain(self.query.iter().map(QueryParameter::json))
            .collect();
        if !parameters.is_empty() {
            operation["parameters"] = parameters.into();
        }
        if let Some((schema, required)) = self.body {
            operation["requestBody"] = json!({
                "required": required,
                "content": { "application/json": { "schema": reference(schema) } },
            });
        }
        if !self.path.starts_with("/v1/") {
            // Nobody is asked for a key here.
            operation["security"] = json!([]);
        }
        operation
    }

    fn answers(&self) -> Value {
        let mut content = Map::new();
        let mut json_of = |schema| {
            content.insert("application/json".to_owned(), json!({ "schema": reference(schema) }));
        };
        match self.answer {
            Answer::Json(schema) | Answer::JsonOrSocket(schema) => json_of(schema),
            Answer::JsonOrEvents(schema) => {
                json_of(schema);
                content.insert(
                    "text/event-stream".to_owned(),
                    json!({ "schema": { "type": "string", "description": "Each `data` is an event; the last is `[DONE]`." }, "x-itemSchema": reference("Event") }),
                );
            }
            Answer::Text(kind) => {
                content.insert(kind.to_owned(), json!({ "schema": { "type": "string" } }));
            }
        }
        let mut answers = json!({ "200": { "description": "It went well.", "content": content } });
        if let Answer::JsonOrSocket(_) = self.answer {
            answers["101"] = json!({ "description": "The connection is a WebSocket now." });
        }
        if self.path.starts_with("/v1/") {
            answers["default"] = went_wrong();
        }
        answers
    }
}

impl QueryParameter {
    fn json(&self) -> Value {
        let schema = match self.kind {
            Kind::Text => json!({ "type": "string" }),
            Kind::Order => json!({ "type": "string", "enum": ["asc", "desc"], "default": "desc" }),
            Kind::Limit => {
                json!({ "type": "integer", "minimum": 1, "maximum": 100, "default": 20 })
            }
            Kind::Flag => json!({ "type": "boolean", "default": false }),
            Kind::Texts => json!({ "type": "array", "items": { "type": "string" } }),
        };
        json!({ "name": self.name, "in": "query", "description": self.about, "schema": schema })
    }
}

fn path_parameters(path: &'static str) -> impl Iterator<Item = &'static str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

fn reference(schema: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}

#[cfg(test)]
#[path = "openapi_tests.rs"]
mod tests;
