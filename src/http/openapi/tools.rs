//! The schemas of tools that the server runs, of their items, and of the events that tell of them. What is OpenAI's own is described there in full;
//! here stands what this server reads and says.

use serde_json::{Value, json};

use super::{
    reference,
    schemas::{or_null, text},
};

/// Every schema, by its name.
pub(super) fn all() -> [(&'static str, Value); 16] {
    let tools =
        ["WebSearchTool", "ImageGenerationTool", "McpTool", "OpenApiTool", "OwnTool", "ClientTool"];
    let items = [
        "McpListTools",
        "McpCall",
        "McpApprovalRequest",
        "McpApprovalResponse",
        "WebSearchCall",
        "ImageGenerationCall",
        "OtherItem",
    ];
    [
        ("Tool", any_of(&tools)),
        ("WebSearchTool", web_search()),
        ("ImageGenerationTool", image_generation()),
        ("McpTool", mcp()),
        ("OpenApiTool", open_api()),
        ("OwnTool", own()),
        ("ClientTool", client()),
        ("Item", any_of(&items)),
        ("McpListTools", mcp_list_tools()),
        ("McpCall", mcp_call()),
        ("McpApprovalRequest", approval_request()),
        ("McpApprovalResponse", approval_response()),
        ("WebSearchCall", web_search_call()),
        ("ImageGenerationCall", image_generation_call()),
        ("OtherItem", other_item()),
        ("Event", event()),
    ]
}

/// The types of items that stand here with their fields.
const ITEMS: &[&str] = &[
    "mcp_list_tools",
    "mcp_call",
    "mcp_approval_request",
    "mcp_approval_response",
    "web_search_call",
    "image_generation_call",
];

fn web_search() -> Value {
    let domains = json!({ "type": ["array", "null"], "items": text(), "maxItems": 100 });
    tool(
        "Needs `tools.web_search.provider` in the configuration, else it is a 400.",
        &[
            "web_search",
            "web_search_2025_08_26",
            "web_search_preview",
            "web_search_preview_2025_03_11",
        ],
        &[],
        json!({
            "filters": { "type": ["object", "null"], "properties": { "allowed_domains": domains, "blocked_domains": domains } },
            "user_location": { "type": ["object", "null"], "properties": {
                "type": { "const": "approximate" },
                "country": or_null("string"),
                "region": or_null("string"),
                "city": or_null("string"),
                "timezone": or_null("string"),
            } },
            "search_context_size": { "enum": ["low", "medium", "high", null], "default": "medium" },
            "external_web_access": { "type": ["boolean", "null"], "description": "With `false` the model cannot open pages." },
        }),
    )
}

fn image_generation() -> Value {
    tool(
        "Needs `tools.image_generation.base_url` in the configuration, else it is a 400.",
        &["image_generation"],
        &[],
        json!({
            "model": or_null("string"),
            "size": { "type": ["string", "null"], "description": "`auto`, or such as `1024x1536`." },
            "quality": { "enum": ["auto", "low", "medium", "high", null] },
            "output_format": { "enum": ["auto", "png", "jpeg", "webp", null] },
            "output_compression": { "type": ["integer", "null"], "minimum": 0, "maximum": 100 },
            "background": { "enum": ["auto", "transparent", "opaque", null] },
            "moderation": { "enum": ["auto", "low", null] },
            "partial_images": { "type": ["integer", "null"], "minimum": 0, "maximum": 3 },
            "input_fidelity": { "enum": ["auto", "high", "low", null] },
            "input_image_mask": { "type": ["object", "null"], "properties": { "image_url": text() } },
            "action": { "enum": ["auto", "generate", "edit", null] },
        }),
    )
}

fn mcp() -> Value {
    tool(
        "A server that speaks MCP: with its address, or one that `/v1/connectors` or the configuration knows by its label.",
        &["mcp"],
        &["server_label"],
        json!({
            "server_label": text(),
            "server_url": or_null("string"),
            "connector_id": or_null("string"),
            "server_description": or_null("string"),
            "authorization": { "type": ["string", "null"], "writeOnly": true },
            "headers": secret_headers(),
            "allowed_tools": { "description": "Names, or an object with `tool_names` and `read_only`. Absent: all; an empty list: none." },
            "require_approval": approval("Absent: `always`."),
        }),
    )
}

fn open_api() -> Value {
    tool(
        "An HTTP API: every operation of an OpenAPI document is a tool. An extension.",
        &["antiphon:openapi"],
        &["server_label"],
        json!({
            "server_label": text(),
            "schema": { "type": ["object", "string", "null"], "description": "The document, or its text. Either this or `schema_url`." },
            "schema_url": or_null("string"),
            "server_url": or_null("string"),
            "credential": or_null("string"),
            "headers": secret_headers(),
            "allowed_operations": { "type": ["array", "null"], "items": text(), "description": "Absent: all; an empty list: none." },
            "require_approval": approval("Absent: everything but GET and HEAD."),
        }),
    )
}

fn own() -> Value {
    let kinds = ["antiphon:open_url", "antiphon:memory", "antiphon:read_file", "antiphon:clock"];
    tool("Extensions that take no settings.", &kinds, &[], json!({}))
}

fn client() -> Value {
    let kinds = [
        "function",
        "custom",
        "namespace",
        "local_shell",
        "shell",
        "apply_patch",
        "computer",
        "computer_use_preview",
        "tool_search",
    ];
    tool("Tools that the client runs, as in the OpenAI API.", &kinds, &[], json!({}))
}

fn tool(about: &str, kinds: &[&str], required: &[&str], mut properties: Value) -> Value {
    properties["type"] = json!({ "enum": kinds });
    let required: Vec<&str> = ["type"].iter().chain(required).copied().collect();
    json!({
        "type": "object",
        "description": about,
        "required": required,
        "properties": properties,
        "additionalProperties": true,
    })
}

fn secret_headers() -> Value {
    json!({ "type": ["object", "null"], "additionalProperties": text(), "description": "Sent along; never stored, and shown as null." })
}

fn approval(default: &str) -> Value {
    json!({ "description": format!("`always`, `never`, or an object with the filters `always` and `never`. What neither has needs approval. {default}") })
}

fn mcp_list_tools() -> Value {
    item(
        "What a server of tools offers.",
        "mcp_list_tools",
        &["server_label"],
        json!({
            "server_label": text(),
            "tools": { "type": ["array", "null"], "items": { "type": "object" } },
            "error": { "description": "Why they could not be listed: a text." },
        }),
    )
}

fn mcp_call() -> Value {
    item(
        "A call of a tool of an MCP server, of an OpenAPI document, or of antiphon itself, whose label is `antiphon`.",
        "mcp_call",
        &["server_label", "name"],
        json!({
            "status": text(),
            "approval_request_id": or_null("string"),
            "server_label": text(),
            "name": text(),
            "arguments": { "type": ["string", "null"], "description": "JSON as the model wrote it." },
            "output": or_null("string"),
            "error": { "description": "Why it failed." },
        }),
    )
}

fn approval_request() -> Value {
    item(
        "A call that waits for consent.",
        "mcp_approval_request",
        &["server_label", "name"],
        json!({ "server_label": text(), "name": text(), "arguments": or_null("string") }),
    )
}

fn approval_response() -> Value {
    item(
        "The answer to it, in the input of the next request. An approval counts once.",
        "mcp_approval_response",
        &["approval_request_id", "approve"],
        json!({ "approval_request_id": text(), "approve": { "type": "boolean" }, "reason": or_null("string") }),
    )
}

fn web_search_call() -> Value {
    item(
        "A search, or pages that were opened or searched.",
        "web_search_call",
        &[],
        json!({
            "status": text(),
            "action": {
                "type": ["object", "null"],
                "properties": {
                    "type": { "enum": ["search", "open_page", "find_in_page"] },
                    "query": or_null("string"),
                    "queries": { "type": ["array", "null"], "items": text() },
                    "sources": { "type": ["array", "null"], "items": { "type": "object" }, "description": "With `include: [\"web_search_call.action.sources\"]`." },
                    "url": or_null("string"),
                    "pattern": or_null("string"),
                },
            },
            "results": { "type": ["array", "null"], "items": { "type": "object" }, "description": "With `include: [\"web_search_call.results\"]`." },
        }),
    )
}

fn image_generation_call() -> Value {
    item(
        "A picture.",
        "image_generation_call",
        &[],
        json!({
            "status": text(),
            "result": { "type": ["string", "null"], "description": "The picture, in base64." },
            "action": or_null("string"),
            "size": or_null("string"),
            "output_format": or_null("string"),
            "revised_prompt": or_null("string"),
        }),
    )
}

fn other_item() -> Value {
    json!({
        "type": "object",
        "description": "A message, reasoning, a call of a tool of the client or its output, as in the OpenAI API.",
        "required": ["type"],
        "properties": { "type": { "type": "string", "not": { "enum": ITEMS } }, "id": text(), "status": text() },
        "additionalProperties": true,
    })
}

fn item(about: &str, kind: &str, required: &[&str], mut properties: Value) -> Value {
    properties["type"] = json!({ "const": kind });
    properties["id"] = text();
    let required: Vec<&str> = ["type"].iter().chain(required).copied().collect();
    json!({
        "type": "object",
        "description": about,
        "required": required,
        "properties": properties,
        "additionalProperties": true,
    })
}

/// What the events of a stream have in common; the fields of each are those of the OpenAI API.
fn event() -> Value {
    json!({
        "type": "object",
        "description": "One thing that happens to a Response. Tools of the server tell of themselves with `response.output_item.added` and `.done`, and between these with \
                        `response.mcp_list_tools.{in_progress,completed,failed}`, `response.mcp_call.{in_progress,completed,failed}`, \
                        `response.mcp_call_arguments.{delta,done}`, `response.web_search_call.{in_progress,searching,completed}` and \
                        `response.image_generation_call.{in_progress,generating,partial_image,completed}`.",
        "required": ["type", "sequence_number"],
        "properties": {
            "type": text(),
            "sequence_number": { "type": "integer", "minimum": 0 },
            "output_index": { "type": "integer" },
            "item_id": text(),
            "item": reference("Item"),
            "response": reference("Response"),
        },
        "additionalProperties": true,
    })
}

fn any_of(names: &[&str]) -> Value {
    json!({ "anyOf": names.iter().map(|name| reference(name)).collect::<Vec<_>>() })
}
