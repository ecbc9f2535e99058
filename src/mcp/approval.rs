//! Which calls a person must agree to first. Pure.

use serde::Deserialize;

use crate::protocol::{Raw, json::located};

use super::{ToolInfo, Wrong, allowed::ToolFilter};

/// Which calls need approval: those that any of its rules asks for; without a rule, all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Approval(Vec<Rule>);

#[derive(Clone, Debug, PartialEq)]
enum Rule {
    Always,
    Never,
    /// What is in `always`, and what is not in `never`.
    Lists {
        always: ToolFilter,
        never: ToolFilter,
    },
}

impl Approval {
    /// Reads `require_approval`: `always`, `never`, or `{always: {tool_names, read_only}, never: {..}}`.
    pub fn parse(raw: &Raw, at: &str) -> Result<Self, Wrong> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Lists {
            #[serde(default)]
            always: Option<Raw>,
            #[serde(default)]
            never: Option<Raw>,
        }
        let rule = match raw.json() {
            "\"always\"" => Rule::Always,
            "\"never\"" => Rule::Never,
            object if object.starts_with('{') => {
                let lists: Lists =
                    located(object).map_err(|(path, message)| Wrong::inside(at, &path, message))?;
                let filter = |raw: Option<Raw>, name: &str| match raw {
                    Some(raw) => ToolFilter::parse(&raw, &format!("{at}.{name}")),
                    None => Ok(ToolFilter::default()),
                };
                let always = filter(lists.always, "always")?;
                let never = filter(lists.never, "never")?;
                if let Some(name) = in_both(&always, &never) {
                    let message =
                        format!("`{name}` is in `always` and in `never`; it can be in one only");
                    return Err(Wrong::at(at, message));
                }
                Rule::Lists { always, never }
            }
            _ => {
                return Err(Wrong::at(
                    at,
                    "expected `always`, `never`, or an object with the filters `always` and `never`",
                ));
            }
        };
        Ok(Self(vec![rule]))
    }

    /// What a request makes of a connector's rule: a call needs approval when either asks for it.
    #[must_use]
    pub fn narrowed_by(mut self, request: Self) -> Self {
        if self.0.is_empty() {
            // No rule asks for all; beside another one it would ask for nothing.
            self.0.push(Rule::Always);
        }
        self.0.extend(request.0);
        self
    }

    /// Whether a person must agree to calls of this tool.
    pub fn is_needed(&self, tool: &ToolInfo) -> bool {
        self.0.is_empty() || self.0.iter().any(|rule| rule.asks(tool))
    }
}

impl Rule {
    fn asks(&self, tool: &ToolInfo) -> bool {
        // A filter that says nothing lists nothing: nobody means "all" by an empty object.
        let lists = |filter: &ToolFilter| !filter.is_empty() && filter.picks(tool);
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Lists { always, never } => lists(always) || !lists(never),
        }
    }
}

fn in_both<'a>(a: &'a ToolFilter, b: &ToolFilter) -> Option<&'a str> {
    let (a, b) = (a.tool_names.as_ref()?, b.tool_names.as_ref()?);
    a.iter().find(|name| b.contains(name)).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;
    use crate::mcp::allowed::tests::tool;

    fn approval(json: &str) -> Approval {
        Approval::parse(&Raw::parse(json).unwrap(), "require_approval").unwrap()
    }

    /// Which of `read` (reads only), `write`, `drop` need approval.
    fn of(approval: &Approval) -> String {
        [tool("read", true), tool("write", false), tool("drop", false)]
            .iter()
            .filter(|tool| approval.is_needed(tool))
            .flat_map(|tool| [&*tool.name, " "])
            .collect()
    }

    const ALL: &str = "read write drop ";

    #[test]
    fn what_is_not_listed_needs_approval() {
        for (json, expected) in [
            ("\"always\"", ALL),
            ("\"never\"", ""),
            ("{}", ALL),
            (r#"{"never":{}}"#, ALL),
            (r#"{"always":{},"never":null}"#, ALL),
            (r#"{"never":{"tool_names":[]}}"#, ALL),
            (r#"{"never":{"tool_names":["read"]}}"#, "write drop "),
            (r#"{"never":{"read_only":true}}"#, "write drop "),
            (r#"{"never":{"tool_names":["write"],"read_only":true}}"#, ALL),
            (r#"{"always":{"tool_names":["drop"]}}"#, ALL),
            (
                r#"{"always":{"tool_names":["drop"]},"never":{"tool_names":["read","write"]}}"#,
                "drop ",
            ),
            (
                r#"{"always":{"read_only":false},"never":{"tool_names":["read","write"]}}"#,
                "write drop ",
            ),
        ] {
            assert_eq!(of(&approval(json)), expected, "{json}");
        }
        assert_eq!(of(&Approval::default()), ALL);
    }

    #[test]
    fn a_request_narrows_and_never_widens() {
        for (connector, request, expected) in [
            ("\"always\"", "\"never\"", ALL),
            ("\"never\"", "\"never\"", ""),
            ("\"never\"", "\"always\"", ALL),
            (r#"{"never":{"tool_names":["read"]}}"#, "\"never\"", "write drop "),
            (
                r#"{"never":{"tool_names":["read","write"]}}"#,
                r#"{"never":{"tool_names":["write","drop"]}}"#,
                "read drop ",
            ),
        ] {
            let (connector, request) = (approval(connector), approval(request));
            assert_eq!(of(&connector.clone().narrowed_by(request.clone())), expected);
            assert_eq!(of(&request.narrowed_by(connector)), expected);
        }
        assert_eq!(of(&Approval::default().narrowed_by(approval("\"never\""))), ALL);
    }

    #[test]
    fn wrong_shapes_are_named() {
        for (json, path) in [
            ("true", "require_approval"),
            ("\"sometimes\"", "require_approval"),
            ("[]", "require_approval"),
            (r#"{"sometimes":{}}"#, "require_approval.sometimes"),
            (r#"{"never":["read"]}"#, "require_approval.never"),
            (r#"{"never":{"tool_names":"read"}}"#, "require_approval.never.tool_names"),
            (r#"{"never":{"tools":["read"]}}"#, "require_approval.never.tools"),
            (r#"{"always":{"tool_names":[null]}}"#, "require_approval.always.tool_names[0]"),
            (
                r#"{"always":{"tool_names":["a"]},"never":{"tool_names":["b","a"]}}"#,
                "require_approval",
            ),
        ] {
            let wrong =
                Approval::parse(&Raw::parse(json).unwrap(), "require_approval").unwrap_err();
            assert_eq!(wrong.path, path, "{json}: {wrong}");
        }
    }
}
