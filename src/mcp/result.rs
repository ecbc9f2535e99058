//! What a call gave. Pure.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};

use crate::protocol::Raw;

use super::McpError;

/// The result of a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallResult {
    /// Its parts, in order.
    pub content: Vec<ContentPart>,
    /// The same once more for programs.
    pub structured: Option<Raw>,
    /// Whether the tool itself says that it failed; `content` says why.
    pub is_error: bool,
}

/// A part of a result.
#[derive(Clone, Debug, PartialEq)]
pub enum ContentPart {
    /// Text.
    Text(String),
    /// A picture.
    Image(Image),
    /// Sound, in base64.
    Audio {
        /// Its MIME type.
        mime: String,
        /// In base64.
        data: String,
    },
    /// A document as text.
    Document {
        /// Where it is.
        uri: String,
        /// Its MIME type.
        mime: Option<String>,
        /// What it says.
        text: String,
    },
    /// A document as bytes.
    Blob {
        /// Where it is.
        uri: String,
        /// Its MIME type.
        mime: Option<String>,
        /// In base64.
        data: String,
    },
    /// A document that may be fetched.
    Link {
        /// Where it is.
        uri: String,
        /// What it is called.
        name: String,
        /// What it is.
        description: Option<String>,
    },
    /// A part that this version cannot read, as it came.
    Unknown(Raw),
}

/// A picture.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Image {
    /// Its MIME type.
    pub mime: String,
    /// In base64.
    pub data: String,
}

impl Image {
    /// As a `data:` URL; `None` when a model could not read it.
    pub fn data_url(&self) -> Option<String> {
        let kind = self.mime.strip_prefix("image/")?;
        let plain = !kind.is_empty()
            && kind.bytes().all(|c| c.is_ascii_alphanumeric() || b"+-.".contains(&c));
        (plain && !self.data.is_empty() && STANDARD.decode(&self.data).is_ok())
            .then(|| format!("data:{};base64,{}", self.mime, self.data))
    }
}

impl CallResult {
    /// Reads the result of `tools/call`.
    pub(super) fn read(raw: &Raw) -> Result<Self, McpError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Shape {
            #[serde(default)]
            content: Option<Vec<Raw>>,
            #[serde(default)]
            structured_content: Option<Raw>,
            #[serde(default)]
            is_error: Option<bool>,
        }
        if !raw.json().starts_with('{') {
            return Err(McpError::invalid("the result of a call is no object"));
        }
        let shape: Shape = raw
            .to()
            .map_err(|error| McpError::invalid(format!("it is no result of a call ({error})")))?;
        let content = match (shape.content, &shape.structured_content) {
            (Some(content), _) => content.into_iter().map(part).collect(),
            (None, Some(_)) => Vec::new(),
            // Servers of the first days had another form.
            (None, None) => vec![ContentPart::Unknown(raw.clone())],
        };
        Ok(Self {
            content,
            structured: shape.structured_content,
            is_error: shape.is_error == Some(true),
        })
    }

    /// All of it as text, for the model and for the `output` of an `mcp_call`. What is no text is named, so that nothing is missing unseen.
    pub fn text(&self) -> String {
        let mut lines: Vec<String> = self.content.iter().map(ContentPart::text).collect();
        if let Some(structured) = self.structured.as_ref().filter(|json| !self.says(json)) {
            lines.push(structured.json().to_owned());
        }
        if self.is_error && lines.iter().all(|line| line.trim().is_empty()) {
            return "The tool failed and did not say why.".to_owned();
        }
        lines.join("\n")
    }

    /// The pictures, for models that see.
    pub fn images(&self) -> impl Iterator<Item = Image> + '_ {
        self.content.iter().filter_map(|part| match part {
            ContentPart::Image(image) => Some(image.clone()),
            ContentPart::Blob { mime: Some(mime), data, .. } if mime.starts_with("image/") => {
                Some(Image { mime: mime.clone(), data: data.clone() })
            }
            ContentPart::Blob { .. }
            | ContentPart::Text(_)
            | ContentPart::Audio { .. }
            | ContentPart::Document { .. }
            | ContentPart::Link { .. }
            | ContentPart::Unknown(_) => None,
        })
    }

    /// As the `error` of an item, when the tool failed.
    pub fn item_error(&self) -> Option<Raw> {
        #[derive(Serialize)]
        struct ItemError<'a> {
            #[serde(rename = "type")]
            kind: &'a str,
            content: [Text<'a>; 1],
        }
        #[derive(Serialize)]
        struct Text<'a> {
            #[serde(rename = "type")]
            kind: &'a str,
            text: String,
        }
        self.is_error.then(|| {
            Raw::of(&ItemError {
                kind: "mcp_tool_execution_error",
                content: [Text { kind: "text", text: self.text() }],
            })
        })
    }

    /// Whether a text part holds this JSON already.
    fn says(&self, json: &Raw) -> bool {
        let Ok(structured) = json.to::<serde_json::Value>() else { return false };
        self.content.iter().any(|part| match part {
            ContentPart::Text(text) => {
                serde_json::from_str::<serde_json::Value>(text).is_ok_and(|value| {
                    // FastMCP wraps what is no object.
                    value == structured || structured.get("result") == Some(&value)
                }) || structured.get("result").and_then(serde_json::Value::as_str) == Some(text)
            }
            ContentPart::Image(_)
            | ContentPart::Audio { .. }
            | ContentPart::Document { .. }
            | ContentPart::Blob { .. }
            | ContentPart::Link { .. }
            | ContentPart::Unknown(_) => false,
        })
    }
}

