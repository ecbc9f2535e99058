//! The tools of a request that the server runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use super::json::{Extra, Raw, null_is_default};

/// A server of tools that speaks MCP. What lets us in is not echoed: `headers` is written as `null`, `authorization` not at all.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct McpTool {
    /// Its name in this Response.
    pub server_label: String,
    /// Where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_url: Option<String>,
    /// A connector that the server knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connector_id: Option<String>,
    /// What it is for, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_description: Option<String>,
    /// Which of its tools may be called.
    #[serde(default)]
    pub allowed_tools: Option<Raw>,
    /// Which calls need the client's consent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub require_approval: Option<Raw>,
    /// Sent as `Authorization`.
    #[serde(default, skip_serializing)]
    pub authorization: Hidden<Option<String>>,
    /// Sent with every request to it.
    #[serde(default)]
    pub headers: Hidden<Option<BTreeMap<String, String>>>,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A search on the web.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct WebSearchTool {
    /// What is searched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<WebFilters>,
    /// Where the user is.
    #[serde(default)]
    pub user_location: Option<UserLocation>,
    /// How much the model is shown.
    #[serde(default, deserialize_with = "null_is_default")]
    pub search_context_size: ContextSize,
    /// Whether pages may be opened; otherwise the model is shown only what the search itself tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_web_access: Option<bool>,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Which part of the web is searched.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct WebFilters {
    /// Only these domains and what is below them; at most 100.
    #[serde(default)]
    pub allowed_domains: Option<Vec<String>>,
    /// None of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_domains: Option<Vec<String>>,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Roughly where a user is.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct UserLocation {
    /// `approximate`.
    #[serde(rename = "type", default = "approximate")]
    pub kind: String,
    /// Two letters, such as `DE`.
    #[serde(default)]
    pub country: Option<String>,
    /// In plain words.
    #[serde(default)]
    pub region: Option<String>,
    /// In plain words.
    #[serde(default)]
    pub city: Option<String>,
    /// Such as `Europe/Berlin`.
    #[serde(default)]
    pub timezone: Option<String>,
}

fn approximate() -> String {
    "approximate".to_owned()
}

/// How much of what was found the model is shown.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ContextSize {
    /// Little.
    Low,
    /// What mostly suffices.
    #[default]
    Medium,
    /// Much.
    High,
}

/// Pictures that the server has made.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ImageTool {
    /// Which model makes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Such as `1024x1024` or `auto`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// `low`, `medium`, `high` or `auto`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality: Option<String>,
    /// `png`, `jpeg` or `webp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_format: Option<String>,
    /// 0 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_compression: Option<u8>,
    /// `transparent`, `opaque` or `auto`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<String>,
    /// `auto` or `low`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moderation: Option<String>,
    /// How many pictures are shown before the last, 0 to 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial_images: Option<u8>,
    /// `high` or `low`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_fidelity: Option<String>,
    /// What may be changed: `image_url` or `file_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_image_mask: Option<Raw>,
    /// `generate`, `edit` or `auto`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// An HTTP API whose operations become tools; an extension. Its headers are written as `null`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct OpenApiTool {
    /// What its calls are listed under.
    pub server_label: String,
    /// The OpenAPI document: an object, or a text that holds JSON or YAML. Either this or `schema_url`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Raw>,
    /// Where the document is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_url: Option<String>,
    /// The URL of the API, or of one of the document's servers. Without it: the document's first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_url: Option<String>,
    /// The name of a credential of the server's configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// Sent with every call.
    #[serde(default)]
    pub headers: Hidden<Option<BTreeMap<String, String>>>,
    /// The operations that are offered, by id or by the name of the tool. Without it: all; empty: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_operations: Option<Vec<String>>,
    /// Which calls need the client's consent. Without it: all that do more than read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub require_approval: Option<Raw>,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Something that a client tells us and that is never printed, stored or told back: it is written as `null`.
#[derive(Clone, Default, Eq, PartialEq)]
pub struct Hidden<T>(T);

impl<T> Hidden<T> {
    /// Hides it.
    pub fn new(hidden: T) -> Self {
        Self(hidden)
    }

    /// What is hidden. Whoever asks keeps it out of logs and stores.
    pub fn expose(&self) -> &T {
        &self.0
    }
}

impl<T> std::fmt::Debug for Hidden<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}

impl<T> Serialize for Hidden<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_none()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Hidden<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protocol::json::located;

    #[test]
    fn an_api_is_written_back_without_its_headers() {
        let mut json = json!({
            "server_label": "pets", "schema": {"openapi": "3.1.0", "b": 1.0, "a": 2}, "credential": "pets",
            "server_url": "https://a.example", "headers": {"x-key": "hunter2"}, "allowed_operations": [],
            "require_approval": {"never": {"tool_names": ["list"]}}, "more": 1,
        });
        let tool: OpenApiTool = located(&json.to_string()).unwrap();
        assert_eq!(tool.headers.expose().as_ref().unwrap()["x-key"], "hunter2");
        assert!(!format!("{tool:?}").contains("hunter2"), "{tool:?}");
        json["headers"] = serde_json::Value::Null;
        assert_eq!(serde_json::to_value(&tool).unwrap(), json);
        let least: OpenApiTool =
            located(r#"{"server_label":"a","headers":null,"schema":null}"#).unwrap();
        assert_eq!((least.headers.expose(), least.schema), (&None, None));
    }
}
