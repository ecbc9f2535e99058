//! What a server offers. Pure.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::protocol::Raw;

use super::McpError;

/// The most pages of a list.
const MOST_PAGES: usize = 100;
/// The longest cursor, in bytes.
const LONGEST_CURSOR: usize = 8 << 10;
/// What a tool takes that says nothing of it.
const NO_ARGUMENTS: &str = r#"{"type":"object","properties":{}}"#;

/// The tools of a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolList {
    /// In the server's order, no two with one name.
    pub tools: Vec<ToolInfo>,
}

/// A tool of a server. Serialises as `mcp_list_tools` shows it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ToolInfo {
    /// Its name on the server.
    pub name: String,
    /// What it is called for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does, for the model.
    #[serde(default)]
    pub description: Option<String>,
    /// JSON schema of its arguments, as it came: an object.
    #[serde(default = "no_arguments")]
    pub input_schema: Raw,
    /// What the server says of its behaviour. Hints, not promises.
    #[serde(default)]
    pub annotations: Option<Raw>,
}

/// The schema of a tool that says nothing of it.
fn no_arguments() -> Raw {
    Raw::parse(NO_ARGUMENTS).unwrap_or_else(|_| Raw::null())
}

impl ToolInfo {
    /// Whether the server says that it changes nothing.
    pub fn read_only(&self) -> bool {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Hints {
            #[serde(default)]
            read_only_hint: Option<bool>,
        }
        let hints = self.annotations.as_ref().and_then(|hints| hints.to::<Hints>().ok());
        hints.is_some_and(|hints| hints.read_only_hint == Some(true))
    }
}

/// A list in the making.
pub(super) struct Pages {
    list: ToolList,
    names: HashSet<String>,
    cursor: Option<String>,
    read: usize,
    most: usize,
    bytes: usize,
    limit: usize,
}

/// Which page is asked for.
#[derive(Serialize)]
pub(super) struct PageParams {
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
}

impl Pages {
    pub(super) fn new(most: usize, limit: usize) -> Self {
        Self {
            list: ToolList::default(),
            names: HashSet::new(),
            cursor: None,
            read: 0,
            most,
            bytes: 0,
            limit,
        }
    }

    pub(super) fn next(&self) -> PageParams {
        PageParams { cursor: self.cursor.clone() }
    }

    /// Takes a page; gives the whole list when it was the last.
    pub(super) fn add(&mut self, page: &Raw) -> Result<Option<ToolList>, McpError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Page {
            tools: Vec<Raw>,
            #[serde(default)]
            next_cursor: Option<String>,
        }
        self.bytes += page.json().len();
        if self.bytes > self.limit {
            return Err(McpError::TooLarge(self.limit));
        }
        let page: Page =
            page.to().map_err(|error| McpError::invalid(format!("it lists no tools ({error})")))?;
        if self.list.tools.len() + page.tools.len() > self.most {
            return Err(McpError::TooManyTools(self.most));
        }
        for tool in &page.tools {
            match read(tool) {
                Some(tool) if self.names.insert(tool.name.clone()) => self.list.tools.push(tool),
                Some(tool) => {
                    tracing::warn!(name = %tool.name, "MCP tool listed twice; the first counts");
                }
                None => tracing::warn!(
                    "MCP tool without a name, or with a schema that cannot be read, left out"
                ),
            }
        }
        self.read += 1;
        match page.next_cursor.filter(|cursor| !cursor.is_empty()) {
            None => Ok(Some(std::mem::take(&mut self.list))),
            Some(cursor) if cursor.len() > LONGEST_CURSOR => {
                Err(McpError::invalid("the cursor of its list is too long"))
            }
            Some(_) if self.read == MOST_PAGES => Err(McpError::TooManyTools(self.most)),
            Some(cursor) if self.cursor.as_ref() == Some(&cursor) => {
                Err(McpError::invalid("its list of tools does not end"))
            }
            Some(cursor) => {
                self.cursor = Some(cursor);
                Ok(None)
            }
        }
    }
}

