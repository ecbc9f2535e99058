//! Whether a call waits for somebody's consent.

use crate::mcp::Approval;

use super::operation::Operation;

/// Whether a call of this operation waits for consent. Without a rule: unless it only reads. A rule means the names of tools, and what it does
/// not list waits, as with MCP.
pub fn needs_approval(rule: Option<&Approval>, operation: &Operation) -> bool {
    rule.map_or(!operation.reads_only(), |rule| rule.is_needed(&operation.listed()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        protocol::Raw,
        tools::openapi::{Wanted, parse},
    };

    #[test]
    fn reading_is_free_and_the_rest_asks_unless_told_otherwise() {
        let document = json!({
            "openapi": "3.1.0", "info": {"title": "T"}, "servers": [{"url": "https://a.example"}],
            "paths": {"/a": {
                "get": {"operationId": "list.all"}, "head": {}, "post": {"operationId": "add"},
                "put": {}, "patch": {}, "delete": {}, "options": {},
            }},
        });
        let wanted =
            Wanted { server_url: None, schema_url: None, allowed: None, max_operations: 10 };
        let operations = parse(&document, &wanted).unwrap();
        let asks = |rule: &str| -> String {
            let rule = (rule != "null")
                .then(|| Approval::parse(&Raw::parse(rule).unwrap(), "require_approval").unwrap());
            let asking =
                operations.iter().filter(|operation| needs_approval(rule.as_ref(), operation));
            asking.map(|operation| operation.method.as_str()).collect::<Vec<_>>().join(" ")
        };
        for (rule, expected) in [
            ("null", "POST PUT PATCH DELETE OPTIONS"),
            (r#""always""#, "GET HEAD POST PUT PATCH DELETE OPTIONS"),
            (r#""never""#, ""),
            (r#"{"never":{"tool_names":["add","list_all"]}}"#, "HEAD PUT PATCH DELETE OPTIONS"),
            (r#"{"never":{"tool_names":["list_all"]}}"#, "HEAD POST PUT PATCH DELETE OPTIONS"),
            (r#"{"never":{"read_only":true}}"#, "POST PUT PATCH DELETE OPTIONS"),
            (
                r#"{"never":{"read_only":true},"always":{"tool_names":["list_all"]}}"#,
                "GET POST PUT PATCH DELETE OPTIONS",
            ),
            (r#"{"never":{"tool_names":[]}}"#, "GET HEAD POST PUT PATCH DELETE OPTIONS"),
            (r#"{"never":{}}"#, "GET HEAD POST PUT PATCH DELETE OPTIONS"),
            ("{}", "GET HEAD POST PUT PATCH DELETE OPTIONS"),
        ] {
            assert_eq!(asks(rule), expected, "{rule}");
        }
    }
}
