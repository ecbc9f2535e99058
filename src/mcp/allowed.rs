//! Which tools of a server may be used at all. Pure.

use serde::{Deserialize, Serialize};

use crate::protocol::{Raw, json::located};

use super::{ToolInfo, Wrong};

/// Picks tools by name and by whether they only read. What is not said does not restrict.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ToolFilter {
    /// Only these names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_names: Option<Vec<String>>,
    /// Only those whose server says that they change nothing, or only the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
}

impl ToolFilter {
    /// Whether the tool is picked.
    pub fn picks(&self, tool: &ToolInfo) -> bool {
        self.tool_names.as_ref().is_none_or(|names| names.contains(&tool.name))
            && self.read_only.is_none_or(|read_only| read_only == tool.read_only())
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn parse(raw: &Raw, at: &str) -> Result<Self, Wrong> {
        if !raw.json().starts_with('{') {
            return Err(Wrong::at(at, "expected an object with `tool_names` or `read_only`"));
        }
        located(raw.json()).map_err(|(path, message)| Wrong::inside(at, &path, message))
    }
}

/// The tools that may be used: those that every filter picks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Allowed(Vec<ToolFilter>);

impl Allowed {
    /// Reads `allowed_tools`: a list of names (an empty one means none), or a filter.
    pub fn parse(raw: &Raw, at: &str) -> Result<Self, Wrong> {
        match raw.json().as_bytes().first() {
            Some(b'[') => {
                let names = located::<Vec<String>>(raw.json())
                    .map_err(|(path, message)| Wrong::inside(at, &path, message))?;
                Ok(Self(vec![ToolFilter { tool_names: Some(names), read_only: None }]))
            }
            Some(b'{') => Ok(Self(vec![ToolFilter::parse(raw, at)?])),
            _ => Err(Wrong::at(
                at,
                "expected a list of names, or an object with `tool_names` or `read_only`",
            )),
        }
    }

    /// Narrows: what both allow.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Whether the tool may be used.
    pub fn allows(&self, tool: &ToolInfo) -> bool {
        self.0.iter().all(|filter| filter.picks(tool))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    pub(in crate::mcp) fn tool(name: &str, read_only: bool) -> ToolInfo {
        ToolInfo {
            name: name.to_owned(),
            title: None,
            description: None,
            input_schema: Raw::parse("{}").unwrap(),
            annotations: Some(Raw::parse(&format!(r#"{{"readOnlyHint":{read_only}}}"#)).unwrap()),
        }
    }

    fn allowed(json: &str) -> Allowed {
        Allowed::parse(&Raw::parse(json).unwrap(), "allowed_tools").unwrap()
    }

    /// Which of `read` (reads only), `write` are allowed.
    fn of(allowed: &Allowed) -> String {
        [tool("read", true), tool("write", false)]
            .iter()
            .filter(|tool| allowed.allows(tool))
            .flat_map(|tool| [&*tool.name, " "])
            .collect()
    }

    #[test]
    fn lists_and_filters() {
        for (json, expected) in [
            ("[]", ""),
            (r#"["read"]"#, "read "),
            (r#"["write","other"]"#, "write "),
            ("{}", "read write "),
            (r#"{"tool_names":[]}"#, ""),
            (r#"{"tool_names":["read"]}"#, "read "),
            (r#"{"tool_names":null,"read_only":null}"#, "read write "),
            (r#"{"read_only":true}"#, "read "),
            (r#"{"read_only":false}"#, "write "),
            (r#"{"tool_names":["write"],"read_only":true}"#, ""),
        ] {
            assert_eq!(of(&allowed(json)), expected, "{json}");
        }
        assert_eq!(of(&Allowed::default()), "read write ");
    }

    #[test]
    fn two_narrow_each_other() {
        for (a, b, expected) in [
            (r#"["read"]"#, r#"["read","write"]"#, "read "),
            (r#"["read"]"#, r#"["write"]"#, ""),
            ("[]", "{}", ""),
            (r#"{"read_only":true}"#, r#"["read","write"]"#, "read "),
        ] {
            assert_eq!(of(&allowed(a).and(allowed(b))), expected, "{a} {b}");
            assert_eq!(of(&allowed(b).and(allowed(a))), expected, "{b} {a}");
        }
    }

    #[test]
    fn wrong_shapes_are_named() {
        for (json, path) in [
            ("true", "allowed_tools"),
            ("\"read\"", "allowed_tools"),
            ("[1]", "allowed_tools[0]"),
            (r#"{"tool_names":"read"}"#, "allowed_tools.tool_names"),
            (r#"{"tool_names":["a",2]}"#, "allowed_tools.tool_names[1]"),
            (r#"{"read_only":"yes"}"#, "allowed_tools.read_only"),
            (r#"{"names":[]}"#, "allowed_tools.names"),
        ] {
            let wrong = Allowed::parse(&Raw::parse(json).unwrap(), "allowed_tools").unwrap_err();
            assert_eq!(wrong.path, path, "{json}: {wrong}");
        }
    }
}
