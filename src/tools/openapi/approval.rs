//! Whether a call waits for somebody's consent.

use crate::protocol::openapi_tool::{ApprovalFilter, RequireApproval};

use super::operation::Operation;

/// Whether a call of this operation waits for consent. Without a rule: unless it only reads. With lists: unless `never` has it and
/// `always` has not; what neither has waits, as with MCP.
pub fn needs_approval(rule: Option<&RequireApproval>, operation: &Operation) -> bool {
    let has = |filter: &Option<ApprovalFilter>| {
        filter.as_ref().is_some_and(|filter| covers(filter, operation))
    };
    match rule {
        None => !operation.reads_only(),
        Some(RequireApproval::Always) => true,
        Some(RequireApproval::Never) => false,
        Some(RequireApproval::Lists { always, never }) => has(always) || !has(never),
    }
}

/// Whether all that the filter says holds; one that says nothing covers nothing.
fn covers(filter: &ApprovalFilter, operation: &Operation) -> bool {
    let named =
        filter.tool_names.as_ref().map(|names| names.iter().any(|name| operation.is_called(name)));
    let reads = filter.read_only.map(|read_only| read_only == operation.reads_only());
    (named.is_some() || reads.is_some()) && named.unwrap_or(true) && reads.unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tools::openapi::{Wanted, parse};

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
            let rule: Option<RequireApproval> = serde_json::from_str(rule).unwrap();
            let asking =
                operations.iter().filter(|operation| needs_approval(rule.as_ref(), operation));
            asking.map(|operation| operation.method.as_str()).collect::<Vec<_>>().join(" ")
        };
        for (rule, expected) in [
            ("null", "POST PUT PATCH DELETE OPTIONS"),
            (r#""always""#, "GET HEAD POST PUT PATCH DELETE OPTIONS"),
            (r#""never""#, ""),
            (r#"{"never":{"tool_names":["add","list_all"]}}"#, "HEAD PUT PATCH DELETE OPTIONS"),
            (r#"{"never":{"tool_names":["list.all"]}}"#, "HEAD POST PUT PATCH DELETE OPTIONS"),
            (r#"{"never":{"read_only":true}}"#, "POST PUT PATCH DELETE OPTIONS"),
            (
                r#"{"never":{"read_only":true},"always":{"tool_names":["list.all"]}}"#,
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
