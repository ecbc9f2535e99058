//! What a request says of an MCP server: its tool of type `mcp`. Pure.

use std::fmt;

use serde_json::{Value, value::RawValue};
use url::Url;

use crate::{
    config::Secret,
    protocol::{ApiError, Raw, json::located},
};

use super::{
    Allowed, Approval,
    headers::{self, Given},
};

/// The most headers that one tool may bring.
const MOST_HEADERS: usize = 64;
/// The longest label, in characters.
const LONGEST_LABEL: usize = 128;

/// A tool of type `mcp`.
#[derive(Clone, Debug)]
pub struct McpTool {
    /// What the client calls the server.
    pub server_label: String,
    /// Where it is.
    pub server_url: Option<Url>,
    /// A connector that was set up before, by id or name.
    pub connector_id: Option<String>,
    /// The token for the server.
    pub authorization: Option<Secret>,
    /// Headers for the server.
    pub headers: Vec<Given>,
    /// What the server is for, for the model.
    pub server_description: Option<String>,
    /// Which tools may be used; `None`: all.
    pub allowed_tools: Option<Allowed>,
    /// Which calls need approval; `None`: all, or what the connector says.
    pub require_approval: Option<Approval>,
}

/// What is wrong with a field, and where it stands.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Wrong {
    /// Such as `require_approval.never.tool_names`.
    pub path: String,
    /// What is wrong, without the path and the full stop.
    pub message: String,
}

impl Wrong {
    pub(super) fn at(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into() }
    }

    /// About a place that `located` found inside of `at`.
    pub(super) fn inside(at: &str, path: &str, message: String) -> Self {
        // serde names an unknown field in its sentence, and where that stands in the path or not.
        let unknown = message
            .strip_prefix("unknown field `")
            .and_then(|rest| rest.split_once('`'))
            .map(|(name, _)| name);
        let dot = if path.is_empty() || path.starts_with('[') { "" } else { "." };
        let mut whole = format!("{at}{dot}{path}");
        if let Some(name) = unknown.filter(|name| !whole.ends_with(&format!(".{name}"))) {
            whole.push('.');
            whole.push_str(name);
        }
        Self { path: whole, message }
    }

    /// As a 400 about the object at `place`, such as `tools[2]`.
    pub fn into_error(self, place: &str) -> ApiError {
        let dot = if place.is_empty() { "" } else { "." };
        let param = format!("{place}{dot}{}", self.path);
        let message = format!("Invalid value for `{param}`: {}.", self.message);
        ApiError::invalid(param, message)
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// A connection to a server as a request or a body describes it.
#[derive(Clone, Debug, Default)]
pub(super) struct Access {
    pub(super) url: Option<Url>,
    pub(super) authorization: Option<Secret>,
    pub(super) headers: Vec<Given>,
}

impl McpTool {
    /// Reads the tool object.
    pub fn parse(raw: &Raw) -> Result<Self, Wrong> {
        let fields = Object::parse(raw)?;
        let server_label = label(&fields)?;
        let connector_id = fields.text("connector_id")?;
        if fields.has("tunnel_id") {
            return Err(Wrong::at("tunnel_id", "tunnels are not supported; give `server_url`"));
        }
        let Access { url, authorization, headers } = access(&fields)?;
        if url.is_some() && connector_id.is_some() {
            let message = "`server_url` is given too; name the server in one way only";
            return Err(Wrong::at("connector_id", message));
        }
        Ok(Self {
            server_label,
            server_url: url,
            connector_id,
            authorization,
            headers,
            server_description: fields.text("server_description")?,
            allowed_tools: fields.rule("allowed_tools", Allowed::parse)?,
            require_approval: fields.rule("require_approval", Approval::parse)?,
        })
    }

    /// The tool object as it may be shown and stored: without the token, and with `headers: null`.
    pub fn echo(raw: &Raw) -> Raw {
        let Ok(mut fields) = raw.to::<serde_json::Map<String, Value>>() else { return Raw::null() };
        fields.shift_remove("authorization");
        fields.insert("headers".to_owned(), Value::Null);
        Raw::of(&fields)
    }
}

/// Reads `server_url`, `authorization` and `headers`.
pub(super) fn access(fields: &Object<'_>) -> Result<Access, Wrong> {
    let url = match fields.text("server_url")? {
        None => None,
        Some(text) => Some(http_url(&text).map_err(|message| Wrong::at("server_url", message))?),
    };
    let authorization = fields.text("authorization")?.map(Secret::from);
    if authorization.as_ref().is_some_and(|token| !headers::can_authorize(token)) {
        return Err(Wrong::at("authorization", "it is empty or cannot be sent in a header"));
    }
    Ok(Access { url, authorization, headers: given(fields)? })
}

/// Reads `server_label`.
pub(super) fn label(fields: &Object<'_>) -> Result<String, Wrong> {
    let label = fields.text("server_label")?.unwrap_or_default();
    let length = label.chars().count();
    if label.trim().is_empty() {
        return Err(Wrong::at("server_label", "a label is needed; items name the server by it"));
    }
    if length > LONGEST_LABEL || label.contains(char::is_control) {
        let message = format!(
            "it may have {LONGEST_LABEL} characters at most, none of them a control character"
        );
        return Err(Wrong::at("server_label", message));
    }
    Ok(label)
}

fn given(fields: &Object<'_>) -> Result<Vec<Given>, Wrong> {
    let Some(raw) = fields.raw("headers") else { return Ok(Vec::new()) };
    let values: serde_json::Map<String, Value> = located(raw.get()).map_err(|(path, _)| {
        Wrong::inside("headers", &path, "expected an object of texts".to_owned())
    })?;
    if values.len() > MOST_HEADERS {
        return Err(Wrong::at("headers", format!("there may be {MOST_HEADERS} headers at most")));
    }
    values
        .into_iter()
        .map(|(name, value)| {
            let Value::String(value) = value else {
                return Err(Wrong::at(format!("headers.{name}"), "expected a text"));
            };
            let value = Secret::from(value);
            match headers::fault(&name, &value) {
                Some(fault) => Err(Wrong::at(format!("headers.{name}"), fault)),
                None => Ok((name, value)),
            }
        })
        .collect()
}

fn http_url(text: &str) -> Result<Url, String> {
    // The text stays out of the sentence: it may hold a password.
    let url = Url::parse(text).map_err(|error| {
        format!("it is no address ({error}); it should look like `https://mcp.example/mcp`")
    })?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        other => Err(format!("the scheme `{other}` is not allowed; use https or http")),
    }
}

