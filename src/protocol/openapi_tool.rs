//! The tool `antiphon:openapi`: an HTTP API that an OpenAPI document describes. An extension.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::value::RawValue;

use super::json::{Extra, Raw, read_nested};

/// An HTTP API whose operations become tools.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct OpenApiTool {
    /// What its calls are listed under.
    pub server_label: String,
    /// The document: an object, or a text that holds JSON or YAML. Either this or `schema_url`.
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
    /// Headers that are sent with every call. Never stored and never shown: they may hold keys.
    #[serde(default, skip_serializing)]
    pub headers: SentHeaders,
    /// The operations that are offered, by id or by name. Without it: all; empty: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_operations: Option<Vec<String>>,
    /// Which calls wait for consent. Without it: all that do more than read.
    #[serde(default)]
    pub require_approval: Option<RequireApproval>,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Headers of a request's own, by name. Debug output shows no values.
#[derive(Clone, Default, PartialEq)]
pub struct SentHeaders(BTreeMap<String, String>);

impl SentHeaders {
    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl<'de> Deserialize<'de> for SentHeaders {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let headers = Option::<BTreeMap<String, String>>::deserialize(deserializer)?;
        Ok(Self(headers.unwrap_or_default()))
    }
}

impl fmt::Debug for SentHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Which calls wait for consent.
#[derive(Clone, Debug, PartialEq)]
pub enum RequireApproval {
    /// All.
    Always,
    /// None.
    Never,
    /// Some: those that `always` has, and those that `never` has not.
    Lists {
        /// These wait.
        always: Option<ApprovalFilter>,
        /// These do not.
        never: Option<ApprovalFilter>,
    },
}

/// Some of the tools behind a label: those for which all holds that is said here.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalFilter {
    /// They have one of these names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_names: Option<Vec<String>>,
    /// They only read, or do more than that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Lists {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    always: Option<ApprovalFilter>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    never: Option<ApprovalFilter>,
}

impl<'de> Deserialize<'de> for RequireApproval {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        match raw.get() {
            r#""always""# => Ok(Self::Always),
            r#""never""# => Ok(Self::Never),
            object if object.starts_with('{') => {
                let Lists { always, never } = read_nested(raw)?;
                Ok(Self::Lists { always, never })
            }
            _ => Err(D::Error::custom(
                "expected `always`, `never`, or an object with lists under `always` and `never`",
            )),
        }
    }
}

impl Serialize for RequireApproval {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Always => serializer.serialize_str("always"),
            Self::Never => serializer.serialize_str("never"),
            Self::Lists { always, never } => {
                Lists { always: always.clone(), never: never.clone() }.serialize(serializer)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::protocol::json::located;

    #[test]
    fn what_is_written_back_holds_no_header() {
        let json = json!({
            "server_label": "pets", "schema_url": "https://a.example/api.yaml", "credential": "pets",
            "headers": {"x-key": "hunter2"}, "allowed_operations": ["list"],
            "require_approval": {"never": {"tool_names": ["list"]}}, "more": 1,
        });
        let tool: OpenApiTool = located(&json.to_string()).unwrap();
        assert_eq!(tool.headers.iter().collect::<Vec<_>>(), [("x-key", "hunter2")]);
        assert!(!format!("{tool:?}").contains("hunter2"), "{tool:?}");
        let mut expected = json;
        expected.as_object_mut().unwrap().remove("headers");
        assert_eq!(serde_json::to_value(&tool).unwrap(), expected);
    }

    #[test]
    fn what_is_absent_is_null_or_empty() {
        let tool: OpenApiTool =
            located(r#"{"server_label":"a","headers":null,"schema":"openapi: 3.0.0"}"#).unwrap();
        assert_eq!(tool.headers, SentHeaders::default());
        assert_eq!(tool.require_approval, None);
        let written = serde_json::to_value(&tool).unwrap();
        assert_eq!(
            written,
            json!({"server_label": "a", "schema": "openapi: 3.0.0", "require_approval": null})
        );
    }

    #[test]
    fn wrong_rules_are_named() {
        let error = |rule: Value| {
            let json = json!({"server_label": "a", "require_approval": rule});
            located::<OpenApiTool>(&json.to_string()).unwrap_err()
        };
        assert_eq!(
            error(json!("sometimes")),
            (
                "require_approval".to_owned(),
                "expected `always`, `never`, or an object with lists under `always` and `never`"
                    .to_owned()
            )
        );
        assert_eq!(error(json!({"never": {"names": []}})).0, "require_approval.never.names");
    }
}