impl ContentPart {
    fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Image(image) => {
                let note = if image.data_url().is_some() { "" } else { ", which cannot be read" };
                format!("[image {}, {} bytes{note}]", image.mime, bytes(&image.data))
            }
            Self::Audio { mime, data } => {
                format!("[audio {mime}, {} bytes, not shown]", bytes(data))
            }
            Self::Document { uri, text, .. } => format!("[resource {uri}]\n{text}"),
            Self::Blob { uri, mime, data } => {
                let mime = mime.as_deref().unwrap_or("of unknown type");
                format!("[resource {uri}, {mime}, {} bytes, not shown]", bytes(data))
            }
            Self::Link { uri, name, description } => {
                let about = description.as_ref().map(|about| format!(": {about}"));
                format!("[link {name} {uri}]{}", about.unwrap_or_default())
            }
            Self::Unknown(raw) => raw.json().to_owned(),
        }
    }
}

/// How many bytes this base64 stands for.
fn bytes(data: &str) -> usize {
    data.trim_end_matches('=').len() * 3 / 4
}

fn part(raw: Raw) -> ContentPart {
    #[derive(Deserialize)]
    #[serde(tag = "type", rename_all = "snake_case")]
    enum Shape {
        Text {
            text: String,
        },
        #[serde(rename_all = "camelCase")]
        Image {
            data: String,
            mime_type: String,
        },
        #[serde(rename_all = "camelCase")]
        Audio {
            data: String,
            mime_type: String,
        },
        Resource {
            resource: Resource,
        },
        ResourceLink {
            uri: String,
            #[serde(default)]
            name: String,
            #[serde(default)]
            description: Option<String>,
        },
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Resource {
        uri: String,
        #[serde(default)]
        mime_type: Option<String>,
        #[serde(default)]
        text: Option<String>,
        #[serde(default)]
        blob: Option<String>,
    }
    match raw.to::<Shape>() {
        Ok(Shape::Text { text }) => ContentPart::Text(text),
        Ok(Shape::Image { data, mime_type: mime }) => ContentPart::Image(Image { mime, data }),
        Ok(Shape::Audio { data, mime_type: mime }) => ContentPart::Audio { mime, data },
        Ok(Shape::Resource { resource }) => {
            let Resource { uri, mime_type: mime, text, blob } = resource;
            match (text, blob) {
                (Some(text), _) => ContentPart::Document { uri, mime, text },
                (None, Some(data)) => ContentPart::Blob { uri, mime, data },
                (None, None) => ContentPart::Unknown(raw),
            }
        }
        Ok(Shape::ResourceLink { uri, name, description }) => {
            ContentPart::Link { uri, name, description }
        }
        Err(_) => ContentPart::Unknown(raw),
    }
}

#[cfg(test)]
#[path = "result_tests.rs"]
mod tests;