/// A JSON object, read field by field. `null` counts as absent.
pub(super) struct Object<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Object<'a> {
    pub(super) fn parse(raw: &'a Raw) -> Result<Self, Wrong> {
        struct Fields<'a>(Vec<(String, &'a RawValue)>);
        impl<'de> serde::Deserialize<'de> for Fields<'de> {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl<'de> serde::de::Visitor<'de> for Visitor {
                    type Value = Fields<'de>;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("an object")
                    }
                    fn visit_map<A: serde::de::MapAccess<'de>>(
                        self,
                        mut map: A,
                    ) -> Result<Self::Value, A::Error> {
                        let mut fields = Vec::new();
                        while let Some(field) = map.next_entry()? {
                            fields.push(field);
                        }
                        Ok(Fields(fields))
                    }
                }
                d.deserialize_map(Visitor)
            }
        }
        let Fields(fields) = raw.to().map_err(|_| Wrong::at("", "expected an object"))?;
        Ok(Self(fields))
    }

    pub(super) fn raw(&self, name: &str) -> Option<&'a RawValue> {
        let (_, raw) = self.0.iter().rev().find(|(field, _)| field == name)?;
        (raw.get() != "null").then_some(*raw)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.raw(name).is_some()
    }

    /// Whether the field stands there, be it as `null`.
    pub(super) fn mentions(&self, name: &str) -> bool {
        self.0.iter().any(|(field, _)| field == name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| &**name)
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<String>, Wrong> {
        let Some(raw) = self.raw(name) else { return Ok(None) };
        serde_json::from_str(raw.get()).map(Some).map_err(|_| Wrong::at(name, "expected a text"))
    }

    pub(super) fn rule<T>(
        &self,
        name: &str,
        parse: impl FnOnce(&Raw, &str) -> Result<T, Wrong>,
    ) -> Result<Option<T>, Wrong> {
        self.raw(name).map(|raw| parse(&raw.to_owned().into(), name)).transpose()
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