/// Reads a tool. What is no text in it counts as absent, for no model should lose a tool because of its title.
fn read(raw: &Raw) -> Option<ToolInfo> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Shape {
        name: String,
        #[serde(default)]
        title: Option<serde_json::Value>,
        #[serde(default)]
        description: Option<serde_json::Value>,
        #[serde(default)]
        input_schema: Option<Raw>,
        #[serde(default)]
        annotations: Option<Raw>,
    }
    let shape: Shape = raw.to().ok().filter(|shape: &Shape| !shape.name.is_empty())?;
    let text = |value: Option<serde_json::Value>| {
        value.and_then(|value| value.as_str().map(str::to_owned))
    };
    // Parsed whole, so that no schema nests too deep for whoever reads it later.
    let is_object = |raw: &Raw| raw.to::<serde_json::Map<String, serde_json::Value>>().is_ok();
    let input_schema = match shape.input_schema {
        Some(schema) if is_object(&schema) => schema,
        Some(_) => return None,
        None => no_arguments(),
    };
    Some(ToolInfo {
        name: shape.name,
        title: text(shape.title),
        description: text(shape.description),
        input_schema,
        annotations: shape.annotations.filter(is_object),
    })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn page(tools: &str, cursor: &str) -> Raw {
        Raw::parse(&format!(r#"{{"tools":[{tools}]{cursor}}}"#)).unwrap()
    }

    fn pages() -> Pages {
        Pages::new(3, 2000)
    }

    #[test]
    fn tools_are_read_as_they_are() {
        let tools = r#"{"name":"a","title":"A","description":"d","inputSchema":{ "type":"object","z":1.0},"annotations":{"readOnlyHint":true}},
                       {"name":"b","description":null,"title":7},{"name":"c","inputSchema":{}}"#;
        let list = pages().add(&page(tools, "")).unwrap().unwrap();
        let shown: Vec<String> =
            list.tools.iter().map(|tool| serde_json::to_string(tool).unwrap()).collect();
        assert_eq!(
            shown,
            [
                r#"{"name":"a","title":"A","description":"d","input_schema":{ "type":"object","z":1.0},"annotations":{"readOnlyHint":true}}"#,
                r#"{"name":"b","description":null,"input_schema":{"type":"object","properties":{}},"annotations":null}"#,
                r#"{"name":"c","description":null,"input_schema":{},"annotations":null}"#,
            ]
        );
        assert_eq!(
            list.tools.iter().map(ToolInfo::read_only).collect::<Vec<_>>(),
            [true, false, false]
        );
    }

    #[test]
    fn only_a_hint_that_says_true_is_read_only() {
        for (annotations, expected) in [
            ("null", false),
            (r#"{"readOnlyHint":false}"#, false),
            (r#"{"readOnlyHint":"true"}"#, false),
            (r#"{"destructiveHint":false}"#, false),
            (r#"{"readOnlyHint":true,"destructiveHint":true}"#, true),
        ] {
            let tool = format!(r#"{{"name":"a","annotations":{annotations}}}"#);
            let list = pages().add(&page(&tool, "")).unwrap().unwrap();
            assert_eq!(list.tools[0].read_only(), expected, "{annotations}");
        }
    }

    #[test]
    fn what_cannot_be_called_is_left_out() {
        let deep = format!("{}1{}", r#"{"a":"#.repeat(500), "}".repeat(500));
        for tool in [
            r#"{"name":""}"#.to_owned(),
            r#"{"description":"nameless"}"#.to_owned(),
            r#""x""#.to_owned(),
            r#"{"name":"a","inputSchema":[]}"#.to_owned(),
            format!(r#"{{"name":"a","inputSchema":{deep}}}"#),
        ] {
            let tools = format!(r#"{tool},{{"name":"b"}},{{"name":"b"}}"#);
            let list = Pages::new(3, 100_000).add(&page(&tools, "")).unwrap().unwrap();
            let names: Vec<&str> = list.tools.iter().map(|tool| &*tool.name).collect();
            assert_eq!(names, ["b"], "{tool}");
        }
    }

    #[test]
    fn pages_follow_each_other_and_end() {
        let mut pages = pages();
        assert_eq!(serde_json::to_string(&pages.next()).unwrap(), "{}");
        assert_eq!(pages.add(&page(r#"{"name":"a"}"#, r#","nextCursor":"2""#)).unwrap(), None);
        assert_eq!(serde_json::to_string(&pages.next()).unwrap(), r#"{"cursor":"2"}"#);
        let list = pages.add(&page(r#"{"name":"b"}"#, r#","nextCursor":"""#)).unwrap().unwrap();
        assert_eq!(list.tools.len(), 2);
    }

    #[test]
    fn lists_are_bounded() {
        let four = r#"{"name":"a"},{"name":"b"},{"name":"c"},{"name":"d"}"#;
        assert_eq!(pages().add(&page(four, "")), Err(McpError::TooManyTools(3)));
        let long = format!(r#"{{"name":"a","description":"{}"}}"#, "x".repeat(3000));
        assert_eq!(pages().add(&page(&long, "")), Err(McpError::TooLarge(2000)));
        let mut same = pages();
        same.add(&page("", r#","nextCursor":"x""#)).unwrap();
        assert!(matches!(same.add(&page("", r#","nextCursor":"x""#)), Err(McpError::Invalid(_))));
        let mut endless = Pages::new(3, usize::MAX);
        let ends = (0..).find_map(|n| {
            endless.add(&page("", &format!(r#","nextCursor":"{n}""#))).err().map(|error| (n, error))
        });
        assert_eq!(ends, Some((MOST_PAGES - 1, McpError::TooManyTools(3))));
        for page in ["{}", "[]", r#"{"tools":{}}"#, "null"] {
            let page = Raw::parse(page).unwrap();
            assert!(matches!(pages().add(&page), Err(McpError::Invalid(_))));
        }
    }
}
